"""Elementwise functions that are not in the standard: parts of floating-point numbers, NumPy's other extrema and tests.

All broadcast and promote as those of `harp.numpy.elementwise`.
"""

from __future__ import annotations

import math

import numpy as np

from harp.errors import ArgumentError, DTypeError
from harp.numpy.complexes import imag
from harp.numpy.elementwise import (
    absolute,
    bitwise_and,
    bitwise_left_shift,
    bitwise_right_shift,
    float_map,
    floor_divide,
    isnan,
    maximum,
    minimum,
    remainder,
    round,
    trunc,
)
from harp.numpy.elementwise import where as choose
from harp.numpy.manipulation import broadcast_shapes, broadcast_to, moveaxis, ravel, reshape
from harp.numpy.padding import pad
from harp.numpy.reductions import any, sum
from harp.trace.array.arithmetic import BITS, INTEGERS, NUMBERS, equal, multiply, not_equal, power, require
from harp.trace.array.array import Array, marked
from harp.trace.array.primitives import as_array, common_dtype, map_, normalize_axis
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, Kind, bool_, computing, i32, i64, u8, u64
from harp.trace.scalar.expr import Expr, apply, cast, const, select
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where
from harp.transforms.control.conditional import while_loop

# The exponents of powers of two that are normal numbers, and the shift that makes all numbers normal.
_EXPONENTS = {dtypes.f32: (-126, 127, 64), dtypes.f64: (-1022, 1023, 128)}


def _power_of_two(exponent: Expr, dtype: DType) -> Expr:
    return cast(apply(Op.EXP2, cast(exponent, dtypes.f64)), dtype)  # exact, rounded from double to float32


def _scaled(x: Expr, exponent: Expr) -> Expr:
    """x * 2**exponent, rounded once: the factors that may leave the normal numbers come last."""
    low, high, _ = _EXPONENTS[x.dtype]
    rest = exponent
    factors = []
    for _ in range(3):
        part = apply(Op.MAX, apply(Op.MIN, rest, const(high, i64)), const(low, i64))
        factors.append(_power_of_two(part, x.dtype))
        rest = rest - part
    for factor in reversed(factors):
        x = x * factor
    return x


def ldexp(x: object, exponent: object) -> Array:
    """Elementwise x * 2**exponent for integers, exact but for numbers that are too large or too small.

    The derivative by x is 2**exponent. Raises DTypeError for exponents that are no integers, and for complex x.

    >>> ldexp(0.75, 4)
    Array(12.)
    """
    require(common_dtype((exponent,))[0], "ldexp by this exponent", INTEGERS)
    dtype, weak = common_dtype((x,))
    require(dtype, "ldexp", NUMBERS)
    target = dtypes.inexact(dtype)

    def build(a: Expr, n: Expr) -> Expr:
        inner = computing(target)
        within = cast(apply(Op.MIN, n, const(1 << 20, n.dtype)), i64) if n.dtype is u64 else cast(n, i64)
        return cast(_scaled(cast(a, inner), within), target)

    kinds = [target, u64 if common_dtype((exponent,))[0] is u64 else i64]
    return marked(map_(build, x, exponent, to=kinds), weak)


def _parts(x: Expr) -> tuple[Expr, Expr]:
    """A magnitude from 1/2 to below 1 with the sign of x, and its exponent; x itself where it has none."""
    zero, one, half = (const(number, x.dtype) for number in (0, 1, 0.5))
    lowest, _, shift = _EXPONENTS[x.dtype]
    size = apply(Op.ABS, x)
    regular = (zero < size) & (size < math.inf)
    small = size < (2.0**lowest)
    scale = select(small, const(2.0**shift, x.dtype), one)
    normal = select(regular, apply(Op.STOP, size * scale), half)
    # A logarithm beside an integer may be rounded to it: one step up or down.
    guess = cast(apply(Op.FLOOR, apply(Op.LOG2, normal)), i64) + 1
    mantissa = _scaled(normal, -guess)
    up, down = ~(mantissa < one), mantissa < half
    step = select(up, const(1, i64), select(down, const(-1, i64), const(0, i64)))
    exponent = guess + (step + select(small, const(-shift, i64), const(0, i64)))
    value = _scaled(x, -exponent)
    return select(regular, value, x), select(regular, exponent, const(0, i64))


def frexp(x: object) -> tuple[Array, Array]:
    """Elementwise (m, e) with x = m * 2**e and 1/2 <= |m| < 1, e as int32; (x, 0) for zeros, infinities and NaN.

    The derivative of m is 2**-e. Raises DTypeError for complex numbers.

    >>> frexp(12.0)
    (Array(0.75), Array(4, dtype=int32))
    """
    dtype, weak = common_dtype((x,))
    require(dtype, "frexp", NUMBERS)
    target = dtypes.inexact(dtype)
    wide = computing(target)
    mantissa = map_(lambda a: cast(_parts(cast(a, wide))[0], target), x, to=target)
    exponent = map_(lambda a: cast(_parts(cast(a, wide))[1], i32), x, to=target)
    return marked(mantissa, weak), marked(exponent, False)


def modf(x: object) -> tuple[Array, Array]:
    """Elementwise the fraction and the whole part, both with the sign of x. Raises DTypeError for complex numbers.

    >>> modf(-2.5)
    (Array(-0.5), Array(-2.))
    """
    dtype, _ = common_dtype((x,))
    require(dtype, "modf", NUMBERS)
    array = as_array(x) if dtype.is_float else as_array(x).astype(dtypes.inexact(dtype))
    whole = trunc(array)

    def fraction(a: Expr, b: Expr) -> Expr:
        rest = a - b
        exact = select(apply(Op.EQ, apply(Op.ABS, a), const(math.inf, a.dtype)), const(0, a.dtype), rest)
        return apply(Op.COPYSIGN, exact, apply(Op.STOP, a))

    return map_(fraction, array, whole), whole


def divmod(a: object, b: object) -> tuple[Array, Array]:
    """Elementwise (a // b, a % b). Raises DTypeError for bool and complex numbers.

    >>> divmod(7, 2)
    (Array(3), Array(1))
    """
    return floor_divide(a, b), remainder(a, b)


def rint(x: object) -> Array:
    """Elementwise rounding to the nearest integer, halves to the even one; integers become floats, as in NumPy.

    >>> import harp.numpy as hnp
    >>> hnp.rint(hnp.asarray([0.5, 1.5, -2.2]))
    Array([ 0.,  2., -2.])
    """
    dtype, _ = common_dtype((x,))
    return round(x if dtype.is_inexact else as_array(x).astype(dtypes.inexact(dtype)))


def fix(x: object) -> Array:
    """Elementwise rounding towards zero: `trunc`.

    >>> import harp.numpy as hnp
    >>> hnp.fix(hnp.asarray([-1.5, 1.5]))
    Array([-1.,  1.])
    """
    return trunc(x)


def fabs(x: object) -> Array:
    """Elementwise |x| in floating point. Raises DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> hnp.fabs(hnp.asarray([-1, 2]))
    Array([1., 2.])
    """
    require(common_dtype((x,))[0], "fabs", NUMBERS)
    return float_map(lambda a: apply(Op.ABS, a), x)


def fmax(x1: object, x2: object) -> Array:
    """Elementwise maximum; the other one where one is NaN, and so is the derivative.

    >>> fmax(float("nan"), 2.0)
    Array(2.)
    """
    return choose(isnan(x2), x1, choose(isnan(x1), x2, maximum(x1, x2)))


def fmin(x1: object, x2: object) -> Array:
    """Elementwise minimum; the other one where one is NaN, and so is the derivative.

    >>> import harp.numpy as hnp
    >>> hnp.fmin(hnp.asarray([1.0, hnp.nan]), hnp.asarray([hnp.nan, 2.0]))
    Array([1., 2.])
    """
    return choose(isnan(x2), x1, choose(isnan(x1), x2, minimum(x1, x2)))


def float_power(a: object, b: object) -> Array:
    """Elementwise a ** b in float64 or complex128, also of integers to negative powers.

    >>> float_power(2, -1)
    Array(0.5)
    """
    dtype, _ = common_dtype((a, b))
    target = dtypes.c128 if dtype.is_complex else dtypes.f64
    return power(*(as_array(value).astype(target) for value in (a, b)))


def packbits(a: object, axis: int | None = None, bitorder: str = "big") -> Array:
    """Bits, whether elements are not zero, in bytes (uint8) of eight along an axis, with zeros behind the last ones.

    Flattened first if the axis is None. The first bit is the highest one, or with "little" the lowest. Raises
    DTypeError for floats, ArgumentError for another order.

    >>> import harp.numpy as hnp
    >>> hnp.packbits(hnp.asarray([1, 0, 1])), hnp.packbits(hnp.asarray([1, 0, 1]), bitorder="little")
    (Array([160], dtype=uint8), Array([5], dtype=uint8))
    """
    rows, k, places = _of_bits("packbits", a, axis, bitorder)
    rows = pad(not_equal(rows, 0), [(0, 0)] * (rows.ndim - 1) + [(0, -rows.shape[-1] % 8)])
    bits = reshape(rows, (*rows.shape[:-1], rows.shape[-1] // 8, 8)).astype(u8)
    return moveaxis(sum(bitwise_left_shift(bits, places), -1, u8), -1, k)


def unpackbits(a: object, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> Array:
    """The bits (uint8) of bytes along an axis, eight for each; see `packbits`.

    `count` says how many are taken, with zeros behind the last ones, or if it is below 0 how many are left out.

    >>> import harp.numpy as hnp
    >>> hnp.unpackbits(hnp.asarray([160], dtype="uint8"), count=3)
    Array([1, 0, 1], dtype=uint8)
    """
    rows, k, places = _of_bits("unpackbits", a, axis, bitorder)
    if rows.kind is not u8:
        raise DTypeError(f"unpackbits takes bytes, uint8, not {rows.dtype}{where()}")
    bits = bitwise_and(bitwise_right_shift(rows[..., None], places), 1)
    bits = reshape(bits, (*rows.shape[:-1], 8 * rows.shape[-1]))
    if count is not None and count >= 0:
        bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, count)])
    return moveaxis(bits[..., :count], -1, k)


def _of_bits(name: str, x: object, axis: int | None, bitorder: str) -> tuple[Array, int, Array]:
    """The array with an axis at its end, the axis, and which bit of a byte the first is, the second and so on."""
    array = ravel(x) if axis is None else as_array(x)
    if bitorder not in ("big", "little"):
        raise ArgumentError(f"the bitorder of {name} is 'big' or 'little', not {bitorder!r}{where()}")
    require(array.kind, name, BITS)
    k = normalize_axis(0 if axis is None else axis, array.ndim)
    order = range(8) if bitorder == "little" else range(7, -1, -1)
    return moveaxis(array, k, -1), k, as_array(np.asarray(order, np.uint8))


def bitwise_count(x: object) -> Array:
    """Elementwise the number of ones among the bits of |x|, as uint8. Raises DTypeError for floats.

    >>> bitwise_count(-7)
    Array(3, dtype=uint8)
    """
    dtype, _ = common_dtype((x,))
    require(dtype, "bitwise_count", {Kind.BOOL, *INTEGERS})
    return marked(map_(lambda a: _count_bits(_size(a)), x), False)


def _size(x: Expr) -> Expr:
    """|x| as uint64, that of the lowest integer included."""
    return cast(apply(Op.ABS, cast(x, i64)) if x.dtype.kind is Kind.INT else x, u64)


def _count_bits(x: Expr) -> Expr:
    """Sums of neighbours: of bits, of pairs, of fours; then of all bytes by a product."""

    def masked(a: Expr, mask: int) -> Expr:
        return a & mask

    def shifted(a: Expr, by: int) -> Expr:
        return a >> const(by, u64)

    pairs = masked(x, 0x5555555555555555) + masked(shifted(x, 1), 0x5555555555555555)
    fours = masked(pairs, 0x3333333333333333) + masked(shifted(pairs, 2), 0x3333333333333333)
    eights = masked(fours + shifted(fours, 4), 0x0F0F0F0F0F0F0F0F)
    return cast(shifted(eights * 0x0101010101010101, 56), dtypes.u8)


def _is_end(sign: int, name: str, x: object) -> Array:
    dtype, _ = common_dtype((x,))
    if dtype.is_complex:
        raise DTypeError(f"{name} is not defined for {dtype.numpy}; take harp.numpy.real or imag{where()}")
    if not dtype.is_float:
        return marked(map_(lambda a: const(False, bool_), x), False)
    return equal(x, sign * math.inf)


def isposinf(x: object) -> Array:
    """Elementwise: is it infinity, as bool. Raises DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> hnp.isposinf(hnp.asarray([-hnp.inf, hnp.inf]))
    Array([False,  True])
    """
    return _is_end(1, "isposinf", x)


def isneginf(x: object) -> Array:
    """Elementwise: is it minus infinity, as bool. Raises DTypeError for complex numbers.

    >>> import harp.numpy as hnp
    >>> hnp.isneginf(hnp.asarray([-hnp.inf, hnp.inf]))
    Array([ True, False])
    """
    return _is_end(-1, "isneginf", x)


def isreal(x: object) -> Array:
    """Elementwise: is the imaginary part 0, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.isreal(hnp.asarray([1 + 0j, 1j]))
    Array([ True, False])
    """
    return equal(imag(x), 0)


def iscomplex(x: object) -> Array:
    """Elementwise: is the imaginary part not 0, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.iscomplex(hnp.asarray([1 + 0j, 1j]))
    Array([False,  True])
    """
    return not_equal(imag(x), 0)


def gcd(x1: object, x2: object) -> Array:
    """Elementwise greatest common divisor of |x1| and |x2|; that of 0 and 0 is 0. Raises DTypeError unless both are
    integers.

    >>> import harp.numpy as hnp
    >>> gcd(hnp.asarray([12, -9, 0]), 6)
    Array([6, 3, 6])
    """
    dtype, weak = common_dtype((x1, x2))
    require(dtype, "gcd", INTEGERS)
    sizes = [absolute(map_(lambda e: e, value, to=dtype)) for value in (x1, x2)]
    shape = broadcast_shapes(*(size.shape for size in sizes))
    pair = broadcast_to(sizes[0], shape), broadcast_to(sizes[1], shape)

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        return choose(equal(y, 0), x, y), remainder(x, y)

    found: Array = while_loop(lambda pair: any(not_equal(pair[1], 0)), step, pair)[0]
    return marked(found, weak)


def lcm(x1: object, x2: object) -> Array:
    """Elementwise least common multiple of |x1| and |x2|; 0 where one of them is 0. Raises DTypeError unless both are
    integers.

    >>> import harp.numpy as hnp
    >>> lcm(hnp.asarray([4, -9, 0]), 6)
    Array([12, 18,  0])
    """
    require(common_dtype((x1, x2))[0], "lcm", INTEGERS)
    return multiply(floor_divide(absolute(x1), gcd(x1, x2)), absolute(x2))
