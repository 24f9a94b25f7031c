"""Running sums, products and extrema along an axis, in the order of its elements; and differences of neighbours."""

from __future__ import annotations

from harp.errors import ArgumentError, ShapeError
from harp.lazy import FUNCTIONS
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import broadcast_to, ravel
from harp.trace.array.arithmetic import not_equal, subtract
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.indexing import getitem
from harp.trace.array.primitives import Axis, as_array, as_integer, emit, normalize_axis
from harp.trace.graph import view
from harp.trace.graph.node import Cumulative
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DTypeLike, as_dtype
from harp.trace.scalar.expr import const
from harp.trace.scalar.ops import Reduce
from harp.trace.source_locations import plural, where


def _along(reduce: Reduce, array: Array, axis: Axis, dtype: DTypeLike | None) -> Array:
    target = dtypes.accumulator(array.kind) if dtype is None else as_dtype(dtype)
    along = normalize_axis(axis, array.ndim)
    values = node_of(array if array.kind is target else array.astype(target))
    return marked(emit(Cumulative((values,), reduce, along)), array.weak and dtype is None)


def _cumulate(reduce: Reduce, x: object, axis: Axis, dtype: DTypeLike | None) -> Array:
    array = as_array(x)
    if dtype is not None and as_dtype(dtype) is dtypes.bool_:  # as counts, and as products of 0 and 1
        return _cumulate(reduce, array.astype(bool), axis, None).astype(bool)
    if axis is None:
        array, axis = ravel(array), 0
    if array.kind.is_complex and array._value is None and reduce in (Reduce.MAX, Reduce.MIN):
        extremum = "maximum" if reduce is Reduce.MAX else "minimum"
        return getattr(FUNCTIONS["numpy"], extremum).accumulate(array, axis)  # type: ignore[no-any-return]
    return _along(reduce, array, axis, dtype)


def cumsum(a: object, axis: Axis = None, dtype: DTypeLike | None = None) -> Array:
    """The sums of the elements up to each one along an axis, or of the flattened array if `axis` is None.

    The shape is that of `a`, or one axis of all its elements. Integers and bool are added in 64 bits unless `dtype`
    says otherwise. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cumsum(hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    Array([[1., 3.],
           [3., 7.]])
    """
    return _cumulate(Reduce.SUM, a, axis, dtype)


def cumprod(a: object, axis: Axis = None, dtype: DTypeLike | None = None) -> Array:
    """The products of the elements up to each one along an axis, or of the flattened array if `axis` is None.

    The shape is that of `a`, or one axis of all its elements. Integers and bool are multiplied in 64 bits unless
    `dtype` says otherwise. Raises AxisError for an axis out of range. The gradient divides by nothing, so it is right
    beside zeros.

    >>> import harp.numpy as hnp
    >>> hnp.cumprod(hnp.asarray([2.0, 3.0, 4.0]))
    Array([ 2.,  6., 24.])
    """
    return _cumulate(Reduce.PROD, a, axis, dtype)


def cummax(x: object, axis: Axis = None) -> Array:
    """The largest of the elements up to each one along an axis, or of the flattened array if `axis` is None.

    NaN from the first one on; the dtype stays. The gradient goes to the first of equal elements, or to the first NaN.
    Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cummax(hnp.asarray([1, 3, 2, 4]))
    Array([1, 3, 3, 4])
    """
    return _cumulate(Reduce.MAX, x, axis, as_array(x).kind)


def cummin(x: object, axis: Axis = None) -> Array:
    """The smallest of the elements up to each one along an axis, or of the flattened array; see `cummax`.

    >>> import harp.numpy as hnp
    >>> hnp.cummin(hnp.asarray([3.0, 1.0, 2.0]))
    Array([3., 1., 1.])
    """
    return _cumulate(Reduce.MIN, x, axis, as_array(x).kind)


def diff(a: object, n: int = 1, axis: Axis = -1, prepend: object = None, append: object = None) -> Array:
    """The differences of neighbours along an axis, `n` times; of bool, whether they differ.

    `prepend` and `append` are numbers, or arrays with the other axes of `a`, that come before and after it. The axis
    gets shorter by `n`, down to 0. Raises ArgumentError for a negative `n`, ShapeError for an array without axes.

    >>> import harp.numpy as hnp
    >>> hnp.diff(hnp.asarray([1, 4, 9]), prepend=0)
    Array([1, 3, 5])
    """
    array = as_array(a)
    if array.ndim == 0:
        raise ShapeError(f"diff needs an array with axes{where()}")
    along, times = normalize_axis(axis, array.ndim), as_integer("n", n)
    if times < 0:
        raise ArgumentError(f"diff is repeated n >= 0 times, not {times}{where()}")
    parts = [_beside(array, along, part) for part in (prepend, append)]
    if times and any(part is not None for part in parts):
        array = concatenate([part for part in (parts[0], array, parts[1]) if part is not None], along)
    differs = not_equal if array.kind is dtypes.bool_ else subtract
    before, behind = ((*(slice(None),) * along, s) for s in (slice(None, -1), slice(1, None)))
    for _ in range(times):
        array = differs(getitem(array, behind), getitem(array, before))
    return array


def _beside(array: Array, axis: int, part: object) -> Array | None:
    """What is put beside an array: a number stands for one element in each row."""
    if part is None:
        return None
    given = as_array(part)
    return given if given.ndim else broadcast_to(given, (*array.shape[:axis], 1, *array.shape[axis + 1 :]))


def _standard(reduce: Reduce, x: object, axis: Axis, dtype: DTypeLike | None, initial: bool) -> Array:
    """As the array API standard wants it: `axis` may be left out for one axis only."""
    array = as_array(x)
    if axis is None and array.ndim > 1:
        raise ArgumentError(f"axis must be given for an array with {plural(array.ndim, 'axes')}{where()}")
    result = _cumulate(reduce, array, axis, dtype)
    if not initial:
        return result
    node = node_of(result)
    along = normalize_axis(0 if axis is None else axis, result.ndim)
    low = [int(k == along) for k in range(result.ndim)]
    start = const(reduce.identity(node.dtype), node.dtype)
    return emit(view.pad(node, low, [0] * result.ndim, start), result.weak)


def cumulative_sum(
    x: object, /, *, axis: Axis = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumsum` along an axis, which may be left out for an array of one; with 0 in front if `include_initial`.

    Raises ArgumentError if `axis` is left out for several, AxisError for one out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cumulative_sum(hnp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    return _standard(Reduce.SUM, x, axis, dtype, include_initial)


def cumulative_prod(
    x: object, /, *, axis: Axis = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumprod` along an axis, which may be left out for an array of one; with 1 in front if `include_initial`.

    Raises ArgumentError if `axis` is left out for several, AxisError for one out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cumulative_prod(hnp.asarray([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6])
    """
    return _standard(Reduce.PROD, x, axis, dtype, include_initial)
