/* cbrt and hypot of f32.
 *
 * In double with a short polynomial, rounded once: a relative error of 2^-28 before rounding adds 1/32 ULP to it.
 * Exponents and selects stay in float where they can, which is twice as many lanes. Polynomials are minimax (Remez).
 *
 * The polynomial is cbrt(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-28. */
#ifndef HARP_MATH_ROOTS_F32_H
#define HARP_MATH_ROOTS_F32_H

#include "math/log_f32.h"
#include "math/basics_f64.h"

/* x = (1 + f)*2^e*2^(3q) with e from -1 to 1. */
HARP_INLINE float harp_cbrt_f32(float x)
{
    const float a = fabsf(x), up = a * 0x1p24f, y = a < 0x1p-126f ? up : a, shift = a < 0x1p-126f ? 24 : 0;
    const float k = harp_log_whole_f32(y) - shift;
    const float q = harp_madd_f32(k, 0x1.555556p-2f, 0x1.8p23f) - 0x1.8p23f, e = k - 3 * q;
    const double f = harp_log_part_f32(y);
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
    const float value = copysignf((float)(p * root) * harp_two_to_f32(q), x);
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
