"""Inverse and hyperbolic functions of float32, computed in double with short polynomials and rounded once.

A relative error of 2^-28 before rounding adds 1/32 ULP to it, so the polynomials are half as long as those of float64
in `harp.backends.c.math_double`, and no division is needed where that of float64 has one to gain precision. Exponents
and selects stay in float where they can, which is twice as many lanes. All polynomials are minimax (Remez).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

# (cosh(r) - 1)/r^2 and (sinh(r) - r)/r^3 in r^2, for |r| <= log(2)/2, to 2^-34 and 2^-37 of the function
_COSH = ("0x1.6d9790fa14b31p-10", "0x1.55547ecdb3363p-5", "0x1.00000043fa7dp-1")
_SINH = ("0x1.a16ff1ad6d63cp-13", "0x1.1110b1c3974fap-7", "0x1.5555557387a95p-3")
# (log(1 + f) - f)/f^2 for f from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-30 of log(1 + f)
_LOG = (
    *("0x1.1b3f2b8c55e41p-4", "-0x1.e2e797501924fp-4", "0x1.e6512386820bdp-4", "-0x1.fb438f64798eep-4"),
    *("0x1.2332bd399e9afp-3", "-0x1.5562e022036c2p-3", "0x1.99a545c88e31dp-3", "-0x1.ffffee08635f9p-3"),
    *("0x1.555545f8cb9c8p-2", "-0x1.00000000009bcp-1"),
)
# cbrt(1 + f) for f from sqrt(1/2) - 1 to sqrt(2) - 1, to 2^-28
_CBRT = (
    *("-0x1.a966bb6deeea3p-7", "0x1.64217416935ap-6", "-0x1.8e326b3aacce3p-6", "0x1.eb861b1d83dd4p-6"),
    *("-0x1.50ab9341f4c6p-5", "0x1.f9b77b815787ep-5", "-0x1.c71d9615e645cp-4", "0x1.555552cc4d9c9p-2"),
    "0x1.0000000dfa37p+0",
)
# (atan(t) - t)/t^3 in t^2, for |t| <= 1, to 2^-28 of atan(t)
_ATAN = (
    *("-0x1.d63181243cc8dp-10", "0x1.65a750be12894p-7", "-0x1.fed259c9ef26ep-6", "0x1.daca6eaa4c767p-5"),
    *("-0x1.5834be33e99dep-4", "0x1.c09a0f9dde9d2p-4", "-0x1.2421b704c6572p-3", "0x1.9991fd5699743p-3"),
    "-0x1.55553e5b12751p-2",
)
# (asin(s) - s)/s^3 in s^2, for |s| <= 1/2, to 2^-31 of asin(s)
_ASIN = (
    *("0x1.33546e246ce8fp-5", "0x1.d92372e41471bp-7", "0x1.0491612070063p-5", "0x1.6caed9924fddfp-5"),
    *("0x1.33387c6d971cfp-4", "0x1.55554c600fe61p-3"),
)


def polynomial(value: str, x: str, coefficients: Sequence[str]) -> str:
    """Statements that compute it by Horner's rule."""
    first, *others = coefficients
    steps = [f"{value} = harp_madd_f64({value}, {x}, {c});" for c in others]
    return "\n    ".join([f"double {value} = {first};", *steps])


# x = n*log(2) + r: c = cosh(r), s = sinh(r), high = 2^n/2, low = 2^-n/2. From 90 on the results are infinite as float.
_REDUCED = f"""\
    const double a = fabsf(x) > 90 ? 90 : fabsf(x), up = harp_madd_f64(a, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = harp_madd_f64(up - 0x1.8p52, -0x1.62e42fefa39efp-1, a), z = r*r;
    const double high = harp_from_bits_f64((harp_bits_f64(up) + 1022) << 52);
    const double low = harp_from_bits_f64((1022 - harp_bits_f64(up)) << 52);
    {polynomial("p", "z", _COSH)}
    {polynomial("q", "z", _SINH)}
    const double c = harp_madd_f64(z, p, 1), s = harp_madd_f64(r*z, q, r);"""
_HYPERBOLIC: Mapping[str, str] = {
    "sinh": f"""\
HARP_INLINE float harp_sinh_f32(float x)
{{
{_REDUCED}
    return copysignf((float)harp_madd_f64(high - low, c, (high + low)*s), x);
}}
""",
    "cosh": f"""\
HARP_INLINE float harp_cosh_f32(float x)
{{
{_REDUCED}
    return (float)harp_madd_f64(high + low, c, (high - low)*s);
}}
""",
    "log_short": f"""\
/* log(x) of a normal number. */
HARP_INLINE double harp_log_short_f32(double x)
{{
    const double f = harp_log_part_f64(x), k = harp_log_whole_f64(x);
    {polynomial("p", "f", _LOG)}
    return harp_madd_f64(k, 0x1.62e42fefa39efp-1, harp_madd_f64(f*f, p, f));
}}
""",
    "asinh": """\
HARP_INLINE float harp_asinh_f32(float x)
{
    const double a = fabsf(x);
    const float y = copysignf((float)harp_log_short_f32(a + sqrt(harp_madd_f64(a, a, 1))), x);
    return fabsf(x) >= 0x1p-13f && fabsf(x) < __builtin_inff() ? y : x;
}
""",
    "acosh": """\
HARP_INLINE float harp_acosh_f32(float x)
{
    const double a = x;
    const float y = (float)harp_log_short_f32(a + sqrt(harp_madd_f64(a, a, -1)));
    const float high = x < __builtin_inff() ? y : x;
    return x < 1 ? __builtin_nanf("") : high;
}
""",
    "atanh": """\
HARP_INLINE float harp_atanh_f32(float x)
{
    const float a = fabsf(x), end = a == 1 ? __builtin_inff() : __builtin_nanf("");
    const float y = (float)(0.5*harp_log_short_f32((1 + (double)a)/(1 - (double)a)));
    const float high = copysignf(a < 1 ? y : end, x);
    return a < 0x1p-13f ? x : high;
}
""",
}
_ANGLES: Mapping[str, str] = {
    "atan_part": f"""\
/* atan(t) for |t| <= 1. */
HARP_INLINE double harp_atan_part_f32(double t)
{{
    const double z = t*t;
    {polynomial("p", "z", _ATAN)}
    return harp_madd_f64(t*z, p, t);
}}
""",
    "atan": """\
HARP_INLINE float harp_atan_f32(float x)
{
    const float a = fabsf(x), top = a > 1 ? -1 : a, bottom = a > 1 ? a : 1, turned = a > 1 ? 0x1.921fb6p+0f : 0;
    const float rest = a > 1 ? -0x1.777a5cp-25f : 0;
    return copysignf((float)(harp_atan_part_f32((double)top/bottom) + ((double)turned + rest)), x);
}
""",
    "atan2": """\
/* With the octant turned so that 0 <= t <= 1; that of two zeros is 0, and that of two infinities 1. */
HARP_INLINE float harp_atan2_f32(float y, float x)
{
    const float a = fabsf(y), b = fabsf(x), less = a > b ? b : a, more = a > b ? a : b;
    const int both = (less == __builtin_inff()) & (more == __builtin_inff());
    const float top = both ? 1 : less, high = both ? 1 : more;
    const double p = harp_atan_part_f32((double)top/(high == 0 ? 1 : high));
    const double q = a > b ? 0x1.921fb54442d18p+0 - p : p;
    const double value = copysignf(1, x) < 0 ? 0x1.921fb54442d18p+1 - q : q;
    return copysignf((float)value, y);
}
""",
    "asin_part": f"""\
/* asin(s), or half of what is left to a right angle from 1/2 on: asin(a) = pi/2 - 2*asin(sqrt((1 - a)/2)). */
HARP_INLINE double harp_asin_part_f32(float a)
{{
    const double half = 0.5f - 0.5f*a, x = a, z = a < 0.5f ? x*x : half, s = a < 0.5f ? x : sqrt(half);
    {polynomial("p", "z", _ASIN)}
    return harp_madd_f64(s*z, p, s);
}}
""",
    "asin": """\
HARP_INLINE float harp_asin_f32(float x)
{
    const double p = harp_asin_part_f32(fabsf(x));
    return copysignf((float)(fabsf(x) < 0.5f ? p : harp_madd_f64(p, -2, 0x1.921fb54442d18p+0)), x);
}
""",
    "acos": """\
HARP_INLINE float harp_acos_f32(float x)
{
    const double p = harp_asin_part_f32(fabsf(x)), q = fabsf(x) < 0.5f ? 0x1.921fb54442d18p+0 - p : 2*p;
    return (float)(x < 0 ? 0x1.921fb54442d18p+1 - q : q);
}
""",
}
_ROOTS: Mapping[str, str] = {
    "cbrt": f"""\
/* x = (1 + f)*2^e*2^(3q) with e from -1 to 1. */
HARP_INLINE float harp_cbrt_f32(float x)
{{
    const float a = fabsf(x), up = a*0x1p24f, y = a < 0x1p-126f ? up : a, shift = a < 0x1p-126f ? 24 : 0;
    const float k = harp_log_whole_f32(y) - shift;
    const float q = harp_madd_f32(k, 0x1.555556p-2f, 0x1.8p23f) - 0x1.8p23f, e = k - 3*q;
    const double f = harp_log_part_f32(y);
    {polynomial("p", "f", _CBRT)}
    const double above = e > 0 ? 0x1.428a2f98d728bp+0 : 1, root = e < 0 ? 0x1.965fea53d6e3dp-1 : above;
    const float value = copysignf((float)(p*root)*harp_two_to_f32(q), x);
    return (a > 0) & (a < __builtin_inff()) ? value : x;
}}
""",
}


def family() -> Mapping[str, str]:
    """The functions, each after those that it calls."""
    return {**_HYPERBOLIC, **_ANGLES, **_ROOTS}
