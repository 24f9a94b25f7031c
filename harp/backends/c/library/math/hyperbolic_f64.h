/* sinh, cosh and their inverses, of f64. The polynomial is (sinh(x) - x)/x^3 in x^2, for x <= 1, near-minimax
 * (interpolated at Chebyshev's points in 60 digits), to 2^-61. */
#ifndef HARP_MATH_HYPERBOLIC_F64_H
#define HARP_MATH_HYPERBOLIC_F64_H

#include "math/exp_f64.h"
#include "math/log_f64.h"

HARP_INLINE double harp_sinh_f64(double x)
{
    const double a = fabs(x), z = x * x, half = harp_exp_pair_f64(a, 0, -1);
    double p = 0x1.b41232cf99572p-41;
    p = harp_madd_f64(p, z, 0x1.611cb330c1fe7p-33);
    p = harp_madd_f64(p, z, 0x1.ae6460fae3728p-26);
    p = harp_madd_f64(p, z, 0x1.71de3a4e14f40p-19);
    p = harp_madd_f64(p, z, 0x1.a01a01a01ee70p-13);
    p = harp_madd_f64(p, z, 0x1.11111111110fdp-7);
    p = harp_madd_f64(p, z, 0x1.5555555555555p-3);
    return copysign(a < 1 ? harp_madd_f64(a * z, p, a) : half - 0.25 / half, x);
}

HARP_INLINE double harp_cosh_f64(double x)
{
    const double half = harp_exp_pair_f64(fabs(x), 0, -1);
    return half + 0.25 / half;
}

/* log1p(a + a^2/(1 + sqrt(1 + a^2))), where the square is a number. */
HARP_INLINE double harp_asinh_f64(double x)
{
    const double a = fabs(x), root = sqrt(harp_madd_f64(a, a, 1)), near = a + a * (a / (1 + root));
    const double y = harp_log1p_f64(a > 0x1p500 ? a : near);
    return copysign(a > 0x1p500 ? y + 0x1.62e42fefa39efp-1 : y, x);
}

HARP_INLINE double harp_acosh_f64(double x)
{
    const double t = x - 1, near = t + sqrt(t * (x + 1)), y = harp_log1p_f64(x > 0x1p500 ? x : near);
    const double value = x > 0x1p500 ? y + 0x1.62e42fefa39efp-1 : y;
    return x < 1 ? __builtin_nan("") : value;
}

HARP_INLINE double harp_atanh_f64(double x)
{
    const double a = fabs(x);
    return copysign(0.5 * harp_log1p_f64(2 * a / (1 - a)), x);
}

#endif
