"""Elements at places that are data: `take`, `take_along_axis`, `put_along_axis`. `x[...]` is in `harp.trace`."""

from __future__ import annotations

from harp.errors import ArgumentError, ShapeError
from harp.numpy.checks import require_in_new_array
from harp.numpy.elementwise import maximum, remainder
from harp.numpy.manipulation import ravel
from harp.trace.array.advanced import mode_of
from harp.trace.array.array import Array, node_of
from harp.trace.array.index_plan import as_index_array
from harp.trace.array.primitives import as_array, from_positions, join_sizes, normalize_axis
from harp.trace.array.updates import get, put
from harp.trace.graph.node import positions
from harp.trace.index.polynomial import ONE
from harp.trace.scalar.dtypes import i64, u64
from harp.trace.scalar.expr import Position
from harp.trace.sizes.size import resolve
from harp.trace.source_locations import plural, where


def take(
    a: object, indices: object, axis: int | None = None, mode: str | None = None, fill_value: object = None
) -> Array:
    """The elements at these integers along an axis, which the axes of `indices` take the place of.

    Without an axis the array is flattened first. An index outside the axis is an error where the indices are known,
    and means the nearest element in traced functions; `mode` is "clip" (no index counts from the end), "fill" (such
    elements are `fill_value`) or "wrap". Raises IndexOutOfRangeError, ArgumentError for indices that are no integers.

    >>> import harp.numpy as hnp
    >>> hnp.take(hnp.asarray([10, 20, 30]), hnp.asarray([2, 0, -1]))
    Array([30, 10, 30])
    """
    array = ravel(a) if axis is None else as_array(a)
    k = normalize_axis(0 if axis is None else axis, array.ndim)
    places = _integers("take", indices)
    if mode == "wrap":
        if places.kind is not u64:  # the size need not fit the dtype of the indices
            places = places.astype(i64)
        places, mode = remainder(places, array.shape[k]), "clip"
    elif mode == "clip":  # as NumPy's, unlike that of `x.at`
        places = maximum(places, 0)
    mode_of(mode, "wrap")
    return get(array, (*[slice(None)] * k, places), mode, fill_value)


def take_along_axis(
    arr: object, indices: object, axis: int = -1, mode: str | None = None, fill_value: object = None
) -> Array:
    """For every row along an axis, its elements at the integers in the same row of `indices`; other axes broadcast.

    Indices outside the axis are as in `take`. Raises IndexOutOfRangeError, ShapeError for another number of axes.

    >>> import harp.numpy as hnp
    >>> x = hnp.asarray([[3, 1, 2], [9, 7, 8]])
    >>> hnp.take_along_axis(x, hnp.asarray([[1], [2]]), axis=1)
    Array([[1],
           [8]])
    """
    array, places = as_array(arr), _integers("take_along_axis", indices)
    k = normalize_axis(axis, array.ndim)
    return get(array, _along(array, places, k), mode, fill_value)


def put_along_axis(
    arr: object, indices: object, values: object, axis: int = -1, *, inplace: bool = False, mode: str | None = None
) -> Array:
    """The array with values at the places that `take_along_axis` reads: arrays do not change, so it is returned.

    Of several values for one place the last one stays; indices outside the axis are as in `x.at[...].set`. Raises
    ArgumentError for `inplace=True`, IndexOutOfRangeError, ShapeError for another number of axes.

    >>> import harp.numpy as hnp
    >>> put_along_axis(hnp.zeros((2, 3)), hnp.asarray([[1], [2]]), 5.0, axis=1)
    Array([[0., 5., 0.],
           [0., 0., 5.]])
    """
    require_in_new_array("put_along_axis", inplace)
    array, places = as_array(arr), _integers("put_along_axis", indices)
    return put(array, _along(array, places, normalize_axis(axis, array.ndim)), values, "set", mode, False)


def _along(array: Array, places: Array, k: int) -> tuple[Array, ...]:
    """The index that means `places` along axis k, and every row of the others."""
    rank = array.ndim
    if places.ndim != rank:
        raise ShapeError(f"indices with {plural(places.ndim, 'axes')} do not fit an array with {rank}{where()}")
    key: list[Array] = []
    for axis in range(rank):
        if axis == k:
            key.append(places)
            continue
        own, theirs = resolve(node_of(array).shape[axis]), node_of(places).shape[axis]
        join_sizes(own, theirs, lambda axis=axis: f"indices do not fit axis {axis}")  # type: ignore[misc]
        # Rows of one element are the same for all: those of the indices are broadcast anyway.
        shape = tuple(resolve(own) if a == axis else ONE for a in range(rank))
        key.append(from_positions(shape, Position(positions(shape)[axis])))
    return tuple(key)


def _integers(name: str, indices: object) -> Array:
    array = as_index_array(indices)
    if not array.kind.is_integer:
        raise ArgumentError(f"the indices of {name} are integers, not {array.kind}{where()}")
    return array
