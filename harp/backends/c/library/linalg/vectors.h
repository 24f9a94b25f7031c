/* Vectors of HARP_LANES elements of HARP_T, and loops over constant ranges that are unrolled completely, so that an
 * array of vectors with constant indices is kept in registers. */
#ifndef HARP_VECTORS_H
#define HARP_VECTORS_H

#include "names.h"
#include <stdint.h>

typedef HARP_T real;

/* At any address that fits an element, and over memory that is written as elements. */
typedef real vector __attribute__((vector_size(HARP_LANES * sizeof(real)), aligned(sizeof(real)), may_alias));

enum { LANES = HARP_LANES, VECTOR_BYTES = HARP_LANES * sizeof(real) };

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))

#if defined(__clang__)
#define UNROLLED_FOR(...) _Pragma("clang loop unroll(full)") for (__VA_ARGS__)
#else
#define UNROLLED_FOR(...) _Pragma("GCC unroll 64") for (__VA_ARGS__)
#endif

INLINE vector load(const real *from) { return *(const vector *)from; }

INLINE void store(real *to, vector x) { *(vector *)to = x; }

#endif
