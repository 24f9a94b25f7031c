"""Inverse and hyperbolic functions, erf and the like, of float32: in double with short polynomials, rounded once.

A relative error of 2^-28 before rounding adds 1/32 ULP to it, so the polynomials are half as long as those of float64
in `harp.backends.c.math_double`, and no division is needed where that of float64 has one to gain precision. Exponents
and selects stay in float where they can, which is twice as many lanes. erf is computed in float where there is a fused
multiply-add. All polynomials are minimax (Remez).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harp.trace.dtypes import DType, f32, f64

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
# erf(x)/x - 1 in x^2 for |x| <= 3/4, and log2(erfc(a + t)/erfc(a))/t in t for a + t from 3/4 to 4 with the a that the
# function subtracts. They make errors of 2^-29 and 2^-27 of erf(x).
_ERF_NEAR = (
    *("-0x1.613e18p-11f", "0x1.4f1888p-8f", "-0x1.b7a75cp-6f", "0x1.ce2acep-4f", "-0x1.81273ap-2f", "0x1.06eba8p-3f"),
)
_ERF_FAR = (
    *("0x1.50bdc6p-12f", "-0x1.97b23ep-9f", "0x1.12d714p-6f", "-0x1.1d8808p-4f", "-0x1.2f9e6cp+0f", "-0x1.b74354p+1f"),
)
# exp(a*a)*erfc(a) in 1/(a + 3) for a >= 0, to 2^-29; (exp(r) - 1)/r for |r| <= log(2)/2, to 2^-28 of exp(r)
_ERFC = (
    *("0x1.a63a9d140e797p+11", "-0x1.71f853663724cp+12", "0x1.c947ebc666e65p+11", "-0x1.02c5d03f4d9d2p+10"),
    *("0x1.3c2cc5fe5771ep+8", "-0x1.44c7de789b672p+2", "0x1.0371ccb661687p+4", "0x1.244a6e482f37ap+2"),
    *("0x1.b3ad8d270733p+0", "0x1.20c1f34dc86fp-1", "0x1.01edd90ae30ap-19"),
)
_EXP = (
    *("0x1.6ae686a63202cp-10", "0x1.12682fb10246bp-7", "0x1.5558252fb23cep-5", "0x1.5554182091e5ep-3"),
    *("0x1.fffffc171afa9p-2", "0x1.0000008af7ef9p+0"),
)
# erfinv(x)/x in w - 2.5 and w - 10.475, where w = -log(1 - x*x), for w <= 5 and for 5 <= w <= 15.95, to 2^-28
_ERFINV_NEAR = (
    *("0x1.70f417a0bc98fp-32", "-0x1.2d6def5d8c86bp-27", "0x1.35dec7e45f2d2p-26", "0x1.f43f2d71d785bp-22"),
    *("-0x1.ccfc45d57a4bbp-19", "-0x1.4cfcecc0aeb04p-18", "0x1.c9c597629a632p-13", "-0x1.4866457ef1756p-10"),
    *("-0x1.11c42017ade87p-8", "0x1.f91e8b0a325fp-3", "0x1.805c5d073ec82p+0"),
)
_ERFINV_FAR = (
    *("0x1.2e64ad34cc92ap-39", "-0x1.5dd1bdbdaef07p-35", "0x1.79e9a09d1325fp-32", "-0x1.15bbc4cc27287p-29"),
    *("0x1.e3a6a702a2818p-33", "0x1.4a73b8729bc87p-22", "-0x1.012ac57472866p-17", "0x1.47b7653da2cb8p-13"),
    *("-0x1.d47497167d7ap-9", "0x1.3e01ebc6f7b47p-3", "0x1.8900724c2e02ep+1"),
)


def polynomial(value: str, x: str, coefficients: Sequence[str], dtype: DType = f64) -> str:
    """Statements that compute it by Horner's rule."""
    first, *others = coefficients
    steps = [f"{value} = harp_madd_{dtype.name}({value}, {x}, {c});" for c in others]
    return "\n    ".join([f"{'float' if dtype is f32 else 'double'} {value} = {first};", *steps])


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
_ERROR: Mapping[str, str] = {
    "erf": f"""\
/* Below 3/4 it is x + x*P(x*x), else 1 - 2^(c + t*P(t)) with t = |x| - a, where c = log2(erfc(a)) is nearly a float. */
HARP_INLINE float harp_erf_f32(float x)
{{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    const float a = 4 < fabsf(x) ? 4 : fabsf(x), c = -0x1.0d2f28p+1f, t = a - 0x1.b00036p-1f, z = a*a;
    {polynomial("p", "t", _ERF_FAR, f32)}
    {polynomial("q", "z", _ERF_NEAR, f32)}
    const float n = (harp_madd_f32(t, p, c) + 0x1.8p23f) - 0x1.8p23f, r = harp_madd_f32(t, p, c - n);
    const float scale = harp_two_to_f32(n), far = harp_madd_f32(-r*scale, harp_exp2_poly_f32(r), 1 - scale);
    return copysignf(a < 0.75f ? harp_madd_f32(a, q, a) : far, x);
#else
    return (float)harp_erf_f64(x);
#endif
}}
""",
    "erfc": f"""\
/* From 10.2 on it is 0 as float. */
HARP_INLINE float harp_erfc_f32(float x)
{{
    const double a = 10.2f < fabsf(x) ? 10.2f : fabsf(x), u = 1/(a + 3), c = -a*a;
    const double up = harp_madd_f64(c, 0x1.71547652b82fep+0, 0x1.8p52);
    const double r = harp_madd_f64(up - 0x1.8p52, -0x1.62e42fefa39efp-1, c);
    {polynomial("p", "u", _ERFC)}
    {polynomial("q", "r", _EXP)}
    const double power = harp_madd_f64(q, r, 1)*harp_from_bits_f64((harp_bits_f64(up) + 1023) << 52)*p;
    return (float)(x < 0 ? 2 - power : power);
}}
""",
    "erfinv": f"""\
HARP_INLINE float harp_erfinv_f32(float x)
{{
    const float size = fabsf(x), end = size == 1 ? __builtin_inff() : __builtin_nanf("");
    const double a = x, w = -harp_log_short_f32(1 - a*a), near = w - 2.5, far = w - 10.475;
    {polynomial("p", "near", _ERFINV_NEAR)}
    {polynomial("q", "far", _ERFINV_FAR)}
    return size < 1 ? (float)(a*(w < 5 ? p : q)) : copysignf(end, x);
}}
""",
}


def family() -> Mapping[str, str]:
    """The functions, each after those that it calls."""
    return {**_HYPERBOLIC, **_ANGLES, **_ROOTS, **_ERROR}
