/* For compilers of C11 that do not have gcc's language, such as MSVC: what the library uses of it. Complex numbers,
 * which MSVC does not have, are left out. */
#ifndef HARP_OTHER_COMPILERS_H
#define HARP_OTHER_COMPILERS_H
#if !defined(__GNUC__)

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(_MSC_VER)
#include <malloc.h>
#define aligned_alloc(alignment, size) _aligned_malloc(size, alignment)
#define free _aligned_free
#else
void *aligned_alloc(size_t alignment, size_t size); /* which some declare for C11 only */
#endif

#undef __attribute__ /* glibc defines it, too */
#define __attribute__(list)
#define __builtin_memcpy memcpy
#define __builtin_memset memset
#define __builtin_memcmp memcmp
#define __builtin_fma fma
#define __builtin_fmaf fmaf
#define __builtin_rint rint
#define __builtin_rintf rintf
#define __builtin_sqrt sqrt
#define __builtin_sqrtf sqrtf
#define __builtin_isfinite isfinite
#define __builtin_inf() ((double)INFINITY)
#define __builtin_inff() INFINITY
#define __builtin_nan(text) ((double)NAN)
#define __builtin_nanf(text) NAN
#define __builtin_prefetch(place) ((void)(place))
#define __atomic_store_n(place, value, order) ((void)(*(volatile int *)(place) = (value)))

static inline int harp_clzll(uint64_t bits)
{
    int zeros = 64;
    for (; bits; bits >>= 1) --zeros;
    return zeros;
}

static inline int harp_popcount(uint32_t bits)
{
    int ones = 0;
    for (; bits; bits &= bits - 1) ++ones;
    return ones;
}

/* Of two numbers that are not negative. */
static inline int harp_mul_overflow(int64_t a, int64_t b, int64_t *product)
{
    const int is_over = a > 0 && b > INT64_MAX / a;
    *product = is_over ? INT64_MAX : a * b;
    return is_over;
}

#define __builtin_clzll harp_clzll
#define __builtin_popcount harp_popcount
#define __builtin_mul_overflow harp_mul_overflow

#endif
#endif
