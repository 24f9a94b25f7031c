"""What formulas for parts of complex numbers are written with: shorthands for real expressions, and pairs of them."""

from __future__ import annotations

import math

from harp.trace.scalar.dtypes import DType, f32, f64
from harp.trace.scalar.expr import Expr, apply, cast, select
from harp.trace.scalar.formulas import absolute, equals, is_infinite, number
from harp.trace.scalar.ops import Op

Parts = tuple[Expr, Expr]


def signed(size: Expr, like: Expr) -> Expr:
    """`size` >= 0 with the sign of `like`, that of a zero included."""
    below = like < 0
    negative_zero = equals(like, 0) & (1 / like < 0)
    return select(below | negative_zero, -size, size)


def choose(condition: Expr, yes: Parts, no: Parts) -> Parts:
    return select(condition, yes[0], no[0]), select(condition, yes[1], no[1])


def to_wide(z: Parts) -> Parts:
    """In float64."""
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
