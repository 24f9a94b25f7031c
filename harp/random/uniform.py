"""Evenly distributed: bits, floats, integers, and coins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from harp.errors import ArgumentError, DTypeError, IntegerRangeError
from harp.random.eager import Build
from harp.random.floats import common_float, float_dtype, is_number, require_within, sample_shape, spread, units
from harp.random.streams import draw
from harp.random.threefry import word
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, map_, to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike, Kind, as_dtype, i32, i64, integer_limits, u32, u64
from harp.trace.scalar.expr import Expr, cast, const, less_equal, select
from harp.trace.sizes.size import Size
from harp.trace.source_locations import short, where


def bits(key: object, shape: object = (), dtype: DTypeLike = u32) -> Array:
    """Random bits as uint8, uint16, uint32 or uint64. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.bits(harp.random.key(0), 2)
    Array([1797259609,  928981903], dtype=uint32)
    """
    found = as_dtype(dtype)
    if found.kind is not Kind.UINT:
        raise DTypeError(f"bits are uint8, uint16, uint32 or uint64, not {found.numpy}{where()}")
    if found is u64:
        return draw(key, to_shape(shape), joined)
    return draw(key, to_shape(shape), _leading(found))


@cache
def _leading(dtype: DType) -> Build:
    """The upper bits of the first word."""
    rest = 32 - 8 * dtype.itemsize
    return lambda a, b: cast(a >> word(rest) if rest else a, dtype)


def joined(high: Expr, low: Expr) -> Expr:
    """Two words as one number of 64 bits."""
    return cast(high, u64) << const(32, u64) | cast(low, u64)


def uniform(
    key: object, shape: object = (), dtype: DTypeLike = float, minval: object = 0.0, maxval: object = 1.0
) -> Array:
    """Floats, evenly distributed over minval <= x < maxval: float64 from 53 random bits, or float32 from 24.

    The bounds are numbers or arrays that broadcast to the shape; derivatives flow to them. Where an array has
    maxval <= minval the result is minval. Raises DTypeError for other dtypes, ArgumentError for such numbers.

    >>> import harp
    >>> harp.random.uniform(harp.random.key(0), 3, "float32").shape
    (3,)
    """
    target, sizes = float_dtype("uniform", dtype), sample_shape(shape, minval, maxval)
    drawn = draw(key, sizes, units(target))
    if is_number(minval) and is_number(maxval):
        if not minval < maxval or not math.isfinite(maxval - minval):  # type: ignore[operator]
            raise ArgumentError(f"uniform draws from minval to a larger maxval, not {minval!r} to {maxval!r}{where()}")
        if minval == 0 and maxval == 1:
            return drawn
    return map_(_between, drawn, spread(minval, target, sizes), spread(maxval, target, sizes), to=target)


def _between(u: Expr, low: Expr, high: Expr) -> Expr:
    """low + u*(high - low), where rounding does not reach `high`."""
    x = low + u * (high - low)
    beyond = less_equal(high, x) & (x < math.inf)
    return select(beyond, low, x)


def bernoulli(key: object, p: object = 0.5, shape: object = None) -> Array:
    """bool, true with probability `p`: of the shape of `p`, or of a shape to which `p` broadcasts.

    An array's elements below 0, above 1 and NaN count as 0, 1 and 0. Raises ArgumentError for such a number.

    >>> import harp
    >>> harp.random.bernoulli(harp.random.key(0), 1.0, 2)
    Array([ True,  True])
    """
    require_within("bernoulli", "a probability p", p, 0, 1)
    dtype, sizes = common_float("bernoulli", p), sample_shape(shape, p)
    drawn = draw(key, sizes, units(dtype))
    return map_(lambda u, chance: u < chance, drawn, spread(p, dtype, sizes), to=dtype)


def rademacher(key: object, shape: object = (), dtype: DTypeLike = i64) -> Array:
    """-1 or 1, equally likely, in a signed integer or a floating-point dtype. Raises DTypeError for others.

    >>> import harp
    >>> harp.random.rademacher(harp.random.key(0), 4)
    Array([ 1,  1, -1, -1])
    """
    target = as_dtype(dtype)
    if target.kind not in (Kind.INT, Kind.FLOAT):
        raise DTypeError(f"rademacher draws signed integers or floats, not {target.numpy}{where()}")
    return draw(key, to_shape(shape), _sign(target))


@cache
def _sign(dtype: DType) -> Build:
    return lambda a, b: select(cast(a, i32) < 0, const(-1, dtype), const(1, dtype))


def randint(key: object, shape: object, minval: object, maxval: object, dtype: DTypeLike = i64) -> Array:
    """Integers, evenly distributed over minval <= x < maxval; the bounds are numbers or arrays that broadcast to shape.

    A random fraction times the number of integers, rounded down. The fraction has 64 bits for dtypes of up to 32 bits,
    and 128 for others: the probability of an integer is right to one part in 2**32, or 2**64. Where an array has
    maxval <= minval the result is minval. Raises ArgumentError for such numbers, IntegerRangeError for numbers that
    do not fit the dtype, DTypeError for a dtype or bounds that are no integers, and for bounds of a wider dtype.

    >>> import harp
    >>> sorted(set(harp.random.randint(harp.random.key(0), 50, 0, 3).tolist()))
    [0, 1, 2]
    """
    target, sizes = as_dtype(dtype), sample_shape(shape, minval, maxval)
    if not target.is_integer:
        raise DTypeError(f"randint draws integers, not {target.numpy}; use uniform for floats{where()}")
    wide = u64 if target is u64 else i64
    low = _integer("minval", minval, target, 0)
    last = _last(low, minval, maxval, target, wide)

    operands = [spread(bound, wide, sizes) for bound in (low, last)]
    return draw(key, sizes, _among(target), (0, 1) if target.itemsize == 8 else (0,), operands)


@cache
def _among(dtype: DType) -> Build:
    """An integer from the least to the most, the last two operands."""

    def build(*given: Expr) -> Expr:
        *words, least, most = given
        span = cast(most, u64) - cast(least, u64)
        return cast(cast(least, u64) + scaled(words, span), dtype)

    return build


def _last(low: object, minval: object, maxval: object, target: DType, wide: DType) -> object:
    """The largest integer to draw: the one before maxval, or minval if that is not before it."""
    high = _integer("maxval", maxval, target, 1)
    if not isinstance(high, int):
        before = lambda a, b: select(a < b, b + (-1), a)  # noqa: E731
        return map_(before, low, high, to=wide)
    if isinstance(low, int):
        if high <= low:
            raise ArgumentError(f"randint draws from minval to below maxval: not {minval} to {maxval}{where()}")
        return high - 1
    return map_(lambda a, b: select(a < b, b, a), low, high - 1, to=wide)


def _integer(name: str, value: object, target: DType, beyond: int) -> int | Array:
    """A bound as a number that fits the dtype, or an array of it. maxval may lie 1 beyond the last integer."""
    if isinstance(value, int) and not isinstance(value, bool):
        limits = integer_limits(target)
        if not limits.min + beyond <= value <= limits.max + beyond:
            raise IntegerRangeError(f"{name} {short(value)} does not fit {target.numpy}{where()}")
        return value
    array = as_array(value)
    if not array.kind.is_integer:
        raise DTypeError(f"{name} of randint must be an integer, not {array.dtype}{where()}")
    if not array.weak and not np.can_cast(array.dtype, target.numpy):
        raise DTypeError(
            f"{name} of randint is {array.dtype}, which may not fit {target.numpy}; convert it with .astype, or draw "
            f"another dtype{where()}"
        )
    return map_(lambda x: x, value if isinstance(value, Size) else array, to=target)


def scaled(words: Sequence[Expr], last: Expr) -> Expr:
    """floor(x * (last + 1)) for the fraction 0 <= x < 1 whose digits are `words`, as uint64.

    Two words take any `last` below 2**32, four words any of 64 bits.
    """
    wide = [cast(word, u64) for word in words]
    if len(wide) == 2:
        count = last + 1
        return _high(wide[0] * count + _high(wide[1] * count))
    first, second = (_join(*wide[k : k + 2]) for k in (0, 2))
    # x*(last + 1) = x*last + x, from the lowest 64 bits up
    carry = _product_high(second, last) + _carry(second * last, second)
    low = first * last
    total = low + first
    return _product_high(first, last) + _carry(low, first) + _carry(total, carry)


def _high(a: Expr) -> Expr:
    return a >> const(32, u64)


def _low(a: Expr) -> Expr:
    return a & 0xFFFFFFFF


def _join(high: Expr, low: Expr) -> Expr:
    return high << const(32, u64) | low


def _carry(a: Expr, b: Expr) -> Expr:
    """1 where a + b does not fit 64 bits."""
    return cast(a + b < b, u64)


def _product_high(a: Expr, b: Expr) -> Expr:
    """The upper 64 bits of a*b, by the school's method on halves."""
    cross, other = _low(a) * _high(b), _high(a) * _low(b)
    middle = _high(_low(a) * _low(b)) + _low(cross) + _low(other)
    return _high(a) * _high(b) + _high(cross) + (_high(other) + _high(middle))
