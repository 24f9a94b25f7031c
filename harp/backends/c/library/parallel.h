/* How the function of a parallel loop's body is run for all iterations: in order, or by several threads (pool.c). */
#ifndef HARP_PARALLEL_H
#define HARP_PARALLEL_H

#include "generated.h"

/* What a part is given begins with this. When the status is not 0, because a part has failed or Python was interrupted,
 * the iterations that remain are left out. `least` iterations go without a question: as many as compilers compute side
 * by side in vectors. */
typedef struct {
    int status, least;
} harp_job;

typedef void harp_part(void *given, int64_t begin, int64_t end);
extern HARP_EXPORT void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work);

#endif
