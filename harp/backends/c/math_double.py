"""Inverse and hyperbolic functions, erf and the like, of float64; for float32 see `harp.backends.c.math_single`.

As in `harp.backends.c.math` there is no branch and no call. Polynomials without another source are near-minimax
(interpolated at Chebyshev's points in 60 digits).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harp.backends.c import math_single
from harp.trace import special
from harp.trace.dtypes import DType, f32

# (atan(t) - t)/t^3 in t^2, for t <= tan(pi/8), to 2^-62
_ATAN = (
    *("0x1.0a5f9b3003151p-6", "-0x1.1aff6be5bfd12p-5", "0x1.74c978a6db9e3p-5", "-0x1.ac761bf063028p-5"),
    *("0x1.e199784c129d5p-5", "-0x1.110e814671dfap-4", "0x1.3b1392795fc59p-4", "-0x1.745d165a9c6e5p-4"),
    *("0x1.c71c71c2f380bp-4", "-0x1.249249248d684p-3", "0x1.9999999999952p-3", "-0x1.5555555555555p-2"),
)
# (sinh(x) - x)/x^3 in x^2, for x <= 1, to 2^-61
_SINH = (
    *("0x1.b41232cf99572p-41", "0x1.611cb330c1fe7p-33", "0x1.ae6460fae3728p-26", "0x1.71de3a4e14f40p-19"),
    *("0x1.a01a01a01ee70p-13", "0x1.11111111110fdp-7", "0x1.5555555555555p-3"),
)
# cbrt(1 + f), for f from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-21
_CBRT = (
    *("-0x1.3bac61f398ad9p-6", "0x1.0ec10a9e54523p-5", "-0x1.57c1ea6c70f03p-5", "0x1.f8b22e20162e7p-5"),
    *("-0x1.c6fcb4d31f4d6p-4", "0x1.5555aea4953e5p-2", "0x1.fffffabc91eddp-1"),
)


def _polynomial(value: str, x: str, coefficients: Sequence[str]) -> str:
    """Statements that compute it by Horner's rule."""
    first, *others = coefficients
    steps = [f"{value} = harp_madd_f64({value}, {x}, {c});" for c in others]
    return "\n    ".join([f"double {value} = {first};", *steps])


_HYPERBOLIC: Mapping[str, str] = {
    "exp_pair": """\
/* exp(x + rest)*2^up, for a rest that is small beside x. */
HARP_INLINE double harp_exp_pair_f64(double x, double rest, double up)
{
    const double low = x > 712 ? 712 : x, c = low < -746 ? -746 : low;
    const double n = harp_madd_f64(c, 0x1.71547652b82fep+0, 0x1.8p52) - 0x1.8p52;
    const double near = harp_madd_f64(n, -0x1.62e42feep-1, c);
    const double r = harp_madd_f64(n, -0x1.a39ef35793c76p-33, near) + rest;
    return harp_scale_f64(harp_madd_f64(harp_madd_f64(harp_exp_poly_f64(r), r, 1), r, 1), n + up);
}
""",
    "sinh": f"""\
HARP_INLINE double harp_sinh_f64(double x)
{{
    const double a = fabs(x), z = x*x, half = harp_exp_pair_f64(a, 0, -1);
    {_polynomial("p", "z", _SINH)}
    return copysign(a < 1 ? harp_madd_f64(a*z, p, a) : half - 0.25/half, x);
}}
""",
    "cosh": """\
HARP_INLINE double harp_cosh_f64(double x)
{
    const double half = harp_exp_pair_f64(fabs(x), 0, -1);
    return half + 0.25/half;
}
""",
    "asinh": """\
/* log1p(a + a^2/(1 + sqrt(1 + a^2))), where the square is a number. */
HARP_INLINE double harp_asinh_f64(double x)
{
    const double a = fabs(x), root = sqrt(harp_madd_f64(a, a, 1)), near = a + a*(a/(1 + root));
    const double y = harp_log1p_f64(a > 0x1p500 ? a : near);
    return copysign(a > 0x1p500 ? y + 0x1.62e42fefa39efp-1 : y, x);
}
""",
    "acosh": """\
HARP_INLINE double harp_acosh_f64(double x)
{
    const double t = x - 1, near = t + sqrt(t*(x + 1)), y = harp_log1p_f64(x > 0x1p500 ? x : near);
    const double value = x > 0x1p500 ? y + 0x1.62e42fefa39efp-1 : y;
    return x < 1 ? __builtin_nan("") : value;
}
""",
    "atanh": """\
HARP_INLINE double harp_atanh_f64(double x)
{
    const double a = fabs(x);
    return copysign(0.5*harp_log1p_f64(2*a/(1 - a)), x);
}
""",
}
_ANGLES: Mapping[str, str] = {
    "atan2": f"""\
/* k quarters of pi, plus or minus atan(t) for t <= tan(pi/8). The first part of pi/4 has 50 bits. */
HARP_INLINE double harp_atan2_f64(double y, double x)
{{
    const double a = fabs(y), b = fabs(x), inf = __builtin_inf();
    const int steep = a > b;
    const double less = steep ? b : a, more = steep ? a : b, up = more < 0x1p-900 ? 0x1p100 : 1;
    const double down = more > 0x1p1000 ? 0x1p-100 : up;
    const int both = (less == inf) & (more == inf);
    const double n = both ? 1 : less*down, over = both ? 1 : more*down, d = over == 0 ? 1 : over;
    const int wide = n > d*0x1.a827999fcef32p-2;
    const double t = (wide ? n - d : n)/(wide ? n + d : d), z = t*t;
    {_polynomial("p", "z", _ATAN)}
    const double first = wide ? 1 : 0, turned = steep ? 2 - first : first, sign = steep ? -1 : 1;
    const int back = copysign(1, x) < 0;
    const double k = back ? 4 - turned : turned, s = back ? -sign : sign;
    const double small = harp_madd_f64(t*z, s*p, k*0x1.1a62633145c07p-55);
    return copysign(harp_madd_f64(s, t, small) + k*0x1.921fb54442d18p-1, y);
}}
""",
    "atan": """\
HARP_INLINE double harp_atan_f64(double x) { return harp_atan2_f64(x, 1); }
""",
    "asin": """\
HARP_INLINE double harp_asin_f64(double x) { return harp_atan2_f64(x, sqrt((1 - x)*(1 + x))); }
""",
    "acos": """\
HARP_INLINE double harp_acos_f64(double x) { return harp_atan2_f64(sqrt((1 - x)*(1 + x)), x); }
""",
}
_ROOTS: Mapping[str, str] = {
    "hypot": """\
/* Scaled by a power of two, so that no square is too large or too small. Infinite with an infinity, also beside NaN. */
HARP_INLINE double harp_hypot_f64(double x, double y)
{
    const double a = fabs(x), b = fabs(y), more = a > b ? a : b, inf = __builtin_inf();
    const double high = more > 0x1p500 ? 0x1p-600 : 1, scale = more < 0x1p-450 ? 0x1p600 : high;
    const double back = more > 0x1p500 ? 0x1p600 : 1, unscale = more < 0x1p-450 ? 0x1p-600 : back;
    const double p = a*scale, q = b*scale, root = sqrt(harp_madd_f64(p, p, q*q))*unscale;
    return ((a == inf) | (b == inf)) ? inf : root;
}
""",
    "cbrt": f"""\
/* x = m*2^(3q): a polynomial for the root of m, to 2^-21, and a step of Halley's method. */
HARP_INLINE double harp_cbrt_f64(double x)
{{
    const double a = fabs(x), y = a < 0x1p-1022 ? a*0x1p54 : a, shift = a < 0x1p-1022 ? 54 : 0;
    const double f = harp_log_part_f64(y), k = harp_log_whole_f64(y) - shift;
    const double q = harp_madd_f64(k, 0x1.5555555555555p-2, 0x1.8p52) - 0x1.8p52, e = k - 3*q;
    {_polynomial("p", "f", _CBRT)}
    const double up = e > 0 ? 0x1.428a2f98d728bp+0 : 1, r = p*(e < 0 ? 0x1.965fea53d6e3dp-1 : up);
    const double twice = e > 0 ? 2 : 1, m = (1 + f)*(e < 0 ? 0.5 : twice), cube = r*r*r;
    const double root = (r - r*((cube - m)/(2*cube + m)))*harp_two_to_f64(q), signed_root = copysign(root, x);
    return ((a > 0) & (a < __builtin_inf())) ? signed_root : x;
}}
""",
}
_ERROR: Mapping[str, str] = {
    "erf_near": f"""\
HARP_INLINE double harp_erf_near_f64(double x)
{{
    const double z = x*x;
    {_polynomial("p", "z", special.ERF_NEAR)}
    return x*p;
}}
""",
    "erfc_far": f"""\
/* From 1/2 on. The square of the first part of x is exact. */
HARP_INLINE double harp_erfc_far_f64(double x)
{{
    const double a = x > 30 ? 30 : x, t = (a - 4)/(a + 4);
    {_polynomial("p", "t", special.ERFC_FAR)}
    const double high = harp_head_f64(a);
    return harp_exp_pair_f64(-high*high, (high - a)*(high + a), 0)*(p/(1 + 2*a));
}}
""",
    "erf": """\
HARP_INLINE double harp_erf_f64(double x)
{
    const double a = fabs(x), near = harp_erf_near_f64(a), far = 1 - harp_erfc_far_f64(a);
    return copysign(a < 1 ? near : far, x);
}
""",
    "erfc": """\
HARP_INLINE double harp_erfc_f64(double x)
{
    const double far = harp_erfc_far_f64(fabs(x)), near = x > -1 ? 1 - harp_erf_near_f64(x) : 2 - far;
    return x < 0.5 ? near : far;
}
""",
    "erfinv": f"""\
/* A polynomial to about 2^-24, and a step of Halley's method. */
HARP_INLINE double harp_erfinv_f64(double x)
{{
    const double a = fabs(x), w = -harp_log_f64((1 - a)*(1 + a)), v = sqrt(w) - 4;
    {_polynomial("p", "w", special.ERFINV_NEAR)}
    {_polynomial("q", "v", special.ERFINV_FAR)}
    const double y = a*(w < 5 ? p : q), high = (1 - a) - harp_erfc_far_f64(y);
    const double above = a < 0.6 ? harp_erf_near_f64(y) - a : high;
    const double step = above*{special.HALF_ROOT_PI.hex()}*harp_exp_f64(y*y), found = y - step/(1 + y*step);
    return copysign(a == 1 ? __builtin_inf() : found, x);
}}
""",
}
_NEXT = """\
HARP_INLINE $T harp_nextafter_$s($T a, $T b)
{
    const $U bits = harp_bits_$s(a);
    const $T moved = harp_from_bits_$s((a < b) == (a > 0) ? bits + 1 : bits - 1);
    const $T next = a == 0 ? copysign$f(harp_from_bits_$s(1), b) : moved;
    const $T differs = ((a < b) | (b < a)) ? next : a + b;
    return a == b ? b : differs;
}
"""
_DOUBLE: Mapping[str, str] = {**_HYPERBOLIC, **_ANGLES, **_ROOTS, **_ERROR}
_HYPOT = """\
/* No square of a float is too large or too small for a double. */
HARP_INLINE float harp_hypot_f32(float a, float b)
{
    const double x = a, y = b;
    const float root = (float)sqrt(harp_madd_f64(x, x, y*y)), inf = __builtin_inff();
    return ((fabsf(a) == inf) | (fabsf(b) == inf)) ? inf : root;
}
"""


def family(dtype: DType) -> Mapping[str, str]:
    """The functions of this dtype, each after those that it calls; those of float32 call those of float64."""
    if dtype is not f32:
        return {**_DOUBLE, "nextafter": _NEXT}
    return {**math_single.family(), "hypot": _HYPOT, "nextafter": _NEXT}
