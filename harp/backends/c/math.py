"""Elementwise functions of C as polynomials, so that the loops which use them are vectorised; one text for each dtype.

There is no branch, no table and no call in them: a compiler turns each select into a blend. Reduction constants are
split so that the first product is exact, with and without a fused multiply-add. What is added and subtracted as $magic
rounds to a whole number, whose bits then end the sum's. How exact they are is a table of docs/elementwise.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harp.backends.c import math_fused
from harp.trace.dtypes import DType, f32, f64

PLAIN: Mapping[str, str] = {
    "HARP_INLINE": """\
/* A call left in a loop would keep it from being vectorised. */
#define HARP_INLINE static inline __attribute__((always_inline, unused))
""",
}

# Polynomials, the highest power first, and what else differs. log: log(1 + f) - f + f*f/2; exp: (exp(r) - 1 - r)/r^2;
# exp2: (2^r - 1)/r. Those of f32 are the ones of Cephes (expf.c, exp2f.c, logf.c, tanhf.c).
_F32: Mapping[str, Sequence[str]] = {
    "exp": (
        *("1.9875691500e-4f", "1.3981999507e-3f", "8.3334519073e-3f", "4.1665795894e-2f", "1.6666665459e-1f"),
        "5.0000001201e-1f",
    ),
    "exp2": (
        *("1.535336188319500e-4f", "1.339887440266574e-3f", "9.618437357674640e-3f", "5.550332471162809e-2f"),
        *("2.402264791363012e-1f", "6.931472028550421e-1f"),
    ),
    "log": (
        *("7.0376836292e-2f", "-1.1514610310e-1f", "1.1676998740e-1f", "-1.2420140846e-1f", "1.4249322787e-1f"),
        *("-1.6668057665e-1f", "2.0000714765e-1f", "-2.4999993993e-1f", "3.3333331174e-1f"),
    ),
    "tanh": (
        *("-5.70498872745e-3f", "2.06390887954e-2f", "-5.37397155531e-2f", "1.33314422036e-1f"),
        "-3.33332819422e-1f",
    ),
}
# exp and exp2: minimax (Remez), relative error of the result 2^-58; log: fdlibm's e_log.c; tanh: P/Q of Cephes' tanh.c.
_F64: Mapping[str, Sequence[str]] = {
    "exp": (
        *("0x1.af85a9a38f246p-26", "0x1.28b0493ee36abp-22", "0x1.71dddfb4ea1afp-19", "0x1.a0199693a6f33p-16"),
        *("0x1.a01a01baed115p-13", "0x1.6c16c185a74f1p-10", "0x1.111111110d61ap-7", "0x1.5555555550030p-5"),
        *("0x1.5555555555561p-3", "0x1.000000000000bp-1"),
    ),
    "exp2": (
        *("0x1.ea188e793058bp-32", "0x1.e61ccb991f545p-28", "0x1.b524cdb6518e7p-24", "0x1.62bfc6b95f0b9p-20"),
        *("0x1.ffcbfc7c63860p-17", "0x1.4309130f36c2fp-13", "0x1.5d87fe78a0dc0p-10", "0x1.3b2ab6fb9ff34p-7"),
        *("0x1.c6b08d704a0d7p-5", "0x1.ebfbdff82c5a5p-3", "0x1.62e42fefa39efp-1"),
    ),
    "log": (
        *("1.479819860511658591e-1", "1.531383769920937332e-1", "1.818357216161805012e-1", "2.222219843214978396e-1"),
        *("2.857142874366239149e-1", "3.999999999940941908e-1", "6.666666666666735130e-1"),
    ),
    "tanhp": ("-9.64399179425052238628e-1", "-9.92877231001918586564e1", "-1.61468768441708447952e3"),
    "tanhq": ("1.0", "1.12811678491632931402e2", "2.23548839060100448583e3", "4.84406305325125486048e3"),
}

_BASE: Mapping[str, str] = {
    "madd": """\
/* a*b + c, rounded once where that is one instruction. */
HARP_INLINE $T harp_madd_$s($T a, $T b, $T c)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma$f(a, b, c);
#else
    return a*b + c;
#endif
}
""",
    "rint": """\
/* The nearest whole number, halves to the even one. A sum with a large number has no place for a fraction. */
HARP_INLINE $T harp_rint_$s($T a)
{
#if defined(__SSE4_1__) || defined(__aarch64__)
    return __builtin_rint$f(a);
#else
    const $T end = (($U)1 << $mant), size = fabs$f(a);
    return size < end ? copysign$f((size + end) - end, a) : a;
#endif
}
""",
    "bits": """\
HARP_INLINE $U harp_bits_$s($T a)
{
    $U bits;
    __builtin_memcpy(&bits, &a, sizeof bits);
    return bits;
}
""",
    "from_bits": """\
HARP_INLINE $T harp_from_bits_$s($U bits)
{
    $T a;
    __builtin_memcpy(&a, &bits, sizeof a);
    return a;
}
""",
    "two_to": """\
/* 2^n for a whole n whose power is a normal number. */
HARP_INLINE $T harp_two_to_$s($T n) { return harp_from_bits_$s((harp_bits_$s(n + $magic) + $bias) << $mant); }
""",
    "scaled": """\
/* p*2^n for a whole n between -2*$bias and 2*$bias, given n + $magic_two, by two factors: it
   overflows to infinity, and is rounded once more only where it is denormal. The bits of the sum end with those of
   n + 2*$bias, of which each factor has a half as its exponent. */
HARP_INLINE $T harp_scaled_$s($T p, $T up)
{
    const $U half = ($U)1 << ($mant - 1), exponent = ~($U)0 << $mant;
    const $U bits = harp_bits_$s(up) << ($mant - 1);
    return p*harp_from_bits_$s(bits & exponent)*harp_from_bits_$s((bits + half) & exponent);
}
""",
    "scale": """\
HARP_INLINE $T harp_scale_$s($T p, $T n)
{
    return harp_scaled_$s(p, n + $magic_two);
}
""",
}

# x = n*log(2) + r, Cody and Waite: n*$ln2_hi is exact.
_EXP: Mapping[str, str] = {
    "exp_poly": """\
HARP_INLINE $T harp_exp_poly_$s($T r)
{
    $poly_exp
    return p;
}
""",
    "exp": """\
/* Of large x only n is limited: what is left in r makes the result infinite all the more. */
HARP_INLINE $T harp_exp_$s($T x)
{
    const $T c = $exp_min > x ? $exp_min : x;
    const $T sum = harp_madd_$s(c, $log2e, $magic_two);
    const $T up = $up_max < sum ? $up_max : sum, n = up - $magic_two;
    const $T r = harp_madd_$s(n, -($ln2_lo), harp_madd_$s(n, -$ln2_hi, c));
    return harp_scaled_$s(harp_madd_$s(harp_madd_$s(harp_exp_poly_$s(r), r, 1), r, 1), up);
}
""",
    "exp2_poly": """\
HARP_INLINE $T harp_exp2_poly_$s($T r)
{
    $poly_exp2
    return p;
}
""",
    "exp2": """\
HARP_INLINE $T harp_exp2_$s($T x)
{
    const $T c = $exp2_min > x ? $exp2_min : x, sum = c + $magic_two;
    const $T up = $up_max < sum ? $up_max : sum;
    const $T r = c - (up - $magic_two);
    return harp_scaled_$s(harp_madd_$s(harp_exp2_poly_$s(r), r, 1), up);
}
""",
    "expm1": """\
/* 2*(h*expm1(r) + (h - 1/2)) with h = 2^(n - 1). What r and the large sum lost is added. */
HARP_INLINE $T harp_expm1_$s($T x)
{
    $T c = x > $exp_max ? $exp_max : x;
    c = c < $expm1_min ? $expm1_min : c;
    const $T n = harp_madd_$s(c, $log2e, $magic) - $magic;
    const $T near = harp_madd_$s(n, -$ln2_hi, c), r = harp_madd_$s(n, -($ln2_lo), near);
    const $T rest = harp_madd_$s(n, -($ln2_lo), near - r);
    const $T h = harp_two_to_$s(n - 1), whole = h - 0.5$f, sum = harp_madd_$s(h, r, whole);
    const $T lost = harp_madd_$s(h, r, whole - sum);
    const $T p = harp_madd_$s(harp_exp_poly_$s(r), r*r, rest);
    const $T y = 2*(sum + harp_madd_$s(h, p, lost));
    return fabs$f(x) < $tiny ? x : y;
}
""",
}

# x = m*2^k with m between sqrt(1/2) and sqrt(2), and f = m - 1.
_LOG: Mapping[str, str] = {
    "log_whole": """\
/* k, for a normal number. */
HARP_INLINE $T harp_log_whole_$s($T x)
{
    const $U biased = (harp_bits_$s(x) + $root_one) >> $mant;
    return harp_from_bits_$s(biased | $whole_bits) - $whole;
}
""",
    "log_part": """\
/* f, for a normal number. */
HARP_INLINE $T harp_log_part_$s($T x)
{
    const $U part = (harp_bits_$s(x) + $root_one) & $mant_mask;
    return harp_from_bits_$s(part + $root) - 1;
}
""",
    "log_sum": """\
/* log(1 + f) + k*log(2), the small terms first. */
HARP_INLINE $T harp_log_sum_$s($T f, $T k)
{
    const $T half = 0.5$f*f*f, small = harp_madd_$s(k, $ln2_lo, harp_log_poly_$s(f));
    return harp_madd_$s(k, $ln2_hi, f - (half - small));
}
""",
    "log_ends": """\
/* y, except where the logarithm of x is infinite or NaN. */
HARP_INLINE $T harp_log_ends_$s($T x, $T y)
{
    const $T high = x < __builtin_inf$f() ? y : x;
    const $T low = x == 0 ? -__builtin_inf$f() : __builtin_nan$f("");
    return x > 0 ? high : low;
}
""",
    "log": """\
HARP_INLINE $T harp_log_$s($T x)
{
    const $T up = x*$raise, y = x < $normal ? up : x, shift = x < $normal ? $raised : 0;
    return harp_log_ends_$s(x, harp_log_sum_$s(harp_log_part_$s(y), harp_log_whole_$s(y) - shift));
}
""",
    "log2": """\
/* log(1 + f)/log(2) in two parts, k added to the large one, as in FreeBSD's e_log2.c. */
HARP_INLINE $T harp_log2_$s($T x)
{
    const $T up = x*$raise, y = x < $normal ? up : x, shift = x < $normal ? $raised : 0;
    const $T f = harp_log_part_$s(y), k = harp_log_whole_$s(y) - shift, half = 0.5$f*f*f;
    const $T hi = harp_from_bits_$s(harp_bits_$s(f - half) & $upper);
    const $T lo = ((f - hi) - half) + harp_log_poly_$s(f);
    const $T large = hi*$log2e_hi, small = harp_madd_$s(lo + hi, $log2e_lo, lo*$log2e_hi);
    const $T sum = k + large;
    return harp_log_ends_$s(x, sum + (small + ((k - sum) + large)));
}
""",
    "log10": """\
/* As log2; k*log10(2) is in two parts too. */
HARP_INLINE $T harp_log10_$s($T x)
{
    const $T up = x*$raise, y = x < $normal ? up : x, shift = x < $normal ? $raised : 0;
    const $T f = harp_log_part_$s(y), k = harp_log_whole_$s(y) - shift, half = 0.5$f*f*f;
    const $T hi = harp_from_bits_$s(harp_bits_$s(f - half) & $upper);
    const $T lo = ((f - hi) - half) + harp_log_poly_$s(f);
    const $T tens = k*$log10_2_hi, large = hi*$log10e_hi, sum = tens + large;
    const $T part = harp_madd_$s(lo + hi, $log10e_lo, lo*$log10e_hi);
    const $T small = harp_madd_$s(k, $log10_2_lo, part);
    return harp_log_ends_$s(x, sum + (small + ((tens - sum) + large)));
}
""",
    "log1p": """\
/* f = (1 + x)*2^-k - 1 from x itself, rounded once; k = 0 where x is small. */
HARP_INLINE $T harp_log1p_$s($T x)
{
    const $T k = harp_log_whole_$s(1 + x), down = harp_two_to_$s(2 - k);
    const $T f = harp_madd_$s(x*0.25$f, down, down*0.25$f - 1);
    const $T y = harp_log_ends_$s(1 + x, harp_log_sum_$s(f, k));
    return fabs$f(x) < $tiny ? x : y;
}
""",
}
_OF_F32: Mapping[str, str] = {
    "log_poly": """\
/* log(1 + f) - f + f*f/2. */
HARP_INLINE $T harp_log_poly_$s($T f)
{
    $poly_log
    return f*f*f*p;
}
""",
    "tanh": """\
/* Small: a polynomial, else 1 - 2/(2^(2a*log2(e)) + 1); from 10 on it is 1. */
HARP_INLINE $T harp_tanh_$s($T x)
{
    const $T z = x*x, a = fabs$f(x), c = a > 10 ? 10 : a;
    $poly_tanh
    const $T factor = 2*$log2e, up = harp_madd_$s(c, factor, $magic);
    const $T r = harp_madd_$s(c, factor, $magic - up);
    const $U exponent = (harp_bits_$s(up) + $bias) << $mant;
    const $T power = harp_madd_$s(harp_exp2_poly_$s(r), r, 1)*harp_from_bits_$s(exponent);
    const $T near = harp_madd_$s(z*p, a, a), far = 1 - 2/(power + 1);
    return copysign$f(a < 0.625f ? near : far, x);
}
""",
}
_OF_F64: Mapping[str, str] = {
    "log_poly": """\
/* log(1 + f) - f + f*f/2; with s = f/(2 + f) it is s*(f*f/2 + R(s*s)). */
HARP_INLINE $T harp_log_poly_$s($T f)
{
    const $T s = f/(2 + f), z = s*s;
    $poly_log
    return s*harp_madd_$s(p, z, 0.5*f*f);
}
""",
    "tanh": """\
/* Small: a + a*z*P/Q, else 1 - 2/(2^(2a*log2(e)) + 1), with one division for both; from 20 on it is 1. */
HARP_INLINE $T harp_tanh_$s($T x)
{
    const $T a = fabs(x), z = x*x, c = a > 20 ? 20 : a;
    $poly_tanhp
    $poly_tanhq
    const $T factor = 2*$log2e, up = harp_madd_$s(c, factor, $magic);
    const $T r = harp_madd_$s(c, factor, $magic - up);
    const $U exponent = (harp_bits_$s(up) + $bias) << $mant;
    const $T power = harp_madd_$s(harp_exp2_poly_$s(r), r, 1)*harp_from_bits_$s(exponent);
    const $T near = a*z*p, top = a < 0.625 ? near : -2, below = a < 0.625 ? q : power + 1;
    return copysign((a < 0.625 ? a : 1) + top/below, x);
}
""",
}

_CONSTANTS_F32 = """
    magic=0x1.8p23f bias=127 mant=23 log2e=0x1.715476p+0f ln2_hi=0.693359375f ln2_lo=-2.12194440e-4f
    magic_two=12583166.0f up_max=12583296.0f
    tiny=0x1p-25f exp_min=-104.0f exp_max=89.0f exp2_min=-151.0f expm1_min=-20.0f
    normal=0x1p-126f raise=0x1p24f raised=24 root=0x3f3504f3u root_one=0x004afb0du whole=0x1.0000fep23f
    whole_bits=0x4b000000u mant_mask=0x007fffffu upper=0xfffff000u log2e_hi=0x1.716p0f
    log2e_lo=-0x1.7135a8p-13f log10e_hi=0x1.bccp-2f log10e_lo=-0x1.09d5b2p-15f log10_2_hi=0x1.344p-2f
    log10_2_lo=0x1.3509f8p-18f
"""
_CONSTANTS_F64 = """
    magic=0x1.8p52 bias=1023 mant=52 log2e=0x1.71547652b82fep+0 ln2_hi=0x1.62e42feep-1
    ln2_lo=0x1.a39ef35793c76p-33 tiny=0x1p-54 exp_min=-746.0 exp_max=710.0 exp2_min=-1076.0
    magic_two=6755399441057790.0 up_max=6755399441058816.0 expm1_min=-40.0 normal=0x1p-1022 raise=0x1p54 raised=54
    root=UINT64_C(0x3fe6a09e667f3bcd) root_one=UINT64_C(0x00095f619980c433) whole=0x1.00000000003ffp52
    whole_bits=UINT64_C(0x4330000000000000) mant_mask=UINT64_C(0x000fffffffffffff)
    upper=UINT64_C(0xffffffff00000000) log2e_hi=0x1.71547652p0 log2e_lo=0x1.705fc2eefa2p-33
    log10e_hi=0x1.bcb7b154p-2 log10e_lo=-0x1.91af1cd59548bp-34 log10_2_hi=0x1.34413509f8p-2
    log10_2_lo=-0x1.80433b83b532ap-44
"""
# The variable of each polynomial; the value is named p, or q for the last one.
_VARIABLES: Mapping[DType, Mapping[str, str]] = {
    f32: {"exp": "r", "exp2": "r", "log": "f", "tanh": "z"},
    f64: {"exp": "r", "exp2": "r", "log": "z", "tanhp": "z", "tanhq": "z"},
}


def _polynomial(dtype: DType, name: str, coefficients: Sequence[str]) -> str:
    """Statements that compute it by Horner's rule."""
    value, x = "q" if name == "tanhq" else "p", _VARIABLES[dtype][name]
    first, *others = coefficients
    steps = [f"{value} = harp_madd_{dtype.name}({value}, {x}, {c});" for c in others]
    return "\n    ".join([f"{'float' if dtype is f32 else 'double'} {value} = {first};", *steps])


def fields(dtype: DType) -> dict[str, str]:
    """What the texts of `family` say for this dtype."""
    constants, polynomials = (_CONSTANTS_F32, _F32) if dtype is f32 else (_CONSTANTS_F64, _F64)
    named = dict(item.split("=") for item in constants.split())
    return {**named, **{f"poly_{name}": _polynomial(dtype, name, c) for name, c in polynomials.items()}}


def family(dtype: DType) -> Mapping[str, str]:
    """The functions of this dtype, each after those that it calls."""
    if dtype is f32:
        return {**_BASE, **_EXP, **_OF_F32, **_LOG, **math_fused.logarithms(_LOG)}
    return {**_BASE, **_EXP, **_OF_F64, **_LOG}
