/* Parts of vectors: nothing behind them is read or written. */
#ifndef HARP_FIRST_ELEMENTS_H
#define HARP_FIRST_ELEMENTS_H

#include "linalg/vectors.h"

/* Whether a part is read as fast as a whole vector. */
#if defined(__AVX512F__)
enum { HAS_MASKS = 1 };
#else
enum { HAS_MASKS = 0 };
#endif

/* The first elements of a vector, at least one, and zeros behind them, where nothing is read. */
INLINE vector load_first(const real *from, int count)
{
#if defined(__AVX512F__) && HARP_BITS == 64
    return (vector)__builtin_ia32_loadupd512_mask((const void *)from, (vector){0}, (unsigned char)((1u << count) - 1));
#elif defined(__AVX512F__)
    return (vector)__builtin_ia32_loadups512_mask((const void *)from, (vector){0}, (unsigned short)((1u << count) - 1));
#else
    real part[LANES] = {0};
    for (int k = 0; k < count; ++k) part[k] = from[k];
    return load(part);
#endif
}

INLINE void store_first(real *to, vector x, int count)
{
    real part[LANES];
    store(part, x);
    for (int k = 0; k < count; ++k) to[k] = part[k];
}

#endif
