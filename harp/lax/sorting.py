"""Sorting under `jax.lax`'s names: several arrays by the keys among them. Always stable."""

from __future__ import annotations

from collections.abc import Sequence

from harp.errors import ArgumentError
from harp.numpy import sorting
from harp.numpy.indexing import take_along_axis
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer, normalize_axis
from harp.trace.source_locations import plural, where


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
