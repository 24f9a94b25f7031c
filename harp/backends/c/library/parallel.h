/* How the function of a parallel loop's body is run for all iterations: in order, or by several threads (pool.c). */
#ifndef HARP_PARALLEL_H
#define HARP_PARALLEL_H

#include "generated.h"

typedef void harp_part(void *given, int64_t begin, int64_t end);
extern HARP_EXPORT void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work);

#endif
