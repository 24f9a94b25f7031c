"""sin, cos, tan and pow of float32, computed in double: nearly always correctly rounded. Those of float64 are libm's.

Numbers of any size are reduced as by Payne and Hanek, but without a branch. For x = M*2^e with a whole number M of
24 bits, the quarter turns x*2/pi modulo 4 are M*(2^e*2/pi mod 4). For each e > 0 a table has the second factor, in two
parts and times 2^-e. The product of x and the first part, which ends 27 places after the point, is exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from harp.trace.dtypes import DType, f32

_PLACES = 256
_TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561  # times 2^_PLACES
_FIRST_PLACES = 27
_EXPONENTS = 106  # up to that of infinity


def _turns() -> Iterator[tuple[float, float]]:
    low = _PLACES - _FIRST_PLACES
    for e in range(_EXPONENTS):
        turns = (_TWO_OVER_PI << e) % (4 << _PLACES)
        first, rest = turns >> low, turns % (1 << low)
        yield math.ldexp(first, -_FIRST_PLACES - e), math.ldexp(rest, -_PLACES - e)


def _table(name: str, values: list[float]) -> str:
    words = [value.hex() for value in values]
    rows = [", ".join(words[i : i + 4]) for i in range(0, len(words), 4)]
    return f"static const double {name}[{len(words)}] = {{\n    " + ",\n    ".join(rows) + ",\n};\n"


def tables() -> Mapping[str, str]:
    """2^e*2/pi modulo 4, times 2^-e, in two parts."""
    first, rest = zip(*_turns(), strict=True)
    return {
        "harp_turns": _table("harp_turns", list(first)),
        "harp_turns_rest": _table("harp_turns_rest", list(rest)),
    }


# In quarter turns t between -1/2 and 1/2: sin = t*P(t*t), cos = Q(t*t), minimax (Remez), to 2^-33 and 2^-31.
_TRIG: Mapping[str, str] = {
    "quarters": """\
/* The nearest whole number of quarter turns (modulo 2^32), and what is left. */
HARP_INLINE double harp_quarters_f32(float a, uint32_t *whole)
{
    const int32_t above = (int32_t)(harp_bits_f32(a) >> 23 & 255) - 150;
    const int64_t e = above > 0 ? above : 0; /* gcc does not gather by an int32_t */
    const double x = a, near = x*harp_turns[e], sum = near + 0x1.8p52;
    *whole = (uint32_t)harp_bits_f64(sum);
    return harp_madd_f64(x, harp_turns_rest[e], near - (sum - 0x1.8p52));
}
""",
    "sin_part": """\
HARP_INLINE double harp_sin_part_f32(double t)
{
    const double z = t*t;
    double p = 0x1.4cb6790a98b6ep-13;
    p = harp_madd_f64(p, z, -0x1.32ce1bbbaedb4p-8);
    p = harp_madd_f64(p, z, 0x1.466bc2b669756p-4);
    p = harp_madd_f64(p, z, -0x1.4abbce616b9c2p-1);
    return t*harp_madd_f64(p, z, 0x1.921fb54442d18p+0);
}
""",
    "cos_part": """\
HARP_INLINE double harp_cos_part_f32(double t)
{
    const double z = t*t;
    double p = 0x1.db630e3b8d0ddp-11;
    p = harp_madd_f64(p, z, -0x1.55cb93f3eb51dp-6);
    p = harp_madd_f64(p, z, 0x1.03c1e9f21b975p-2);
    p = harp_madd_f64(p, z, -0x1.3bd3cc989c8b2p+0);
    return harp_madd_f64(p, z, 1);
}
""",
    "sin": """\
HARP_INLINE float harp_sin_f32(float a)
{
    uint32_t n;
    const double t = harp_quarters_f32(a, &n), s = harp_sin_part_f32(t), c = harp_cos_part_f32(t);
    const float y = (float)(n & 1 ? c : s);
    return n & 2 ? -y : y;
}
""",
    "cos": """\
HARP_INLINE float harp_cos_f32(float a)
{
    uint32_t n;
    const double t = harp_quarters_f32(a, &n), s = harp_sin_part_f32(t), c = harp_cos_part_f32(t);
    const float y = (float)(n & 1 ? s : c);
    return (n + 1) & 2 ? -y : y;
}
""",
    "tan": """\
HARP_INLINE float harp_tan_f32(float a)
{
    uint32_t n;
    const double t = harp_quarters_f32(a, &n), s = harp_sin_part_f32(t), c = harp_cos_part_f32(t);
    return (float)((n & 1 ? -c : s)/(n & 1 ? s : c));
}
""",
}
_POW: Mapping[str, str] = {
    "pow": """\
/* 2^(b*log2|a|), then the cases of C99. What is not whole, or so large that it is even, counts as the even 0. */
HARP_INLINE float harp_pow_f32(float a, float b)
{
    const double x = a, size = fabs(x), high = b > 0x1p40f ? 0x1p40 : b, y = high < -0x1p40 ? -0x1p40 : high;
    const double small = fabs(y) < 0x1p25 ? y : 0, whole = (small + 0x1.8p52) - 0x1.8p52;
    const double half = 0.5*(whole == small ? small : 0), sign = (half + 0x1.8p52) - 0x1.8p52 == half ? 1 : x;
    const double p = harp_exp2_f64(y*harp_log2_f64(size)), nan = __builtin_nan("");
    const double finite = size < __builtin_inf() ? nan : p, negative = x < 0 ? finite : p;
    const double value = copysign(whole == small ? p : negative, sign), one = x == 1 ? 1 : value;
    return (float)(y == 0 ? 1 : one);
}
""",
}
_LIBM: Mapping[str, str] = {
    **{
        name: f"HARP_INLINE double harp_{name}_f64(double a) {{ return {name}(a); }}\n"
        for name in ("sin", "cos", "tan")
    },
    "pow": "HARP_INLINE double harp_pow_f64(double a, double b) { return pow(a, b); }\n",
}


def family(dtype: DType) -> Mapping[str, str]:
    """The functions of this dtype, each after those that it calls."""
    return {**_TRIG, **_POW} if dtype is f32 else _LIBM
