"""The operators of arrays and sizes, with NumPy's dtype rules, and the table that arrays look them up in."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache, lru_cache, partial, wraps
from typing import Any

import numpy as np

from harp.errors import DTypeError
from harp.trace.array.array import Array, marked
from harp.trace.array.conversions import require_device
from harp.trace.array.primitives import as_array, common_dtype, known_numbers, map_, meeting_dtype, require_between
from harp.trace.eval.intervals import Interval, limits, of_buffer
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, Kind, as_dtype, bool_, f64, u64
from harp.trace.scalar.expr import Const, Expr, apply, cast, const, select
from harp.trace.scalar.ops import Op
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, describe, hint
from harp.trace.source_locations import short, where

_Operator = Callable[[Any, Any], object]
_OfArrays = Callable[[object, object], Array]
_Build = Callable[..., Expr]


@cache
def _op(op: Op) -> _Build:
    return lru_cache(64)(partial(apply, op))


def require(dtype: DType, name: str, kinds: set[Kind]) -> None:
    """Raise DTypeError unless the operation is defined for this kind of dtype."""
    if dtype.kind not in kinds:
        advice = "convert with .astype, or use a logical function"
        if name in ("bitwise_and", "bitwise_or"):
            advice = "conditions are joined in parentheses, (a > 0) & (a < 1); for bits, convert with .astype"
        raise DTypeError(f"{name} is not defined for {dtype.numpy}; {advice}{where()}")


def _exact_for_sizes(exact: _Operator) -> Callable[[_OfArrays], _OfArrays]:
    """A function of arrays that leaves integers and sizes, which do not wrap around, to Python's operator."""

    def decorate(function: _OfArrays) -> _OfArrays:
        @wraps(function)
        def choose(a: object, b: object) -> Array:
            if (isinstance(a, Size) and isinstance(b, (Size, int))) or (isinstance(b, Size) and isinstance(a, int)):
                return as_array(exact(a, b))
            return function(a, b)

        return choose

    return decorate


NUMBERS = {Kind.INT, Kind.UINT, Kind.FLOAT}
ARITHMETIC = NUMBERS | {Kind.COMPLEX}
BITS = {Kind.BOOL, Kind.INT, Kind.UINT}
INTEGERS = {Kind.INT, Kind.UINT}


@_exact_for_sizes(operator.add)
def add(a: object, b: object) -> Array:
    """Elementwise a + b; for bool, `or`.

    >>> import harp.numpy as hnp
    >>> hnp.add(hnp.asarray([1, 2]), 0.5)
    Array([1.5, 2.5])
    """
    dtype, _ = common_dtype((a, b))
    return map_(_op(Op.OR if dtype is bool_ else Op.ADD), a, b)


@_exact_for_sizes(operator.sub)
def subtract(a: object, b: object) -> Array:
    """Elementwise a - b, as a + (-b).

    >>> import harp.numpy as hnp
    >>> hnp.subtract(hnp.asarray([1, 2]), 3)
    Array([-2, -1])
    """
    require(common_dtype((a, b))[0], "subtract", ARITHMETIC)
    return map_(_minus, a, b)


@lru_cache(64)
def _minus(x: Expr, y: Expr) -> Expr:
    return x - y


@_exact_for_sizes(operator.mul)
def multiply(a: object, b: object) -> Array:
    """Elementwise a * b; for bool, `and`.

    >>> import harp.numpy as hnp
    >>> hnp.multiply(hnp.asarray([[1], [2]]), hnp.asarray([10, 20]))
    Array([[10, 20],
           [20, 40]])
    """
    dtype, _ = common_dtype((a, b))
    return map_(_op(Op.AND if dtype is bool_ else Op.MUL), a, b)


def divide(a: object, b: object) -> Array:
    """Elementwise a / b, in floating point.

    >>> import harp.numpy as hnp
    >>> hnp.divide(hnp.asarray([1, 2]), 4)
    Array([0.25, 0.5 ])
    """
    dtype, weak = common_dtype((a, b))
    return marked(map_(_op(Op.DIV), a, b, to=dtypes.inexact(dtype)), weak)


@_exact_for_sizes(operator.floordiv)
def floor_divide(a: object, b: object) -> Array:
    """Elementwise a // b, rounding down; an integer divided by 0 gives 0.

    >>> import harp.numpy as hnp
    >>> hnp.floor_divide(hnp.asarray([7, -7]), 2)
    Array([ 3, -4])
    """
    require(common_dtype((a, b))[0], "floor_divide", NUMBERS)
    return map_(_op(Op.FLOORDIV), a, b)


@_exact_for_sizes(operator.mod)
def remainder(a: object, b: object) -> Array:
    """Elementwise a % b with the sign of b; an integer modulo 0 gives 0.

    >>> import harp.numpy as hnp
    >>> hnp.remainder(hnp.asarray([7, -7]), 3)
    Array([1, 2])
    """
    require(common_dtype((a, b))[0], "remainder", NUMBERS)
    return map_(_op(Op.MOD), a, b)


@_exact_for_sizes(operator.pow)
def power(a: object, b: object) -> Array:
    """Elementwise a ** b. Squares, cubes and reciprocals are products; so are powers of integers and complex numbers to
    known whole numbers up to 16, and those of floats in compiled programs, with the digits that it takes.

    Integers to negative powers that are known before the program runs raise DTypeError; others are truncated, to 0, 1
    or -1.

    >>> import harp.numpy as hnp
    >>> hnp.power(hnp.asarray([2.0, 4.0]), 0.5)
    Array([1.41421356, 2.        ])
    """
    dtype, _ = common_dtype((a, b))
    require(dtype, "power", ARITHMETIC)
    if dtype.is_integer:
        _require_exponent(b, dtype)
    if isinstance(b, (int, float)) and not isinstance(b, bool) and isinstance(a, Array) and a.kind is dtype:
        if _is_product(dtype, b):
            return map_(lambda x: _whole_power(x, int(b)), a)
    return map_(_op(Op.POW), a, b)


def _require_exponent(b: object, dtype: DType) -> None:
    """Raise DTypeError for negative exponents of integers, at a call where its own integer is one."""
    complaint = f"is a negative power, and {dtype.numpy} has no fractions; convert with .astype"
    if isinstance(b, int):
        negative = b < 0
    elif isinstance(b, Size):
        known = hint(b.index) is not None
        negative = known and not ask(Relation.NONNEGATIVE, b.index, "an exponent of integers is not negative")
    elif isinstance(b, Array) and b.weak:
        return require_between(b, Interval(0, limits(dtypes.i64).high), DTypeError, complaint)
    else:
        numbers = known_numbers(b)
        negative = numbers is not None and of_buffer(numbers).low < 0
    if negative:
        shown = short(b) if isinstance(b, int) else describe(b.index) if isinstance(b, Size) else "an exponent"
        raise DTypeError(f"{shown} {complaint}{where()}")


def _is_product(dtype: DType, exponent: float) -> bool:
    """Whether a power is as exact as it should be if it is computed by multiplications, at most six."""
    least, most = (0, 16) if dtype.is_integer else (-1, 3) if dtype.is_float else (-16, 16)
    return least <= exponent <= most and exponent == int(exponent) != 0


def _whole_power(x: Expr, exponent: int) -> Expr:
    """x**n as a product of x, x**2, x**4, ... (D. E. Knuth: "The Art of Computer Programming", 4.6.3). If n < 0 that
    of 1/x, for x**-n may overflow where its reciprocal is a small number."""
    square = x if exponent >= 0 else apply(Op.RECIP, x)
    left = abs(exponent)
    result: Expr = const(1, x.dtype)
    while left:
        if left & 1:
            result = square if isinstance(result, Const) else result * square
        left >>= 1
        if left:
            square = square * square
    return result


def bitwise(op: Op, name: str) -> Callable[[object, object], Array]:
    def operator(a: object, b: object) -> Array:
        require(common_dtype((a, b))[0], name, BITS)
        return map_(_op(op), a, b)

    return operator


def shift(op: Op, name: str) -> Callable[[object, object], Array]:
    def operator(a: object, b: object) -> Array:
        require(common_dtype((a, b))[0], name, INTEGERS)
        return map_(_op(op), a, b)

    return operator


bitwise_and = bitwise(Op.AND, "bitwise_and")
bitwise_or = bitwise(Op.OR, "bitwise_or")
bitwise_xor = bitwise(Op.XOR, "bitwise_xor")
bitwise_left_shift = shift(Op.SHL, "bitwise_left_shift")
bitwise_right_shift = shift(Op.SHR, "bitwise_right_shift")


def bitwise_invert(a: object) -> Array:
    """Elementwise ~a; for bool, `not`.

    >>> import harp.numpy as hnp
    >>> hnp.bitwise_invert(hnp.asarray([True, False]))
    Array([False,  True])
    """
    require(common_dtype((a,))[0], "bitwise_invert", BITS)
    return map_(_op(Op.NOT), a)


def _strengthen(result: Array) -> Array:
    return marked(result, False)


def _by_value(compare: _Build, a: object, b: object) -> Array:
    """`compare` of a and b as the numbers that they are: int64 and uint64 would meet in float64, where neighbours are
    equal, and a Python integer need not fit the dtype of what it meets."""
    if _are_integers(a) and _are_integers(b):
        if meeting_dtype((a, b))[0] is f64:
            x, y = as_array(a), as_array(b)
            return _strengthen(map_(compare, x, y, to=(x.kind, y.kind)))
    elif _are_integers(a) or _are_integers(b):
        far = _beyond(b, a) - _beyond(a, b)
        if far:
            ends = const(0, dtypes.i64), const(far, dtypes.i64)
            return _strengthen(map_(lambda x: compare(*ends), a if _are_integers(a) else b))
        if _may_be_beyond(a) or _may_be_beyond(b):
            x, y = as_array(a), as_array(b)
            return _strengthen(map_(compare, x, y, to=[u64 if v.kind is u64 else dtypes.i64 for v in (x, y)]))
    return _strengthen(map_(compare, a, b, to=meeting_dtype((a, b))[0]))


def _are_integers(value: object) -> bool:
    """Whether it is an array of integers, and not a number, which takes the dtype of what it meets."""
    if isinstance(value, Array):
        return not value.weak and value.kind.is_integer
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "iu"


def _beyond(value: object, array: object) -> int:
    """1 for a Python integer above all numbers of the array's dtype, -1 for one below, else 0."""
    if not isinstance(value, int) or 0 <= value < 128 or not _are_integers(array):
        return 0
    allowed = limits(as_array(array).kind)
    return int(value > allowed.high) - int(value < allowed.low)


def _may_be_beyond(value: object) -> bool:
    """Whether it is an array that stands for a Python integer."""
    return isinstance(value, Array) and value.weak and value.kind.is_integer


@lru_cache(64)
def _less(x: Expr, y: Expr) -> Expr:
    if x.dtype is y.dtype:
        return x < y
    if x.dtype is u64:  # y has a sign
        return ~_is_negative(y) & (x < cast(y, u64))
    return _is_negative(x) | (cast(x, u64) < y)


@lru_cache(64)
def _equal(x: Expr, y: Expr) -> Expr:
    if x.dtype is y.dtype:
        return apply(Op.EQ, x, y)
    signed = y if x.dtype is u64 else x
    return ~_is_negative(signed) & apply(Op.EQ, cast(x, u64), cast(y, u64))


def _is_negative(x: Expr) -> Expr:
    return x < zero_of(x.dtype)


@lru_cache(64)
def _less_equal(x: Expr, y: Expr) -> Expr:
    return _less(x, y) | _equal(x, y)


@lru_cache(64)
def _not_equal(x: Expr, y: Expr) -> Expr:
    return ~_equal(x, y)


def equal(a: object, b: object) -> Array:
    """Elementwise a == b.

    >>> import harp.numpy as hnp
    >>> hnp.equal(hnp.asarray([1, 2, 3]), 2)
    Array([False,  True, False])
    """
    return _by_value(_equal, a, b)


def not_equal(a: object, b: object) -> Array:
    """Elementwise a != b.

    >>> import harp.numpy as hnp
    >>> hnp.not_equal(hnp.asarray([1, 2, 3]), 2)
    Array([ True, False,  True])
    """
    return _by_value(_not_equal, a, b)


def _is_complex(value: object) -> bool:
    if isinstance(value, Array):
        return value.kind.is_complex
    return isinstance(value, complex) or (isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "c")


def _in_order(name: str, compare: _Build, a: object, b: object) -> Array:
    if _is_complex(a) or _is_complex(b):
        dtype = meeting_dtype((a, b))[0].numpy
        raise DTypeError(f"{name} is not defined for {dtype}, which has no order; compare abs, real or imag{where()}")
    return _by_value(compare, a, b)


def less(a: object, b: object) -> Array:
    """Elementwise a < b.

    >>> import harp.numpy as hnp
    >>> hnp.less(hnp.asarray([1, 2, 3]), 2)
    Array([ True, False, False])
    """
    return _in_order("less", _less, a, b)


def less_equal_(a: object, b: object) -> Array:
    """Elementwise a <= b."""
    return _in_order("less_equal", _less_equal, a, b)


def greater(a: object, b: object) -> Array:
    """Elementwise a > b.

    >>> import harp.numpy as hnp
    >>> hnp.greater(hnp.asarray([1, 2, 3]), 2)
    Array([False, False,  True])
    """
    return _in_order("greater", _less, b, a)


def greater_equal(a: object, b: object) -> Array:
    """Elementwise a >= b.

    >>> import harp.numpy as hnp
    >>> hnp.greater_equal(hnp.asarray([1, 2, 3]), 2)
    Array([False,  True,  True])
    """
    return _in_order("greater_equal", _less_equal, b, a)


def negative(a: object) -> Array:
    """Elementwise -a.

    >>> import harp.numpy as hnp
    >>> hnp.negative(hnp.asarray([1.0, -2.0]))
    Array([-1.,  2.])
    """
    require(common_dtype((a,))[0], "negative", ARITHMETIC)
    return map_(_op(Op.NEG), a)


def positive(a: object) -> Array:
    """Elementwise +a."""
    require(common_dtype((a,))[0], "positive", ARITHMETIC)
    return as_array(a)


def absolute(a: object) -> Array:
    """Elementwise |a|.

    >>> import harp.numpy as hnp
    >>> hnp.absolute(hnp.asarray([-1.5, 3 + 4j]))
    Array([1.5, 5. ])
    """
    dtype, _ = common_dtype((a,))
    if dtype.kind in (Kind.BOOL, Kind.UINT):
        return as_array(a)
    return map_(_op(Op.ABS), a)


@cache
def _extreme(op: Op) -> _Build:
    """The maximum or minimum of two elements. Of complex numbers one of both by real parts, then imaginary ones, the
    first one that has a NaN; equal ones share the derivative, as real numbers do."""

    def build(a: Expr, b: Expr) -> Expr:
        if not a.dtype.is_complex:
            return apply(op, a, b)
        pairs = [(apply(part, a), apply(part, b)) for part in (Op.REAL, Op.IMAG)]
        (first, second), (low, high) = pairs if op is Op.MAX else [pair[::-1] for pair in pairs]
        same, known_a, known_b = (apply(Op.EQ, p, q) for p, q in (pairs[0], (a, a), (b, b)))
        above = apply(Op.LT, second, first) | same & apply(Op.LT, high, low)
        kept, equal = ~known_a | known_b & above, apply(Op.EQ, a, b)
        return apply(Op.COMPLEX, *(select(equal, apply(op, p, q), select(kept, p, q)) for p, q in pairs))

    return lru_cache(64)(build)


def maximum(a: object, b: object) -> Array:
    """Elementwise maximum; NaN if either is NaN. Complex numbers are ordered by real parts, then imaginary ones.

    >>> import harp.numpy as hnp
    >>> hnp.maximum(hnp.asarray([1.0, 5.0]), 2.0)
    Array([2., 5.])
    """
    return map_(_extreme(Op.MAX), a, b)


def minimum(a: object, b: object) -> Array:
    """Elementwise minimum; NaN if either is NaN. Complex numbers are ordered by real parts, then imaginary ones.

    >>> import harp.numpy as hnp
    >>> hnp.minimum(hnp.asarray([1.0, 5.0]), 2.0)
    Array([1., 2.])
    """
    return map_(_extreme(Op.MIN), a, b)


def real(a: object) -> Array:
    """The real parts, of the real dtype; what is not complex is its own."""
    return map_(_op(Op.REAL), a) if common_dtype((a,))[0].is_complex else as_array(a)


def imag(a: object) -> Array:
    """The imaginary parts, of the real dtype; zeros for what is not complex."""
    return map_(_op(Op.IMAG) if common_dtype((a,))[0].is_complex else lambda x: zero_of(x.dtype), a)


def where_(condition: object, a: object, b: object) -> Array:
    """Elementwise `a` where the condition holds, else `b`."""
    dtype, weak = common_dtype((a, b))
    return marked(map_(select, condition, a, b, to=(bool_, dtype, dtype)), weak)


def astype(a: object, dtype: object, *, copy: bool = True, device: object = None) -> Array:
    """The array in another dtype. Floats truncate to integers; docs/dtypes.md says what numbers out of range become.

    Raises DTypeError from complex to real dtypes, but for bool, InterchangeError for a device that is not there.
    """
    require_device(device)
    target, array = as_dtype(dtype), as_array(a)
    if array.kind is target:  # `copy` changes nothing: arrays do not change
        return _strengthen(array)
    return map_(lambda x: cast(x, target), array, to=array.kind)


def in_common(array: Array, dtype: DType) -> Array:
    """An operand in the dtype in which it meets others. Raises IntegerRangeError for a number that does not fit."""
    return array if array.kind is dtype else map_(lambda x: x, array, to=dtype)


def zero_of(dtype: DType) -> Expr:
    return const(0, dtype)
