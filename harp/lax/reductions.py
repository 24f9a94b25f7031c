"""Reductions, running reductions and sorts under `jax.lax`'s names: dtypes stay, and axes are listed. Several arrays
are sorted by the keys among them, always stably.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.errors import ArgumentError, DTypeError
from harp.lax.associative import associative_scan
from harp.numpy import cumulative, reductions, sorting
from harp.numpy.creation import full
from harp.numpy.elementwise import bitwise_and, bitwise_or, bitwise_xor, not_equal
from harp.numpy.indexing import take_along_axis
from harp.numpy.manipulation import flip, moveaxis
from harp.numpy.mathematical import logaddexp
from harp.trace.array.array import Array
from harp.trace.array.operators import Operand
from harp.trace.array.primitives import as_array, as_flag, as_integer, normalize_axes, normalize_axis
from harp.trace.scalar.dtypes import DTypeLike, bool_
from harp.trace.source_locations import plural, where
from harp.transforms.control.scan import scan

Axes = Sequence[int]


def reduce_sum(operand: object, axes: Axes) -> Array:
    """The sum over these axes, in the dtype of the operand.

    >>> import harp.numpy as hnp
    >>> reduce_sum(hnp.ones((2, 3)), (0,))
    Array([2., 2., 2.])
    """
    array = as_array(operand)
    return reductions.sum(array, tuple(axes), dtype=array.kind)


def reduce_prod(operand: object, axes: Axes) -> Array:
    """The product over these axes, in the dtype of the operand.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.reduce_prod(hnp.asarray([[3, 1], [5, 2]]), axes=(0,))
    Array([15,  2])
    """
    array = as_array(operand)
    return reductions.prod(array, tuple(axes), dtype=array.kind)


def reduce_max(operand: Operand, axes: Axes) -> Array:
    """The largest elements over these axes. Raises ShapeError where there are none.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.reduce_max(hnp.asarray([[3, 1], [0, 2]]), axes=(0,))
    Array([3, 2])
    """
    return reductions.max(operand, tuple(axes))


def reduce_min(operand: Operand, axes: Axes) -> Array:
    """The smallest elements over these axes. Raises ShapeError where there are none.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.reduce_min(hnp.asarray([[3, 1], [0, 2]]), axes=(0,))
    Array([0, 1])
    """
    return reductions.min(operand, tuple(axes))


def reduce_and(operand: object, axes: Axes) -> Array:
    """Whether all are true over these axes; of integers, their bitwise `and`.

    >>> import harp.numpy as hnp
    >>> reduce_and(hnp.asarray([6, 3]), (0,)), reduce_and(hnp.asarray([True, False]), (0,))
    (Array(2), Array(False))
    """
    return _bitwise("reduce_and", bitwise_and, -1, operand, axes)


def reduce_or(operand: object, axes: Axes) -> Array:
    """Whether any is true over these axes; of integers, their bitwise `or`.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.reduce_or(hnp.asarray([[True, False], [False, False]]), axes=(1,))
    Array([ True, False])
    """
    return _bitwise("reduce_or", bitwise_or, 0, operand, axes)


def reduce_xor(operand: object, axes: Axes) -> Array:
    """Whether an odd number are true over these axes; of integers, their bitwise `xor`.

    >>> import harp.numpy as hnp
    >>> reduce_xor(hnp.asarray([6, 3]), (0,))
    Array(5)
    """
    return _bitwise("reduce_xor", bitwise_xor, 0, operand, axes)


_OF_BOOL = {"reduce_and": reductions.all, "reduce_or": reductions.any}


def _bitwise(name: str, operation: Callable[..., Array], start: int, operand: object, axes: Axes) -> Array:
    """A loop over each axis, for a reduction is a sum, a product or an extremum elsewhere in harp."""
    array = as_array(operand)
    if array.kind.is_inexact:
        raise DTypeError(f"{name} is for integers and bool, not for {array.dtype}{where()}")
    ordered = normalize_axes(tuple(axes), array.ndim)
    if array.kind is bool_:
        if name in _OF_BOOL:
            return _OF_BOOL[name](array, ordered)
        return not_equal(bitwise_and(reductions.sum(array, ordered), 1), 0) if ordered else array
    for axis in reversed(ordered):
        rows = moveaxis(array, axis, 0)
        identity = full(rows.shape[1:], start, "int64").astype(array.kind)
        array, _ = scan(lambda so_far, row: (operation(so_far, row), None), identity, rows)
    return array


def argmax(operand: Operand, axis: int, index_dtype: DTypeLike = "int64") -> Array:
    """The first position of the largest element along an axis, or of the first NaN.

    >>> argmax(as_array(1.0)[None], 0, "int32").dtype
    dtype('int32')
    """
    return reductions.argmax(operand, axis).astype(index_dtype)


def argmin(operand: Operand, axis: int, index_dtype: DTypeLike = "int64") -> Array:
    """The first position of the smallest element along an axis, or of the first NaN.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.argmin(hnp.asarray([[3, 1], [0, 2]]), axis=1)
    Array([1, 0])
    """
    return reductions.argmin(operand, axis).astype(index_dtype)


def cumsum(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The sums of the elements up to each one along an axis, in the dtype of the operand; from the end if `reverse`.

    >>> import harp.numpy as hnp
    >>> cumsum(hnp.asarray([1, 2, 3], dtype="int32"), reverse=True)
    Array([6, 5, 3], dtype=int32)
    """
    return _running(lambda x, k: cumulative.cumsum(x, k, x.kind), operand, axis, reverse)


def cumprod(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The products of the elements up to each one along an axis, in the dtype of the operand.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.cumprod(hnp.asarray([1, 2, 3]))
    Array([1, 2, 6])
    """
    return _running(lambda x, k: cumulative.cumprod(x, k, x.kind), operand, axis, reverse)


def cummax(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The largest of the elements up to each one along an axis; NaN from the first one on.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.cummax(hnp.asarray([1, 3, 2]))
    Array([1, 3, 3])
    """
    return _running(cumulative.cummax, operand, axis, reverse)


def cummin(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of the elements up to each one along an axis; NaN from the first one on.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.cummin(hnp.asarray([3, 1, 2]))
    Array([3, 1, 1])
    """
    return _running(cumulative.cummin, operand, axis, reverse)


def cumlogsumexp(operand: object, axis: int = 0, reverse: bool = False) -> Array:
    """The logarithm of the sum of exponentials of the elements up to each one along an axis, without overflow.

    >>> import harp.numpy as hnp
    >>> cumlogsumexp(hnp.asarray([1000.0, 1000.0]))
    Array([1000.        , 1000.69314718])
    """
    return _running(lambda x, k: associative_scan(logaddexp, x, axis=k), operand, axis, reverse)


def _running(run: Callable[[Array, int], Array], operand: object, axis: int, reverse: bool) -> Array:
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    return flip(run(flip(array, along), along), along) if as_flag("reverse", reverse) else run(array, along)


def sort(operand: object, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Array | tuple[Array, ...]:
    """The elements in order along an axis; of a tuple of arrays, all in the order of the first `num_keys` of them.

    Of keys, the first counts most. NaN are above all numbers. Raises AxisError for an axis out of range, ShapeError for
    arrays of different shapes, ArgumentError where there are not so many keys.

    >>> import harp.numpy as hnp
    >>> sort((hnp.asarray([3, 1, 2]), hnp.asarray([10, 20, 30])))
    (Array([1, 2, 3]), Array([20, 30, 10]))
    """
    if not isinstance(operand, (tuple, list)):
        return sorting.sort(operand, dimension)
    count = as_integer("num_keys", num_keys)
    if not 1 <= count <= len(operand):
        raise ArgumentError(f"sort of {plural(len(operand), 'arrays')} by {count} keys{where()}")
    arrays = sorting.of_one_shape("sort", *map(as_array, operand))
    along = normalize_axis(dimension, arrays[0].ndim)
    order = sorting.lexsort(arrays[:count][::-1], along)
    return tuple(take_along_axis(array, order, along) for array in arrays)


def sort_key_val(keys: object, values: object, dimension: int = -1, is_stable: bool = True) -> tuple[Array, Array]:
    """The keys in order along an axis, and the values in the order of their keys.

    >>> import harp.numpy as hnp
    >>> sort_key_val(hnp.asarray([3, 1, 2]), hnp.asarray([10, 20, 30]))
    (Array([1, 2, 3]), Array([20, 30, 10]))
    """
    operands: Sequence[object] = (keys, values)
    first, second = sort(operands, dimension)
    return first, second
