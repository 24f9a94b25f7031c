"""sin, cos and tan, of numbers of any size: reduced as by Payne and Hanek, but without a branch.

float32 is computed in double: nearly always correctly rounded. For x = M*2^e with a whole number M of 24 bits, the
quarter turns x*2/pi modulo 4 are M*(2^e*2/pi mod 4). For each e > 0 a table has the second factor, in two parts and
times 2^-e. The product of x and the first part, which ends 27 places after the point, is exact.

float64 has a row of four parts of 53 bits for every 32 exponents. Products with the first three are exact in two
numbers, and are reduced modulo 4 where they are large. What is left is good to 2^-125 of a quarter turn, and no double
comes closer than 2^-62 to a whole number of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from harp.trace.dtypes import DType, f32

_PLACES = 1300
# times 2^_PLACES
_TWO_OVER_PI = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E006492EEA09D1921CFE1D"
    "EB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F49C845F8BBDF9283B1FF897FFDE05980FEF2F118B"
    "5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B"
    "6BABF0CFBC209AF4361DA9E39",
    16,
)
_FIRST_PLACES = 27
_EXPONENTS = 106  # up to that of infinity


def _turns() -> Iterator[tuple[float, float]]:
    low = _PLACES - _FIRST_PLACES
    for e in range(_EXPONENTS):
        turns = (_TWO_OVER_PI << e) % (4 << _PLACES)
        first, rest = turns >> low, turns % (1 << low)
        yield math.ldexp(first, -_FIRST_PLACES - e), math.ldexp(rest / (1 << _PLACES), -e)


_STEP, _ROWS = 32, 31  # exponents to a row of float64, and rows
_PARTS = 4


def _rows() -> Iterator[float]:
    """2^(32r)*2/pi modulo 4, between -2 and 2, as a sum of four doubles."""
    for r in range(_ROWS):
        left = (_TWO_OVER_PI << (_STEP * r)) % (4 << _PLACES)
        left -= (4 << _PLACES) if left >= 2 << _PLACES else 0
        for _ in range(_PARTS):
            part = left / (1 << _PLACES)
            yield part
            left -= int(Fraction(part) * (1 << _PLACES))


def _table(name: str, values: list[float]) -> str:
    words = [value.hex() for value in values]
    rows = [", ".join(words[i : i + 4]) for i in range(0, len(words), 4)]
    return f"static const double {name}[{len(words)}] = {{\n    " + ",\n    ".join(rows) + ",\n};\n"


def tables() -> Mapping[str, str]:
    """Quarter turns of powers of two modulo 4: of each in two parts, and of every 32nd in four."""
    first, rest = zip(*_turns(), strict=True)
    return {
        "harp_turns": _table("harp_turns", list(first)),
        "harp_turns_rest": _table("harp_turns_rest", list(rest)),
        "harp_quarter_parts": _table("harp_quarter_parts", list(_rows())),
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
_OF_F64: Mapping[str, str] = {
    "rest": """\
/* a*b - p exactly, where p is the rounded product; by halves (Dekker, Veltkamp) where no instruction has it. */
HARP_INLINE double harp_rest_f64(double a, double b, double p)
{
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fma(a, b, -p);
#else
    const double ac = 0x1.000002p27*a, ah = ac - (ac - a), al = a - ah;
    const double bc = 0x1.000002p27*b, bh = bc - (bc - b), bl = b - bh;
    return ((ah*bh - p) + ah*bl + al*bh) + al*bl;
#endif
}
""",
    "lost": """\
/* a + b - s exactly, where s is the rounded sum. */
HARP_INLINE double harp_lost_f64(double a, double b, double s)
{
    const double c = s - a;
    return (a - (s - c)) + (b - c);
}
""",
    "mod4": """\
/* a less a multiple of 4: from -2 to 2. */
HARP_INLINE double harp_mod4_f64(double a)
{
    const double up = copysign(0x1p54, a), near = (a + up) - up;
    return fabs(a) < 0x1p54 ? a - near : 0;
}
""",
    "quarters": """\
/* The nearest whole number of quarter turns, from -2 to 2, and what is left, in two parts. */
HARP_INLINE double harp_quarters_f64(double x, double *whole, double *rest)
{
    const uint64_t above = (harp_bits_f64(x) >> 52 & 2047) - 1075, some = above & ((above >> 63) - 1);
    const int64_t row = (int64_t)(some >> 5); /* 0 below, without a comparison, which SSE2 has not */
    const double y = x*harp_from_bits_f64((uint64_t)(1023 - 32*row) << 52);
    const double *const part = harp_quarter_parts;
    const double p0 = y*part[4*row], e0 = harp_rest_f64(y, part[4*row], p0);
    const double p1 = y*part[4*row + 1], e1 = harp_rest_f64(y, part[4*row + 1], p1);
    const double p2 = y*part[4*row + 2], e2 = harp_rest_f64(y, part[4*row + 2], p2);
    const double f0 = harp_mod4_f64(p0), g0 = harp_mod4_f64(e0), f1 = harp_mod4_f64(p1);
    const double s = f0 + g0, t = s + f1, q = e1 + p2, n = (t + 0x1.8p52) - 0x1.8p52, d = t - n, u = d + q;
    const double lost = harp_lost_f64(f0, g0, s) + harp_lost_f64(s, f1, t);
    const double more = harp_lost_f64(e1, p2, q) + harp_madd_f64(y, part[4*row + 3], e2);
    const double low = harp_lost_f64(d, q, u) + (lost + more), sum = u + low;
    *whole = n - ((n + 0x1.8p54) - 0x1.8p54);
    *rest = harp_lost_f64(u, low, sum);
    return x - x == 0 ? sum : x - x;
}
""",
    "radians": """\
/* A part of a quarter turn, in two parts, as an angle in two parts. */
HARP_INLINE double harp_radians_f64(double t, double *rest)
{
    const double a = t*0x1.921fb54442d18p+0, low = harp_rest_f64(t, 0x1.921fb54442d18p+0, a);
    *rest = harp_madd_f64(*rest, 0x1.921fb54442d18p+0, harp_madd_f64(t, 0x1.1a62633145c07p-54, low));
    return a;
}
""",
    "sin_part": """\
/* sin(a + rest) in two parts, for |a| to pi/4; the polynomials are near-minimax, to 2^-66 and 2^-60. */
HARP_INLINE double harp_sin_part_f64(double a, double rest, double *lost)
{
    const double z = a*a;
    double p = -0x1.ab0f25d21fd31p-41;
    p = harp_madd_f64(p, z, 0x1.6121703ee57b0p-33);
    p = harp_madd_f64(p, z, -0x1.ae64540000f84p-26);
    p = harp_madd_f64(p, z, 0x1.71de3a5455b9ap-19);
    p = harp_madd_f64(p, z, -0x1.a01a01a0198dep-13);
    p = harp_madd_f64(p, z, 0x1.1111111111110p-7);
    p = harp_madd_f64(p, z, -0x1.5555555555555p-3);
    const double more = harp_madd_f64(a*z, p, harp_madd_f64(z*-0.5, rest, rest)), sum = a + more;
    *lost = (a - sum) + more;
    return sum;
}
""",
    "cos_part": """\
/* cos(a + rest) in two parts: 1 - z/2 is rounded, and what it lost is added. */
HARP_INLINE double harp_cos_part_f64(double a, double rest, double *lost)
{
    const double z = a*a, half = 0.5*z, near = 1 - half;
    double p = -0x1.9075bb65bf437p-37;
    p = harp_madd_f64(p, z, 0x1.1eeb5de1e1489p-29);
    p = harp_madd_f64(p, z, -0x1.27e4fa0d37250p-22);
    p = harp_madd_f64(p, z, 0x1.a01a019f4671dp-16);
    p = harp_madd_f64(p, z, -0x1.6c16c16c16944p-10);
    p = harp_madd_f64(p, z, 0x1.5555555555555p-5);
    const double more = ((1 - near) - half) + harp_madd_f64(z*z, p, -a*rest), sum = near + more;
    *lost = (near - sum) + more;
    return sum;
}
""",
    "sin": """\
HARP_INLINE double harp_sin_f64(double x)
{
    double n, rest, lost;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double y = fabs(n) == 1 ? harp_cos_part_f64(a, rest, &lost) : harp_sin_part_f64(a, rest, &lost);
    const double value = ((n == -1) | (fabs(n) == 2)) ? -y : y;
    return fabs(x) < 0x1p-27 ? x : value;
}
""",
    "cos": """\
HARP_INLINE double harp_cos_f64(double x)
{
    double n, rest, lost;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double y = fabs(n) == 1 ? harp_sin_part_f64(a, rest, &lost) : harp_cos_part_f64(a, rest, &lost);
    return ((n == 1) | (fabs(n) == 2)) ? -y : y;
}
""",
    "tan": """\
HARP_INLINE double harp_tan_f64(double x)
{
    double n, rest, sl, cl;
    const double t = harp_quarters_f64(x, &n, &rest), a = harp_radians_f64(t, &rest);
    const double s = harp_sin_part_f64(a, rest, &sl), c = harp_cos_part_f64(a, rest, &cl);
    const int odd = fabs(n) == 1;
    const double top = odd ? -c : s, more = odd ? -cl : sl, bottom = odd ? s : c, inverse = 1/bottom;
    const double near = top*inverse, p = near*bottom, left = (top - p) - harp_rest_f64(near, bottom, p);
    const double value = near + (left + (more - near*(odd ? sl : cl)))*inverse;
    return fabs(x) < 0x1p-27 ? x : value;
}
""",
}


def family(dtype: DType) -> Mapping[str, str]:
    """The functions of this dtype, each after those that it calls."""
    return _TRIG if dtype is f32 else _OF_F64
