"""Elementwise functions that `jax.lax` has otherwise than NumPy, or NumPy has not: quotients, bits, choices."""

from __future__ import annotations

from enum import Enum
from functools import partial
from math import frexp as frexp_of_python
from math import inf

from harp.errors import ArgumentError, DTypeError
from harp.numpy.closeness import fmod
from harp.numpy.complexes import real
from harp.numpy.elementwise import (
    abs,
    bitwise_right_shift,
    clip,
    float_map,
    floor_divide,
    greater,
    greater_equal,
    isfinite,
    less,
    logical_and,
    minimum,
    power,
    subtract,
    true_divide,
    trunc,
    where,
)
from harp.numpy.elementwise import round as round_to_even
from harp.numpy.floats import bitwise_count, frexp, ldexp
from harp.numpy.mathematical import copysign
from harp.numpy.types import finfo
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer, common_dtype
from harp.trace.scalar.dtypes import DType, DTypeLike, Kind, as_dtype, bool_
from harp.trace.scalar.expr import apply
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where as location
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.grad import stop_gradient


class RoundingMethod(Enum):
    """What `round` does halfway between two integers."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def div(x: object, y: object) -> Array:
    """Elementwise x / y; of integers the quotient, truncated towards zero. An integer divided by 0 gives 0.

    >>> div(-7, 2), div(-7.0, 2.0)
    (Array(-3), Array(-3.5))
    """
    dtype, _ = common_dtype((x, y))
    if not dtype.is_integer:
        return true_divide(x, y)
    return floor_divide(subtract(x, fmod(x, y)), y)


def integer_pow(x: object, y: object) -> Array:
    """Elementwise power by one integer, which a Python number gives. Raises ArgumentError for another exponent.

    >>> integer_pow(3.0, -2)
    Array(0.11111111)
    """
    return power(x, as_integer("y", y))


def round(x: object, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Elementwise nearest integer, in the dtype of x; halfway away from zero, or to the even one if asked for.

    >>> import harp.numpy as hnp
    >>> round(hnp.asarray([0.5, 1.5, -2.5]))
    Array([ 1.,  2., -3.])
    >>> round(hnp.asarray([0.5, 1.5, -2.5]), RoundingMethod.TO_NEAREST_EVEN)
    Array([ 0.,  2., -2.])
    """
    array = as_array(x)
    if RoundingMethod(rounding_method) is RoundingMethod.TO_NEAREST_EVEN or not array.kind.is_inexact:
        return round_to_even(array)
    whole = trunc(array)  # the rest is exact; adding 0.5 would not be
    return where(greater_equal(abs(subtract(array, whole)), 0.5), whole + copysign(1, array), whole)


def clamp(min: object, x: object, max: object) -> Array:
    """Elementwise `x`, but at least `min`, and then at most `max`; either may be a number.

    The gradient goes to `x` between them, to `min` or `max` beyond, and at the ends nowhere: that is JAX's choice;
    `harp.numpy.clip` divides it there.

    >>> import harp.numpy as hnp
    >>> clamp(0, hnp.asarray([-1, 2, 7]), 5)
    Array([0, 2, 5])
    """
    at_an_end = stop_gradient(clip(x, min, max))
    beyond = where(less(x, min), minimum(min, max), where(greater(x, max), max, at_an_end))
    return where(logical_and(greater(x, min), less(x, max)), x, beyond)


def complex(x: object, y: object) -> Array:
    """Elementwise complex numbers with these real and imaginary parts.

    >>> complex(1.0, -2.0)
    Array(1.-2.j)
    """
    return float_map(lambda a, b: apply(Op.COMPLEX, a, b), x, y)


def convert_element_type(operand: object, new_dtype: DTypeLike) -> Array:
    """The array in another dtype, elementwise; of complex numbers, for a real dtype, the real part.

    >>> convert_element_type(2.75, "int32")
    Array(2, dtype=int32)
    """
    array, dtype = as_array(operand), as_dtype(new_dtype)
    return (real(array) if array.kind.is_complex and not dtype.is_complex else array).astype(dtype)


def select(pred: object, on_true: object, on_false: object) -> Array:
    """Elementwise `on_true` where `pred` holds, else `on_false`.

    >>> import harp.numpy as hnp
    >>> select(hnp.asarray([True, False]), hnp.ones(2), hnp.zeros(2))
    Array([1., 0.])
    """
    return where(pred, on_true, on_false)


def select_n(which: object, *cases: object) -> Array:
    """Elementwise `cases[which]`: of two by a truth value, the second where it holds; of several by an integer.

    `which` has the shape of the cases, or no axes. A number outside means the nearest case.
    Raises ArgumentError for no cases, or several by a truth value, DTypeError where `which` is a float.

    >>> import harp.numpy as hnp
    >>> select_n(hnp.asarray([0, 2, 1]), hnp.zeros(3), hnp.ones(3), hnp.full(3, 2.0))
    Array([0., 2., 1.])
    """
    number = as_array(which)
    if not cases:
        raise ArgumentError(f"select_n has no cases{location()}")
    if number.kind.is_inexact:
        raise DTypeError(f"select_n chooses by bool or integers, not by {number.dtype}{location()}")
    if number.kind is bool_:
        if len(cases) > 2:
            raise ArgumentError(f"select_n of {len(cases)} cases by bool; convert it to integers{location()}")
        return where(number, cases[-1], cases[0])
    first, *others = reversed(cases)
    result = as_array(first)
    for k, case in enumerate(others, 1):
        result = where(less(number, len(cases) - k), case, result)
    return result


def shift_right_arithmetic(x: object, y: object) -> Array:
    """Elementwise shift of bits to the right, copies of the highest bit coming in from the left, of unsigned ones too.

    >>> import harp.numpy as hnp
    >>> shift_right_arithmetic(hnp.asarray([128, 64], dtype="uint8"), 1)
    Array([192,  32], dtype=uint8)
    """
    dtype, _ = common_dtype((x, y))
    if dtype.kind is not Kind.UINT:
        return bitwise_right_shift(x, y)
    distance = minimum(y, 8 * dtype.numpy.itemsize - 1).astype(dtype)  # which a signed integer can be
    signed = as_dtype(dtype.numpy_name[1:])
    return bitwise_right_shift(as_array(x).astype(signed), distance.astype(signed)).astype(dtype)


def shift_right_logical(x: object, y: object) -> Array:
    """Elementwise shift of bits to the right, zeros coming in from the left; by the width or more gives 0.

    >>> import harp.numpy as hnp
    >>> shift_right_logical(hnp.asarray([-1, 4], dtype="int8"), 1)
    Array([127,   2], dtype=int8)
    """
    dtype, _ = common_dtype((x, y))
    bits = _unsigned("shift_right_logical", dtype)
    return bitwise_right_shift(as_array(x).astype(bits), as_array(y).astype(bits)).astype(dtype)


def population_count(x: object) -> Array:
    """Elementwise number of bits that are 1, in the dtype of x; negative numbers have those of two's complement.

    >>> import harp.numpy as hnp
    >>> population_count(hnp.asarray([-1, 5], dtype="int8"))
    Array([8, 2], dtype=int8)
    """
    array = as_array(x)
    return bitwise_count(array.astype(_unsigned("population_count", array.kind))).astype(array.kind)


def clz(x: object) -> Array:
    """Elementwise number of bits that are 0 before the first one that is 1, in the dtype of x.

    >>> import harp.numpy as hnp
    >>> clz(hnp.asarray([0, 1, 127, -1], dtype="int8"))
    Array([8, 7, 1, 0], dtype=int8)
    """
    array = as_array(x)
    bits = array.astype(_unsigned("clz", array.kind))
    width = 8 * array.kind.numpy.itemsize
    for k in range(width.bit_length() - 1):  # all bits behind the first one
        bits = bits | bitwise_right_shift(bits, 1 << k)
    return (width - bitwise_count(bits)).astype(array.kind)


def reduce_precision(operand: object, exponent_bits: int, mantissa_bits: int) -> Array:
    """Elementwise the nearest number of a format with so many bits, halfway to the even one; in the dtype of floats.

    What is too large is infinite, and what is below the smallest normal number of the format is 0, as in JAX. The
    derivative is 1. Raises DTypeError for other dtypes, ArgumentError for less than 1 bit of the exponent, or 0 others.

    >>> import harp.numpy as hnp
    >>> reduce_precision(hnp.asarray([1.3, 70000.0, 1e-9]), 5, 10)
    Array([1.29980469,        inf, 0.        ])
    """
    array, exponent, mantissa = as_array(operand), *(as_integer("bits", b) for b in (exponent_bits, mantissa_bits))
    if array.kind.kind is not Kind.FLOAT:
        raise DTypeError(f"reduce_precision is for floats, not for {array.dtype}{location()}")
    if exponent < 1 or mantissa < 0:
        raise ArgumentError(f"reduce_precision to {exponent} and {mantissa} bits: at least 1 and 0{location()}")
    result: Array = _rounded(exponent, mantissa, array)
    return result


@partial(custom_jvp, nondiff_argnums=(0, 1))
def _rounded(exponent: int, mantissa: int, x: Array) -> Array:
    digits, power = frexp(x)
    whole = 2.0 ** (mantissa + 1)
    found = ldexp(round_to_even(digits * whole) / whole, power)
    largest = 2 ** (exponent - 1) - 1
    size = finfo(x.dtype)
    if largest + 1 < frexp_of_python(float(size.max))[1]:
        found = where(greater_equal(abs(found), 2.0 ** (largest + 1)), copysign(inf, x), found)
    if 2 - largest > frexp_of_python(float(size.smallest_normal))[1]:
        found = where(less(abs(found), 2.0 ** (1 - largest)), copysign(0, x), found)
    return where(isfinite(x), found, x).astype(x.kind)


@_rounded.defjvp
def _rounded_tangent(
    exponent: int, mantissa: int, primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    found: Array = _rounded(exponent, mantissa, *primals)
    return found, tangents[0]


def _unsigned(name: str, dtype: DType) -> DType:
    """The dtype of the same width for bits. Raises DTypeError where there is none."""
    if not dtype.is_integer:
        raise DTypeError(f"{name} is for integers, not for {dtype.numpy}{location()}")
    return as_dtype(f"u{dtype.numpy_name}") if dtype.kind is Kind.INT else dtype
