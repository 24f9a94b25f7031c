/* Vectors of HARP_LANES elements of HARP_T, by default as many as the machine has vectors for, and loops over constant
 * ranges that are unrolled completely, so that an array of vectors with constant indices is kept in registers. */
#ifndef HARP_VECTORS_H
#define HARP_VECTORS_H

#if defined(HARP_LANES)
#elif defined(__AVX512F__)
#define HARP_LANES (64 * 8 / HARP_BITS)
#elif defined(__AVX__)
#define HARP_LANES (32 * 8 / HARP_BITS)
#else
#define HARP_LANES (16 * 8 / HARP_BITS)
#endif

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

/* sum += a*b, rounded once, of vectors or of a vector and a number. The flags of a file ask for that. In a file without
 * flags of its own (HARP_BY_NAME) the instruction is named: in loops, gcc makes two of it for some processors. */
#if defined(HARP_BY_NAME) && defined(__FMA__) && !defined(__clang__)
#if HARP_BITS == 32 && HARP_LANES == 16
#define FUSED(a, b, c) __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)
#elif HARP_BITS == 32 && HARP_LANES == 8
#define FUSED(a, b, c) __builtin_ia32_vfmaddps256(a, b, c)
#elif HARP_BITS == 32 && HARP_LANES == 4
#define FUSED(a, b, c) __builtin_ia32_vfmaddps(a, b, c)
#elif HARP_BITS == 64 && HARP_LANES == 8
#define FUSED(a, b, c) __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4)
#elif HARP_BITS == 64 && HARP_LANES == 4
#define FUSED(a, b, c) __builtin_ia32_vfmaddpd256(a, b, c)
#elif HARP_BITS == 64 && HARP_LANES == 2
#define FUSED(a, b, c) __builtin_ia32_vfmaddpd(a, b, c)
#endif
#define ADD_PRODUCT(sum, a, b) ((sum) = FUSED((a) - (vector){0}, (b) - (vector){0}, sum))
#else
#define ADD_PRODUCT(sum, a, b) ((sum) += (a) * (b))
#endif

INLINE vector load(const real *from) { return *(const vector *)from; }

INLINE void store(real *to, vector x) { *(vector *)to = x; }

#endif
