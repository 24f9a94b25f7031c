"""Ranks and modes, by sorting, and the standard error of a mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harp.errors import ArgumentError
from harp.numpy.creation import arange, asarray
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import add, isnan, multiply, not_equal, sqrt, where
from harp.numpy.indexing import take
from harp.numpy.manipulation import expand_dims, moveaxis, reshape
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import argmax, std
from harp.numpy.sorting import argsort, searchsorted, sort
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, normalize_axis
from harp.trace.scalar.dtypes import f64, i64
from harp.trace.source_locations import where as place
from harp.transforms.batching.vmap import vmap


class ModeResult(NamedTuple):
    """What `mode` returns."""

    mode: Array
    count: Array  # type: ignore[assignment]  # SciPy's name


def _rows(a: object, axis: int | None) -> tuple[Array, int]:
    """The array with the axis, or all of its elements, last; and which one it was."""
    array = as_array(a)
    if axis is None:
        return reshape(array, (-1,)), 0
    along = normalize_axis(axis, array.ndim)
    return moveaxis(array, along, -1), along


def _of_rows(function: Callable[[Array], Any], rows: Array) -> Any:
    """The results of a function for each row."""
    for _ in range(rows.ndim - 1):
        function = vmap(function)
    return function(rows)


_METHODS = ("average", "min", "max", "dense", "ordinal")


def rankdata(a: object, method: str = "average", *, axis: int | None = None, nan_policy: str = "propagate") -> Array:
    """The places of the elements in their order, from 1, of the flattened array or along an axis: SciPy's function.

    Equal elements have the "average", the "min" or the "max" of their places; with "dense" the next ones follow without
    a gap, with "ordinal" they are in the order in which they stand. float64; NaN where a row has one. Raises
    ArgumentError for another method or policy, AxisError.

    >>> import harp.numpy as hnp
    >>> rankdata(hnp.asarray([1, 3, 2, 3]))
    Array([1. , 3.5, 2. , 3.5])
    """
    if method not in _METHODS:
        raise ArgumentError(f"method of rankdata is one of {', '.join(_METHODS)}, not {method!r}{place()}")
    _require_propagate("rankdata", nan_policy)
    rows, along = _rows(a, axis)

    def ranks(row: Array) -> Array:
        order = argsort(row)
        if method == "ordinal":
            return argsort(order) + 1
        inside = take(row, order)
        low = searchsorted(inside, row)
        if method == "dense":
            first = not_equal(searchsorted(inside, inside), arange(row.shape[0])).astype(i64)
            return low + 1 - take(cumsum(first), low)
        high = searchsorted(inside, row, "right")
        found = {"min": lambda: low + 1, "max": lambda: high, "average": lambda: multiply(0.5, add(low + 1, high))}
        return found[method]()

    found = where(any_(isnan(rows), -1, keepdims=True), float("nan"), _of_rows(ranks, rows).astype(f64))
    return moveaxis(found, -1, along) if axis is not None else found


def mode(a: object, axis: int | None = 0, nan_policy: str = "propagate", keepdims: bool = False) -> ModeResult:
    """The most frequent element along an axis, of several the smallest, and how often it is there: SciPy's function.

    The axis None stands for all elements. NaN are equal, and the largest. Raises ArgumentError for another policy,
    AxisError, and ShapeError for no elements.

    >>> import harp.numpy as hnp
    >>> mode(hnp.asarray([2, 4, 1, 1, 4, 4]))
    ModeResult(mode=Array(4), count=Array(3))
    """
    _require_propagate("mode", nan_policy)
    rows, along = _rows(a, axis)

    def most(row: Array) -> tuple[Array, Array]:
        inside = sort(row)
        counts = searchsorted(inside, inside, "right") - searchsorted(inside, inside)
        best = argmax(counts)
        return inside[best], counts[best]

    values, counts = _of_rows(most, rows)
    if keepdims:
        ndim = as_array(a).ndim
        places = range(ndim) if axis is None else [along]
        values, counts = (expand_dims(found, tuple(places)) for found in (values, counts))
    return ModeResult(values, counts)


def sem(
    a: object, axis: int | None = 0, ddof: object = 1, nan_policy: str = "propagate", *, keepdims: bool = False
) -> Array:
    """The standard error of the mean: `std(a, axis, ddof=ddof) / sqrt(n)` of n elements. SciPy's function.

    The axis None stands for all elements. Integers give float64. Raises ArgumentError for another policy, AxisError.

    >>> import harp.numpy as hnp
    >>> sem(hnp.asarray([1.0, 3.0]))
    Array(1.)
    """
    _require_propagate("sem", nan_policy)
    array = as_array(a)
    count = array.size if axis is None else array.shape[normalize_axis(axis, array.ndim)]
    spread = std(array, axis, ddof=ddof, keepdims=keepdims)
    return spread / sqrt(asarray(count)).astype(spread.kind)


def _require_propagate(name: str, policy: str) -> None:
    if policy != "propagate":
        raise ArgumentError(f"nan_policy of {name} is 'propagate', not {policy!r}{place()}")
