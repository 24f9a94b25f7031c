/* erf, erfc and erfinv of f64. The polynomials are those of harp/trace/scalar/special.py, which names their sources. */
#ifndef HARP_MATH_ERF_F64_H
#define HARP_MATH_ERF_F64_H

#include "math/exact_f64.h"
#include "math/exp_f64.h"
#include "math/log_f64.h"

HARP_INLINE double harp_erf_near_f64(double x)
{
    const double z = x * x;
    double p = 0x1.05ffd737faabap-34;
    p = harp_madd_f64(p, z, -0x1.389d4f26412d7p-30);
    p = harp_madd_f64(p, z, 0x1.f7b4bf3b13841p-27);
    p = harp_madd_f64(p, z, -0x1.5f1ecb6f0762fp-23);
    p = harp_madd_f64(p, z, 0x1.b9df224ca4b94p-20);
    p = harp_madd_f64(p, z, -0x1.f4d1e3183f7aep-17);
    p = harp_madd_f64(p, z, 0x1.f9a321d5b8e1ep-14);
    p = harp_madd_f64(p, z, -0x1.c02db3dac435fp-11);
    p = harp_madd_f64(p, z, 0x1.565bcd0dbaa38p-8);
    p = harp_madd_f64(p, z, -0x1.b82ce31284e00p-6);
    p = harp_madd_f64(p, z, 0x1.ce2f21a042b30p-4);
    p = harp_madd_f64(p, z, -0x1.812746b0379e6p-2);
    p = harp_madd_f64(p, z, 0x1.20dd750429b6dp+0);
    return x * p;
}

/* From 1/2 on. The square of the first part of x is exact. */
HARP_INLINE double harp_erfc_far_f64(double x)
{
    const double a = x > 30 ? 30 : x, t = (a - 4) / (a + 4);
    double p = 0x1.0dfda8356c02ap-29;
    p = harp_madd_f64(p, t, -0x1.4b9f9f4f16542p-27);
    p = harp_madd_f64(p, t, -0x1.3bd47c8d78956p-26);
    p = harp_madd_f64(p, t, 0x1.bb796a644b068p-24);
    p = harp_madd_f64(p, t, 0x1.43ba3f7063ea8p-24);
    p = harp_madd_f64(p, t, -0x1.b7f7f6721ba0ap-21);
    p = harp_madd_f64(p, t, 0x1.3ac5f5a5c124bp-22);
    p = harp_madd_f64(p, t, 0x1.7ef4cab4caa97p-18);
    p = harp_madd_f64(p, t, -0x1.78897f736b663p-17);
    p = harp_madd_f64(p, t, -0x1.9954da84115cbp-16);
    p = harp_madd_f64(p, t, 0x1.3be05579d16a4p-13);
    p = harp_madd_f64(p, t, -0x1.a1df44dc2b137p-13);
    p = harp_madd_f64(p, t, -0x1.8d4a9b1930f9ep-11);
    p = harp_madd_f64(p, t, 0x1.49c672aa18854p-8);
    p = harp_madd_f64(p, t, -0x1.09623883eaff1p-6);
    p = harp_madd_f64(p, t, 0x1.3079edf61e415p-5);
    p = harp_madd_f64(p, t, -0x1.0fb06dfe4e683p-4);
    p = harp_madd_f64(p, t, 0x1.7fee004e14c52p-4);
    p = harp_madd_f64(p, t, -0x1.9ddb23c3e8df2p-4);
    p = harp_madd_f64(p, t, 0x1.16ecefcfa52b5p-4);
    p = harp_madd_f64(p, t, 0x1.f7f5df66fd76bp-7);
    p = harp_madd_f64(p, t, -0x1.1df1ad154a28ep-3);
    p = harp_madd_f64(p, t, 0x1.3ba5916e9fd7fp+0);
    const double high = harp_head_f64(a);
    return harp_exp_pair_f64(-high * high, (high - a) * (high + a), 0) * (p / (1 + 2 * a));
}

HARP_INLINE double harp_erf_f64(double x)
{
    const double a = fabs(x), near = harp_erf_near_f64(a), far = 1 - harp_erfc_far_f64(a);
    return copysign(a < 1 ? near : far, x);
}

HARP_INLINE double harp_erfc_f64(double x)
{
    const double far = harp_erfc_far_f64(fabs(x)), near = x > -1 ? 1 - harp_erf_near_f64(x) : 2 - far;
    return x < 0.5 ? near : far;
}

/* A polynomial to about 2^-24, and a step of Halley's method. */
HARP_INLINE double harp_erfinv_f64(double x)
{
    const double a = fabs(x), w = -harp_log_f64((1 - a) * (1 + a)), v = sqrt(w) - 4;
    double p = 0x1.00d7b840a2ef1p-31;
    p = harp_madd_f64(p, w, -0x1.5ecb1ca0d9fcap-26);
    p = harp_madd_f64(p, w, 0x1.7160db6cea747p-22);
    p = harp_madd_f64(p, w, -0x1.69ec3cedb2f4ep-19);
    p = harp_madd_f64(p, w, 0x1.b6513b378781fp-18);
    p = harp_madd_f64(p, w, 0x1.47006585aced0p-15);
    p = harp_madd_f64(p, w, -0x1.f76c972e45e11p-14);
    p = harp_madd_f64(p, w, -0x1.32b647b5e9416p-9);
    p = harp_madd_f64(p, w, 0x1.7a7ffa7784ce6p-7);
    p = harp_madd_f64(p, w, 0x1.db29e139bbe9cp-3);
    p = harp_madd_f64(p, w, 0x1.c5bf893d96d1fp-1);
    double q = -0x1.8736701071999p-22;
    q = harp_madd_f64(q, v, 0x1.a24a03abec521p-20);
    q = harp_madd_f64(q, v, 0x1.3a29bea450113p-20);
    q = harp_madd_f64(q, v, -0x1.ffae0b7425b69p-17);
    q = harp_madd_f64(q, v, 0x1.c0fa03dcfcd34p-16);
    q = harp_madd_f64(q, v, -0x1.721a1c7820b4cp-16);
    q = harp_madd_f64(q, v, 0x1.5f237462ed9fep-15);
    q = harp_madd_f64(q, v, -0x1.09e61bbd3b744p-13);
    q = harp_madd_f64(q, v, 0x1.5b69d0c8c4acap-12);
    q = harp_madd_f64(q, v, -0x1.c5c8c047a6236p-11);
    q = harp_madd_f64(q, v, 0x1.4984bd694a813p-10);
    q = harp_madd_f64(q, v, 0x1.026e1f76a3f7ap+0);
    q = harp_madd_f64(q, v, 0x1.eb7e0a230a187p+1);
    const double y = a * (w < 5 ? p : q), high = (1 - a) - harp_erfc_far_f64(y);
    const double above = a < 0.6 ? harp_erf_near_f64(y) - a : high;
    const double step = above * 0x1.c5bf891b4ef6bp-1 * harp_exp_f64(y * y), found = y - step / (1 + y * step);
    return copysign(a == 1 ? __builtin_inf() : found, x);
}

#endif
