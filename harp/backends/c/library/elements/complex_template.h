/* Products of complex numbers: a template. T is the type, and MADD the fused multiply-add of its parts. */

#include "names.h"

#define HARP_DTYPE HARP_JOIN(c, HARP_BITS)

/* By the definition, as NumPy: an infinity may give NaN beside it. Fused here, for gcc does it to vectors only. */
static inline T OF_DTYPE(mul)(T a, T b)
{
    return OF_DTYPE(complex)(MADD(OF_DTYPE(real)(a), OF_DTYPE(real)(b), -(OF_DTYPE(imag)(a) * OF_DTYPE(imag)(b))),
                             MADD(OF_DTYPE(real)(a), OF_DTYPE(imag)(b), OF_DTYPE(imag)(a) * OF_DTYPE(real)(b)));
}

/* What a product accumulates, from 1: that times an infinity would have a NaN. */
static inline T OF_DTYPE(prod)(T a, T b)
{
    if (OF_DTYPE(real)(a) == 1 && OF_DTYPE(imag)(a) == 0) return b;
    if (OF_DTYPE(real)(b) == 1 && OF_DTYPE(imag)(b) == 0) return a;
    return OF_DTYPE(mul)(a, b);
}

#undef T
#undef MADD
#undef HARP_DTYPE
#undef HARP_BITS
