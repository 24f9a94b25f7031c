/* atan, atan2, asin and acos of f64. The polynomial is (atan(t) - t)/t^3 in t^2, for t <= tan(pi/8), near-minimax
 * (interpolated at Chebyshev's points in 60 digits), to 2^-62. */
#ifndef HARP_MATH_ANGLES_F64_H
#define HARP_MATH_ANGLES_F64_H

#include "math/basics.h"

/* k quarters of pi, plus or minus atan(t) for t <= tan(pi/8). The first part of pi/4 has 50 bits. */
HARP_INLINE double harp_atan2_f64(double y, double x)
{
    const double a = fabs(y), b = fabs(x), inf = __builtin_inf();
    const int steep = a > b;
    const double less = steep ? b : a, more = steep ? a : b, up = more < 0x1p-900 ? 0x1p100 : 1;
    const double down = more > 0x1p1000 ? 0x1p-100 : up;
    const int both = (less == inf) & (more == inf);
    const double n = both ? 1 : less * down, over = both ? 1 : more * down, d = over == 0 ? 1 : over;
    const int wide = n > d * 0x1.a827999fcef32p-2;
    const double t = (wide ? n - d : n) / (wide ? n + d : d), z = t * t;
    double p = 0x1.0a5f9b3003151p-6;
    p = harp_madd_f64(p, z, -0x1.1aff6be5bfd12p-5);
    p = harp_madd_f64(p, z, 0x1.74c978a6db9e3p-5);
    p = harp_madd_f64(p, z, -0x1.ac761bf063028p-5);
    p = harp_madd_f64(p, z, 0x1.e199784c129d5p-5);
    p = harp_madd_f64(p, z, -0x1.110e814671dfap-4);
    p = harp_madd_f64(p, z, 0x1.3b1392795fc59p-4);
    p = harp_madd_f64(p, z, -0x1.745d165a9c6e5p-4);
    p = harp_madd_f64(p, z, 0x1.c71c71c2f380bp-4);
    p = harp_madd_f64(p, z, -0x1.249249248d684p-3);
    p = harp_madd_f64(p, z, 0x1.9999999999952p-3);
    p = harp_madd_f64(p, z, -0x1.5555555555555p-2);
    const double first = wide ? 1 : 0, turned = steep ? 2 - first : first, sign = steep ? -1 : 1;
    const int back = copysign(1, x) < 0;
    const double k = back ? 4 - turned : turned, s = back ? -sign : sign;
    const double small = harp_madd_f64(t * z, s * p, k * 0x1.1a62633145c07p-55);
    return copysign(harp_madd_f64(s, t, small) + k * 0x1.921fb54442d18p-1, y);
}

HARP_INLINE double harp_atan_f64(double x) { return harp_atan2_f64(x, 1); }

HARP_INLINE double harp_asin_f64(double x) { return harp_atan2_f64(x, sqrt((1 - x) * (1 + x))); }

HARP_INLINE double harp_acos_f64(double x) { return harp_atan2_f64(sqrt((1 - x) * (1 + x)), x); }

#endif
