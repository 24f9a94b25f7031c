/* sinh, cosh and their inverses, of f32.
 *
 * In double with a short polynomial, rounded once: a relative error of 2^-28 before rounding adds 1/32 ULP to it.
 * Exponents and selects stay in float where they can, which is twice as many lanes. Polynomials are minimax (Remez).
 *
 * For sinh and cosh x = n*log(2) + r: c = cosh(r), s = sinh(r), high = 2^n/2, low = 2^-n/2. From 90 on the results are
 * infinite as float. The polynomials are (cosh(r) - 1)/r^2 and (sinh(r) - r)/r^3 in r^2, for |r| <= log(2)/2, to 2^-34
 * and 2^-37 of the function. */
#ifndef HARP_MATH_HYPERBOLIC_F32_H
#define HARP_MATH_HYPERBOLIC_F32_H

#include "math/log_short.h"
#include "math/basics.h"

HARP_INLINE float harp_sinh_f32(float x)
{
    const double a = fabsf(x) > 90 ? 90 : fabsf(x), up = harp_madd_f64(a, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = harp_madd_f64(up - 0x1.8p52, -0x1.62e42fefa39efp-1, a), z = r * r;
    const double high = harp_from_bits_f64((harp_bits_f64(up) + 1022) << 52);
    const double low = harp_from_bits_f64((1022 - harp_bits_f64(up)) << 52);
    double p = 0x1.6d9790fa14b31p-10;
    p = harp_madd_f64(p, z, 0x1.55547ecdb3363p-5);
    p = harp_madd_f64(p, z, 0x1.00000043fa7dp-1);
    double q = 0x1.a16ff1ad6d63cp-13;
    q = harp_madd_f64(q, z, 0x1.1110b1c3974fap-7);
    q = harp_madd_f64(q, z, 0x1.5555557387a95p-3);
    const double c = harp_madd_f64(z, p, 1), s = harp_madd_f64(r * z, q, r);
    return copysignf((float)harp_madd_f64(high - low, c, (high + low) * s), x);
}

HARP_INLINE float harp_cosh_f32(float x)
{
    const double a = fabsf(x) > 90 ? 90 : fabsf(x), up = harp_madd_f64(a, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = harp_madd_f64(up - 0x1.8p52, -0x1.62e42fefa39efp-1, a), z = r * r;
    const double high = harp_from_bits_f64((harp_bits_f64(up) + 1022) << 52);
    const double low = harp_from_bits_f64((1022 - harp_bits_f64(up)) << 52);
    double p = 0x1.6d9790fa14b31p-10;
    p = harp_madd_f64(p, z, 0x1.55547ecdb3363p-5);
    p = harp_madd_f64(p, z, 0x1.00000043fa7dp-1);
    double q = 0x1.a16ff1ad6d63cp-13;
    q = harp_madd_f64(q, z, 0x1.1110b1c3974fap-7);
    q = harp_madd_f64(q, z, 0x1.5555557387a95p-3);
    const double c = harp_madd_f64(z, p, 1), s = harp_madd_f64(r * z, q, r);
    return (float)harp_madd_f64(high + low, c, (high - low) * s);
}

HARP_INLINE float harp_asinh_f32(float x)
{
    const double a = fabsf(x);
    const float y = copysignf((float)harp_log_short_f32(a + sqrt(harp_madd_f64(a, a, 1))), x);
    return fabsf(x) >= 0x1p-13f && fabsf(x) < __builtin_inff() ? y : x;
}

HARP_INLINE float harp_acosh_f32(float x)
{
    const double a = x;
    const float y = (float)harp_log_short_f32(a + sqrt(harp_madd_f64(a, a, -1)));
    const float high = x < __builtin_inff() ? y : x;
    return x < 1 ? __builtin_nanf("") : high;
}

HARP_INLINE float harp_atanh_f32(float x)
{
    const float a = fabsf(x), end = a == 1 ? __builtin_inff() : __builtin_nanf("");
    const float y = (float)(0.5 * harp_log_short_f32((1 + (double)a) / (1 - (double)a)));
    const float high = copysignf(a < 1 ? y : end, x);
    return a < 0x1p-13f ? x : high;
}

#endif
