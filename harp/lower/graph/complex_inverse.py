"""Inverse trigonometric and hyperbolic functions of complex numbers by their parts, in float64.

Method: Kahan, "Branch cuts for complex elementary functions", 1987. Cuts, and values at infinities, are C99's.
"""

from __future__ import annotations

import math

from harp.lower.graph.complex_math import log_magnitude, sqrt
from harp.lower.graph.complex_parts import (
    Parts,
    choose,
    hypot,
    signed,
    to_narrow,
    to_wide,
    turned,
    turned_back,
)
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import (
    absolute,
    equals,
    is_infinite,
    is_nan,
    number,
)
from harp.trace.scalar.ops import Op


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
