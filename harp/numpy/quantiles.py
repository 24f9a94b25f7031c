"""Quantiles and medians: sorted along an axis, and between neighbours by one of NumPy's methods, of which nine are by
Hyndman and Fan (Sample Quantiles in Statistical Packages, The American Statistician 50, 1996)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import attrs

from harp.errors import ArgumentError
from harp.numpy.creation import asarray
from harp.numpy.elementwise import clip, floor, isnan, logical_and, logical_not
from harp.numpy.elementwise import where as choose
from harp.numpy.indexing import take, take_along_axis
from harp.numpy.manipulation import moveaxis, reshape
from harp.numpy.reductions import sum as total
from harp.numpy.sorting import row_wise
from harp.trace.array.arithmetic import (
    add,
    divide,
    equal,
    greater_equal,
    less_equal_,
    maximum,
    minimum,
    multiply,
    subtract,
)
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import Axis, as_array, emit, known_numbers, map_, normalize_axes
from harp.trace.graph import view
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, bool_, f64, i64, promote
from harp.trace.scalar.expr import Expr, Position, apply, const, select
from harp.trace.scalar.ops import Op
from harp.trace.sizes.size import describe, require_at_least_one, resolve, wrap
from harp.trace.source_locations import where


def _no_value(name: str, axis: int, size: Index) -> str:
    return f"{name} over axis {axis} of size {describe(size)} has no value"


def _ordered(name: str, array: Array, axes: tuple[int, ...]) -> Array:
    """What is reduced, in order along the last axis, as floats."""
    for axis in axes:
        size = node_of(array).shape[axis]
        require_at_least_one(size, partial(_no_value, name, axis, size))
    kept = [k for k in range(array.ndim) if k not in axes]
    rows = moveaxis(array, kept, list(range(len(kept))))
    if len(axes) != 1:
        rows = reshape(rows, (*rows.shape[: len(kept)], -1))
    return row_wise(RowOp.SORT, rows if rows.kind.is_float else rows.astype(f64))


def _length(ordered: Array) -> Index:
    return resolve(node_of(ordered).shape[-1])


def _element(ordered: Array, place: Index) -> Array:
    """The element at one place of each row."""
    node = node_of(ordered)
    return emit(view.drop_axes(node, {len(node.shape) - 1: place}))


def _elements(ordered: Array, places: Array) -> Array:
    """The elements at several places of each row: over the axes of the places, then over the rows."""
    found, rows = take(ordered, places, -1), ordered.ndim - 1
    return moveaxis(found, list(range(rows, found.ndim)), list(range(places.ndim)))


def _between(a: Expr, b: Expr, t: Expr) -> Expr:
    """a + t*(b - a), from the nearer one; beside an infinity (1-t)*a + t*b, without a factor of 0.

    The derivatives are 1-t and t in both cases: what is not chosen is computed from zeros.
    """
    one, zero = const(1, t.dtype), const(0, t.dtype)
    left = one - t
    finite = apply(Op.AND, *(apply(Op.ABS, e) < math.inf for e in (a, b)))
    low, high = (select(finite, e, zero) for e in (a, b))
    apart = high - low
    up = low + apart * t
    down = high - apart * left
    near = select(t < 0.5, up, down)
    first = select(apply(Op.EQ, t, one), zero, a)
    share = select(apply(Op.EQ, t, zero), zero, b)
    far = first * left + share * t
    return select(finite, near, far)


def _kept(result: Array, axes: tuple[int, ...], first: int, keepdims: bool) -> Array:
    if not keepdims or not axes:
        return result
    return emit(view.insert_axes(node_of(result), [first + axis for axis in axes]))


def _or_nan(ordered: Array, result: Array) -> Array:
    """NaN where there is one: it is the last element."""
    last = _element(ordered, _length(ordered) - 1)
    return choose(isnan(last), last, result)


def _parts(q: object) -> Array:
    """A list of numbers, or what is an array or a number already."""
    return asarray(q) if isinstance(q, (list, tuple)) else as_array(q)


@attrs.frozen
class _Method:
    """Where a quantile lies among n elements in order: n*q + (a + q*(1 - a - b)) - 1, and what is done in between.

    `share` is how much of the next element counts, from the fraction of that place and the whole number before it.
    """

    a: float
    b: float
    share: Callable[[Expr, Expr], Expr] = lambda t, low: t


def _number(value: float) -> Expr:
    return const(value, f64)


def _if_any(t: Expr, low: Expr) -> Expr:
    return select(_number(0) < t, _number(1), _number(0))


def _none(t: Expr, low: Expr) -> Expr:
    return _number(0)


def _half_if_any(t: Expr, low: Expr) -> Expr:
    return select(_number(0) < t, _number(0.5), _number(0))


def _half_or_all(t: Expr, low: Expr) -> Expr:
    return select(_number(0) < t, _number(1), _number(0.5))


def _nearest(t: Expr, low: Expr) -> Expr:
    """The nearer one, of two equally near ones the one with an even number."""
    return _nearer(t, ~_is_even(low))


def _nearest_from_one(t: Expr, low: Expr) -> Expr:
    """The nearer one, of two equally near ones the one with an even number, counted from 1."""
    return _nearer(t, _is_even(low))


def _nearer(t: Expr, tie_up: Expr) -> Expr:
    up = (_number(0.5) < t) | apply(Op.EQ, t, _number(0.5)) & tie_up
    return select(up, _number(1), _number(0))


def _is_even(whole: Expr) -> Expr:
    halved = whole * _number(0.5)
    return apply(Op.EQ, apply(Op.FLOOR, halved), halved)


_METHODS = {
    "linear": _Method(1, 1),
    "lower": _Method(1, 1, _none),
    "higher": _Method(1, 1, _if_any),
    "midpoint": _Method(1, 1, _half_if_any),
    "nearest": _Method(1, 1, _nearest),
    "inverted_cdf": _Method(0, 1, _if_any),
    "averaged_inverted_cdf": _Method(0, 1, _half_or_all),
    "closest_observation": _Method(0, 1, _nearest_from_one),
    "interpolated_inverted_cdf": _Method(0, 1),
    "hazen": _Method(0.5, 0.5),
    "weibull": _Method(0, 0),
    "median_unbiased": _Method(1 / 3, 1 / 3),
    "normal_unbiased": _Method(3 / 8, 3 / 8),
}


def quantile(a: object, q: object, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Array:
    """The numbers below which a part `q` of the elements lies, over axes: between the two nearest elements.

    The methods are NumPy's: "linear" between both, "lower", "higher", "midpoint", "nearest", "inverted_cdf",
    "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased". The shape is that of `q`, then that of `a` without the axes. Integers give float64; NaN if there
    is one. A `q` that is not in [0, 1] gives NaN inside a traced function, else it raises ArgumentError, and so does
    another method. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> hnp.quantile(hnp.asarray([1.0, 2.0, 4.0]), 0.75)
    Array(3.)
    """
    return _quantile("quantile", a, _checked_parts(q), axis, method, keepdims)


def _quantile(name: str, x: object, parts: Array, axis: Axis, method: str, keepdims: bool) -> Array:
    array, how = as_array(x), _method(name, method)
    axes = normalize_axes(axis, array.ndim)
    ordered = _ordered(name, array, axes)
    valid = logical_and(greater_equal(parts.astype(f64), 0.0), less_equal_(parts.astype(f64), 1.0))
    low, share = _place(how, choose(valid, parts.astype(f64), 0.0), wrap(_length(ordered)))
    ends = [_elements(ordered, p) for p in (low, minimum(add(low, 1), wrap(_length(ordered) - 1)))]
    spread = (*parts.shape, *(1,) * (ordered.ndim - 1))
    share = reshape(choose(valid, share, math.nan), spread)
    result = _or_nan(ordered, map_(_between, *ends, share, to=_dtype(ordered, parts)))
    return _kept(result, axes, parts.ndim, keepdims)


def _checked_parts(q: object, whole: int = 1) -> Array:
    """Parts of 1 from those of a whole."""
    parts = _parts(q)
    numbers = known_numbers(parts)
    if numbers is not None and not ((numbers >= 0) & (numbers <= whole)).all():  # type: ignore[operator]
        name = "quantiles" if whole == 1 else "percentiles"
        raise ArgumentError(f"{name} are asked for parts between 0 and {whole}, not {numbers}{where()}")
    return parts if whole == 1 else divide(parts, whole)


def _method(name: str, method: object) -> _Method:
    if not isinstance(method, str) or method not in _METHODS:
        raise ArgumentError(f"{name} has the methods {', '.join(map(repr, _METHODS))}, not {method!r}{where()}")
    return _METHODS[method]


def _dtype(ordered: Array, parts: Array) -> DType:
    return ordered.kind if parts.weak or not parts.kind.is_float else promote([ordered.kind, parts.kind])


def _place(how: _Method, parts: Array, count: object) -> tuple[Array, Array]:
    """The number of the element before the quantile among so many, and the share of the next one."""
    if how.a == how.b == 1:
        exact = multiply(parts, subtract(count, 1))
    else:
        exact = subtract(add(multiply(parts, count), add(multiply(parts, 1 - how.a - how.b), how.a)), 1)
    below = floor(exact)
    share = map_(lambda p, low: how.share(p - low, low), exact, below, to=f64)
    last = subtract(count, 1)
    inside = logical_and(greater_equal(exact, 0.0), less_equal_(exact, last))
    return clip(clip(below, None, last), 0).astype(i64), choose(inside, share, 0.0)


def percentile(a: object, q: object, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Array:
    """`quantile` with parts of 100. Raises what that raises.

    >>> import harp.numpy as hnp
    >>> hnp.percentile(hnp.asarray([1.0, 2.0, 4.0]), 50)
    Array(2.)
    """
    return _quantile("percentile", a, _checked_parts(q, 100), axis, method, keepdims)


def median(a: object, axis: Axis = None, keepdims: bool = False) -> Array:
    """The middle element over axes, or the mean of both where their number is even; NaN if there is one.

    Integers and bool give float64. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> hnp.median(hnp.asarray([5.0, 1.0, 2.0]))
    Array(2.)
    """
    array = as_array(a)
    axes = normalize_axes(axis, array.ndim)
    ordered = _ordered("median", array, axes)
    low, high = floordiv(_length(ordered) - 1, 2), floordiv(_length(ordered), 2)

    def middle(lower: Expr, upper: Expr) -> Expr:
        mean = (lower + upper) / 2
        even = apply(Op.EQ, Position(high - low), const(0, i64)) if high is not low else const(True, bool_)
        return select(even, lower, mean)

    result = map_(middle, _element(ordered, low), _element(ordered, high))
    return _kept(_or_nan(ordered, result), axes, 0, keepdims)


def nanquantile(a: object, q: object, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Array:
    """`quantile` of what is not NaN; NaN if all are. Raises what that raises.

    >>> import harp.numpy as hnp
    >>> hnp.nanquantile(hnp.asarray([1.0, float("nan"), 2.0, 4.0]), 0.75)
    Array(3.)
    """
    return _nanquantile("nanquantile", a, _checked_parts(q), axis, method, keepdims)


def _nanquantile(name: str, x: object, parts: Array, axis: Axis, method: str, keepdims: bool) -> Array:
    array, how = as_array(x), _method(name, method)
    axes = normalize_axes(axis, array.ndim)
    ordered = _ordered(name, array, axes)  # NaN come last
    counts = total(logical_not(isnan(ordered)), -1)
    rank = ordered.ndim - 1
    wanted = reshape(parts.astype(f64), (*parts.shape, *(1,) * rank))
    valid = logical_and(greater_equal(wanted, 0.0), less_equal_(wanted, 1.0))
    low, share = _place(how, choose(valid, wanted, 0.0), maximum(counts, 1))
    flat = reshape(low, (parts.size, *low.shape[parts.ndim :]))
    rows = ordered[None]
    following = minimum(add(flat, 1), subtract(maximum(counts, 1), 1))
    shape = low.shape
    ends = [reshape(take_along_axis(rows, p[..., None], -1, mode="clip"), shape) for p in (flat, following)]
    result = map_(_between, *ends, choose(valid, share, math.nan), to=_dtype(ordered, parts))
    return _kept(choose(equal(counts, 0), math.nan, result), axes, parts.ndim, keepdims)


def nanpercentile(a: object, q: object, axis: Axis = None, *, method: str = "linear", keepdims: bool = False) -> Array:
    """`nanquantile` with parts of 100. Raises what that raises.

    >>> import harp.numpy as hnp
    >>> hnp.nanpercentile(hnp.asarray([1.0, hnp.nan, 3.0]), 25)
    Array(1.5)
    """
    return _nanquantile("nanpercentile", a, _checked_parts(q, 100), axis, method, keepdims)


def nanmedian(a: object, axis: Axis = None, keepdims: bool = False) -> Array:
    """The median of what is not NaN; NaN if all are. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> hnp.nanmedian(hnp.asarray([1.0, hnp.nan, 3.0]))
    Array(2.)
    """
    return _nanquantile("nanmedian", a, as_array(0.5), axis, "linear", keepdims)
