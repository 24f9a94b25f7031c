/* cbrt and hypot of f64. The polynomial is cbrt(1 + f), for f from sqrt(1/2) - 1 to sqrt(2) - 1, near-minimax
 * (interpolated at Chebyshev's points in 60 digits), to 2^-21. */
#ifndef HARP_MATH_ROOTS_F64_H
#define HARP_MATH_ROOTS_F64_H

#include "math/log_f64.h"

/* x = m*2^(3q): a polynomial for the root of m, to 2^-21, and a step of Halley's method. */
HARP_INLINE double harp_cbrt_f64(double x)
{
    const double a = fabs(x), y = a < 0x1p-1022 ? a * 0x1p54 : a, shift = a < 0x1p-1022 ? 54 : 0;
    const double f = harp_log_part_f64(y), k = harp_log_whole_f64(y) - shift;
    const double q = harp_madd_f64(k, 0x1.5555555555555p-2, 0x1.8p52) - 0x1.8p52, e = k - 3 * q;
    double p = -0x1.3bac61f398ad9p-6;
    p = harp_madd_f64(p, f, 0x1.0ec10a9e54523p-5);
    p = harp_madd_f64(p, f, -0x1.57c1ea6c70f03p-5);
    p = harp_madd_f64(p, f, 0x1.f8b22e20162e7p-5);
    p = harp_madd_f64(p, f, -0x1.c6fcb4d31f4d6p-4);
    p = harp_madd_f64(p, f, 0x1.5555aea4953e5p-2);
    p = harp_madd_f64(p, f, 0x1.fffffabc91eddp-1);
    const double up = e > 0 ? 0x1.428a2f98d728bp+0 : 1, r = p * (e < 0 ? 0x1.965fea53d6e3dp-1 : up);
    const double twice = e > 0 ? 2 : 1, m = (1 + f) * (e < 0 ? 0.5 : twice), cube = r * r * r;
    const double root = (r - r * ((cube - m) / (2 * cube + m))) * harp_two_to_f64(q), signed_root = copysign(root, x);
    return ((a > 0) & (a < __builtin_inf())) ? signed_root : x;
}

/* Scaled by a power of two, so that no square is too large or too small. Infinite with an infinity, also beside NaN. */
HARP_INLINE double harp_hypot_f64(double x, double y)
{
    const double a = fabs(x), b = fabs(y), more = a > b ? a : b, inf = __builtin_inf();
    const double high = more > 0x1p500 ? 0x1p-600 : 1, scale = more < 0x1p-450 ? 0x1p600 : high;
    const double back = more > 0x1p500 ? 0x1p600 : 1, unscale = more < 0x1p-450 ? 0x1p-600 : back;
    const double p = a * scale, q = b * scale, root = sqrt(harp_madd_f64(p, p, q * q)) * unscale;
    return ((a == inf) | (b == inf)) ? inf : root;
}

#endif
