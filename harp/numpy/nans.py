"""Reductions that leave NaN out: each is the plain one, of what stands for a NaN, and of how many there are.

`initial` and the mask `where` are those of the plain ones.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable

from harp.errors import DTypeError
from harp.numpy.complexes import root_of_squares, square_of_magnitude
from harp.numpy.cumulative import cumprod, cumsum
from harp.numpy.elementwise import isnan, logical_not, logical_or
from harp.numpy.elementwise import where as choose
from harp.numpy.manipulation import broadcast_to
from harp.numpy.reductions import all as all_
from harp.numpy.reductions import argmax, argmin, chosen, freedom, prod, sum
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import min as min_
from harp.trace.array.arithmetic import divide, equal, less, subtract
from harp.trace.array.array import Array
from harp.trace.array.primitives import Axis, as_array, as_named, map_, normalize_axes, require_elements
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, real_of
from harp.trace.source_locations import where as place


def _replaced(x: object, value: float) -> Array:
    array = as_array(x)
    return choose(isnan(array), value, array) if array.kind.is_inexact else array


def _with_elements(name: str, x: object, axis: Axis) -> Array:
    array = as_array(x)
    require_elements(name, array, normalize_axes(axis, array.ndim))
    return array


def nansum(
    a: object,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Array:
    """The sum over axes of what is not NaN; of nothing, 0.

    >>> import harp.numpy as hnp
    >>> nansum(hnp.asarray([1.0, float("nan"), 2.0]))
    Array(3.)
    """
    return sum(_replaced(a, 0), axis, dtype, keepdims, initial=initial, where=where)


def nanprod(
    a: object,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Array:
    """The product over axes of what is not NaN; of nothing, 1.

    >>> import harp.numpy as hnp
    >>> hnp.nanprod(hnp.asarray([2.0, hnp.nan, 3.0]))
    Array(6.)
    """
    return prod(_replaced(a, 1), axis, dtype, keepdims, initial=initial, where=where)


def nancumsum(a: object, axis: Axis = None, dtype: DTypeLike | None = None) -> Array:
    """The sums of the elements up to each one along an axis, where NaN count as 0; see `cumsum`.

    >>> import harp.numpy as hnp
    >>> hnp.nancumsum(hnp.asarray([2.0, hnp.nan, 3.0]))
    Array([2., 2., 5.])
    """
    return cumsum(_replaced(a, 0), axis, dtype)


def nancumprod(a: object, axis: Axis = None, dtype: DTypeLike | None = None) -> Array:
    """The products of the elements up to each one along an axis, where NaN count as 1; see `cumprod`.

    >>> import harp.numpy as hnp
    >>> hnp.nancumprod(hnp.asarray([2.0, hnp.nan, 3.0]))
    Array([2., 2., 6.])
    """
    return cumprod(_replaced(a, 1), axis, dtype)


def nanmax(
    a: object, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
) -> Array:
    """The maximum over axes of what is not NaN; NaN if all are. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> nanmax(hnp.asarray([1.0, float("nan"), 2.0]))
    Array(2.)
    """
    if initial is not None or where is not None:
        return max_(_replaced(a, -math.inf), axis, keepdims, initial=initial, where=where)
    array = _with_elements("nanmax", a, axis)
    if not array.kind.is_float:
        return max_(array, axis, keepdims)
    return choose(all_(isnan(array), axis, keepdims), math.nan, max_(_replaced(array, -math.inf), axis, keepdims))


def nanmin(
    a: object, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
) -> Array:
    """The minimum over axes of what is not NaN; NaN if all are. Raises ShapeError over no elements.

    >>> import harp.numpy as hnp
    >>> hnp.nanmin(hnp.asarray([2.0, hnp.nan, 3.0]))
    Array(2.)
    """
    if initial is not None or where is not None:
        return min_(_replaced(a, math.inf), axis, keepdims, initial=initial, where=where)
    array = _with_elements("nanmin", a, axis)
    if not array.kind.is_float:
        return min_(array, axis, keepdims)
    return choose(all_(isnan(array), axis, keepdims), math.nan, min_(_replaced(array, math.inf), axis, keepdims))


def nanargmax(a: object, axis: Axis = None, keepdims: bool = False) -> Array:
    """The position (int64) of the first maximum of what is not NaN; -1 if all are. Raises ShapeError of nothing.

    >>> import harp.numpy as hnp
    >>> hnp.nanargmax(hnp.asarray([1.0, hnp.nan, 3.0]))
    Array(2)
    """
    return _position(argmax, -math.inf, _with_elements("nanargmax", a, axis), axis, keepdims)


def nanargmin(a: object, axis: Axis = None, keepdims: bool = False) -> Array:
    """The position (int64) of the first minimum of what is not NaN; -1 if all are. Raises ShapeError of nothing.

    >>> import harp.numpy as hnp
    >>> hnp.nanargmin(hnp.asarray([hnp.nan, 4.0, 3.0]))
    Array(2)
    """
    return _position(argmin, math.inf, _with_elements("nanargmin", a, axis), axis, keepdims)


def _position(find: object, worst: float, array: Array, axis: Axis, keepdims: bool) -> Array:
    assert callable(find)
    if not array.kind.is_float:
        return find(array, axis, keepdims)  # type: ignore[no-any-return]
    missing = isnan(array)
    place = find(choose(missing, worst, array), axis, keepdims)
    # Where the best there is stands for NaN, too, it is that of all numbers: the first one.
    numbers = all_(logical_or(missing, equal(array, worst)), axis, keepdims)
    place = choose(numbers, argmin(missing.astype(dtypes.i8), axis, keepdims), place)
    return choose(all_(missing, axis, keepdims), -1, place)


def _count(array: Array, axis: Axis, keepdims: bool, dtype: dtypes.DType) -> Array:
    return sum(logical_not(isnan(array)), axis, keepdims=keepdims).astype(real_of(dtype))


def _target(name: str, array: Array, dtype: DTypeLike | None) -> dtypes.DType:
    """The dtype of a result that has fractions, and may be NaN."""
    if dtype is None:
        return array.kind if array.kind.is_inexact else dtypes.f64
    target = as_dtype(dtype)
    if not target.is_inexact:
        raise DTypeError(f"{name} gives fractions, {target.numpy} has none; convert it with .astype{place()}")
    return target


def nanmean(
    a: object, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *, where: object = None
) -> Array:
    """The mean over axes of what is not NaN; NaN if all are. Integers and bool give float64.

    Raises DTypeError for a dtype of integers.

    >>> import harp.numpy as hnp
    >>> nanmean(hnp.asarray([1.0, float("nan"), 2.0]))
    Array(1.5)
    """
    array = as_array(a)
    target = _target("nanmean", array, dtype)
    inner = dtypes.computing(target)
    wide = chosen(array.astype(inner), where, math.nan)
    return divide(nansum(wide, axis, keepdims=keepdims), _count(wide, axis, keepdims, inner)).astype(target)


def nanvar(
    a: object,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: object = 0,
    keepdims: bool = False,
    *,
    mean: object = None,
    where: object = None,
    correction: object = None,
) -> Array:
    """The variance over axes of what is not NaN, with n - ddof in place of its number n; NaN unless above 0.

    Raises DTypeError for a dtype of integers.

    >>> import harp.numpy as hnp
    >>> hnp.nanvar(hnp.asarray([1.0, hnp.nan, 3.0]), ddof=1)
    Array(2.)
    """
    return _spread(_variance, a, axis, dtype, freedom(ddof, correction), keepdims, where, mean)


def _variance(distance: Array, axis: Axis, keepdims: bool, count: Array) -> Array:
    return divide(sum(map_(square_of_magnitude, distance), axis, keepdims=keepdims), count)


def _deviation(distance: Array, axis: Axis, keepdims: bool, count: Array) -> Array:
    return root_of_squares(distance, normalize_axes(axis, distance.ndim), keepdims, count)


def _spread(
    build: Callable[..., Array],
    x: object,
    axis: Axis,
    dtype: DTypeLike | None,
    ddof: object,
    keepdims: bool,
    where: object,
    known: object,
) -> Array:
    """What `build` makes of the distances from the mean, 0 for NaN, and of n - ddof; NaN unless that is above 0."""
    array = as_array(x)
    target = _target("nanvar or nanstd", array, dtype)
    inner = dtypes.computing(target)
    wide = chosen(array.astype(inner), where, math.nan)
    if known is not None:
        centre = broadcast_to(as_named(known, "mean"), array.shape).astype(inner)
    else:
        centre = nanmean(wide, axis, keepdims=True)
    distance = map_(operator.sub, _replaced(wide, 0), centre)
    left = subtract(_count(wide, axis, keepdims, inner), ddof)
    result = build(choose(isnan(wide), 0, distance), axis, keepdims, choose(less(0, left), left, 1))
    return choose(less(0, left), result, math.nan).astype(real_of(target))


def nanstd(
    a: object,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: object = 0,
    keepdims: bool = False,
    *,
    mean: object = None,
    where: object = None,
    correction: object = None,
) -> Array:
    """The standard deviation over axes of what is not NaN, the square root of `nanvar`.

    >>> import harp.numpy as hnp
    >>> hnp.nanstd(hnp.asarray([1.0, hnp.nan, 3.0]))
    Array(1.)
    """
    return _spread(_deviation, a, axis, dtype, freedom(ddof, correction), keepdims, where, mean)
