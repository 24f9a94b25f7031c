/* erf, erfc and erfinv of f32.
 *
 * In double with a short polynomial, rounded once: a relative error of 2^-28 before rounding adds 1/32 ULP to it.
 * Exponents and selects stay in float where they can, which is twice as many lanes. Polynomials are minimax (Remez).
 * erf is computed in float where there is a fused multiply-add.
 *
 * The polynomials of erf are erf(x)/x - 1 in x^2 for |x| <= 3/4, and log2(erfc(a + t)/erfc(a))/t in t for a + t from
 * 3/4 to 4 with the a that the function subtracts: they make errors of 2^-29 and 2^-27 of erf(x). Those of erfc are
 * exp(a*a)*erfc(a) in 1/(a + 3) for a >= 0, to 2^-29, and (exp(r) - 1)/r for |r| <= log(2)/2, to 2^-28 of exp(r). Those
 * of erfinv are erfinv(x)/x in w - 2.5 and w - 10.475, where w = -log(1 - x*x), for w <= 5 and for 5 <= w <= 15.95, to
 * 2^-28. */
#ifndef HARP_MATH_ERF_F32_H
#define HARP_MATH_ERF_F32_H

#include "math/exp_f32.h"
#include "math/log_short.h"

#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
#include "math/erf_f64.h"
#endif

/* Below 3/4 it is x + x*P(x*x), else 1 - 2^(c + t*P(t)) with t = |x| - a, where c = log2(erfc(a)) is nearly a float. */
HARP_INLINE float harp_erf_f32(float x)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const float a = 4 < fabsf(x) ? 4 : fabsf(x), c = -0x1.0d2f28p+1f, t = a - 0x1.b00036p-1f, z = a * a;
    float p = 0x1.50bdc6p-12f;
    p = harp_madd_f32(p, t, -0x1.97b23ep-9f);
    p = harp_madd_f32(p, t, 0x1.12d714p-6f);
    p = harp_madd_f32(p, t, -0x1.1d8808p-4f);
    p = harp_madd_f32(p, t, -0x1.2f9e6cp+0f);
    p = harp_madd_f32(p, t, -0x1.b74354p+1f);
    float q = -0x1.613e18p-11f;
    q = harp_madd_f32(q, z, 0x1.4f1888p-8f);
    q = harp_madd_f32(q, z, -0x1.b7a75cp-6f);
    q = harp_madd_f32(q, z, 0x1.ce2acep-4f);
    q = harp_madd_f32(q, z, -0x1.81273ap-2f);
    q = harp_madd_f32(q, z, 0x1.06eba8p-3f);
    const float n = (harp_madd_f32(t, p, c) + 0x1.8p23f) - 0x1.8p23f, r = harp_madd_f32(t, p, c - n);
    const float scale = harp_two_to_f32(n), far = harp_madd_f32(-r * scale, harp_exp2_poly_f32(r), 1 - scale);
    return copysignf(a < 0.75f ? harp_madd_f32(a, q, a) : far, x);
#else
    return (float)harp_erf_f64(x);
#endif
}

/* From 10.2 on it is 0 as float. */
HARP_INLINE float harp_erfc_f32(float x)
{
    const double a = 10.2f < fabsf(x) ? 10.2f : fabsf(x), u = 1 / (a + 3), c = -a * a;
    const double up = harp_madd_f64(c, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = harp_madd_f64(up - 0x1.8p52, -0x1.62e42fefa39efp-1, c);
    double p = 0x1.a63a9d140e797p+11;
    p = harp_madd_f64(p, u, -0x1.71f853663724cp+12);
    p = harp_madd_f64(p, u, 0x1.c947ebc666e65p+11);
    p = harp_madd_f64(p, u, -0x1.02c5d03f4d9d2p+10);
    p = harp_madd_f64(p, u, 0x1.3c2cc5fe5771ep+8);
    p = harp_madd_f64(p, u, -0x1.44c7de789b672p+2);
    p = harp_madd_f64(p, u, 0x1.0371ccb661687p+4);
    p = harp_madd_f64(p, u, 0x1.244a6e482f37ap+2);
    p = harp_madd_f64(p, u, 0x1.b3ad8d270733p+0);
    p = harp_madd_f64(p, u, 0x1.20c1f34dc86fp-1);
    p = harp_madd_f64(p, u, 0x1.01edd90ae30ap-19);
    double q = 0x1.6ae686a63202cp-10;
    q = harp_madd_f64(q, r, 0x1.12682fb10246bp-7);
    q = harp_madd_f64(q, r, 0x1.5558252fb23cep-5);
    q = harp_madd_f64(q, r, 0x1.5554182091e5ep-3);
    q = harp_madd_f64(q, r, 0x1.fffffc171afa9p-2);
    q = harp_madd_f64(q, r, 0x1.0000008af7ef9p+0);
    const double power = harp_madd_f64(q, r, 1) * harp_from_bits_f64((harp_bits_f64(up) + 1023) << 52) * p;
    return (float)(x < 0 ? 2 - power : power);
}

HARP_INLINE float harp_erfinv_f32(float x)
{
    const float size = fabsf(x), end = size == 1 ? __builtin_inff() : __builtin_nanf("");
    const double a = x, w = -harp_log_short_f32(1 - a * a), near = w - 2.5, far = w - 10.475;
    double p = 0x1.70f417a0bc98fp-32;
    p = harp_madd_f64(p, near, -0x1.2d6def5d8c86bp-27);
    p = harp_madd_f64(p, near, 0x1.35dec7e45f2d2p-26);
    p = harp_madd_f64(p, near, 0x1.f43f2d71d785bp-22);
    p = harp_madd_f64(p, near, -0x1.ccfc45d57a4bbp-19);
    p = harp_madd_f64(p, near, -0x1.4cfcecc0aeb04p-18);
    p = harp_madd_f64(p, near, 0x1.c9c597629a632p-13);
    p = harp_madd_f64(p, near, -0x1.4866457ef1756p-10);
    p = harp_madd_f64(p, near, -0x1.11c42017ade87p-8);
    p = harp_madd_f64(p, near, 0x1.f91e8b0a325fp-3);
    p = harp_madd_f64(p, near, 0x1.805c5d073ec82p+0);
    double q = 0x1.2e64ad34cc92ap-39;
    q = harp_madd_f64(q, far, -0x1.5dd1bdbdaef07p-35);
    q = harp_madd_f64(q, far, 0x1.79e9a09d1325fp-32);
    q = harp_madd_f64(q, far, -0x1.15bbc4cc27287p-29);
    q = harp_madd_f64(q, far, 0x1.e3a6a702a2818p-33);
    q = harp_madd_f64(q, far, 0x1.4a73b8729bc87p-22);
    q = harp_madd_f64(q, far, -0x1.012ac57472866p-17);
    q = harp_madd_f64(q, far, 0x1.47b7653da2cb8p-13);
    q = harp_madd_f64(q, far, -0x1.d47497167d7ap-9);
    q = harp_madd_f64(q, far, 0x1.3e01ebc6f7b47p-3);
    q = harp_madd_f64(q, far, 0x1.8900724c2e02ep+1);
    return size < 1 ? (float)(a * (w < 5 ? p : q)) : copysignf(end, x);
}

#endif
