"""Smooth functions through given points, of cubic polynomials: by their slopes at these points.

Fritsch, Butland, A method for constructing local monotone piecewise cubic interpolants (1984); H. Akima, A new method
of interpolation (1970).
"""

from __future__ import annotations

import math
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import asarray, zeros
from harp.numpy.cumulative import diff
from harp.numpy.elementwise import abs, sign, where
from harp.numpy.joining import concatenate, stack
from harp.numpy.manipulation import broadcast_to, moveaxis, reshape
from harp.numpy.reductions import all as all_
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import sum as sum_
from harp.numpy.types import finfo
from harp.scipy.banded import solve_banded
from harp.scipy.interpolate.piecewise import PPoly, checked, common
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import known_numbers, normalize_axis
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where as place

_NAK, _PERIODIC = "not-a-knot", "periodic"
_Condition = str | tuple[int, Array]


class CubicHermiteSpline(PPoly):
    """The cubic polynomials with given values `y` and slopes `dydx` at `x`, which increases: see `PPoly`.

    `y` and `dydx` have the points along `axis`. Raises ShapeError for sizes that do not fit, ArgumentError for an `x`
    that does not increase.

    >>> import numpy as np
    >>> CubicHermiteSpline(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.array([0.0, 0.0]))(0.5)
    Array(0.5)
    """

    def __init__(
        self, x: object, y: object, dydx: object, axis: int = 0, extrapolate: bool | str | None = None
    ) -> None:
        nodes, values, slopes = self._given(x, axis, y=y, dydx=dydx)
        self._set(nodes, values, slopes, extrapolate)

    def _given(self, x: object, axis: int, **arrays: object) -> list[Array]:
        """`x`, and the arrays with the points along their first axis."""
        name = type(self).__name__
        *found, nodes = common(name, x, **arrays)
        if not found[0].ndim:
            raise ShapeError(f"y of {name} has the points along an axis, and is a number{place()}")
        self.axis = normalize_axis(axis, found[0].ndim)
        for k, (label, array) in enumerate(zip(arrays, found, strict=True)):
            if array.ndim != found[0].ndim:
                raise ShapeError(f"y and {label} of {name} have the same axes{place()}")
            found[k] = moveaxis(array, self.axis, 0)
            sizes = node_of(nodes).shape[0], node_of(found[k]).shape[0]
            unify(*sizes, lambda label=label: f"{name}: the sizes of x and of axis {self.axis} of {label}")  # type: ignore[misc]
        return [nodes, *found]

    def _set(self, nodes: Array, values: Array, slopes: Array, extrapolate: bool | str | None) -> None:
        wide, rise = _steps(nodes, values)
        bend = (slopes[:-1] + slopes[1:] - 2 * rise) / wide
        self.c = stack((bend / wide, (rise - slopes[:-1]) / wide - bend, slopes[:-1], values[:-1]))
        self.x, self.extrapolate = nodes, checked(extrapolate)


def _steps(nodes: Array, values: Array) -> tuple[Array, Array]:
    """The widths between points, with axes like the values, and the slopes of the lines between them."""
    wide = diff(nodes)[(..., *(None,) * (values.ndim - 1))]
    return wide, diff(values, axis=0) / wide


class CubicSpline(CubicHermiteSpline):
    """The function through points `y` at `x`, which increases, of cubic polynomials with two continuous derivatives.

    `y` has the points along `axis`. `bc_type` is "not-a-knot" (the two outer polynomials at each end are one),
    "clamped" (the slopes at the ends are 0), "natural" (the second derivatives are), "periodic" (the last point is the
    first one again), or a pair, for both ends, of the first three or of `(order, derivative)`. It is a `PPoly`; a
    periodic one begins anew beyond the points. Two and three points have programs of their own where an end is
    "not-a-knot" or "periodic".

    Raises ShapeError for sizes that do not fit, ArgumentError for an `x` that does not increase, other conditions, and
    ends of a periodic function that differ; where numbers are not known yet, all values are NaN then.

    >>> import numpy as np
    >>> spline = CubicSpline(np.arange(4.0), np.arange(4.0) ** 2)
    >>> spline(2.5), spline(2.5, 1)
    (Array(6.25), Array(5.))
    """

    def __init__(
        self, x: object, y: object, axis: int = 0, bc_type: object = _NAK, extrapolate: bool | str | None = None
    ) -> None:
        nodes, values = self._given(x, axis, y=y)
        first, last = _conditions(bc_type, values)
        if first == _PERIODIC:
            values = _closed(values)
            extrapolate = _PERIODIC if extrapolate is None else extrapolate
        self._set(nodes, values, _smooth(nodes, values, first, last), extrapolate)


def _conditions(given: Any, values: Array) -> tuple[_Condition, _Condition]:
    """Those at both ends: a name, or the order of a derivative and its value."""
    pair = (given, given) if isinstance(given, str) else given
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or (pair is given and _PERIODIC in pair[:1] + pair[1:]):
        raise ArgumentError(f"bc_type of CubicSpline is a name, or a pair for both ends, not {given!r}{place()}")
    return _condition(pair[0], values), _condition(pair[1], values)


def _condition(given: Any, values: Array) -> _Condition:
    if isinstance(given, str) and given in (_NAK, _PERIODIC):
        return given
    known = {"clamped": (1, 0.0), "natural": (2, 0.0)}
    order, value = pair = known.get(given, ("", "")) if isinstance(given, str) else given
    if order not in (1, 2):
        raise ArgumentError(
            f"bc_type of CubicSpline is 'not-a-knot', 'clamped', 'natural', 'periodic' or an order, 1 or 2, and a "
            f"derivative, not {given if isinstance(given, str) else pair!r}{place()}"
        )
    return order, broadcast_to(asarray(value).astype(values.dtype), values.shape[1:])


def _closed(values: Array) -> Array:
    """Values of which the first is the last one again, but for rounding; NaN where it is not."""
    rounding = 4 * finfo(values.dtype).eps
    same = all_(abs(values[0] - values[-1]) <= rounding * (1 + abs(values[-1])))
    known = known_numbers(same)
    if known is not None and not known:
        raise ArgumentError(f"y of a periodic CubicSpline ends with the point that it begins with{place()}")
    return values if known is not None else where(same, values, math.nan)


def _smooth(nodes: Array, values: Array, first: _Condition, last: _Condition) -> Array:
    """The slopes at the points for which second derivatives are continuous: of three neighbours each, and the ends."""
    wide, rise = _steps(nodes, values)
    named = isinstance(first, str) or isinstance(last, str)
    if named and nodes.shape[0] == 2:
        first, last = ((1, rise[0]) if isinstance(end, str) else end for end in (first, last))
    alone = isinstance(first, str) and isinstance(last, str)
    few = alone and nodes.shape[0] == 3
    if first == _PERIODIC:
        if few:
            return broadcast_to(sum_(rise / wide, 0) / sum_(1 / wide, 0), values.shape)
        return _around(diff(nodes), wide, rise)
    h = diff(nodes)
    left = _end(first, h[:2], rise[:2], -1, few)
    right = _end(last, h[:-3:-1], rise[:-3:-1], 1, few)
    inner = 3 * (wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    zero = zeros(1, h.dtype)
    upper = concatenate((zero, left[1][None], h[:-1]))
    main = concatenate((left[0][None], 2 * (h[:-1] + h[1:]), right[0][None]))
    lower = concatenate((h[1:], right[1][None], zero))
    return _solved((upper, main, lower), concatenate((left[2][None], inner, right[2][None])))


def _end(end: Any, h: Array, rise: Array, side: int, few: bool) -> tuple[Array, Array, Array]:
    """The equation at an end: factors of the slope there and of the next one, and the right side. `h` and `rise` are of
    the nearest two pieces, if there are two."""
    one = 0 * h[0] + 1
    if few:
        return one, one, 2 * rise[0]
    if end == _NAK:
        both = h[0] + h[1]
        return h[1], both, ((h[0] + 2 * both) * h[1] * rise[0] + h[0] ** 2 * rise[1]) / both
    order, value = end
    if order == 1:
        return one, 0 * one, value + 0 * rise[0]
    return 2 * h[0], h[0], 3 * h[0] * rise[0] + side * value * h[0] ** 2 / 2


def _around(h: Array, wide: Array, rise: Array) -> Array:
    """The same slopes where the last point is the first one: by the solutions without the last equation, for the right
    side and for the column of the last slope."""
    right = 3 * concatenate(
        ((wide[0] * rise[-1] + wide[-1] * rise[0])[None], wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    )
    upper = concatenate((0 * h[:1], h[-1:], h[:-3]))
    main = 2 * concatenate((h[-1:] + h[:1], h[:-2] + h[1:-1]))
    column = concatenate((-h[:1], 0 * h[1:-2], -h[-3:-2]))
    diagonals = (upper, main, h[1:])
    one = _solved(diagonals, right[:-1])
    other = _solved(diagonals, column)
    rest = 2 * (h[-1] + h[-2]) + h[-2] * other[0] + h[-1] * other[-1]
    last = ((right[-1] - h[-2] * one[0] - h[-1] * one[-1]) / rest)[None]
    slopes = one + last * other[(..., *(None,) * (one.ndim - 1))]
    return concatenate((slopes, last, slopes[:1]))


def _solved(diagonals: tuple[Array, ...], right: Array) -> Array:
    columns = reshape(right, (right.shape[0], math.prod(right.shape[1:])))
    return reshape(solve_banded((1, 1), stack(diagonals), columns), right.shape)


# -- slopes by neighbours ------------------------------------------------------------------------------------------


def _require_real(name: str, values: Array) -> None:
    if values.kind.is_complex:
        raise ArgumentError(f"y of {name} has real numbers: interpolate real and imaginary parts{place()}")


class PchipInterpolator(CubicHermiteSpline):
    """The function through points `y` at `x`, which increases, of cubic polynomials that rise and fall as these do.

    `y` has the points along `axis`, and is real. It is a `PPoly`. Raises ShapeError for sizes that do not fit,
    ArgumentError for an `x` that does not increase and for complex numbers.

    >>> import numpy as np
    >>> PchipInterpolator(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))(np.array([0.5, 1.5]))
    Array([0. , 0.5])
    """

    def __init__(self, x: object, y: object, axis: int = 0, extrapolate: bool | str | None = None) -> None:
        nodes, values = self._given(x, axis, y=y)
        _require_real("PchipInterpolator", values)
        self._set(nodes, values, _monotone(nodes, values), extrapolate)


def _monotone(nodes: Array, values: Array) -> Array:
    """Harmonic means of the slopes on both sides, and 0 where these have different signs."""
    wide, rise = _steps(nodes, values)
    if nodes.shape[0] == 2:
        return concatenate((rise, rise))
    turns = sign(rise[:-1]) * sign(rise[1:]) <= 0
    before, behind = (where(turns, 1, part) for part in (rise[:-1], rise[1:]))
    of_before, of_behind = 2 * wide[1:] + wide[:-1], wide[1:] + 2 * wide[:-1]
    mean = (of_before + of_behind) / (of_before / before + of_behind / behind)
    ends = (_one_sided(wide[a], wide[b], rise[a], rise[b])[None] for a, b in ((0, 1), (-1, -2)))
    return concatenate((next(ends), where(turns, 0, mean), next(ends)))


def _one_sided(near: Array, far: Array, rise: Array, next_rise: Array) -> Array:
    """The slope at an end by three points, as far as it keeps the shape."""
    slope = ((2 * near + far) * rise - near * next_rise) / (near + far)
    steep = (sign(rise) != sign(next_rise)) & (abs(slope) > 3 * abs(rise))
    return where(sign(slope) != sign(rise), 0, where(steep, 3 * rise, slope))


class Akima1DInterpolator(CubicHermiteSpline):
    """The function through points `y` at `x`, which increases, of cubic polynomials that each depend on six points.

    `y` has the points along `axis`, and is real; `method` is "akima" or "makima". It is a `PPoly`, by default with NaN
    beyond the points. Raises ShapeError for sizes that do not fit, ArgumentError for an `x` that does not
    increase, complex numbers and other methods.

    >>> import numpy as np
    >>> Akima1DInterpolator(np.arange(4.0), np.array([0.0, 0.0, 1.0, 1.0]))(np.array([0.5, 1.5, 4.0]))
    Array([-0.125,  0.5  ,    nan])
    """

    def __init__(
        self, x: object, y: object, axis: int = 0, *, method: str = "akima", extrapolate: bool | str | None = None
    ) -> None:
        if method not in ("akima", "makima"):
            raise ArgumentError(f"method of Akima1DInterpolator is 'akima' or 'makima', not {method!r}{place()}")
        nodes, values = self._given(x, axis, y=y)
        _require_real("Akima1DInterpolator", values)
        slopes = _local(nodes, values, method == "makima")
        self._set(nodes, values, slopes, False if extrapolate is None else extrapolate)


def _local(nodes: Array, values: Array, modified: bool) -> Array:
    """Means of the slopes on both sides, with the changes of slope on the other one as weights."""
    rise = _steps(nodes, values)[1]
    if nodes.shape[0] == 2:
        return concatenate((rise, rise))
    before, behind = 2 * rise[:1] - rise[1:2], 2 * rise[-1:] - rise[-2:-1]
    m = concatenate((2 * before - rise[:1], before, rise, behind, 2 * behind - rise[-1:]))
    change = abs(diff(m, axis=0)) + (abs(m[1:] + m[:-1]) / 2 if modified else 0)
    of_behind, of_before = change[:-2], change[2:]
    total = of_behind + of_before
    clear = total > 1e-9 * max_(total, initial=0)
    weighted = m[1:-2] + of_behind / where(clear, total, 1) * (m[2:-1] - m[1:-2])
    return where(clear, weighted, (m[3:] + m[:-3]) / 2)
