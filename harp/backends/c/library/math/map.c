/* A function of each element of one row, or of two: HARP_NAME of HARP_FLOAT, with so many HARP_ARGUMENTS. Where it has
 * a twin for common arguments (HARP_NEAR), that one is asked first; both give the same bits for these. */
#include "generated.h"
#include "math/map.h"
#include "names.h"

#define OF_NAME(stem) HARP_JOIN(HARP_JOIN(stem, HARP_NAME), HARP_JOIN(_, HARP_FLOAT))
#define NEAR HARP_JOIN(HARP_JOIN(harp_, HARP_NAME), HARP_JOIN(_near_, HARP_FLOAT))

#if HARP_ARGUMENTS == 1
#define OF_ONE(T) const T *restrict from
#define OF_EACH from[i]
#else
#define OF_ONE(T) const T *restrict from, const T *restrict other
#define OF_EACH from[i], other[i]
#endif

void OF_NAME(harp_map_)(int64_t count, OF_ONE(HARP_T), HARP_T *restrict to)
{
#ifdef HARP_NEAR
    uint32_t far = 0;
    for (int64_t i = 0; i < count; ++i) to[i] = NEAR(&far, OF_EACH);
    if (!far) return;
#endif
    for (int64_t i = 0; i < count; ++i) to[i] = OF_NAME(harp_)(OF_EACH);
}
