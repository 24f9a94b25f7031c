/* What runs a part of a parallel loop for all its iterations: one after the other, or by several threads (pool.c). */
#ifndef HARP_PARALLEL_H
#define HARP_PARALLEL_H

#include "generated.h"

typedef void harp_part(void *given, int64_t begin, int64_t end);
extern HARP_EXPORT void (*harp_parallel)(harp_part *part, void *given, int64_t count, double work);

#endif
