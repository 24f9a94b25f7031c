"""Sorting and searching along an axis: stable, with NaN above all numbers, as NumPy."""

from __future__ import annotations

from functools import partial

from harp.errors import ArgumentError, DTypeError, IndexOutOfRangeError, ShapeError
from harp.numpy import complexes
from harp.numpy.elementwise import isnan
from harp.numpy.indexing import take, take_along_axis
from harp.numpy.manipulation import moveaxis, ravel, reshape
from harp.trace.array.arithmetic import add, multiply, negative
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import getitem
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_integer,
    as_tuple,
    common_dtype,
    emit,
    expand_to,
    map_,
    normalize_axis,
    to_shape,
)
from harp.trace.graph.node import RowWise
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.scalar.dtypes import complex_of, i8, inexact
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, describe, resolve, resolve_all, unify
from harp.trace.source_locations import plural, where


def row_wise(function: RowOp, *arrays: Array, reverse: bool = False) -> Array:
    """A function of rows along the last axis of arrays that have one."""
    if arrays[0].kind.is_complex:
        raise DTypeError(f"complex numbers have no order; take their real part or abs instead{where()}")
    weak = not ROWS[function].positions and arrays[-1].weak
    return emit(RowWise(function, tuple(map(node_of, arrays)), reverse), weak)


def of_one_shape(name: str, *arrays: Array) -> list[Array]:
    """The arrays, whose sizes are held to be equal axis by axis. Raises ShapeError where they are not."""
    nodes = list(map(node_of, arrays))
    shape = nodes[0].shape
    for node in nodes[1:]:
        if len(node.shape) != len(shape):
            raise ShapeError(
                f"{name} needs arrays of one shape, not of {len(shape)} and {len(node.shape)} axes{where()}"
            )
        shape = tuple(
            unify(a, b, partial(_differ, name, k)) for k, (a, b) in enumerate(zip(shape, node.shape, strict=True))
        )
    return [emit(expand_to(node, resolve_all(shape)), array.weak) for node, array in zip(nodes, arrays, strict=True)]


def _differ(name: str, axis: int) -> str:
    return f"{name} needs arrays of one shape: sizes differ along axis {axis}"


def _along(function: RowOp, x: object, axis: Axis, descending: object) -> Array:
    array = as_array(x)
    if axis is None:
        array, axis = ravel(array), 0
    if array.ndim == 0:
        raise ShapeError(f"an array without axes has no order; reshape it to (1,) first{where()}")
    along = normalize_axis(axis, array.ndim)
    if array.kind.is_complex:
        order = _complex_order(moveaxis(array, along, -1), bool(descending))
        order = moveaxis(order, -1, along)
        return take_along_axis(array, order, along) if function is RowOp.SORT else order
    if along == array.ndim - 1:
        return row_wise(function, array, reverse=bool(descending))
    return moveaxis(row_wise(function, moveaxis(array, along, -1), reverse=bool(descending)), -1, along)


def _complex_order(rows: Array, descending: bool) -> Array:
    keys = _keys(rows)
    return lexsort(list(map(negative, keys)) if descending else keys)


def _keys(key: Array) -> tuple[Array, ...]:
    """Real keys, the last of which counts most. Complex numbers are in the order of their real parts, then imaginary
    ones; behind them are NaN: first those of imaginary parts alone."""
    if not key.kind.is_complex:
        return (key,)
    parts = complexes.imag(key), complexes.real(key)
    return (*parts, add(isnan(parts[0]).astype(i8), multiply(isnan(parts[1]).astype(i8), 2)))


def sort(a: object, axis: Axis = -1, *, kind: object = None, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis, or of the flattened array if `axis` is None.

    The sort is always stable, whatever `kind` says: -0.0 and 0.0, which are equal, stay in the order in which they
    were. NaN are above all numbers. Complex numbers are ordered by their real parts, then by imaginary ones. The
    gradient goes back to where each element came from. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.sort(hnp.asarray([3.0, 1.0, 2.0]), descending=True)
    Array([3., 2., 1.])
    """
    return _along(RowOp.SORT, a, axis, descending)


def argsort(a: object, axis: Axis = -1, *, kind: object = None, descending: bool = False, stable: bool = True) -> Array:
    """The positions (int64) of the elements in order along an axis, or in the flattened array if `axis` is None.

    The sort is always stable, also a descending one: equal elements stay in the order in which they are. NaN are above
    all numbers. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.argsort(hnp.asarray([3.0, 1.0, 3.0]), descending=True)
    Array([0, 2, 1])
    """
    return _along(RowOp.ORDER, a, axis, descending)


def partition(a: object, kth: object, axis: Axis = -1, kind: str = "introselect") -> Array:
    """The elements with the k-th smallest at its place, smaller ones before it and larger ones behind: all are sorted.

    `kth` is an integer or several; `kind` changes nothing. Raises IndexOutOfRangeError.

    >>> import harp.numpy as hnp
    >>> hnp.partition(hnp.asarray([3, 4, 2, 1]), 1)
    Array([1, 2, 3, 4])
    """
    return sort(*_kth("partition", a, kth, axis))


def argpartition(a: object, kth: object, axis: Axis = -1, kind: str = "introselect") -> Array:
    """The positions (int64) of the elements in the order of `partition`.

    >>> import harp.numpy as hnp
    >>> hnp.argpartition(hnp.asarray([3, 4, 2, 1]), 1)
    Array([3, 2, 0, 1])
    """
    return argsort(*_kth("argpartition", a, kth, axis))


def _kth(name: str, x: object, kth: object, axis: Axis) -> tuple[Array, int]:
    array = ravel(x) if axis is None else as_array(x)
    k = normalize_axis(-1 if axis is None else axis, array.ndim)
    size = node_of(array).shape[k]
    for number in (as_integer(f"kth of {name}", each) for each in as_tuple(kth)):
        if not ask(Relation.NONNEGATIVE, resolve(size + min(number, -1 - number)), f"{name} has an element {number}"):
            raise IndexOutOfRangeError(f"kth of {name} is {number}, along axis {k} of size {describe(size)}{where()}")
    return array, k


def sort_complex(a: object) -> Array:
    """The elements, as complex numbers, in the order of their real parts, then imaginary ones, along the last axis.

    >>> import harp.numpy as hnp
    >>> hnp.sort_complex(hnp.asarray([5, 3]))
    Array([3.+0.j, 5.+0.j])
    """
    array = as_array(a)
    return sort(array.astype(complex_of(inexact(array.kind))))


def lexsort(keys: object, axis: Axis = -1) -> Array:
    """The positions (int64) in the order of several keys, the last of which counts most.

    `keys` is a sequence of arrays of one shape, or an array whose first axis numbers them. Raises ArgumentError for
    none, ShapeError for different shapes.

    >>> import harp.numpy as hnp
    >>> hnp.lexsort((hnp.asarray([2, 1, 0]), hnp.asarray([1, 0, 1])))
    Array([1, 2, 0])
    """
    arrays = [as_array(k) for k in (keys if isinstance(keys, (tuple, list)) else list(as_array(keys)))]
    if not arrays:
        raise ArgumentError(f"lexsort needs at least one key{where()}")
    if not arrays[0].ndim:
        raise ShapeError(f"lexsort needs keys with an axis{where()}")
    along = normalize_axis(axis, arrays[0].ndim)
    key, *rest = (moveaxis(part, along, -1) for a in of_one_shape("lexsort", *arrays) for part in _keys(a))
    order = row_wise(RowOp.ORDER, key)
    rest = [row_wise(RowOp.SORT_BY, key, other) for other in rest]
    while rest:
        key, *rest = rest
        order, *rest = (row_wise(RowOp.SORT_BY, key, other) for other in (order, *rest))
    return moveaxis(order, -1, along)


def top_k(x: object, k: object, axis: Axis = -1) -> tuple[Array, Array]:
    """The `k` largest elements along an axis, in descending order, and their positions (int64).

    Of equal elements the first come first. NaN are above all numbers. Raises AxisError for an axis out of range,
    ShapeError where the axis has fewer than `k` elements.

    >>> import harp.numpy as hnp
    >>> hnp.top_k(hnp.asarray([3.0, 1.0, 4.0, 1.0, 5.0]), 2)
    (Array([5., 4.]), Array([4, 2]))
    """
    array = as_array(x)
    along = normalize_axis(axis, array.ndim)
    size = node_of(array).shape[along]
    (count,) = to_shape(k)
    if not ask(Relation.NONNEGATIVE, resolve(size - count), f"axis {along} has {plural(k, 'elements')}"):
        raise ShapeError(f"top_k of {plural(k, 'elements')} along axis {along} of size {describe(size)}{where()}")
    first = (*(slice(None),) * along, slice(None, k))
    values, places = (_along(function, array, along, True) for function in (RowOp.SORT, RowOp.ORDER))
    return getitem(values, first), getitem(places, first)


def searchsorted(a: object, v: object, side: str = "left", sorter: object = None) -> Array:
    """The positions (int64) in the sorted array `a`, of one axis, before which elements `v` keep it sorted.

    The shape is that of `v`. With `side="left"` a position is behind all smaller elements, with "right" behind equal
    ones, too. `sorter` holds positions that sort `a`, as `argsort` gives them. Raises ShapeError if `a` has not one
    axis, ArgumentError for another side.

    >>> import harp.numpy as hnp
    >>> hnp.searchsorted(hnp.asarray([1.0, 2.0, 3.0]), hnp.asarray([2.0, 2.5]))
    Array([1, 2])
    """
    table, values = as_array(a), as_array(v)
    if side not in ("left", "right"):
        raise ArgumentError(f"the side of a search is 'left' or 'right', not {side!r}{where()}")
    if table.ndim != 1:
        raise ShapeError(f"searchsorted needs a sorted array of one axis, not {table.ndim}{where()}")
    if sorter is not None:
        places = as_array(sorter)
        if places.shape != table.shape or not places.kind.is_integer:
            raise ShapeError(f"the sorter has {places.shape} elements of {places.dtype}, not {table.shape}{where()}")
        table = take(table, places)
    dtype, _ = common_dtype((table, values))
    table, values = (map_(lambda e: e, array, to=dtype) for array in (table, values))
    return search(table, values, side == "right")


def search(table: Array, values: Array, right: bool) -> Array:
    """How many elements of a sorted row are below each value, or not above it."""
    if values.ndim == 0:
        return reshape(search(table, reshape(values, (1,)), right), ())
    return row_wise(RowOp.SEARCH, table, values, reverse=right)
