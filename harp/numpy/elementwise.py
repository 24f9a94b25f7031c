"""Elementwise functions: arithmetic, comparison, logic, and the mathematical functions.

All broadcast, and promote dtypes as NumPy 2 does; a Python number takes the dtype of the arrays that it meets.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import overload

from harp.errors import ArgumentError
from harp.lazy import FUNCTIONS
from harp.numpy import complexes
from harp.trace.array import arithmetic
from harp.trace.array.arithmetic import ARITHMETIC, require, zero_of
from harp.trace.array.array import Array, marked
from harp.trace.array.primitives import as_array, as_integer, common_dtype, map_
from harp.trace.eval.intervals import limits
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import Kind, bool_, real_of
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.expr import select as _select
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where as place

Build = Callable[..., Expr]

add = arithmetic.add
subtract = arithmetic.subtract
multiply = arithmetic.multiply
divide = arithmetic.divide
true_divide = arithmetic.divide
floor_divide = arithmetic.floor_divide
remainder = arithmetic.remainder
mod = arithmetic.remainder
power = pow = arithmetic.power
negative = arithmetic.negative
absolute = arithmetic.absolute
equal = arithmetic.equal
not_equal = arithmetic.not_equal
less = arithmetic.less
greater = arithmetic.greater
greater_equal = arithmetic.greater_equal
maximum = arithmetic.maximum
minimum = arithmetic.minimum
bitwise_invert = arithmetic.bitwise_invert
astype = arithmetic.astype


def less_equal(a: object, b: object) -> Array:
    """Elementwise a <= b, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.less_equal(hnp.asarray([1, 2, 3]), 2)
    Array([ True,  True, False])
    """
    return arithmetic.less_equal_(a, b)


def positive(a: object) -> Array:
    """Elementwise +a. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.positive(hnp.asarray([1.0, -2.0]))
    Array([ 1., -2.])
    """
    require(common_dtype((a,))[0], "positive", ARITHMETIC)
    return as_array(a)


def abs(a: object) -> Array:
    """Elementwise |a|.

    >>> import harp.numpy as hnp
    >>> hnp.abs(hnp.asarray([-1.5, 2.0]))
    Array([1.5, 2. ])
    """
    return arithmetic.absolute(a)


@overload
def where(
    condition: object, x: None = None, y: None = None, *, size: object = None, fill_value: object = None
) -> tuple[Array, ...]: ...
@overload
def where(condition: object, x: object, y: object) -> Array: ...
def where(
    condition: object, x: object = None, y: object = None, *, size: object = None, fill_value: object = None
) -> Array | tuple[Array, ...]:
    """Elementwise `x` where the condition holds, else `y`; gradients flow into the chosen one only.

    Without `x` and `y`, the positions where it holds, as `nonzero(condition, size=size, fill_value=fill_value)`. Raises
    ArgumentError for one of them alone, and for `size` and `fill_value` beside them.

    >>> import harp.numpy as hnp
    >>> x = hnp.asarray([-1.0, 4.0])
    >>> hnp.where(x > 0, hnp.sqrt(hnp.where(x > 0, x, 1.0)), 0.0)
    Array([0., 2.])
    >>> hnp.where(x > 0)
    (Array([1]),)
    """
    if x is None and y is None:
        positions: tuple[Array, ...] = FUNCTIONS["nonzero"](condition, size=size, fill_value=fill_value)
        return positions
    if x is None or y is None:
        raise ArgumentError(f"where takes both x and y, or none of them for the positions where it holds{place()}")
    if size is not None or fill_value is not None:
        raise ArgumentError(
            f"size and fill_value are for where(condition): with x and y there are no positions{place()}"
        )
    return arithmetic.where_(condition, x, y)


def bitwise_and(a: object, b: object) -> Array:
    """Elementwise a & b. Raises DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_and(6, 3)
    Array(2)
    """
    return arithmetic.bitwise_and(a, b)


def bitwise_or(a: object, b: object) -> Array:
    """Elementwise a | b. Raises DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_or(6, 3)
    Array(7)
    """
    return arithmetic.bitwise_or(a, b)


def bitwise_xor(a: object, b: object) -> Array:
    """Elementwise a ^ b. Raises DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_xor(6, 3)
    Array(5)
    """
    return arithmetic.bitwise_xor(a, b)


def bitwise_not(a: object) -> Array:
    """Elementwise ~a; for bool, `not`. Raises DTypeError for floats.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_not(hnp.asarray([0, 5]))
    Array([-1, -6])
    """
    return arithmetic.bitwise_invert(a)


def bitwise_left_shift(a: object, b: object) -> Array:
    """Elementwise a << b; a shift by the width or more gives 0. Raises DTypeError unless both are integers.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_left_shift(hnp.asarray([1, 2, 3]), 4)
    Array([16, 32, 48])
    """
    return arithmetic.bitwise_left_shift(a, b)


def bitwise_right_shift(a: object, b: object) -> Array:
    """Elementwise a >> b; a shift by the width or more gives 0 or -1. Raises DTypeError unless both are integers.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_right_shift(hnp.asarray([64, -5]), 2)
    Array([16, -2])
    """
    return arithmetic.bitwise_right_shift(a, b)


def clip(arr: object, min: object = None, max: object = None) -> Array:
    """Elementwise minimum(max, maximum(arr, min)); a bound that is None does not bound.

    >>> clip(as_array(7), 0, 5)
    Array(5)
    """
    result = as_array(arr)
    if min is not None:
        result = maximum(result, min)
    return result if max is None else minimum(result, max)


def _strong(result: Array) -> Array:
    return marked(result, False)


def _to_bool(build: Build, *values: object) -> Array:
    return _strong(map_(build, *values, to=bool_))


def logical_and(a: object, b: object) -> Array:
    """Elementwise `a and b`, as bool; what is not zero is true.

    >>> import harp.numpy as hnp
    >>> hnp.logical_and(hnp.asarray([True, True]), hnp.asarray([0.0, 2.5]))
    Array([False,  True])
    """
    return _to_bool(lambda x, y: x & y, a, b)


def logical_or(a: object, b: object) -> Array:
    """Elementwise `a or b`, as bool; what is not zero is true.

    >>> import harp.numpy as hnp
    >>> hnp.logical_or(hnp.asarray([True, False]), hnp.asarray([0.0, 0.0]))
    Array([ True, False])
    """
    return _to_bool(lambda x, y: x | y, a, b)


def logical_xor(a: object, b: object) -> Array:
    """Elementwise: exactly one of `a` and `b` is true, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.logical_xor(hnp.asarray([True, False]), hnp.asarray([1.0, 1.0]))
    Array([False,  True])
    """
    return _to_bool(lambda x, y: x ^ y, a, b)


def logical_not(a: object) -> Array:
    """Elementwise `not a`, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.logical_not(hnp.asarray([0.0, 2.5]))
    Array([ True, False])
    """
    return _to_bool(lambda x: ~x, a)


def _test_float(build: Build, otherwise: bool, a: object) -> Array:
    """A test that has one answer for all that is not floating point."""
    is_inexact = common_dtype((a,))[0].is_inexact
    return _strong(map_(build if is_inexact else lambda x: const(otherwise, bool_), a))


def isnan(a: object) -> Array:
    """Elementwise: is it NaN, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.isnan(hnp.asarray([1.0, hnp.inf, hnp.nan]))
    Array([False, False,  True])
    """
    return _test_float(_is_nan, False, a)


def _is_nan(x: Expr) -> Expr:
    return ~apply(Op.EQ, x, x)


def _infinity(x: Expr) -> Expr:
    return const(math.inf, x.dtype)


def isinf(a: object) -> Array:
    """Elementwise: is it an infinity, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.isinf(hnp.asarray([1.0, hnp.inf, hnp.nan]))
    Array([False,  True, False])
    """
    return _test_float(_is_infinite, False, a)


def _is_infinite(x: Expr) -> Expr:
    if x.dtype.is_complex:
        return _is_infinite(apply(Op.REAL, x)) | _is_infinite(apply(Op.IMAG, x))
    return apply(Op.EQ, apply(Op.ABS, x), _infinity(x))


def isfinite(a: object) -> Array:
    """Elementwise: is it neither an infinity nor NaN, as bool.

    >>> import harp.numpy as hnp
    >>> hnp.isfinite(hnp.asarray([1.0, hnp.inf, hnp.nan]))
    Array([ True, False, False])
    """
    return _test_float(_is_finite, True, a)


def _is_finite(x: Expr) -> Expr:
    if x.dtype.is_complex:  # its magnitude may overflow
        return _is_finite(apply(Op.REAL, x)) & _is_finite(apply(Op.IMAG, x))
    return apply(Op.ABS, x) < _infinity(x)


def float_map(build: Build, *values: object) -> Array:
    """Elementwise in floating point: integers are converted to the float dtype that holds them."""
    dtype, weak = common_dtype(values)
    return marked(map_(build, *values, to=dtypes.inexact(dtype)), weak)


def exp(x: object) -> Array:
    """Elementwise e**x, in floating point.

    >>> import harp.numpy as hnp
    >>> hnp.exp(hnp.asarray([0.0, 1.0]))
    Array([1.        , 2.71828183])
    """
    return float_map(lambda a: apply(Op.EXP, a), x)


def exp2(x: object) -> Array:
    """Elementwise 2**x, in floating point.

    >>> import harp.numpy as hnp
    >>> hnp.exp2(hnp.asarray([0.0, 10.0]))
    Array([1.000e+00, 1.024e+03])
    """
    return float_map(lambda a: apply(Op.EXP, a * math.log(2)) if a.dtype.is_complex else apply(Op.EXP2, a), x)


def expm1(x: object) -> Array:
    """Elementwise e**x - 1, accurate near 0.

    >>> import harp.numpy as hnp
    >>> hnp.expm1(1e-12)
    Array(1.e-12)
    """
    return float_map(lambda a: apply(Op.EXPM1, a), x)


def log(x: object) -> Array:
    """Elementwise natural logarithm; NaN below 0.

    >>> import harp.numpy as hnp
    >>> hnp.log(hnp.asarray([1.0, hnp.e]))
    Array([0., 1.])
    """
    return float_map(lambda a: apply(Op.LOG, a), x)


def log2(x: object) -> Array:
    """Elementwise logarithm to base 2; NaN below 0.

    >>> import harp.numpy as hnp
    >>> hnp.log2(hnp.asarray([1.0, 1024.0]))
    Array([ 0., 10.])
    """
    return float_map(lambda a: _scaled_log(a, 2) if a.dtype.is_complex else apply(Op.LOG2, a), x)


def log10(x: object) -> Array:
    """Elementwise logarithm to base 10; NaN below 0.

    >>> import harp.numpy as hnp
    >>> hnp.log10(hnp.asarray([1.0, 1000.0]))
    Array([0., 3.])
    """
    return float_map(lambda a: _scaled_log(a, 10) if a.dtype.is_complex else apply(Op.LOG10, a), x)


def _scaled_log(a: Expr, base: float) -> Expr:
    """The logarithm of a complex number to another base than e, by its parts."""
    log, factor = apply(Op.LOG, a), const(1 / math.log(base), real_of(a.dtype))
    return complexes.scaled(log, factor)


def log1p(x: object) -> Array:
    """Elementwise log(1 + x), accurate near 0.

    >>> import harp.numpy as hnp
    >>> hnp.log1p(1e-12)
    Array(1.e-12)
    """
    return float_map(lambda a: apply(Op.LOG1P, a), x)


def sin(x: object) -> Array:
    """Elementwise sine.

    >>> import harp.numpy as hnp
    >>> hnp.sin(hnp.asarray([0.0, hnp.pi / 2]))
    Array([0., 1.])
    """
    return float_map(lambda a: apply(Op.SIN, a), x)


def cos(x: object) -> Array:
    """Elementwise cosine.

    >>> import harp.numpy as hnp
    >>> hnp.cos(hnp.asarray([0.0, hnp.pi]))
    Array([ 1., -1.])
    """
    return float_map(lambda a: apply(Op.COS, a), x)


def tan(x: object) -> Array:
    """Elementwise tangent.

    >>> import harp.numpy as hnp
    >>> hnp.tan(hnp.asarray([0.0, hnp.pi / 4]))
    Array([0., 1.])
    """
    return float_map(lambda a: apply(Op.TAN, a), x)


def tanh(x: object) -> Array:
    """Elementwise hyperbolic tangent.

    >>> import harp.numpy as hnp
    >>> hnp.tanh(hnp.asarray([0.0, 1.0, 100.0]))
    Array([0.        , 0.76159416, 1.        ])
    """
    return float_map(lambda a: apply(Op.TANH, a), x)


def sqrt(x: object) -> Array:
    """Elementwise square root; NaN below 0.

    >>> import harp.numpy as hnp
    >>> hnp.sqrt(hnp.asarray([4, 9]))
    Array([2., 3.])
    """
    return float_map(lambda a: apply(Op.SQRT, a), x)


def rsqrt(x: object) -> Array:
    """Elementwise 1 / sqrt(x).

    >>> import harp.numpy as hnp
    >>> hnp.rsqrt(hnp.asarray([4.0, 16.0]))
    Array([0.5 , 0.25])
    """
    return float_map(lambda a: apply(Op.RECIP, apply(Op.SQRT, a)), x)


def reciprocal(x: object) -> Array:
    """Elementwise 1 / x. Raises DTypeError for integers.

    >>> import harp.numpy as hnp
    >>> hnp.reciprocal(hnp.asarray([2.0, -4.0]))
    Array([ 0.5 , -0.25])
    """
    require(common_dtype((x,))[0], "reciprocal", {Kind.FLOAT, Kind.COMPLEX})
    return map_(lambda a: apply(Op.RECIP, a), x)


def square(x: object) -> Array:
    """Elementwise x * x. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.square(hnp.asarray([-3, 4]))
    Array([ 9, 16])
    """
    require(common_dtype((x,))[0], "square", ARITHMETIC)
    return map_(lambda a: a * a, x)


def _round(build: Build, x: object) -> Array:
    """A rounding, which leaves integers and bool as they are. Raises DTypeError for complex numbers."""
    return map_(build, x) if common_dtype((x,))[0].is_inexact else as_array(x)


def _floor(a: Expr) -> Expr:
    return apply(Op.FLOOR, a)


def _ceil(a: Expr) -> Expr:  # -floor(-x), which keeps the sign of a zero
    return -_floor(-a)


def floor(x: object) -> Array:
    """Elementwise rounding down, in the same dtype; integers and bool stay as they are.

    >>> import harp.numpy as hnp
    >>> hnp.floor(hnp.asarray([-1.5, 0.2]))
    Array([-2.,  0.])
    """
    return _round(_floor, x)


def ceil(x: object) -> Array:
    """Elementwise rounding up, in the same dtype; integers and bool stay as they are.

    >>> import harp.numpy as hnp
    >>> hnp.ceil(hnp.asarray([-1.5, 0.2]))
    Array([-1.,  1.])
    """
    return _round(_ceil, x)


def trunc(x: object) -> Array:
    """Elementwise rounding towards zero, in the same dtype; integers and bool stay as they are.

    >>> import harp.numpy as hnp
    >>> hnp.trunc(hnp.asarray([-1.5, 0.2]))
    Array([-1.,  0.])
    """
    return _round(lambda a: _select(a < zero_of(a.dtype), _ceil(a), _floor(a)), x)


def round(a: object, decimals: int = 0) -> Array:
    """Elementwise rounding to so many decimals, halves to the even number, in the same dtype; integers stay.

    Decimals scale by a power of ten before and after, as in NumPy; complex numbers are rounded by parts. Negative ones
    round integers to tens, hundreds and so on, exactly; what does not fit wraps around. Raises DTypeError for bool.

    >>> round(as_array(2.5))
    Array(2.)
    """
    dtype, _ = common_dtype((a,))
    require(dtype, "round", ARITHMETIC)
    places = as_integer("decimals", decimals)
    if not dtype.is_inexact:
        return map_(lambda e: _to_tens(e, -places), a) if places < 0 else as_array(a)
    return map_(lambda e: complexes.of_parts(lambda part: _to_decimals(part, places), e), a)


def _to_decimals(a: Expr, places: int) -> Expr:
    if places == 0:
        return _half_to_even(a)
    power = const(10.0 ** min(builtins.abs(places), 308), a.dtype)
    into, back = (Op.MUL, Op.DIV) if places > 0 else (Op.DIV, Op.MUL)
    return apply(back, _half_to_even(apply(into, a, power)), power)


def _to_tens(a: Expr, places: int) -> Expr:
    """To the nearest multiple of 10**places, halves to even multiples; 0 where that is beyond all numbers."""
    largest = limits(a.dtype).high
    if 10**places > largest:
        if 10**places <= 2 * largest + 2:
            raise ArgumentError(f"round of {a.dtype.numpy} to {10**places} does not fit the dtype{place()}")
        return const(0, a.dtype)
    unit, one = const(10**places, a.dtype), const(1, a.dtype)
    below = a // unit
    rest = a % unit
    left = unit - rest
    is_odd = apply(Op.EQ, below & one, one)
    up = (left < rest) | apply(Op.EQ, left, rest) & is_odd
    return _select(up, below + one, below) * unit


def _half_to_even(a: Expr) -> Expr:
    return apply(Op.RINT, a)


def sign(x: object) -> Array:
    """Elementwise -1, 0 or 1; NaN for NaN; z/|z| for complex z, 0 for 0. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.sign(hnp.asarray([-2.5, 0.0, 3.0]))
    Array([-1.,  0.,  1.])
    """
    require(common_dtype((x,))[0], "sign", ARITHMETIC)
    return map_(_sign, x)


def _sign(a: Expr) -> Expr:
    zero, one = zero_of(a.dtype), const(1, a.dtype)
    if a.dtype.is_complex:
        return complexes.sign(a)
    positive = _select(zero < a, one, zero)
    if a.dtype.kind is Kind.UINT:
        return positive
    result = _select(a < zero, const(-1, a.dtype), positive)
    return _select(_is_nan(a), const(math.nan, a.dtype), result) if a.dtype.is_float else result
