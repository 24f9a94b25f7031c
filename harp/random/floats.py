"""What distributions are made of: random words as floating-point numbers between 0 and 1, and parameters, which are
numbers or arrays with a common dtype and the shape that they have together.

Products with powers of two and sums that fit the format are exact, so all machines get the same bits.
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from harp.errors import ArgumentError, DTypeError
from harp.numpy.manipulation import broadcast_to
from harp.random.eager import Build
from harp.random.threefry import word
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, broadcast_shapes, common_dtype, map_, to_shape
from harp.trace.index.polynomial import Shape
from harp.trace.scalar.dtypes import DType, as_dtype, f32, f64, i32, inexact
from harp.trace.scalar.expr import Expr, apply, cast, select
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where


def float_dtype(name: str, dtype: object) -> DType:
    """float32 or float64. Raises DTypeError for others."""
    found = as_dtype(dtype)
    if found is not f32 and found is not f64:
        raise DTypeError(
            f"{name} draws float32 or float64, not {found.numpy}; convert the result with .astype{where()}"
        )
    return found


def unit(a: Expr, b: Expr, dtype: DType) -> Expr:
    """0 <= u < 1 from the leading 24 bits (float32) or 53 bits (float64): all multiples of 2**-24 or 2**-53."""
    if dtype is f32:
        return _signed(_top(a, 24), f32) * (2.0**-24)
    high, low = _signed(_top(a, 27), f64), _signed(_top(b, 26), f64)
    return (high * (2.0**26) + low) * (2.0**-53)


def positive(a: Expr, b: Expr | None, dtype: DType) -> Expr:
    """0 < u <= 1 from 32 or 64 bits, with all digits that the dtype has: small numbers have small steps."""
    high = cast(a, dtype) * (2.0**-32)
    if b is None:
        return high + (2.0**-33)
    return high + _low(b, dtype)


def halves(a: Expr, b: Expr, dtype: DType) -> tuple[Expr, Expr]:
    """(a coin, 0 < v <= 1/2) from 64 bits: u is v or 1 - v, so that both ends of the interval have small steps."""
    coin = cast(a, i32) < 0
    rest = a & word(0x7FFFFFFF)
    return coin, _signed(rest, dtype) * (2.0**-32) + _low(b, dtype)


def symmetric(a: Expr, b: Expr | None, dtype: DType) -> Expr:
    """-1 <= s <= 1 from 32 or 64 bits."""
    high = _signed(a, dtype) * (2.0**-31)
    return high if b is None else high + cast(b, dtype) * (2.0**-63)


@cache
def units(dtype: DType) -> Build:
    """`unit` of a dtype, always the same function, by which programs are kept."""
    return partial(unit, dtype=dtype)


def minus_log(a: Expr, b: Expr, dtype: DType) -> Expr:
    """-log(u) > 0 for a uniform u, accurate at both ends: the exponential distribution from 64 bits."""
    coin, v = halves(a, b, dtype)
    return -select(coin, apply(Op.LOG, v), apply(Op.LOG1P, -v))


def _top(a: Expr, bits: int) -> Expr:
    return a >> word(32 - bits)


def _signed(a: Expr, dtype: DType) -> Expr:
    """A word as a signed integer, which machines convert faster, as a float."""
    return cast(cast(a, i32), dtype)


def _low(b: Expr, dtype: DType) -> Expr:
    """A word below 2**-32, never 0."""
    return (cast(b, dtype) + 0.5) * (2.0**-64)


def is_number(value: object) -> bool:
    """Whether it is a number of Python's own, whose value is known."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def common_float(name: str, *values: object, dtype: object = None) -> DType:
    """The dtype, or that of the parameters: float64 for numbers. Raises DTypeError for what is not drawn."""
    return float_dtype(name, inexact(common_dtype(values)[0]) if dtype is None else dtype)


def require_within(name: str, what: str, value: object, low: float, high: float = math.inf) -> None:
    """Raises ArgumentError for a number of Python's outside of these bounds, an infinite one, and NaN."""
    if is_number(value) and not (low <= value <= high and value < math.inf):  # type: ignore[operator]
        bounds = f"of at least {low}" if high == math.inf else f"from {low} to {high}"
        raise ArgumentError(f"{name} takes {what} {bounds}, not {value!r}{where()}")


def sample_shape(shape: object, *values: object) -> Shape:
    """The shape that was asked for, or if it is None, the one to which the parameters broadcast. Raises ShapeError."""
    if shape is not None:
        return to_shape(shape)
    return broadcast_shapes([node_of(as_array(value)).shape for value in values if not is_number(value)])


def spread(value: object, dtype: DType, shape: Shape) -> Array:
    """A parameter in this dtype and shape. Raises ShapeError where it does not broadcast to the shape."""
    return broadcast_to(map_(lambda x: x, value, to=dtype), shape)


def parameters(name: str, shape: object, dtype: object, *values: object) -> tuple[DType, Shape, list[Array]]:
    """The dtype and the shape of what is drawn, each given or that of the parameters, and these in both."""
    target, sizes = common_float(name, *values, dtype=dtype), sample_shape(shape, *values)
    return target, sizes, [spread(value, target, sizes) for value in values]
