"""Parts of arrays under `jax.lax`'s names: views at places that are known, gathers and scatters where data says.

The start of a dynamic slice is moved so that the whole slice is inside the array; a negative one counts from the end.
Its sizes are numbers, or sizes of arguments.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

import numpy as np

from harp.errors import IndexOutOfRangeError, ShapeError
from harp.numpy.checks import as_count, as_positions, require_kind
from harp.numpy.creation import arange
from harp.numpy.elementwise import clip, less
from harp.numpy.elementwise import where as choose
from harp.numpy.manipulation import emit_like, expand_dims, reshape
from harp.trace.array.advanced import getitem
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import Selection, Taken, integer
from harp.trace.array.primitives import as_array, known_numbers, normalize_axis, to_shape
from harp.trace.array.updates import placed, put
from harp.trace.graph.node import Put
from harp.trace.index.division import ceildiv, maximum, minimum
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, describe, may_miss, resolve, resolve_all, wrap
from harp.trace.source_locations import plural, where

# -- known places ---------------------------------------------------------------------------------------------------


def slice(
    operand: object,
    start_indices: Sequence[object],
    limit_indices: Sequence[object],
    strides: Sequence[object] | None = None,
) -> Array:
    """The elements from a start to a limit, which is not among them, along each axis; every `strides[k]`-th of them.

    All are numbers or sizes. Raises ShapeError unless there is one of each for each axis, IndexOutOfRangeError unless
    0 <= start <= limit <= size: nothing is cut off in silence.

    >>> import harp.numpy as hnp
    >>> slice(hnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5])
    """
    array = as_array(operand)
    steps = (1,) * array.ndim if strides is None else tuple(strides)
    for name, given in (("start_indices", start_indices), ("limit_indices", limit_indices), ("strides", steps)):
        _require_one_each(name, given, array.ndim)
    node = node_of(array)
    taken, misses = [], False
    for axis, (start, limit, step) in enumerate(zip(start_indices, limit_indices, steps, strict=True)):
        first, last, size = resolve(integer(start)), resolve(integer(limit)), resolve(node.shape[axis])
        inside = [ask(Relation.NONNEGATIVE, resolve(p), _INSIDE) for p in (first, last - first, size - last)]
        misses |= not inside[2]
        if not all(inside[:2]) or not (inside[2] or may_miss(size)):
            raise IndexOutOfRangeError(
                f"the slice from {describe(first)} to {describe(last)} is not inside axis {axis} of size "
                f"{describe(size)}{where()}"
            )
        by = as_count(f"the stride of axis {axis}", step, least=1)
        taken.append(Taken(first, by, ceildiv(last - first, by), True))
    return emit_like(array, Selection(tuple(taken), {}, (), misses).view(node))


_INSIDE = "a slice is inside its axis"


def slice_in_dim(operand: object, start_index: object, limit_index: object, stride: object = 1, axis: int = 0) -> Array:
    """`slice` along one axis: None is its start or end, and negative numbers count from the end.

    >>> import harp.numpy as hnp
    >>> slice_in_dim(hnp.arange(6), 1, -1)
    Array([1, 2, 3, 4])
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    size = resolve(node_of(array).shape[along])
    start = ZERO if start_index is None else _from_start(integer(start_index), size)
    limit = size if limit_index is None else _from_start(integer(limit_index), size)
    starts = [wrap(start) if k == along else 0 for k in range(array.ndim)]
    limits = [wrap(limit) if k == along else n for k, n in enumerate(array.shape)]
    return slice(array, starts, limits, [stride if k == along else 1 for k in range(array.ndim)])


def index_in_dim(operand: object, index: object, axis: int = 0, keepdims: bool = True) -> Array:
    """The elements at one number along an axis, which stays with one element if `keepdims`.

    Raises IndexOutOfRangeError.

    >>> import harp.numpy as hnp
    >>> index_in_dim(hnp.asarray([[1, 2], [3, 4]]), -1)
    Array([[3, 4]])
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    result = getitem(array, (*_whole(along), index))
    return expand_dims(result, along) if keepdims else result


# -- places that are data -------------------------------------------------------------------------------------------


def dynamic_slice(operand: object, start_indices: object, slice_sizes: object) -> Array:
    """So many elements from a start along each axis; the starts may be computed.

    `start_indices` is an integer for each axis, or an array of them. The shape is `slice_sizes`: numbers, or sizes of
    arguments. A start is moved so that the slice is inside the array; a negative one counts from the end.

    Raises ShapeError unless there is one of each for each axis, and for a slice that is larger than its axis.

    >>> import harp.numpy as hnp
    >>> dynamic_slice(hnp.arange(6), (4,), (3,))
    Array([3, 4, 5])
    """
    array = as_array(operand)
    lengths = to_shape(slice_sizes)
    _require_one_each("slice_sizes", lengths, array.ndim)
    starts = _starts(array, start_indices, lengths)
    known = [
        Taken(start, ONE, length, True) if isinstance(start, Index) else Taken(ZERO, ONE, size, True)
        for start, length, size in zip(starts, lengths, resolve_all(node_of(array).shape), strict=True)
    ]
    if any(t.start is not ZERO or t.length is not n for t, n in zip(known, node_of(array).shape, strict=True)):
        array = emit_like(array, Selection(tuple(known), {}, ()).view(node_of(array)))
    key = _places([ZERO if isinstance(start, Index) else start for start in starts], lengths)
    return getitem(array, key) if key else array


def dynamic_slice_in_dim(operand: object, start_index: object, slice_size: object, axis: int = 0) -> Array:
    """`dynamic_slice` along one axis, and all of the others.

    >>> import harp.numpy as hnp
    >>> dynamic_slice_in_dim(hnp.arange(6), -2, 2)
    Array([4, 5])
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    sizes = tuple(slice_size if k == along else n for k, n in enumerate(array.shape))
    return dynamic_slice(array, [start_index if k == along else 0 for k in range(array.ndim)], sizes)


def dynamic_index_in_dim(operand: object, index: object, axis: int = 0, keepdims: bool = True) -> Array:
    """The elements at one place along an axis, which may be computed; the axis stays with one element if `keepdims`.

    A place outside means the nearest one; a negative one counts from the end.

    >>> import harp.numpy as hnp
    >>> dynamic_index_in_dim(hnp.asarray([[1, 2], [3, 4]]), 7, keepdims=False)
    Array([3, 4])
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    place = _start(index, resolve(node_of(array).shape[along]), ONE, along)
    result = getitem(array, (*_whole(along), wrap(place) if isinstance(place, Index) else place))
    return expand_dims(result, along) if keepdims else result


def dynamic_update_slice(operand: object, update: object, start_indices: object) -> Array:
    """The array with `update`, which has as many axes, in place of the elements that `dynamic_slice` would take.

    In a loop that carries the array, only those elements are written. Raises ShapeError for another number of axes, and
    for an update that is larger than the array, DTypeError where it does not fit the array's dtype.

    >>> import harp.numpy as hnp
    >>> dynamic_update_slice(hnp.zeros(4), hnp.ones(2), (1,))
    Array([0., 1., 1., 0.])
    """
    array, part = as_array(operand), as_array(update)
    lengths = resolve_all(node_of(part).shape)
    _require_one_each("the shape of update", lengths, array.ndim)
    starts = _starts(array, start_indices, lengths)
    taken = [Taken(s, ONE, n, True) for s, n in zip(starts, lengths, strict=True) if isinstance(s, Index)]
    if len(taken) == array.ndim:
        require_kind("update", part, array.kind)
        node = placed(node_of(array), Selection(tuple(taken), {}, ()), node_of(part.astype(array.kind)), Put.SET)
        return emit_like(array, node)
    sizes = resolve_all(node_of(array).shape)
    partly = [
        as_array(wrap(start)) if isinstance(start, Index) and length is not size else start
        for start, length, size in zip(starts, lengths, sizes, strict=True)
    ]
    return put(array, _places(partly, lengths, leading=True), part, "set", "drop", True)


def dynamic_update_slice_in_dim(operand: object, update: object, start_index: object, axis: int) -> Array:
    """`dynamic_update_slice` along one axis, from the start of the others.

    >>> import harp.numpy as hnp
    >>> dynamic_update_slice_in_dim(hnp.zeros(4), hnp.ones(2), 7, axis=0)
    Array([0., 0., 1., 1.])
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    return dynamic_update_slice(array, update, [start_index if k == along else 0 for k in range(array.ndim)])


def dynamic_update_index_in_dim(operand: object, update: object, index: object, axis: int) -> Array:
    """The array with `update` at one place along an axis, which may be computed.

    `update` has the other axes, or all of them, with one element along this one.

    >>> import harp.numpy as hnp
    >>> dynamic_update_index_in_dim(hnp.zeros((2, 3)), hnp.ones(3), 1, axis=0)
    Array([[0., 0., 0.],
           [1., 1., 1.]])
    """
    array, part = as_array(operand), as_array(update)
    along = normalize_axis(axis, array.ndim)
    if part.ndim == array.ndim - 1:
        part = expand_dims(part, along)
    return dynamic_update_slice_in_dim(array, part, index, along)


def _starts(array: Array, start_indices: object, lengths: Shape) -> list[Index | Array]:
    """Where each axis of a slice begins."""
    if isinstance(start_indices, (tuple, list)):
        given: Sequence[object] = start_indices
    else:
        indices = as_array(start_indices)
        _require_one_each("start_indices", indices.shape, 1)
        given = [getitem(indices, k) for k in range(int(indices.shape[0]))]
    _require_one_each("start_indices", given, array.ndim)
    sizes = resolve_all(node_of(array).shape)
    axes = enumerate(zip(given, sizes, lengths, strict=True))
    return [_start(start, size, length, axis) for axis, (start, size, length) in axes]


def _start(start: object, size: Index, length: Index, axis: int) -> Index | Array:
    """Where a slice of this length begins: an expression where only sizes say it, else an int64 without axes."""
    room = resolve(size - length)
    if room is ZERO:
        return ZERO
    if not ask(Relation.NONNEGATIVE, room, _INSIDE):
        if may_miss(size):
            return as_positions("start_indices", 0)
        raise ShapeError(
            f"a slice of {describe(length)} elements is larger than axis {axis} of size {describe(size)}{where()}"
        )
    known = known_numbers(start)
    if isinstance(start, (int, np.integer, Size)) or (known is not None and known.ndim == 0):
        place = resolve(integer(start if known is None else known[()]))
        if place is ZERO:
            return ZERO
        return resolve(minimum(maximum(_from_start(place, size), ZERO), room))
    index = as_positions("start_indices", start)
    if index.ndim:
        raise ShapeError(
            f"the start along axis {axis} is one integer, not {plural(index.ndim, 'axes')} of them{where()}"
        )
    return clip(choose(less(index, 0), index + wrap(size), index), 0, wrap(room))


def _from_start(place: Index, size: Index) -> Index:
    """A place, counted from the end if it is negative."""
    return place if ask(Relation.NONNEGATIVE, resolve(place), "the sign of an index") else size + place


def _places(starts: Sequence[Index | Array], lengths: Shape, leading: bool = False) -> tuple[object, ...]:
    """The key of a slice that begins where data says: arrays of positions from the first such axis, or from the
    `leading` one, to the last one. A scatter is into leading axes, for which an array would be transposed before."""
    computed = [axis for axis, start in enumerate(starts) if isinstance(start, Array)]
    if not computed:
        return ()
    first, last = 0 if leading else computed[0], computed[-1]
    key: list[object] = [*_whole(first)]
    for axis in range(first, last + 1):
        start = starts[axis]
        shape = [wrap(lengths[axis]) if k == axis else 1 for k in range(first, last + 1)]
        places = reshape(arange(wrap(lengths[axis])), shape)
        key.append(places + (wrap(start) if isinstance(start, Index) else start))
    return tuple(key)


def _whole(count: int) -> tuple[object, ...]:
    return (builtins.slice(None),) * count


def _require_one_each(name: str, given: Sequence[object], rank: int) -> None:
    if len(given) != rank:
        raise ShapeError(f"{name} has {plural(len(given), 'entries')} for {plural(rank, 'axes')}{where()}")
