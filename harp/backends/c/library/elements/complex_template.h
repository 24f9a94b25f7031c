/* Products of complex numbers: a template. T is the type, and MADD the fused multiply-add of its parts. */

#include "names.h"

/* By the definition, as NumPy: an infinity may give NaN beside it. Fused here, for gcc does it to vectors only. */
static inline T OF_DTYPE(mul)(T a, T b)
{
    return __builtin_complex(MADD(__real__ a, __real__ b, -(__imag__ a * __imag__ b)),
                             MADD(__real__ a, __imag__ b, __imag__ a * __real__ b));
}

/* What a product accumulates, from 1: that times an infinity would have a NaN. */
static inline T OF_DTYPE(prod)(T a, T b)
{
    if (__real__ a == 1 && __imag__ a == 0) return b;
    if (__real__ b == 1 && __imag__ b == 0) return a;
    return OF_DTYPE(mul)(a, b);
}

#undef T
#undef MADD
