/* tanh of f64, with P and Q of Cephes (tanh.c). */
#ifndef HARP_MATH_TANH_F64_H
#define HARP_MATH_TANH_F64_H

#include "math/exp_f64.h"

/* Small: a + a*z*P/Q, else 1 - 2/(2^(2a*log2(e)) + 1), with one division for both; from 20 on it is 1. */
HARP_INLINE double harp_tanh_f64(double x)
{
    const double a = fabs(x), z = x * x, c = a > 20 ? 20 : a;
    double p = -9.64399179425052238628e-1;
    p = harp_madd_f64(p, z, -9.92877231001918586564e1);
    p = harp_madd_f64(p, z, -1.61468768441708447952e3);
    double q = 1.0;
    q = harp_madd_f64(q, z, 1.12811678491632931402e2);
    q = harp_madd_f64(q, z, 2.23548839060100448583e3);
    q = harp_madd_f64(q, z, 4.84406305325125486048e3);
    const double factor = 2 * 0x1.71547652b82fep+0, up = harp_madd_f64(c, factor, 0x1.8p52);
    const double r = harp_madd_f64(c, factor, 0x1.8p52 - up);
    const uint64_t exponent = (harp_bits_f64(up) + 1023) << 52;
    const double power = harp_madd_f64(harp_exp2_poly_f64(r), r, 1) * harp_from_bits_f64(exponent);
    const double near = a * z * p, top = a < 0.625 ? near : -2, below = a < 0.625 ? q : power + 1;
    return copysign((a < 0.625 ? a : 1) + top / below, x);
}

#endif
