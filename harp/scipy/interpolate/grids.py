"""Values on a grid, read between its points."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import asarray
from harp.numpy.elementwise import clip, isnan, minimum, where
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import broadcast_arrays, moveaxis
from harp.numpy.numerical import as_inexact, as_row
from harp.numpy.sorting import searchsorted
from harp.scipy.interpolate.piecewise import increasing
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, known_numbers
from harp.trace.sizes.size import require_at_least_one, unify
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.tree import register

_METHODS = ("linear", "nearest")


class RegularGridInterpolator:
    """The function with these `values` on a grid, linear between its points, or the value at the "nearest" one.

    `points` has a vector for each of the first axes of `values`, which increases or decreases. It is called with
    places, an array whose last axis has a coordinate for each of these vectors, or a tuple of arrays that broadcast;
    the result has the other axes of the places, and then those of `values`. Outside of the grid is `fill_value`, NaN by
    default, or with None what the nearest cell says. Derivatives flow to all arrays. It is a tree.

    Raises ArgumentError for other methods, vectors that do not increase, and `bounds_error=True`: programs raise
    nothing about numbers. Raises ShapeError for sizes that do not fit.

    >>> import numpy as np
    >>> at = RegularGridInterpolator(
    ...     (np.arange(3.0), np.array([0.0, 10.0])), np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    ... )
    >>> at(np.array([[0.5, 5.0], [2.0, 0.0], [3.0, 0.0]]))
    Array([1.5, 4. , nan])
    """

    def __init__(
        self,
        points: Sequence[object],
        values: object,
        method: str = "linear",
        bounds_error: bool = False,
        fill_value: object = math.nan,
    ) -> None:
        if bounds_error:
            raise ArgumentError(
                f"RegularGridInterpolator raises no errors about places: leave bounds_error, and look for the NaN of "
                f"fill_value{place()}"
            )
        _register()
        name = "RegularGridInterpolator"
        self.method = _checked(method)
        self.values = as_inexact(values)
        if not 0 < len(points) <= self.values.ndim:
            raise ShapeError(
                f"{name} is given {plural(len(points), 'vectors')} of points for {plural(self.values.ndim, 'axes')} of "
                f"values{place()}"
            )
        self.points = tuple(as_inexact(as_row(name, f"points[{k}]", p)) for k, p in enumerate(points))
        for k, nodes in enumerate(self.points):
            size = unify(
                node_of(nodes).shape[0],
                node_of(self.values).shape[k],
                lambda k=k: f"{name}: the sizes of points[{k}] and of axis {k} of values",  # type: ignore[misc]
            )
            require_at_least_one(size, lambda k=k: f"{name} needs at least one point in points[{k}]")  # type: ignore[misc]
            if known_numbers(nodes) is not None:
                _upwards(k, nodes)
        fill = as_array(0.0 if fill_value is None else fill_value)
        if fill.kind.is_complex and not self.values.kind.is_complex:
            raise ArgumentError(f"fill_value of {name} is complex, but values are not{place()}")
        self.fill_value = None if fill_value is None else fill.astype(self.values.dtype)

    def __call__(self, xi: object, method: str | None = None) -> Array:
        """The values at some places."""
        linear = (self.method if method is None else _checked(method)) == "linear"
        coordinates = self._coordinates(xi)
        rest = (..., *(None,) * (self.values.ndim - len(self.points)))
        corners, lost, outside = [], asarray(False), asarray(False)
        for k, (nodes, at) in enumerate(zip(self.points, coordinates, strict=True)):
            upwards, at = promoted((nodes, as_inexact(at)))
            upwards, turn = _upwards(k, upwards)
            corners.append(_neighbours(upwards, at * turn, linear))
            lost = lost | isnan(at) | isnan(upwards[0])
            outside = outside | (at * turn < upwards[0]) | (at * turn > upwards[-1])
        terms = []
        for corner in itertools.product(*corners):
            indices, weights = zip(*corner, strict=True)
            terms.append(reduce(operator.mul, (w[rest] for w in weights if w is not None), self.values[indices]))
        result = reduce(operator.add, terms)
        if self.fill_value is not None:
            result = where(outside[rest], self.fill_value, result)
        return where(lost[rest], math.nan, result)

    def _coordinates(self, xi: Any) -> list[Array]:
        many = len(self.points)
        if isinstance(xi, tuple):
            given = [*broadcast_arrays(*xi)]
        else:
            whole = as_array(xi)
            if whole.ndim == 0 or (whole.ndim == 1 and many == 1):
                whole = whole[..., None]
            last = moveaxis(whole, -1, 0)
            given = [last[k] for k in range(int(last.shape[0]))]
        if len(given) != many:
            raise ShapeError(f"a place on this grid has {many} coordinates, not {len(given)}{place()}")
        return given


def _checked(method: str) -> str:
    if method not in _METHODS:
        raise ArgumentError(f"method of RegularGridInterpolator is 'linear' or 'nearest', not {method!r}{place()}")
    return method


def _upwards(k: int, nodes: Array) -> tuple[Array, Array]:
    """The points in an order that increases, as they are or negative, and the factor, 1 or -1."""
    turn = where(nodes[-1] < nodes[0], -1, 1).astype(nodes.dtype)
    return increasing(f"points[{k}] of RegularGridInterpolator", nodes * turn), turn


def _neighbours(nodes: Array, at: Array, linear: bool) -> list[tuple[Array, Array | None]]:
    """The points that count along an axis, with their weights; one alone is as good as two."""
    last = nodes.shape[0] - 1
    below = clip(searchsorted(nodes, at, side="right") - 1, 0, None)
    below = minimum(below, clip(asarray(last) - 1, 0, None))
    above = minimum(below + 1, last)
    low, high = nodes[below], nodes[above]
    wide = high - low
    share = where(wide > 0, (at - low) / where(wide > 0, wide, 1), 0 * wide)
    return [(below, 1 - share), (above, share)] if linear else [(where(share <= 0.5, below, above), None)]


def _made(method: str, parts: Iterable[Any]) -> RegularGridInterpolator:
    made = object.__new__(RegularGridInterpolator)
    made.method = method
    made.points, made.values, made.fill_value = parts
    return made


@cache
def _register() -> None:
    """Make grids trees, from the first one on: no import needs optree."""
    register(RegularGridInterpolator, flatten=lambda g: ((g.points, g.values, g.fill_value), g.method), unflatten=_made)
