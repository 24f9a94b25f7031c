"""Running sums and products along an axis. Each element is added to what is before it, in order."""

from __future__ import annotations

from harp.errors import ArgumentError
from harp.numpy.manipulation import ravel
from harp.trace import cumulative, dtypes, view
from harp.trace.array import OPERATORS, Array, marked, node_of
from harp.trace.dtypes import DTypeLike, as_dtype
from harp.trace.expr import cast, const
from harp.trace.ops import Reduce
from harp.trace.primitives import as_array, emit, map_reduce, normalize_axis
from harp.trace.sites import where
from harp.trace.sizes import resolve_all


def _along(reduce: Reduce, array: Array, axis: object, dtype: DTypeLike | None) -> Array:
    target = dtypes.accumulator(array.kind) if dtype is None else as_dtype(dtype)
    values = node_of(array)
    candidates = cumulative.masked(values, reduce, normalize_axis(axis, array.ndim))
    domain = resolve_all(candidates.shape)
    result = map_reduce(lambda e: cast(e, target), [candidates], domain, reduce, (array.ndim,))
    return marked(result, array.weak and dtype is None)


def _cumulate(reduce: Reduce, x: object, axis: object, dtype: DTypeLike | None) -> Array:
    array = as_array(x)
    if dtype is not None and as_dtype(dtype) is dtypes.bool_:  # as counts, and as products of 0 and 1
        return _cumulate(reduce, array.astype(bool), axis, None).astype(bool)
    if axis is None:
        array, axis = ravel(array), 0
    return _along(reduce, array, axis, dtype)


def cumsum(x: object, axis: object = None, dtype: DTypeLike | None = None) -> Array:
    """The sums of the elements up to each one along an axis, or of the flattened array if `axis` is None.

    The shape is that of `x`, or one axis of all its elements. Integers and bool are added in 64 bits unless `dtype`
    says otherwise. Raises AxisError for an axis out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cumsum(hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    Array([[1., 3.],
           [3., 7.]])
    """
    return _cumulate(Reduce.SUM, x, axis, dtype)


def cumprod(x: object, axis: object = None, dtype: DTypeLike | None = None) -> Array:
    """The products of the elements up to each one along an axis, or of the flattened array if `axis` is None.

    The shape is that of `x`, or one axis of all its elements. Integers and bool are multiplied in 64 bits unless
    `dtype` says otherwise. Raises AxisError for an axis out of range. The gradient divides by nothing, so it is right
    beside zeros; it takes time quadratic in the size of the axis.

    >>> import harp.numpy as hnp
    >>> hnp.cumprod(hnp.asarray([2.0, 3.0, 4.0]))
    Array([ 2.,  6., 24.])
    """
    return _cumulate(Reduce.PROD, x, axis, dtype)


def _standard(reduce: Reduce, x: object, axis: object, dtype: DTypeLike | None, initial: bool) -> Array:
    """As the array API standard wants it: `axis` may be left out for one axis only."""
    array = as_array(x)
    if axis is None and array.ndim > 1:
        raise ArgumentError(f"axis must be given for an array with {array.ndim} axes{where()}")
    result = _cumulate(reduce, array, axis, dtype)
    if not initial:
        return result
    node = node_of(result)
    along = normalize_axis(0 if axis is None else axis, result.ndim)
    low = [int(k == along) for k in range(result.ndim)]
    start = const(reduce.identity(node.dtype), node.dtype)
    return emit(view.pad(node, low, [0] * result.ndim, start), result.weak)


def cumulative_sum(
    x: object, /, *, axis: object = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumsum` along an axis, which may be left out for an array of one; with 0 in front if `include_initial`.

    Raises ArgumentError if `axis` is left out for several, AxisError for one out of range.

    >>> import harp.numpy as hnp
    >>> hnp.cumulative_sum(hnp.asarray([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6])
    """
    return _standard(Reduce.SUM, x, axis, dtype, include_initial)


def cumulative_prod(
    x: object, /, *, axis: object = None, dtype: DTypeLike | None = None, include_initial: bool = False
) -> Array:
    """`cumprod` along an axis, which may be left out for an array of one; with 1 in front if `include_initial`.

    Raises ArgumentError if `axis` is left out for several, AxisError for one out of range.
    """
    return _standard(Reduce.PROD, x, axis, dtype, include_initial)


OPERATORS.update(cumsum=cumsum, cumprod=cumprod)
