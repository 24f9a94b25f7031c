"""Sampled functions and signals: interpolation, differences, integrals, convolution, polynomials, unwrapped angles."""

from __future__ import annotations

import math

from harp.errors import ArgumentError, ShapeError
from harp.numpy.checks import require_kind
from harp.numpy.complexes import conj, imag, real
from harp.numpy.creation import arange, linspace
from harp.numpy.cumulative import cumsum, diff
from harp.numpy.elementwise import abs as magnitude
from harp.numpy.elementwise import clip, isfinite, isnan, log10, logical_and, logical_not, logical_or
from harp.numpy.elementwise import where as choose
from harp.numpy.indexing import take
from harp.numpy.joining import concatenate
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import broadcast_to, flip, moveaxis, ravel
from harp.numpy.reductions import sum as sum_
from harp.numpy.sorting import argsort, searchsorted
from harp.trace.array.arithmetic import add, divide, equal, in_common, less, multiply, power, remainder, subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_named,
    as_tuple,
    common_dtype,
    known_numbers,
    map_,
    map_reduce,
    normalize_axes,
    normalize_axis,
)
from harp.trace.graph import view
from harp.trace.graph.node import Node
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ZERO, Index, loop
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DTypeLike, Kind, bool_, default_of
from harp.trace.scalar.expr import apply, const
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, describe, require_at_least_one, resolve, to_index, unify
from harp.trace.source_locations import plural, where


def as_row(name: str, what: str, value: object) -> Array:
    """An argument that has one axis. Raises ShapeError, which names the function."""
    array = as_array(value)
    if array.ndim != 1:
        raise ShapeError(f"{name} needs {what} of one axis, not {array.ndim}{where()}")
    return array


def as_inexact(value: object) -> Array:
    """The array itself, or in float64 if it has integers or bool."""
    array = as_array(value)
    return array if array.kind.is_inexact else array.astype(dtypes.f64)


def interp(
    x: object, xp: object, fp: object, left: object = None, right: object = None, period: object = None
) -> Array:
    """The piecewise linear function through the points (xp, fp), at x; beyond them `left`, `right`, or the end values.

    `xp` increases; of equal ones the last counts. NaN gives NaN. The derivative at a point is that to its right, at the
    last one that to its left. Of a function with a `period` the points may stand in any order, and nothing is beyond
    them. Raises ShapeError unless `xp` and `fp` have one axis, of the same size, at least one, ArgumentError for a
    period of 0.

    >>> import harp.numpy as hnp
    >>> interp(hnp.asarray([0.5, 9.0]), hnp.asarray([0.0, 1.0, 2.0]), hnp.asarray([5.0, 7.0, 8.0]))
    Array([6., 8.])
    """
    nodes, values, at = as_row("interp", "xp", xp), as_row("interp", "fp", fp), as_array(x)
    size = unify(node_of(nodes).shape[0], node_of(values).shape[0], lambda: "interp needs as many fp as xp")
    require_at_least_one(size, lambda: "interp needs at least one point")
    at, nodes = promoted((as_inexact(at), as_inexact(nodes)))
    values = as_inexact(values)
    if period is not None:
        at, nodes, values = _of_one_period(at, nodes, values, period)
        left = right = None
    above = clip(clip(searchsorted(nodes, at, side="right"), 1), None, nodes.shape[0] - 1)
    below = clip(subtract(above, 1), 0)
    x0, x1, f0, f1 = (take(row, place, mode="clip") for row in (nodes, values) for place in (below, above))
    result = choose(less(at, nodes[0]), values[0] if left is None else left, _on_segment(at, x0, x1, f0, f1))
    outside = choose(less(nodes[-1], at), values[-1] if right is None else right, result)
    return choose(equal(at, at), outside, at)


def _of_one_period(at: Array, nodes: Array, values: Array, period: object) -> tuple[Array, Array, Array]:
    """Places and points within one period, in order, with the last point before it and the first one behind it."""
    width = magnitude(as_inexact(as_named(period, "the period of interp")))
    known = known_numbers(width)
    if width.ndim or (known is not None and not known):
        raise ArgumentError(f"the period of interp is one number, which is not 0{where()}")
    inside = remainder(nodes, width)
    order = argsort(inside)
    nodes, values = take(inside, order), take(values, order)
    before, behind = subtract(nodes[-1:], width), add(nodes[:1], width)
    around = concatenate([before, nodes, behind]), concatenate([values[-1:], values, values[:1]])
    return remainder(at, width), *around


def _on_segment(at: Array, x0: Array, x1: Array, f0: Array, f1: Array) -> Array:
    """The line through two points, at their places exactly, whose ends may be infinite.

    It starts from the left end, or from the right one where that gives no number or is the place; of complex ends each
    part for itself.
    """
    if f0.kind.is_complex:
        parts = (_on_segment(at, x0, x1, part(f0), part(f1)) for part in (real, imag))
        return map_(lambda a, b: apply(Op.COMPLEX, a, b), *parts)
    wide = subtract(x1, x0)
    flat = equal(wide, 0)
    slope = choose(flat, 0, divide(subtract(f1, f0), choose(flat, 1, wide)))
    lost = logical_and(isnan(add(f0, multiply(slope, subtract(at, x0)))), logical_not(equal(at, x0)))
    from_right = logical_or(equal(at, x1), lost)
    place, value = choose(from_right, x1, x0), choose(from_right, f1, f0)
    here = equal(at, place)
    vague = logical_and(here, logical_not(logical_and(isfinite(slope), isfinite(at))))
    result = add(value, multiply(choose(vague, 0, slope), choose(vague, 0, subtract(at, place))))
    return choose(logical_and(isnan(result), equal(f0, f1)), f0, result)


def gradient(f: object, *spacing: object, axis: Axis = None, edge_order: int = 1) -> Array | list[Array]:
    """The slopes of samples along axes: central differences inside, one-sided ones at both ends.

    Without an axis along all of them, as a list if there are several. The spacing is 1, a number for all axes, or one
    for each: a number, or a vector of coordinates, between which the slope is that of a parabola. Raises ArgumentError
    for another number of spacings or `edge_order`, AxisError for an axis that is named twice, ShapeError for one with
    fewer than two elements.

    >>> import harp.numpy as hnp
    >>> gradient(hnp.asarray([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ])
    """
    array = as_inexact(f)
    if axis is not None:
        normalize_axes(axis, array.ndim)
    if edge_order != 1:
        raise ArgumentError(f"gradient has edge_order=1 only, not {edge_order!r}{where()}")
    axes = range(array.ndim) if axis is None else [normalize_axis(a, array.ndim) for a in as_tuple(axis)]
    steps = spacing * len(axes) if len(spacing) == 1 else spacing or (1.0,) * len(axes)
    if len(steps) != len(axes):
        raise ArgumentError(f"gradient has {plural(len(steps), 'spacings')} for {plural(len(axes), 'axes')}{where()}")
    found = [_slopes(array, k, step) for k, step in zip(axes, steps, strict=True)]
    return found[0] if len(found) == 1 else found


def _slopes(array: Array, axis: int, step: object) -> Array:
    size = resolve(node_of(array).shape[axis])
    if not ask(Relation.NONNEGATIVE, size - 2, "an axis has two samples"):
        raise ShapeError(f"gradient along axis {axis} of size {describe(size)} needs at least two samples{where()}")
    rows = moveaxis(array, axis, -1)
    given = as_array(step)
    if given.ndim > 1:
        raise ArgumentError(f"a spacing of gradient is a number or a vector of coordinates{where()}")
    rises = subtract(rows[..., 1:], rows[..., :-1])
    if given.ndim:
        unify(node_of(given).shape[0], size, lambda: f"gradient needs a coordinate for each sample of axis {axis}")
        slopes = divide(rises, diff(as_inexact(given)))
        left, right = diff(given)[:-1], diff(given)[1:]
        inner = divide(add(multiply(slopes[..., :-1], right), multiply(slopes[..., 1:], left)), add(left, right))
    else:
        slopes = divide(rises, given)
        inner = divide(subtract(rows[..., 2:], rows[..., :-2]), multiply(2.0, given))
    return moveaxis(concatenate([slopes[..., :1], inner, slopes[..., -1:]], -1), -1, axis)


def trapezoid(y: object, x: object = None, dx: object = 1.0, axis: Axis = -1) -> Array:
    """The integral of samples along an axis by the trapezoidal rule; `x` are their places, or `dx` their distance.

    `x` has one axis, or broadcasts to `y`. Raises AxisError, ShapeError.

    >>> import harp.numpy as hnp
    >>> trapezoid(hnp.asarray([1.0, 2.0, 4.0]), dx=2.0)
    Array(9.)
    """
    array = as_inexact(y)
    k = normalize_axis(axis, array.ndim)
    rows = moveaxis(array, k, -1)
    if x is None:
        widths: object = dx
    else:
        given = as_array(x)
        widths = diff(given) if given.ndim == 1 else diff(moveaxis(broadcast_to(given, array.shape), k, -1))
    return sum_(multiply(widths, multiply(0.5, add(rows[..., 1:], rows[..., :-1]))), -1)


def unwrap(p: object, discont: object = None, axis: Axis = -1, *, period: object = 2 * math.pi) -> Array:
    """Angles with jumps of more than half a period taken out, by whole periods, along an axis.

    `discont` is a larger jump from which on this is done. Integers give float64.

    >>> import harp.numpy as hnp
    >>> unwrap(hnp.asarray([0.0, 2.0, 4.0, 0.0]), period=6.0)
    Array([0., 2., 4., 6.])
    """
    array = as_inexact(p)
    k = normalize_axis(axis, array.ndim)
    rows = moveaxis(array, k, -1)
    steps, half = diff(rows), divide(period, 2)
    wrapped = subtract(remainder(add(steps, half), period), half)
    up = logical_and(equal(wrapped, multiply(-1, half)), less(0, steps))
    moved = subtract(choose(up, half, wrapped), steps)
    moved = choose(less(magnitude(steps), half if discont is None else discont), 0, moved)
    return moveaxis(concatenate([rows[..., :1], add(rows[..., 1:], cumsum(moved, -1))], -1), -1, k)


def ediff1d(ary: object, to_end: object = None, to_begin: object = None) -> Array:
    """The differences of neighbours in the flattened array, between other elements if they are given.

    Raises DTypeError for elements that are floats between integers, or complex between real numbers.

    >>> import harp.numpy as hnp
    >>> ediff1d(hnp.asarray([1, 2, 4]), to_end=9)
    Array([1, 2, 9])
    """
    array = ravel(ary)
    first, last = (_end(*given, array.kind) for given in (("to_begin", to_begin), ("to_end", to_end)))
    return concatenate([*first, diff(array), *last])


def _end(name: str, end: object, dtype: dtypes.DType) -> list[Array]:
    if end is None:
        return []
    row = ravel(end)
    require_kind(f"{name} of ediff1d", row, dtype)
    return [in_common(row, dtype) if row.weak else row.astype(dtype)]


# --- convolution


def _longer_first(name: str, a: object, v: object) -> tuple[Array, Array, bool]:
    """Two vectors in their common dtype, and whether they were turned. Raises ShapeError for no elements."""
    x, y = promoted((as_row(name, "vectors", a), as_row(name, "vectors", v)))
    n, m = (resolve(node_of(row).shape[0]) for row in (x, y))
    for size in (n, m):
        require_at_least_one(size, lambda: f"{name} needs vectors with at least one element")
    if ask(Relation.NONNEGATIVE, resolve(n) - resolve(m), "which vector is longer"):
        return x, y, False
    return y, x, True


def convolve(a: object, v: object, mode: str = "full") -> Array:
    """The convolution of two vectors: sums of a[j] * v[i - j], where both are. A number is a vector of one element.

    "full" has n + m - 1 elements, "same" those of the longer vector in the middle, "valid" those where the vectors
    overlap entirely. Raises ShapeError for other ranks and no elements, ArgumentError for other modes.

    >>> import harp.numpy as hnp
    >>> convolve(hnp.asarray([1.0, 2.0, 3.0]), hnp.asarray([0.0, 1.0, 0.5]))
    Array([0. , 1. , 2.5, 4. , 1.5])
    """
    rows = [ravel(given) if given.ndim == 0 else given for given in map(as_array, (a, v))]
    x, y, _ = _longer_first("convolve", *rows)
    return _overlaps(x, y, mode, 1)


def _overlaps(x: Array, y: Array, mode: str, less: int) -> Array:
    """The convolution with the shorter y, of which "same" leaves out (m - less)//2 elements at the front."""
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"the mode is 'full', 'same' or 'valid', not {mode!r}{where()}")
    n, m = (resolve(node_of(row).shape[0]) for row in (x, y))
    start, length = {
        "full": (ZERO, n + m - 1),
        "same": (floordiv(m - less, to_index(2)), n),
        "valid": (m - 1, n - m + 1),
    }[mode]
    length = resolve(length)
    i, j = loop(0, length) + start, loop(1, m)
    inside = (i - j, n - 1 - i + j)
    domain = (length, m)

    def placed(node: Node, at: Index) -> Node:
        return view.view(node, domain, (at,), inside, const(0, node.dtype))

    is_bool = x.kind is bool_
    nodes = [placed(node_of(x), i - j), placed(node_of(y), j)]
    reduce = Reduce.MAX if is_bool else Reduce.SUM
    return map_reduce(lambda p, q: apply(Op.AND if is_bool else Op.MUL, p, q), nodes, domain, reduce, (1,))


def correlate(a: object, v: object, mode: str = "valid") -> Array:
    """The cross-correlation of two vectors: sums of a[i + j] * conj(v[j]); modes as in `convolve`.

    >>> import harp.numpy as hnp
    >>> correlate(hnp.asarray([1.0, 2.0, 3.0]), hnp.asarray([0.0, 1.0, 0.5]))
    Array([3.5])
    """
    x, y, turned = _longer_first("correlate", a, flip(conj(as_row("correlate", "vectors", v))))
    return _overlaps(x, y, mode, 0 if turned else 1)  # NumPy correlates a longer v with a, and turns the result


# --- polynomials and scales


def polyval(p: object, x: object) -> Array:
    """The polynomial with these coefficients, the highest power first, at x; in a traced function their number is
    fixed, by a guard.

    >>> import harp.numpy as hnp
    >>> polyval(hnp.asarray([3.0, 0.0, 1.0]), 2.0)
    Array(13.)
    """
    coefficients, at = as_row("polyval", "coefficients", p), as_array(x)
    result: Array = multiply(at, 0)
    for k in range(int(coefficients.shape[0])):
        result = add(multiply(result, at), coefficients[k])
    return result


def vander(x: object, N: object = None, increasing: bool = False) -> Array:
    """The powers of a vector's elements as columns, the highest first, or the other way if `increasing`.

    Integers and bool give int64, uint64 gives float64, as in NumPy.

    >>> import harp.numpy as hnp
    >>> vander(hnp.asarray([2, 3]), 3)
    Array([[4, 2, 1],
           [9, 3, 1]])
    """
    row = as_row("vander", "a vector", x)
    exponents = arange(row.shape[0] if N is None else N)
    exact = row if row.kind.is_inexact else row.astype(dtypes.promote([row.kind, dtypes.i64]))
    if exact.kind.is_inexact:
        exponents = exponents.astype(dtypes.real_of(exact.kind))
    powers = power(exact[:, None], exponents[None])
    return powers if increasing else flip(powers, 1)


def logspace(
    start: object,
    stop: object,
    num: object = 50,
    endpoint: bool = True,
    base: object = 10.0,
    dtype: DTypeLike | None = None,
) -> Array:
    """`num` numbers from base**start to base**stop, whose logarithms are evenly spaced.

    >>> logspace(0, 2, 3)
    Array([  1.,  10., 100.])
    """
    result = power(base, linspace(start, stop, num, endpoint))
    return result if dtype is None else result.astype(dtype)


def geomspace(
    start: object, stop: object, num: object = 50, endpoint: bool = True, dtype: DTypeLike | None = None
) -> Array:
    """`num` numbers from start to stop, each the one before times the same factor; both ends have the same sign.

    Real numbers only: complex ones raise DTypeError. Ends of different signs, or 0, raise ArgumentError, and give NaN
    inside a traced function.

    >>> geomspace(1.0, 8.0, 4)
    Array([1., 2., 4., 8.])
    """
    first, last = (as_inexact(v) for v in (start, stop))
    sign = choose(less(first, 0), -1, 1)
    a, b = known_numbers(first), known_numbers(last)
    if a is not None and b is not None and (((a <= 0) & (b >= 0)) | ((a >= 0) & (b <= 0))).any():  # type: ignore[operator]
        raise ArgumentError(f"geomspace needs two ends above 0 or two below, not {start!r} and {stop!r}{where()}")
    low, high = log10(multiply(first, sign)), log10(multiply(last, sign))
    result = multiply(sign, power(10.0, linspace(low, high, num, endpoint)))
    (count,) = result.shape
    place = arange(count)
    result = choose(equal(place, 0), first, result)
    if endpoint:
        result = choose(logical_and(equal(place, count - 1), less(0, place)), last, result)
    common, _ = common_dtype((start, stop))
    made = common if common.is_inexact else default_of(Kind.FLOAT)
    return result.astype(made if dtype is None else dtype)
