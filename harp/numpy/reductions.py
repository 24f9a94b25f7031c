"""Reductions: sums, products, extrema, their positions, moments.

`axis` is an axis, a tuple of axes, or None for all of them; `keepdims` keeps the reduced axes with one element. `where`
is a mask that broadcasts to `x`: only elements where it holds count. `initial` is one more element of each result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from harp.errors import ArgumentError
from harp.numpy import complexes
from harp.numpy.elementwise import astype, clip, logical_and
from harp.numpy.joining import stack
from harp.numpy.manipulation import broadcast_to
from harp.trace.array.arithmetic import equal, subtract
from harp.trace.array.arithmetic import where_ as choose
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.operators import Operand
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_named,
    emit,
    fold,
    map_,
    map_reduce,
    normalize_axes,
    normalize_axis,
    reduce_,
    require_elements,
)
from harp.trace.graph import view
from harp.trace.graph.node import positions
from harp.trace.index.division import relu
from harp.trace.index.polynomial import loop, product
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, DTypeLike, as_dtype, bool_, computing, f64, real_of
from harp.trace.scalar.expr import Expr, Position, apply, cast, select
from harp.trace.scalar.ops import Op, Reduce, result_dtype
from harp.trace.sizes.size import Size, resolve_all, to_index, wrap
from harp.trace.source_locations import where as place

Build = Callable[[Expr], Expr]


def _fold(reduce: Reduce, array: Array, axes: Sequence[int], keepdims: bool, build: Build) -> Array:
    """A map and a reduction at once; over no elements it is the reduction's identity."""
    return fold(build, array, reduce, axes, keepdims)


def _total(reduce: Reduce, x: object, axis: Axis, dtype: DTypeLike | None, keepdims: bool) -> Array:
    array = as_array(x)
    target = dtypes.accumulator(array.kind) if dtype is None else as_dtype(dtype)
    if target is bool_:  # adding is "or", multiplying is "and"
        return _truth(Reduce.MAX if reduce is Reduce.SUM else Reduce.MIN, array, axis, keepdims)
    result = _fold(reduce, array, normalize_axes(axis, array.ndim), keepdims, lambda e: cast(e, target))
    return marked(result, array.weak and dtype is None)


def chosen(x: object, mask: object, otherwise: object) -> Array:
    """The elements where a mask holds, and a number in place of the others. Raises ShapeError if it does not fit."""
    array = as_array(x)
    return array if mask is None else choose(_mask(array, mask), array, otherwise)


def _mask(array: Array, mask: object) -> Array:
    return broadcast_to(map_(lambda e: e, as_named(mask, "the mask where"), to=bool_), array.shape)


def _with_initial(result: Array, initial: object, build: Callable[[Expr, Expr], Expr]) -> Array:
    return result if initial is None else map_(build, result, initial, to=result.kind)


def sum(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Array:
    """The sum over axes; of no elements, 0. Integers and bool are added in 64 bits unless `dtype` says otherwise.

    `initial` is added to it. Elements where the mask `where` does not hold are left out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.sum(hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    Array([3., 7.])
    """
    total = _total(Reduce.SUM, chosen(a, where, 0), axis, dtype, keepdims)
    return _with_initial(total, initial, lambda e, first: e + first)


def prod(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
    *,
    initial: object = None,
    where: object = None,
) -> Array:
    """The product over axes; of no elements, 1. Integers and bool are multiplied in 64 bits unless `dtype` is given.

    It is multiplied by `initial`. Elements where the mask `where` does not hold are left out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.prod(hnp.asarray([2.0, 3.0, 4.0]))
    Array(24.)
    """
    total = _total(Reduce.PROD, chosen(a, where, 1), axis, dtype, keepdims)
    return _with_initial(total, initial, lambda e, first: e * first)


def _extreme(reduce: Reduce, x: object, axis: Axis, keepdims: bool, initial: object, mask: object) -> Array:
    array, name = as_array(x), reduce.name.lower()
    axes = normalize_axes(axis, array.ndim)
    if array.kind.is_complex and (initial is not None or mask is None):
        if initial is None:
            require_elements(name, array, axes)
        result = _complex_extreme(reduce, chosen(array, mask, reduce.identity(array.kind)), axes, keepdims)
        if initial is None:
            return result
        more = broadcast_to(map_(lambda e: e, initial, to=array.kind), result.shape)
        return _complex_extreme(reduce, stack([result, more]), (0,), False)
    if initial is None and mask is None:
        return reduce_(reduce, array, axes, keepdims)
    if initial is None:
        raise ArgumentError(f"{name} with where may have no elements; say what it is then with initial{place()}")
    result_dtype(reduce.value, (array.kind, array.kind))
    folded = fold(lambda e: e, chosen(array, mask, reduce.identity(array.kind)), reduce, axes, keepdims)
    return _with_initial(folded, initial, lambda a, b: apply(reduce.value, a, b))


def _complex_extreme(reduce: Reduce, array: Array, axes: Sequence[int], keepdims: bool) -> Array:
    """The first in the order of real parts, then imaginary ones; NaN if there is one."""
    parts = complexes.real(array), complexes.imag(array)
    none, nan = reduce.identity(parts[0].kind), complex(math.nan, math.nan)
    hit = equal(parts[0], fold(lambda e: e, parts[0], reduce, axes, True))
    hit = logical_and(hit, equal(parts[1], fold(lambda e: e, choose(hit, parts[1], none), reduce, axes, True)))
    found = [fold(lambda e: e, choose(hit, part, none), reduce, axes, keepdims) for part in parts]
    lost = fold(lambda e: ~apply(Op.EQ, e, e), array, Reduce.MAX, axes, keepdims)
    return choose(lost, nan, map_(lambda a, b: apply(Op.COMPLEX, a, b), *found))


def max(
    a: Operand, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
) -> Array:
    """The maximum over axes, and of `initial`; NaN if there is one. Raises ShapeError over no elements without it.

    Elements where the mask `where` does not hold are left out; then there must be an `initial`.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.max(hnp.asarray([[1, 5], [7, 2]]), axis=0)
    Array([7, 5])
    """
    return _extreme(Reduce.MAX, a, axis, keepdims, initial, where)


def min(
    a: Operand, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
) -> Array:
    """The minimum over axes, and of `initial`; NaN if there is one. Raises ShapeError over no elements without it.

    Elements where the mask `where` does not hold are left out; then there must be an `initial`.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.min(hnp.asarray([[1, 5], [7, 2]]), axis=0)
    Array([1, 2])
    """
    return _extreme(Reduce.MIN, a, axis, keepdims, initial, where)


amax, amin = max, min


def _truth(reduce: Reduce, x: object, axis: Axis, keepdims: bool) -> Array:
    array = as_array(x)
    result = _fold(reduce, array, normalize_axes(axis, array.ndim), keepdims, lambda e: cast(e, bool_))
    return marked(result, False)


def any(a: Operand, axis: Axis = None, keepdims: bool = False, *, where: object = None) -> Array:
    """Whether any element is true (not zero), as bool; of no elements, False. A mask `where` leaves elements out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.any(hnp.asarray([[0, 1], [0, 0]]), axis=1)
    Array([ True, False])
    """
    return _truth(Reduce.MAX, chosen(a, where, 0), axis, keepdims)


def all(a: Operand, axis: Axis = None, keepdims: bool = False, *, where: object = None) -> Array:
    """Whether all elements are true (not zero), as bool; of no elements, True. A mask `where` leaves elements out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.all(hnp.asarray([[True, False], [True, True]]), axis=1)
    Array([False,  True])
    """
    return _truth(Reduce.MIN, chosen(a, where, 1), axis, keepdims)


def _first(reduce: Reduce, name: str, x: object, axis: Axis, keepdims: bool) -> Array:
    array = as_array(x)
    require_elements(name, array, range(array.ndim) if axis is None else (normalize_axis(axis, array.ndim),))
    return first(reduce, array, axis, keepdims)


def first(reduce: Reduce, array: Array, axis: Axis = None, keepdims: bool = False) -> Array:
    """The smallest position that holds the extremum, or the first NaN: the minimum of candidate positions. What it is
    of no elements means nothing, but nothing is asked of their number."""
    axes = tuple(range(array.ndim)) if axis is None else (normalize_axis(axis, array.ndim),)
    if array.kind.is_complex:
        best = _complex_extreme(reduce, array, axes, True)
    else:
        best = fold(lambda e: e, array, reduce, axes, keepdims=True)
    node = node_of(array)
    shape = resolve_all(node.shape)
    if axis is None:
        here = view.flatten_index(positions(shape), shape)
        count = product(shape)
    else:
        here, count = loop(axes[0], shape[axes[0]]), shape[axes[0]]

    def build(e: Expr, extremum: Expr) -> Expr:
        nan = ~apply(Op.EQ, e, e)
        found = apply(Op.EQ, e, extremum) | nan if e.dtype.is_inexact else apply(Op.EQ, e, extremum)
        return select(found, Position(here), Position(count))

    expanded = view.expand(node_of(best), shape, [k in axes for k in range(len(shape))])
    result = map_reduce(build, [node, expanded], shape, Reduce.MIN, axes)
    return emit(view.insert_axes(node_of(result), axes)) if keepdims and axes else result


def argmax(a: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """The position (int64) of the first maximum, or of the first NaN; in the flattened array if axis is None.

    Raises ShapeError over no elements.

    `axis` is an integer, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.argmax(hnp.asarray([1.0, 5.0, 5.0]))
    Array(1)
    """
    return _first(Reduce.MAX, "argmax", a, axis, keepdims)


def argmin(a: Operand, axis: Axis = None, keepdims: bool = False) -> Array:
    """The position (int64) of the first minimum, or of the first NaN; in the flattened array if axis is None.

    Raises ShapeError over no elements.

    `axis` is an integer, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.argmin(hnp.asarray([3.0, 1.0, 2.0]))
    Array(1)
    """
    return _first(Reduce.MIN, "argmin", a, axis, keepdims)


def _float_dtype(array: Array, dtype: DTypeLike | None) -> DType:
    """The dtype of a mean: float64 for integers and bool."""
    if dtype is not None:
        return as_dtype(dtype)
    return array.kind if array.kind.is_inexact else f64


def _count(array: Array, axes: Sequence[int], keepdims: bool, mask: object) -> Size | int | Array:
    """How many elements a reduction has: those where the mask holds, if there is one."""
    if mask is not None:
        return _total(Reduce.SUM, _mask(array, mask), axes, None, keepdims)
    shape = node_of(array).shape
    return wrap(product(shape[k] for k in axes))


def mean(
    a: Operand, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *, where: object = None
) -> Array:
    """The mean over axes; of no elements, NaN. Integers and bool give float64. A mask `where` leaves elements out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.mean(hnp.asarray([1, 2, 4]))
    Array(2.33333333)
    """
    array = as_array(a)
    target, axes = _float_dtype(array, dtype), normalize_axes(axis, array.ndim)
    inner = computing(target)  # a sum in float16 would overflow
    total = _total(Reduce.SUM, chosen(array, where, 0), axes, inner, keepdims)
    result = _over(total, _count(array, axes, keepdims, where), inner)
    return marked(in_dtype(result, target), array.weak and dtype is None)


def in_dtype(array: Array, dtype: DType) -> Array:
    """The array in this dtype; itself, with its weak type, where it has the dtype."""
    return array if array.kind is dtype else astype(array, dtype)


def _over(total: Array, count: object, target: DType) -> Array:
    if target.is_complex:
        real = real_of(target)
        return map_(complexes.divided, total, count, to=(target, real))
    return map_(lambda s, n: s / n, total, count, to=target)


def var(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: object = 0,
    keepdims: bool = False,
    *,
    correction: object = None,
    mean: object = None,
    where: object = None,
) -> Array:
    """The variance over axes: the mean of squared distances from the mean, with n - ddof in place of n elements.

    `correction` is another name for `ddof`. Integers and bool give float64; distances of complex numbers are
    magnitudes. Where n <= ddof the result is NaN or inf. A mask `where` leaves elements out. A `mean` that is known is
    one with the axes kept.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.var(hnp.asarray([1.0, 3.0]), ddof=1)
    Array(2.)
    """

    def variance(distances: Array, axes: Sequence[int], count: object) -> Array:
        squares = _fold(Reduce.SUM, distances, axes, keepdims, complexes.square_of_magnitude)
        return _over(squares, count, squares.kind)

    return _spread(variance, a, axis, dtype, freedom(ddof, correction), keepdims, where, mean)


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
    """What `build` makes of the distances from the mean, the axes, and n - ddof."""
    array = as_array(x)
    target, axes = _float_dtype(array, dtype), normalize_axes(axis, array.ndim)
    if known is not None:
        centre = broadcast_to(as_named(known, "mean"), array.shape)
    else:
        centre = mean(array, axes, dtype=computing(target), keepdims=True, where=where)
    distances = chosen(map_(lambda e, m: e - m, array, centre, to=computing(target)), where, 0)
    result = build(distances, axes, _less(_count(array, axes, keepdims, where), ddof))
    return marked(in_dtype(result, real_of(target)), array.weak and dtype is None)


def freedom(ddof: object, correction: object) -> object:
    """What is subtracted from the number of elements, under one of its names. Raises ArgumentError for both."""
    if correction is not None and not (isinstance(ddof, int) and ddof == 0):
        raise ArgumentError(f"ddof and correction are two names of one number: give one{place()}")
    return ddof if correction is None else correction


def _less(count: Size | int | Array, ddof: object) -> object:
    """max(count - ddof, 0), exactly for integers."""
    if not isinstance(ddof, (int, Size, float)):
        raise ArgumentError(f"ddof must be a number, not {type(ddof).__name__}{place()}")
    if isinstance(count, Array):
        return clip(subtract(count, ddof), 0)
    if not isinstance(ddof, float):
        return wrap(relu(to_index(count) - to_index(ddof)))
    if isinstance(count, int):
        return float(count - ddof) if count > ddof else 0.0
    return clip(subtract(count, ddof), 0.0)


def std(
    a: Operand,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    ddof: object = 0,
    keepdims: bool = False,
    *,
    correction: object = None,
    mean: object = None,
    where: object = None,
) -> Array:
    """The standard deviation over axes, the square root of `var`, also where that overflows or underflows. A mask
    `where` leaves elements out.

    `axis` is an integer, a tuple of integers, or None for all axes.

    >>> import harp.numpy as hnp
    >>> hnp.std(hnp.asarray([1.0, 3.0]))
    Array(1.)
    """

    def deviation(distances: Array, axes: Sequence[int], count: object) -> Array:
        return complexes.root_of_squares(distances, axes, keepdims, count)

    return _spread(deviation, a, axis, dtype, freedom(ddof, correction), keepdims, where, mean)
