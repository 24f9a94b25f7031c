"""Elementary functions of complex numbers by their parts, with C99's values at infinities, NaN and signed zeros.

complex64 is computed in float64 where squares could overflow or digits be lost, and so are inverse trigonometric and
hyperbolic functions. Methods: Smith, "Algorithm 116: Complex division", 1962; Kahan, "Branch cuts for complex
elementary functions", 1987.
"""

from __future__ import annotations

import math

from harp.trace.scalar.dtypes import DType, f32, f64
from harp.trace.scalar.expr import Expr, apply, cast, select
from harp.trace.scalar.formulas import (
    absolute,
    add,
    equals,
    is_finite,
    is_infinite,
    is_nan,
    number,
)
from harp.trace.scalar.ops import Op

Parts = tuple[Expr, Expr]


def signed(size: Expr, like: Expr) -> Expr:
    """`size` >= 0 with the sign of `like`, which may be a signed zero."""
    below = like < 0
    negative_zero = equals(like, 0) & (1 / like < 0)
    return select(below | negative_zero, -size, size)


def choose(condition: Expr, yes: Parts, no: Parts) -> Parts:
    return select(condition, yes[0], no[0]), select(condition, yes[1], no[1])


def to_wide(z: Parts) -> Parts:
    """The parts in float64."""
    return cast(z[0], f64), cast(z[1], f64)


def to_narrow(z: Parts, dtype: DType) -> Parts:
    return cast(z[0], dtype), cast(z[1], dtype)


def larger_first(z: Parts) -> Parts:
    """The magnitudes of the parts, the larger one first; both are NaN where one is."""
    a, b = absolute(z[0]), absolute(z[1])
    return apply(Op.MAX, a, b), apply(Op.MIN, a, b)


def ratio_of(large: Expr, small: Expr) -> Expr:
    """small/large, and 0 for 0/0."""
    return select(equals(large, 0), large, small / large)


def hypot(z: Parts) -> Expr:
    """sqrt(x*x + y*y) without overflow; inf if a part is infinite, also beside NaN."""
    if z[0].dtype is f32:
        wide = to_wide(z)
        result = cast(apply(Op.SQRT, wide[0] * wide[0] + wide[1] * wide[1]), f32)
    else:
        large, small = larger_first(z)
        ratio = ratio_of(large, small)
        result = large * apply(Op.SQRT, 1 + ratio * ratio)
    return select(is_infinite(z[0]) | is_infinite(z[1]), number(math.inf, result), result)


def turned(z: Parts) -> Parts:  # i*z
    return -z[1], z[0]


def turned_back(z: Parts) -> Parts:  # -i*z
    return z[1], -z[0]


# --- arithmetic, as NumPy's


def sum_of(a: Parts, b: Parts) -> Parts:
    """a + b"""
    return a[0] + b[0], a[1] + b[1]


def negative(a: Parts) -> Parts:
    """-a"""
    return -a[0], -a[1]


def product(a: Parts, b: Parts) -> Parts:
    """a * b, by the definition: an infinity may give NaN beside it."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def quotient(a: Parts, b: Parts) -> Parts:
    """a / b, by Smith's method: the larger part of b divides the smaller one."""
    sizes = absolute(b[1]), absolute(b[0])
    swapped = ~((sizes[0] < sizes[1]) | apply(Op.EQ, *sizes))  # also for NaN
    large, small = select(swapped, b[1], b[0]), select(swapped, b[0], b[1])
    first, second = select(swapped, a[1], a[0]), select(swapped, a[0], a[1])
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = (first + second * ratio) * scale
    difference = second - first * ratio
    imag = select(swapped, -difference, difference) * scale
    zero = absolute(b[0])
    return choose(equals(large, 0), (a[0] / zero, a[1] / zero), (real, imag))


def reciprocal(z: Parts) -> Parts:
    """1 / z by the same method, with the signs of zeros of conj(z)/|z|**2; 1/0 is an infinity and a NaN."""
    sizes = absolute(z[1]), absolute(z[0])
    swapped = ~((sizes[0] < sizes[1]) | apply(Op.EQ, *sizes))  # also for NaN
    large, small = select(swapped, z[1], z[0]), select(swapped, z[0], z[1])
    ratio, one = small / large, number(1, large)
    divisor = large + small * ratio
    real, imag = select(swapped, ratio, one) / divisor, -(select(swapped, one, ratio) / divisor)
    return choose(equals(large, 0), (one / absolute(z[0]), number(math.nan, large)), (real, imag))


# --- magnitudes


def log_magnitude(z: Parts) -> Expr:
    """log(abs(z)) in float64, accurate also where that is near 1."""
    large, small = larger_first(z)
    half, one = number(0.5, large), number(1, large)
    # x*x + y*y - 1 with the rounding errors of the squares, where that is small.
    squares = large * large, small * small
    errors = [apply(Op.FMA, a, a, -s) for a, s in zip((large, small), squares, strict=True)]
    excess = squares[0] - one + squares[1] + add(*errors)
    near = (large > 0.5) & (large < 1.5)
    ratio = ratio_of(large, small)
    far = apply(Op.LOG, large) + half * apply(Op.LOG1P, ratio * ratio)
    result = select(near, half * apply(Op.LOG1P, excess), far)
    return select(is_infinite(z[0]) | is_infinite(z[1]), number(math.inf, large), result)


# --- exponentials and logarithms


def exp(z: Parts) -> Parts:
    """e**x * (cos y + i sin y), in two factors where e**x alone would overflow."""
    x, y = z
    limit = 80.0 if x.dtype is f32 else 700.0
    large = limit < x
    rest = apply(Op.EXP, select(large, x - limit, x))
    factor = select(large, number(math.exp(limit), x), number(1, x))
    real, imag = (rest * apply(op, y) * factor for op in (Op.COS, Op.SIN))
    whole = apply(Op.EXP, x)
    zero = number(0, x)
    below, above = equals(x, -math.inf) & ~is_finite(y), equals(x, math.inf) & ~is_finite(y)
    result = choose(below, (zero, signed(zero, y)), choose(above, (x, y - y), (real, imag)))
    return choose(equals(y, 0), (whole, y), result)


def expm1(z: Parts) -> Parts:
    """e**z - 1, accurate near 0: expm1(x)*cos(y) - 2*sin(y/2)**2 + i e**x*sin(y)."""
    x, y = z
    half = apply(Op.SIN, y * 0.5)
    near = apply(Op.EXPM1, x) * apply(Op.COS, y) - 2 * half * half
    whole = exp(z)
    small = absolute(x) < 1
    real = select(equals(y, 0), apply(Op.EXPM1, x), select(small, near, whole[0] - 1))
    return real, whole[1]


def log(z: Parts) -> Parts:
    """log(abs(z)) + i atan2(y, x)"""
    return cast(log_magnitude(to_wide(z)), z[0].dtype), apply(Op.ATAN2, z[1], z[0])


def log1p(z: Parts) -> Parts:
    """log(1 + z), accurate near 0: log1p(x*(2 + x) + y*y)/2 + i atan2(y, 1 + x)."""
    x, y = to_wide(z)
    above = 1 + x
    square = x * (2 + x) + y * y
    near = 0.5 * apply(Op.LOG1P, square)
    small = apply(Op.MAX, absolute(x), absolute(y)) < 0.5
    result = select(small, near, log_magnitude((above, y))), apply(Op.ATAN2, y, above)
    return to_narrow(result, z[0].dtype)


def sqrt(z: Parts) -> Parts:
    """The root with a real part >= 0; the cut is the negative axis, where the sign of a zero says on which side."""
    dtype = z[0].dtype
    x, y = to_wide(z)
    up, down = number(2.0**-4, x), number(2.0**108, x)
    large = apply(Op.MAX, absolute(x), absolute(y))
    huge, tiny = large > (2.0**1020), large < (2.0**-960)
    scale = select(huge, up, select(tiny, down, number(1, x)))
    back = select(huge, number(4, x), select(tiny, number(2.0**-54, x), number(1, x)))
    a, b = absolute(x * scale), absolute(y * scale)
    root = apply(Op.SQRT, 0.5 * (a + hypot((a, b))))
    other = select(equals(root, 0), root, b * 0.5 / root) * back
    root = root * back
    left = x < 0
    result = select(left, other, root), signed(select(left, root, other), y)
    infinity = number(math.inf, x)
    # inf + iy -> inf + i0, -inf + iy -> 0 + i inf, NaN beside them stays; x + i inf -> inf + i inf, also for NaN
    unknown = is_nan(y)
    right_end = infinity, select(unknown, y, signed(number(0, x), y))
    left_end = select(unknown, y, number(0, x)), select(unknown, infinity, signed(infinity, y))
    result = choose(is_infinite(x), choose(left, left_end, right_end), result)
    return to_narrow(choose(is_infinite(y), (infinity, y), result), dtype)


def power(a: Parts, b: Parts) -> Parts:
    """exp(b*log(a)); 1 for b = 0; 0**b is 0 where b has a real part > 0, else NaN."""
    dtype = a[0].dtype
    base, exponent = to_wide(a), to_wide(b)
    result = to_narrow(exp(product(exponent, log(base))), dtype)
    zero, one, nan = number(0, a[0]), number(1, a[0]), number(math.nan, a[0])
    null = equals(a[0], 0) & equals(a[1], 0)
    result = choose(null, choose(zero < b[0], (zero, zero), (nan, nan)), result)
    return choose(equals(b[0], 0) & equals(b[1], 0), (one, zero), result)


# --- trigonometric and hyperbolic functions


def _hyperbolic(x: Expr) -> tuple[Expr, Expr, Expr]:
    """cosh(x), sinh(x), and a common factor, which is not 1 only where they would overflow too early."""
    size = absolute(x)
    half, one = number(0.5, x), number(1, x)
    large = (9.0 if x.dtype is f32 else 20.0) < size
    grown = apply(Op.EXPM1, size)
    whole = grown + one
    root = apply(Op.EXP, size * half)
    halved = half * root
    cosh = select(large, halved, half * (whole + one / whole))
    sinh = select(large, halved, half * (grown + grown / whole))
    return cosh, select(equals(x, 0), x, select(x < 0, -sinh, sinh)), select(large, root, one)


def sinh(z: Parts) -> Parts:
    """sinh(x)*cos(y) + i cosh(x)*sin(y)"""
    x, y = z
    cosh_x, sinh_x, factor = _hyperbolic(x)
    sine, cosine = apply(Op.SIN, y), apply(Op.COS, y)
    real, imag = cosine * sinh_x * factor, sine * cosh_x * factor
    unknown = ~is_finite(y)
    stays = unknown & (equals(x, 0) | is_infinite(x))
    return select(stays, select(equals(x, 0), x, absolute(x)), real), select(equals(y, 0), y, imag)


def cosh(z: Parts) -> Parts:
    """cosh(x)*cos(y) + i sinh(x)*sin(y)"""
    x, y = z
    cosh_x, sinh_x, factor = _hyperbolic(x)
    sine, cosine = apply(Op.SIN, y), apply(Op.COS, y)
    real, imag = cosine * cosh_x * factor, sine * sinh_x * factor
    infinite = is_infinite(x) & ~is_finite(y)
    null = select(x < 0, -y, y)
    zero = select(is_finite(y), x * sine, number(0, x))
    imag = select(equals(x, 0), zero, select(equals(y, 0), null, imag))
    return select(infinite, absolute(x), real), imag


def tanh(z: Parts) -> Parts:
    """Kahan's formula; far out 1 + i 4*sin(y)*cos(y)*exp(-2x)."""
    x, y = z
    size = absolute(x)
    one = number(1, x)
    t = apply(Op.TAN, y)
    _, s, factor = _hyperbolic(x)
    s = s * factor
    beta = one + t * t
    rho = apply(Op.SQRT, one + s * s)
    below = one + beta * s * s
    near = beta * rho * s / below, t / below
    far_real = select(x < 0, -one, one)
    e = apply(Op.EXP, -size)
    tail = 4 * apply(Op.SIN, y) * apply(Op.COS, y) * e * e
    known = is_finite(y) | is_infinite(x)
    far = (
        select(known, far_real, y - y),
        select(is_infinite(x) & ~is_finite(y), signed(number(0, y), y), tail),
    )
    result = choose((9.0 if x.dtype is f32 else 20.0) < size, far, near)
    nan = is_nan(x)
    imag = select(equals(y, 0), y, result[1])
    real = select(equals(x, 0), x, result[0])
    return select(nan, x, real), select(nan & ~equals(y, 0), x, imag)


def sin(z: Parts) -> Parts:
    """-i sinh(iz), but +inf where both parts are not finite, as sinh has it, too"""
    real, imag = turned_back(sinh(turned(z)))
    return real, select(is_infinite(z[1]) & ~is_finite(z[0]), absolute(z[1]), imag)


def cos(z: Parts) -> Parts:
    """cosh(iz)"""
    return cosh(turned(z))


def tan(z: Parts) -> Parts:
    """-i tanh(iz)"""
    return turned_back(tanh(turned(z)))


def _roots(z: Parts) -> tuple[Parts, Parts]:
    """sqrt(1 - z), sqrt(1 + z)"""
    x, y = z
    one = number(1, x)
    return sqrt((one - x, -y)), sqrt((one + x, y))


def acos(z: Parts) -> Parts:
    """2*atan2(re sqrt(1 - z), re sqrt(1 + z)) + i asinh(im (conj(sqrt(1 + z)) * sqrt(1 - z)))"""
    x, y = to_wide(z)
    minus, plus = _roots((x, y))
    real = 2 * apply(Op.ATAN2, minus[0], plus[0])
    imag = apply(Op.ASINH, plus[0] * minus[1] - plus[1] * minus[0])
    far = apply(Op.ATAN2, absolute(y), x), -signed(_far_size((x, y)), y)
    real, imag = choose(_is_far((x, y)), far, (real, imag))
    return to_narrow((_quarter_turn(x, y, real), imag), z[0].dtype)


def asinh(z: Parts) -> Parts:
    """asinh(re (sqrt(1 + iz) * conj(sqrt(1 - iz)))) + i atan2(y, re (sqrt(1 + iz) * sqrt(1 - iz)))"""
    x, y = to_wide(z)
    minus, plus = _roots((-y, x))
    real = apply(Op.ASINH, minus[0] * plus[1] - minus[1] * plus[0])
    imag = apply(Op.ATAN2, y, plus[0] * minus[0] - plus[1] * minus[1])
    far = signed(_far_size((x, y)), x), apply(Op.ATAN2, y, absolute(x))
    real, imag = choose(_is_far((x, y)), far, (real, imag))
    return to_narrow((real, select(equals(y, 0), y, imag)), z[0].dtype)


def asin(z: Parts) -> Parts:
    """-i asinh(iz)"""
    return turned_back(asinh(turned(z)))


def acosh(z: Parts) -> Parts:
    """asinh(re (conj(sqrt(z - 1)) * sqrt(z + 1))) + i 2*atan2(im sqrt(z - 1), re sqrt(z + 1))"""
    x, y = to_wide(z)
    one = number(1, x)
    minus, plus = sqrt((x - one, y)), sqrt((x + one, y))
    real = apply(Op.ASINH, minus[0] * plus[0] + minus[1] * plus[1])
    imag = 2 * apply(Op.ATAN2, minus[1], plus[0])
    far = _far_size((x, y)), apply(Op.ATAN2, y, x)
    real, imag = choose(_is_far((x, y)), far, (real, imag))
    return to_narrow((real, _quarter_turn(x, y, imag)), z[0].dtype)


def atanh(z: Parts) -> Parts:
    """log1p(4x / ((1 - x)**2 + y**2))/4 + i atan2(2y, (1 - x)*(1 + x) - y**2)/2, with x >= 0 first."""
    x, y = to_wide(z)
    one, two, half, quarter = (number(value, x) for value in (1, 2, 0.5, 0.25))
    size = absolute(x)
    gap = one - size
    square = gap * gap + y * y
    # Beside 1 the square underflows: log(2/|z - 1|)/2 there.
    beside = half * (math.log(2) - apply(Op.LOG, hypot((gap, y))))
    real = quarter * apply(Op.LOG1P, 4 * size / square)
    real = select(square < 1e-290, beside, real)
    imag = half * apply(Op.ATAN2, two * y, gap * (one + size) - y * y)
    result = select(equals(x, 0), x, signed(real, x)), imag
    return to_narrow(choose(_is_far((x, y)), _far_tangent((x, y)), result), z[0].dtype)


def _quarter_turn(x: Expr, y: Expr, angle: Expr) -> Expr:
    """pi/2 for 0 + i NaN."""
    return select(equals(x, 0) & is_nan(y), number(math.pi / 2, x), angle)


def _is_far(z: Parts) -> Expr:
    return (absolute(z[0]) > 1e150) | (absolute(z[1]) > 1e150)


def _far_size(z: Parts) -> Expr:
    """log(2*|z|)"""
    return log_magnitude(z) + math.log(2)


def _far_tangent(z: Parts) -> Parts:
    """x/|z|**2 + i pi/2"""
    x, y = z
    size = hypot(z)
    real = select(is_infinite(size), signed(number(0, x), x), x / size / size)
    unknown = select(is_infinite(size), is_nan(y), is_nan(size))
    return real, select(unknown, x + y, signed(number(math.pi / 2, y), y))


def atan(z: Parts) -> Parts:
    """-i atanh(iz)"""
    return turned_back(atanh(turned(z)))
