/* cbrt and hypot of f32.
 *
 * Where there is a fused multiply-add, cbrt is a short polynomial and a step of Newton's method, whose remainder is
 * exact; elsewhere, as hypot, it is in double, rounded once: a relative error of 2^-28 before rounding adds 1/32 ULP to
 * it. Polynomials of cbrt(1 + f), for f from sqrt(1/2) - 1 to sqrt(2) - 1, are minimax (Remez): to 2^-16, and in double
 * to 2^-28. */
#ifndef HARP_MATH_ROOTS_F32_H
#define HARP_MATH_ROOTS_F32_H

#include "math/log_f32.h"
#include "math/basics.h"

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
/* cbrt((1 + f)*2^e): y - (y^3 - x)/(3y^2), where y*y is a sum of two floats. */
HARP_INLINE float harp_cbrt_part_f32(float f, float e)
{
    float p = -0x1.35797ap-5f;
    p = harp_madd_f32(p, f, 0x1.0d7242p-4f);
    p = harp_madd_f32(p, f, -0x1.c8e71cp-4f);
    p = harp_madd_f32(p, f, 0x1.5536f2p-2f);
    p = harp_madd_f32(p, f, 0x1.000048p+0f);
    const float above = e > 0 ? 0x1.428a3p+0f : 1, root = e < 0 ? 0x1.965feap-1f : above;
    const float twice = e > 0 ? 2 : 1, x = (1 + f) * (e < 0 ? 0.5f : twice);
    const float y = p * root, square = y * y, low = harp_madd_f32(y, y, -square);
    return y - harp_madd_f32(low, y, harp_madd_f32(square, y, -x)) / (3 * square);
}
#else
HARP_INLINE float harp_cbrt_part_f32(float f1, float e)
{
    const double f = f1;
    double p = -0x1.a966bb6deeea3p-7;
    p = harp_madd_f64(p, f, 0x1.64217416935ap-6);
    p = harp_madd_f64(p, f, -0x1.8e326b3aacce3p-6);
    p = harp_madd_f64(p, f, 0x1.eb861b1d83dd4p-6);
    p = harp_madd_f64(p, f, -0x1.50ab9341f4c6p-5);
    p = harp_madd_f64(p, f, 0x1.f9b77b815787ep-5);
    p = harp_madd_f64(p, f, -0x1.c71d9615e645cp-4);
    p = harp_madd_f64(p, f, 0x1.555552cc4d9c9p-2);
    p = harp_madd_f64(p, f, 0x1.0000000dfa37p+0);
    const double above = e > 0 ? 0x1.428a2f98d728bp+0 : 1, root = e < 0 ? 0x1.965fea53d6e3dp-1 : above;
    return (float)(p * root);
}
#endif

/* x = (1 + f)*2^e*2^(3q) with e from -1 to 1. */
HARP_INLINE float harp_cbrt_f32(float x)
{
    const float a = fabsf(x), up = a * 0x1p24f, y = a < 0x1p-126f ? up : a, shift = a < 0x1p-126f ? 24 : 0;
    const float k = harp_log_whole_f32(y) - shift;
    const float q = harp_madd_f32(k, 0x1.555556p-2f, 0x1.8p23f) - 0x1.8p23f, e = k - 3 * q;
    const float value = copysignf(harp_cbrt_part_f32(harp_log_part_f32(y), e) * harp_two_to_f32(q), x);
    return ((a > 0) & (a < __builtin_inff())) ? value : x;
}

/* No square of a float is too large or too small for a double. */
HARP_INLINE float harp_hypot_f32(float a, float b)
{
    const double x = a, y = b;
    const float root = (float)sqrt(harp_madd_f64(x, x, y * y)), inf = __builtin_inff();
    return ((fabsf(a) == inf) | (fabsf(b) == inf)) ? inf : root;
}

#endif
