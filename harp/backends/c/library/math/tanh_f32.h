/* tanh of f32, with the polynomial of Cephes (tanhf.c). */
#ifndef HARP_MATH_TANH_F32_H
#define HARP_MATH_TANH_F32_H

#include "math/exp_f32.h"

/* Small: a polynomial, else 1 - 2/(2^(2a*log2(e)) + 1); from 10 on it is 1. */
HARP_INLINE float harp_tanh_f32(float x)
{
    const float z = x * x, a = fabsf(x), c = a > 10 ? 10 : a;
    float p = -5.70498872745e-3f;
    p = harp_madd_f32(p, z, 2.06390887954e-2f);
    p = harp_madd_f32(p, z, -5.37397155531e-2f);
    p = harp_madd_f32(p, z, 1.33314422036e-1f);
    p = harp_madd_f32(p, z, -3.33332819422e-1f);
    const float factor = 2 * 0x1.715476p+0f, up = harp_madd_f32(c, factor, 0x1.8p23f);
    const float r = harp_madd_f32(c, factor, 0x1.8p23f - up);
    const uint32_t exponent = (harp_bits_f32(up) + 127) << 23;
    const float power = harp_madd_f32(harp_exp2_poly_f32(r), r, 1) * harp_from_bits_f32(exponent);
    const float near = harp_madd_f32(z * p, a, a), far = 1 - 2 / (power + 1);
    return copysignf(a < 0.625f ? near : far, x);
}

#endif
