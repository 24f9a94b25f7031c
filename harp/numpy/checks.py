"""What functions ask of their arguments, with errors that name both: positions, counts, numbers that a dtype holds."""

from __future__ import annotations

import sys

import numpy as np

from harp.errors import ArgumentError, DTypeError, IntegerRangeError, MutationError, ShapeError
from harp.numpy.elementwise import minimum
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer, known_numbers
from harp.trace.eval.intervals import limits
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, bool_, i64, u64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, describe, resolve, to_index
from harp.trace.source_locations import is_ignored, where


def as_positions(what: str, value: object) -> Array:
    """Integers as int64, in which sizes are counted; of uint64 the largest int64 stands for all that are above it.

    Raises DTypeError for floats.
    """
    array = as_array(value)
    if not (array.kind.is_integer or array.kind is bool_):
        raise DTypeError(f"{what} must be integers, not {array.dtype}; convert with .astype{where()}")
    return (minimum(array, limits(i64).high) if array.kind is u64 else array).astype(i64)


def as_count(what: str, value: object, least: int = 0) -> Index:
    """How many there are to be. Raises ArgumentError unless it is an integer, ShapeError for one below the least."""
    given = to_index(value if isinstance(value, (Index, Size)) else as_integer(what, value))
    if not ask(Relation.NONNEGATIVE, resolve(given - least), f"{what} must be at least {least}"):
        raise ShapeError(f"{what} must be at least {least}, not {describe(given)}{where()}")
    return resolve(given)


def require_held(what: str, value: object, dtype: DType) -> None:
    """Raise IntegerRangeError for known floats that are no numbers of an integer dtype: NaN, infinities, large ones."""
    numbers = np.asarray(value) if isinstance(value, (float, np.generic)) else known_numbers(value)
    if numbers is None or not dtype.is_integer or numbers.dtype.kind in "biu":
        return
    allowed = limits(dtype)
    for number in numbers.real.ravel().tolist():
        if not allowed.low - 1 < number < allowed.high + 1:
            raise IntegerRangeError(f"{what} is {number!r}, which {dtype.numpy} does not hold; convert x{where()}")


def require_in_new_array(name: str, inplace: bool) -> None:
    """Raise ArgumentError where an array is to change, MutationError in a statement that drops the new one."""
    if inplace:
        raise ArgumentError(f"arrays do not change: {name} returns the new one; leave out inplace=True{where()}")
    if is_ignored(sys._getframe(2)):
        raise MutationError(f"arrays do not change, so {name} returns another one: write x = {name}(x, ...){where()}")


def require_kind(what: str, array: Array, dtype: DType) -> None:
    """Raise DTypeError for floats among integers, and for complex numbers among real ones."""
    if (array.kind.is_inexact and not dtype.is_inexact) or (array.kind.is_complex and not dtype.is_complex):
        raise DTypeError(f"{what} has dtype {array.dtype}, but x has {dtype.numpy}; convert x with .astype{where()}")
