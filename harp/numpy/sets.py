"""Positions of elements that are not zero, distinct elements, and membership.

How many results there are depends on the numbers. Where these are known, NumPy counts them; inside a traced function,
where shapes come before numbers, `size=` says how many are wanted. Those are found by sorting: what is wanted comes to
the front by a stable sort on whether it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import attrs
import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import arange, ones
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import (
    equal,
    floor_divide,
    greater_equal,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
)
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import concatenate, stack
from harp.numpy.manipulation import expand_dims, ravel, reshape
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import sum as total
from harp.numpy.sorting import of_one_shape, row_wise, search
from harp.trace.array.arithmetic import subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import (
    Axis,
    as_array,
    common_dtype,
    emit,
    map_,
    normalize_axis,
    require_known,
    to_shape,
)
from harp.trace.graph import view
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ONE, Index, loop, product
from harp.trace.scalar.dtypes import NDArray, i64, u64
from harp.trace.scalar.expr import const
from harp.trace.sizes.size import resolve, resolve_all, wrap
from harp.trace.source_locations import plural, where


class UniqueAll(NamedTuple):
    """Distinct elements, where each comes first, which of them each element is, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct elements, and which of them each element is."""

    values: Array
    inverse_indices: Array


def _known(name: str, array: Array) -> NDArray:
    """The numbers on which the number of results depends. Raises ConcretizationError."""
    return require_known(
        array,
        f"how many results {name} has depends on numbers that are not known while a function is traced; say how many "
        f"are wanted, {name}(..., size=n), keep all elements and mask them with harp.numpy.where(mask, x, other), or "
        f"call {name} outside the function",
    )


def _numbers(name: str, array: Array) -> NDArray:
    """The numbers as NumPy can sort them: those of ml_dtypes as float32."""
    numbers = _known(name, array)
    return numbers if numbers.dtype.isbuiltin == 1 else numbers.astype(np.float32)


def _values(result: NDArray, *given: Array) -> Array:
    """NumPy's result in the dtype of what was given."""
    return as_array(result).astype(common_dtype(given)[0])


def _size(size: object) -> Index:
    shape = to_shape(size)
    if len(shape) != 1:
        raise ShapeError(f"size= is one number, not {size!r}{where()}")
    return shape[0]


# --- what is wanted comes to the front


def _head(row: Array, size: Index) -> Array:
    """The first elements of a row, with zeros where it is shorter."""
    node, here = node_of(row), loop(0, size)
    inside = resolve(node.shape[0]) - 1 - here
    return emit(view.view(node, (size,), (here,), (inside,), const(0, node.dtype)), row.weak)


def _front(row: Array, wanted: Array, size: Index, fill: object) -> Array:
    """The wanted elements of a row, in order, as many as `size`: the rest is left out, or is `fill`."""
    moved = row_wise(RowOp.SORT_BY, logical_not(wanted), row)
    there = less(arange(wrap(size)), total(wanted))
    return choose(there, _head(moved, size), map_(lambda e: e, fill, to=row.kind))


def _places(mask: Array) -> Array:
    return arange(wrap(node_of(mask).shape[0]))


def nonzero(a: object, *, size: object = None, fill_value: object = None) -> tuple[Array, ...]:
    """The positions (int64) of the elements that are not zero, one array for each axis, in row-major order.

    With `size` each has that many elements: positions beyond are left out, missing ones are `fill_value` (0, or a tuple
    with one for each axis). Inside a traced function it must be given. Raises ShapeError for an array without axes,
    ConcretizationError where the number of results is not known.

    >>> import harp.numpy as hnp
    >>> hnp.nonzero(hnp.asarray([0, 7, 0, 8]))
    (Array([1, 3]),)
    >>> hnp.nonzero(hnp.asarray([0, 7, 0, 8]), size=3, fill_value=-1)
    (Array([ 1,  3, -1]),)
    """
    array = as_array(a)
    if array.ndim == 0:
        raise ShapeError(f"nonzero needs an array with axes; reshape it to (1,) first{where()}")
    if size is None:
        return tuple(map(as_array, np.nonzero(_known("nonzero", array))))
    shape = resolve_all(node_of(array).shape)
    fills = fill_value if isinstance(fill_value, tuple) else (0 if fill_value is None else fill_value,) * len(shape)
    if len(fills) != len(shape):
        raise ArgumentError(f"fill_value has {plural(len(fills), 'entries')} for {plural(len(shape), 'axes')}{where()}")
    mask, count = ravel(not_equal(array, 0)), _size(size)
    flat = _front(_places(mask), mask, count, 0)
    there = less(arange(wrap(count)), total(mask))
    found = []
    for axis, fill in enumerate(fills):
        rest, here = product(shape[axis + 1 :]), flat
        if rest is not ONE:
            here = floor_divide(here, wrap(rest))
        if axis:
            here = subtract(here, floor_divide(here, wrap(shape[axis])) * wrap(shape[axis]))
        found.append(choose(there, here, map_(lambda e: e, fill, to=here.kind)))
    return tuple(found)


def mask_indices(
    n: object, mask_func: Callable[..., object], k: object = 0, *, size: object = None
) -> tuple[Array, ...]:
    """The positions in an n by n matrix where `mask_func`, such as `triu`, of ones and `k` is not 0; see `nonzero`.

    >>> mask_indices(2, np.triu)
    (Array([0, 0, 1]), Array([0, 1, 1]))
    """
    return nonzero(mask_func(ones((n, n)), k), size=size)


def flatnonzero(a: object, *, size: object = None, fill_value: object = None) -> Array:
    """The positions (int64) in the flattened array of the elements that are not zero; see `nonzero`.

    >>> import harp.numpy as hnp
    >>> hnp.flatnonzero(hnp.asarray([[0, 1], [1, 0]]))
    Array([1, 2])
    """
    return nonzero(ravel(as_array(a)), size=size, fill_value=fill_value)[0]


def argwhere(a: object, *, size: object = None, fill_value: object = None) -> Array:
    """The positions of the elements that are not zero, one row for each; see `nonzero`.

    >>> import harp.numpy as hnp
    >>> hnp.argwhere(hnp.asarray([[0, 1], [1, 0]]))
    Array([[0, 1],
           [1, 0]])
    """
    return stack(list(nonzero(a, size=size, fill_value=fill_value)), axis=-1)


def count_nonzero(a: object, axis: Axis = None, keepdims: bool = False) -> Array:
    """How many elements (int64) over axes are not zero. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.count_nonzero(hnp.asarray([[0, 7], [8, 9]]), axis=1)
    Array([1, 2])
    """
    return total(not_equal(a, 0), axis, keepdims=keepdims)


def extract(condition: object, arr: object, *, size: object = None, fill_value: object = 0) -> Array:
    """The elements for which the condition, of the same shape, is not zero, as one row; with `size` see `nonzero`.

    Raises ShapeError for another shape, ConcretizationError where the number of results is not known.

    >>> import harp.numpy as hnp
    >>> hnp.extract(hnp.asarray([True, False, True]), hnp.asarray([1.0, 2.0, 3.0]))
    Array([1., 3.])
    """
    mask, array = map(ravel, of_one_shape("extract", as_array(condition), as_array(arr)))
    if size is None:
        return as_array(np.extract(_known("extract", mask), _known("extract", array)))
    return _front(array, not_equal(mask, 0), _size(size), fill_value)


# --- distinct elements


@attrs.frozen
class _Runs:
    """The elements in order, their places, and whether each is the first of equal ones."""

    order: Array
    ordered: Array
    first: Array

    def front(self, row: Array, size: Index, fill: object) -> Array:
        """The values at the places of the first occurrences, padded with that of the smallest element."""
        return _front(row, self.first, size, reshape(_head(row, ONE), ()) if fill is None else fill)


def _runs(array: Array, equal_nan: bool) -> _Runs:
    flat = ravel(array)
    order, ordered = row_wise(RowOp.ORDER, flat), row_wise(RowOp.SORT, flat)
    node = node_of(ordered)
    before = loop(0, resolve(node.shape[0])) - 1
    previous = emit(view.view(node, node.shape, (before,), (before,), const(0, node.dtype)), ordered.weak)
    differ = not_equal(ordered, previous)
    if equal_nan and node.dtype.is_float:
        differ = logical_and(differ, logical_not(logical_and(isnan(ordered), isnan(previous))))
    return _Runs(order, ordered, logical_or(equal(arange(wrap(node.shape[0])), 0), differ))


def _unique(array: Array, size: Index, fill: object, equal_nan: bool) -> UniqueAll:
    runs = _runs(array, equal_nan)
    length = wrap(node_of(runs.order).shape[0])
    starts = _front(arange(length), runs.first, size, length)
    following = _head(_front(arange(length), runs.first, resolve(size + 1), length)[1:], size)
    inverse = row_wise(RowOp.SORT_BY, runs.order, subtract(cumsum(runs.first), 1))
    return UniqueAll(
        runs.front(runs.ordered, size, fill),
        runs.front(runs.order, size, None),
        reshape(inverse, array.shape),
        subtract(following, starts),
    )


def unique_all(x: object, *, size: object = None, fill_value: object = None) -> UniqueAll:
    """Distinct elements in order, where each comes first, which of them each element is, and how often each occurs.

    Each NaN is distinct. With `size`, which must be given inside a traced function, as many are returned: elements
    beyond are left out; where there are fewer, `fill_value`, by default the smallest element, with count 0, stands for
    them. Raises ConcretizationError where the number of results is not known.

    >>> import harp.numpy as hnp
    >>> hnp.unique_all(hnp.asarray([3, 1, 3])).values
    Array([1, 3])
    """
    array = as_array(x)
    if size is None:
        values, *rest = np.unique_all(_numbers("unique_all", array))
        return UniqueAll(_values(values, array), *map(as_array, rest))
    return _unique(array, _size(size), fill_value, equal_nan=False)


def unique_counts(x: object, *, size: object = None, fill_value: object = None) -> UniqueCounts:
    """Distinct elements in order, and how often (int64) each occurs; see `unique_all`.

    >>> import harp.numpy as hnp
    >>> hnp.unique_counts(hnp.asarray([3, 1, 3])).counts
    Array([1, 2])
    """
    array = as_array(x)
    if size is None:
        values, *rest = np.unique_counts(_numbers("unique_counts", array))
        return UniqueCounts(_values(values, array), *map(as_array, rest))
    found = _unique(array, _size(size), fill_value, equal_nan=False)
    return UniqueCounts(found.values, found.counts)


def unique_inverse(x: object, *, size: object = None, fill_value: object = None) -> UniqueInverse:
    """Distinct elements in order, and which of them (int64) each element is; see `unique_all`.

    >>> import harp.numpy as hnp
    >>> hnp.unique_inverse(hnp.asarray([3, 1, 3])).inverse_indices
    Array([1, 0, 1])
    """
    array = as_array(x)
    if size is None:
        values, *rest = np.unique_inverse(_numbers("unique_inverse", array))
        return UniqueInverse(_values(values, array), *map(as_array, rest))
    found = _unique(array, _size(size), fill_value, equal_nan=False)
    return UniqueInverse(found.values, found.inverse_indices)


def unique_values(x: object, *, size: object = None, fill_value: object = None) -> Array:
    """Distinct elements in order; see `unique_all`.

    >>> import harp.numpy as hnp
    >>> hnp.unique_values(hnp.asarray([3, 1, 3]), size=4, fill_value=0)
    Array([1, 3, 0, 0])
    """
    array = as_array(x)
    if size is None:
        return _values(np.unique(_numbers("unique_values", array), equal_nan=False), array)
    runs = _runs(array, equal_nan=False)
    return runs.front(runs.ordered, _size(size), fill_value)


def unique(
    ar: object,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: object = None,
    fill_value: object = None,
) -> Array | tuple[Array, ...]:
    """Distinct elements in order, whatever `sorted` says; NaN is one. If asked for, what else `unique_all` returns.

    With an axis distinct slices along it, outside of traced functions: raises ArgumentError for it with `size`.

    >>> import harp.numpy as hnp
    >>> hnp.unique(hnp.asarray([3, 1, 3]), return_counts=True)
    (Array([1, 3]), Array([1, 2]))
    """
    array = as_array(ar)
    if axis is not None and size is not None:
        raise ArgumentError(f"unique along an axis has no size=; call it outside of traced functions{where()}")
    if size is None:
        k = None if axis is None else normalize_axis(axis, array.ndim)
        values, *rest = np.unique(_numbers("unique", array), True, True, True, k, equal_nan=equal_nan)
        every = UniqueAll(_values(values, array), *map(as_array, rest))
        every = every._replace(inverse_indices=reshape(every.inverse_indices, array.shape if k is None else -1))
    else:
        every = _unique(array, _size(size), fill_value, equal_nan)
    asked = (True, return_index, return_inverse, return_counts)
    chosen = tuple(part for part, wanted in zip(every, asked, strict=True) if wanted)
    return chosen if len(chosen) > 1 else chosen[0]


# --- membership


def isin(
    element: object,
    test_elements: object,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Array:
    """Whether each element is among the test element, as bool; NaN is among none. With `invert`, whether it is not.

    `assume_unique` and `kind` change nothing.

    >>> import harp.numpy as hnp
    >>> hnp.isin(hnp.asarray([1, 2, 3]), hnp.asarray([3, 1]))
    Array([ True, False,  True])
    """
    dtype, _ = common_dtype((element, test_elements))
    if dtype.is_complex:  # there is no order to search in
        found = any_(equal(expand_dims(as_array(element), -1), ravel(test_elements)), -1)
        return logical_not(found) if invert else found
    values, tests = as_array(element), as_array(test_elements)
    if dtype.is_float and values.kind.is_integer and tests.kind.is_integer:
        # int64 and uint64 meet in float64, where neighbours are equal. The same 64 bits are the same number, unless
        # one of the two is negative, and then the other is not.
        values, tests = values.astype(u64), tests.astype(u64)
        valid = greater_equal(values.astype(i64), 0)
    else:
        values, tests = (map_(lambda e: e, given, to=dtype) for given in (values, tests))
        valid = equal(values, values)
    table = row_wise(RowOp.SORT, ravel(tests))
    found = less(search(table, values, right=False), search(table, values, right=True))
    found = logical_and(found, valid)
    return logical_not(found) if invert else found


def union1d(ar1: object, ar2: object, *, size: object = None, fill_value: object = None) -> Array:
    """The distinct elements of both arrays, in order; see `unique_all`.

    >>> import harp.numpy as hnp
    >>> hnp.union1d(hnp.asarray([3, 1]), hnp.asarray([2, 3]))
    Array([1, 2, 3])
    """
    ar1, ar2 = as_array(ar1), as_array(ar2)
    if size is None:
        return _values(np.union1d(_numbers("union1d", ar1), _numbers("union1d", ar2)), ar1, ar2)
    both = concatenate([ravel(ar1), ravel(ar2)])
    runs = _runs(both, equal_nan=True)
    return runs.front(runs.ordered, _size(size), fill_value)


def intersect1d(ar1: object, ar2: object, *, size: object = None, fill_value: object = 0) -> Array:
    """The distinct elements that are in both arrays, in order; where there are fewer than `size`, `fill_value`.

    >>> import harp.numpy as hnp
    >>> hnp.intersect1d(hnp.asarray([3, 1, 2]), hnp.asarray([2, 3, 5]))
    Array([2, 3])
    """
    ar1, ar2 = as_array(ar1), as_array(ar2)
    if size is None:
        return _values(np.intersect1d(_numbers("intersect1d", ar1), _numbers("intersect1d", ar2)), ar1, ar2)
    dtype, _ = common_dtype((ar1, ar2))
    runs = _runs(map_(lambda e: e, ar1, to=dtype), equal_nan=True)
    return _front(runs.ordered, logical_and(runs.first, isin(runs.ordered, ar2)), _size(size), fill_value)


def setdiff1d(ar1: object, ar2: object, *, size: object = None, fill_value: object = 0) -> Array:
    """The distinct elements of `ar1` that are not in `ar2`, in order; `fill_value` where they are fewer than `size`.

    >>> import harp.numpy as hnp
    >>> hnp.setdiff1d(hnp.asarray([3, 1, 2]), hnp.asarray([2, 5]))
    Array([1, 3])
    """
    ar1, ar2 = as_array(ar1), as_array(ar2)
    if size is None:
        return _values(np.setdiff1d(_numbers("setdiff1d", ar1), _numbers("setdiff1d", ar2)), ar1)
    runs = _runs(ar1, equal_nan=True)
    return _front(runs.ordered, logical_and(runs.first, isin(runs.ordered, ar2, invert=True)), _size(size), fill_value)


def setxor1d(ar1: object, ar2: object, *, size: object = None, fill_value: object = 0) -> Array:
    """The distinct elements that only one of two arrays has, in order; where there are fewer than `size`, `fill_value`.

    >>> setxor1d(arange(3), 1 + arange(4))
    Array([0, 3, 4])
    """
    ar1, ar2 = as_array(ar1), as_array(ar2)
    if size is None:
        return _values(np.setxor1d(_numbers("setxor1d", ar1), _numbers("setxor1d", ar2)), ar1, ar2)
    runs = _runs(concatenate([ravel(ar1), ravel(ar2)]), equal_nan=False)
    alone = not_equal(isin(runs.ordered, ar1), isin(runs.ordered, ar2))
    alone = logical_or(alone, not_equal(runs.ordered, runs.ordered))
    return _front(runs.ordered, logical_and(runs.first, alone), _size(size), fill_value)
