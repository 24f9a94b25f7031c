"""Sorting and searching along an axis: stable, with NaN above all numbers, as NumPy."""

from __future__ import annotations

from harp.errors import ArgumentError
from harp.numpy.manipulation import moveaxis, ravel
from harp.trace.array import OPERATORS, Array, node_of
from harp.trace.node import RowWise
from harp.trace.primitives import as_array, emit, normalize_axis
from harp.trace.rows import ROWS, RowOp
from harp.trace.sites import where


def _rows(function: RowOp, *arrays: Array, reverse: bool = False) -> Array:
    """A function of rows along the last axis."""
    weak = not ROWS[function].positions and arrays[-1].weak
    return emit(RowWise(function, tuple(map(node_of, arrays)), reverse), weak)


def _along(function: RowOp, x: object, axis: object, descending: bool) -> Array:
    array = as_array(x)
    if axis is None:
        array, axis = ravel(array), 0
    if array.ndim == 0:
        raise ArgumentError(f"an array without axes has no order; reshape it to (1,) first{where()}")
    along = normalize_axis(axis, array.ndim)
    if along == array.ndim - 1:
        return _rows(function, array, reverse=bool(descending))
    return moveaxis(_rows(function, moveaxis(array, along, -1), reverse=bool(descending)), -1, along)


def sort(x: object, axis: object = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis, or of the flattened array if `axis` is None.

    The sort is stable: -0.0 and 0.0, which are equal, stay in the order in which they were. NaN are above all numbers.
    Its gradient goes back to where each element came from. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.sort(hnp.asarray([3.0, 1.0, 2.0]), descending=True)
    Array([3., 2., 1.])
    """
    return _along(RowOp.SORT, x, axis, descending)


def argsort(x: object, axis: object = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """The positions (int64) of the elements in order along an axis, or in the flattened array if `axis` is None.

    The sort is stable, also a descending one: equal elements stay in the order in which they are. NaN are above all
    numbers. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.argsort(hnp.asarray([3.0, 1.0, 3.0]), descending=True)
    Array([0, 2, 1])
    """
    return _along(RowOp.ORDER, x, axis, descending)


OPERATORS.update(argsort=argsort)
