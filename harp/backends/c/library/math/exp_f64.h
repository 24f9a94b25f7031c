/* exp, exp2 and expm1 of f64. The polynomials (exp(r) - 1 - r)/r^2 and (2^r - 1)/r are minimax (Remez), with a relative
 * error of the result of 2^-58. */
#ifndef HARP_MATH_EXP_F64_H
#define HARP_MATH_EXP_F64_H

#include "math/basics.h"

HARP_INLINE double harp_exp_poly_f64(double r)
{
    double p = 0x1.af85a9a38f246p-26;
    p = harp_madd_f64(p, r, 0x1.28b0493ee36abp-22);
    p = harp_madd_f64(p, r, 0x1.71dddfb4ea1afp-19);
    p = harp_madd_f64(p, r, 0x1.a0199693a6f33p-16);
    p = harp_madd_f64(p, r, 0x1.a01a01baed115p-13);
    p = harp_madd_f64(p, r, 0x1.6c16c185a74f1p-10);
    p = harp_madd_f64(p, r, 0x1.111111110d61ap-7);
    p = harp_madd_f64(p, r, 0x1.5555555550030p-5);
    p = harp_madd_f64(p, r, 0x1.5555555555561p-3);
    p = harp_madd_f64(p, r, 0x1.000000000000bp-1);
    return p;
}

HARP_INLINE double harp_exp2_poly_f64(double r)
{
    double p = 0x1.ea188e793058bp-32;
    p = harp_madd_f64(p, r, 0x1.e61ccb991f545p-28);
    p = harp_madd_f64(p, r, 0x1.b524cdb6518e7p-24);
    p = harp_madd_f64(p, r, 0x1.62bfc6b95f0b9p-20);
    p = harp_madd_f64(p, r, 0x1.ffcbfc7c63860p-17);
    p = harp_madd_f64(p, r, 0x1.4309130f36c2fp-13);
    p = harp_madd_f64(p, r, 0x1.5d87fe78a0dc0p-10);
    p = harp_madd_f64(p, r, 0x1.3b2ab6fb9ff34p-7);
    p = harp_madd_f64(p, r, 0x1.c6b08d704a0d7p-5);
    p = harp_madd_f64(p, r, 0x1.ebfbdff82c5a5p-3);
    p = harp_madd_f64(p, r, 0x1.62e42fefa39efp-1);
    return p;
}

#include "math/begin_f64.h"
#include "math/exp_template.h"
#include "math/end.h"

/* exp(x + rest)*2^up, for a rest that is small beside x. */
HARP_INLINE double harp_exp_pair_f64(double x, double rest, double up)
{
    const double low = x > 712 ? 712 : x, c = low < -746 ? -746 : low;
    const double n = harp_madd_f64(c, 0x1.71547652b82fep+0, 0x1.8p52) - 0x1.8p52;
    const double near = harp_madd_f64(n, -0x1.62e42feep-1, c);
    const double r = harp_madd_f64(n, -0x1.a39ef35793c76p-33, near) + rest;
    return harp_scale_f64(harp_madd_f64(harp_madd_f64(harp_exp_poly_f64(r), r, 1), r, 1), n + up);
}

#endif
