/* exp, exp2 and expm1 of f32. The polynomials (exp(r) - 1 - r)/r^2 and (2^r - 1)/r are those of Cephes (expf.c,
 * exp2f.c). */
#ifndef HARP_MATH_EXP_F32_H
#define HARP_MATH_EXP_F32_H

#include "math/basics.h"

HARP_INLINE float harp_exp_poly_f32(float r)
{
    float p = 1.9875691500e-4f;
    p = harp_madd_f32(p, r, 1.3981999507e-3f);
    p = harp_madd_f32(p, r, 8.3334519073e-3f);
    p = harp_madd_f32(p, r, 4.1665795894e-2f);
    p = harp_madd_f32(p, r, 1.6666665459e-1f);
    p = harp_madd_f32(p, r, 5.0000001201e-1f);
    return p;
}

HARP_INLINE float harp_exp2_poly_f32(float r)
{
    float p = 1.535336188319500e-4f;
    p = harp_madd_f32(p, r, 1.339887440266574e-3f);
    p = harp_madd_f32(p, r, 9.618437357674640e-3f);
    p = harp_madd_f32(p, r, 5.550332471162809e-2f);
    p = harp_madd_f32(p, r, 2.402264791363012e-1f);
    p = harp_madd_f32(p, r, 6.931472028550421e-1f);
    return p;
}

#include "math/begin_f32.h"
#include "math/exp_template.h"
#include "math/end.h"

#endif
