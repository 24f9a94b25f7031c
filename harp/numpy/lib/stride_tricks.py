"""NumPy's `sliding_window_view`."""

from __future__ import annotations

from harp.errors import ArgumentError, ShapeError
from harp.numpy.sliding import Plan, Window, require_fits
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import Axis, as_array, as_tuple, emit, normalize_axis, to_shape
from harp.trace.scalar.expr import const
from harp.trace.source_locations import plural, where

__all__ = ["sliding_window_view"]


def sliding_window_view(
    x: object, window_shape: object, axis: Axis = None, *, subok: bool = False, writeable: bool = False
) -> Array:
    """All windows of an array: the axes of the windows' elements come last, in place of their axes are their numbers.

    `window_shape` has a size for each of `axis`, or for all axes; an axis that is named twice has windows of windows.
    `subok` changes nothing. Raises ShapeError for another number of sizes, and windows longer than their axis,
    ArgumentError with `writeable`.

    >>> import harp.numpy as hnp
    >>> sliding_window_view(hnp.arange(5), 3)
    Array([[0, 1, 2],
           [1, 2, 3],
           [2, 3, 4]])
    """
    if writeable:
        raise ArgumentError(f"arrays do not change: leave out writeable=True{where()}")
    array = as_array(x)
    sizes = to_shape(window_shape)
    axes = range(array.ndim) if axis is None else [normalize_axis(a, array.ndim) for a in as_tuple(axis)]
    if len(sizes) != len(axes):
        raise ShapeError(f"window_shape has {plural(len(sizes), 'sizes')} for {plural(len(axes), 'axes')}{where()}")
    for size, along in zip(sizes, axes, strict=True):
        windows = Plan((along,), (Window(size),))
        require_fits(windows, array)
        array = emit(windows.view(node_of(array), const(0, array.kind)), array.weak)
    return array
