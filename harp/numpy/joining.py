"""Joining, splitting, repeating and padding. Joining selects by position among padded views, which is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.lazy import FUNCTIONS
from harp.numpy.manipulation import broadcast_to, emit_like, expand_dims, ravel, reshape
from harp.trace.array.advanced import getitem as getitem_by
from harp.trace.array.arithmetic import astype, in_common, remainder, subtract
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.index_plan import is_data
from harp.trace.array.indexing import getitem, integer
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_integer,
    as_tuple,
    common_dtype,
    emit,
    expand_to,
    join_sizes,
    known_numbers,
    normalize_axis,
    to_shape,
)
from harp.trace.eval import eager
from harp.trace.graph import view
from harp.trace.graph.node import MapReduce, Node, positions
from harp.trace.index.division import ceildiv, floordiv, minimum, relu
from harp.trace.index.division import mod as index_mod
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape, loop, product
from harp.trace.scalar.dtypes import DTypeLike, i64, u64
from harp.trace.scalar.expr import Expr, Operand, Position, const, select
from harp.trace.sizes.levels import current
from harp.trace.sizes.ranges import require_int64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, resolve_all, to_index, unify, wrap
from harp.trace.source_locations import kind_of, plural, where


def roll(a: object, shift: object, axis: Axis = None) -> Array:
    """The elements moved by `shift` places along axes; what leaves at the end comes in at the start.

    Shifts are integers, which may be computed, for one axis, or for several. Without an axis the array is flattened.
    Raises ShapeError unless there are as many shifts as axes, or one of them.

    >>> import harp.numpy as hnp
    >>> hnp.roll(hnp.arange(5), 2)
    Array([3, 4, 0, 1, 2])
    """
    array = as_array(a)
    if axis is None:
        return reshape(roll(ravel(array), shift, 0), array.shape)
    axes = as_tuple(axis)
    if isinstance(shift, Array) and shift.ndim == 1:  # may be computed
        shifts: tuple[object, ...] = tuple(shift[k] for k in range(int(shift.shape[0])))
    else:
        shifts = as_tuple(shift)
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(axes) != len(shifts):
        raise ShapeError(f"roll has {plural(len(shifts), 'shifts')} for {plural(len(axes), 'axes')}{where()}")
    for by, k in zip(shifts, axes, strict=True):
        array = _roll(array, by, normalize_axis(k, array.ndim))
    return array


def _roll(array: Array, shift: object, axis: int) -> Array:
    size = resolve(node_of(array).shape[axis])
    if isinstance(shift, Array) and is_data(shift) and not shift.ndim and shift.kind.is_integer:
        by_data = remainder(shift if shift.kind is u64 else shift.astype(i64), wrap(size)).astype(i64)
        (place,) = positions((size,))
        places = subtract(emit(MapReduce((size,), (), Position(place))), by_data)
        return getitem_by(array, (*(slice(None),) * axis, places))
    by = require_int64(integer(shift))
    moved = resolve(_modulo(by, size))
    if moved is ZERO:
        return array
    cut = resolve(size - moved)
    return concatenate([take(array, axis, cut, moved), take(array, axis, ZERO, cut)], axis)


def _modulo(by: Index, size: Index) -> Index:
    """by % size, in 0 <= ... <= size for an empty axis, too. By one place needs no division, whatever the size."""
    if by is ONE:
        return minimum(ONE, size)
    if by is -ONE:
        return relu(size - 1)
    return relu(minimum(index_mod(by, size), size))  # x % 0 is x


def take(array: Array, axis: int, start: Index, length: Index) -> Array:
    """`length` elements from `start` along an axis, which the caller knows to be there."""
    node = node_of(array)
    starts = [start if k == axis else ZERO for k in range(array.ndim)]
    lengths = tuple(length if k == axis else n for k, n in enumerate(resolve_all(node.shape)))
    return emit_like(array, view.take_slices(node, starts, [1] * array.ndim, lengths))


def concatenate(arrays: Sequence[object], axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """The arrays one after the other along an axis; flattened first if axis is None. Dtypes promote, or become `dtype`.

    Raises ShapeError if other sizes differ.

    >>> import harp.numpy as hnp
    >>> hnp.concatenate([hnp.zeros(2), hnp.ones(1)])
    Array([0., 0., 1.])
    """
    parts = [as_array(a) if axis is not None else ravel(a) for a in _listed("concatenate", arrays)]
    rank = parts[0].ndim
    if any(p.ndim != rank for p in parts) or rank == 0:
        if isinstance(arrays, (Array, np.ndarray)) and arrays.ndim == 1:
            raise ArgumentError(f"concatenate takes a list of arrays, as in concatenate([x, y]), not an array{where()}")
        ranks = ", ".join(str(p.ndim) for p in parts)
        raise ShapeError(
            f"concatenate needs arrays with the same number of axes, at least one; they have {ranks}{where()}"
        )
    along = normalize_axis(0 if axis is None else axis, rank)
    if dtype is not None:
        parts = [astype(p, dtype) for p in parts]
    kind, weak = common_dtype(parts)
    alike = [in_common(p, kind) for p in parts]
    joined = eager.joined([p._value for p in alike], along) if current() is None else None
    if joined is not None:
        return from_numpy(joined, weak)
    nodes = list(map(node_of, alike))
    common = _equal_but_for(along, [n.shape for n in nodes])
    if len(nodes) == 1:
        return emit(nodes[0], weak)
    # Sizes that a guard holds equal without solving it are two expressions: all parts get those of the first.
    nodes = [expand_to(n, (*common[:along], resolve(n.shape[along]), *common[along + 1 :])) for n in nodes]
    offsets = [ZERO]
    for node in nodes:
        offsets.append(resolve(offsets[-1] + resolve(node.shape[along])))
    shape = (*common[:along], offsets[-1], *common[along + 1 :])
    return emit(_join(nodes, offsets, shape, along), weak)


def _listed(name: str, arrays: object) -> list[object]:
    if not isinstance(arrays, Iterable) or isinstance(arrays, (str, bytes)):
        raise ArgumentError(f"{name} takes a list of arrays, not {kind_of(arrays)}{where()}")
    listed = list(arrays)
    if not listed:
        raise ArgumentError(f"{name} needs at least one array{where()}")
    return listed


def _differs(name: str, k: int, axis: int) -> Callable[[], str]:
    return lambda: f"{name}: array {k} differs from the first (array 0) along axis {axis}"


def _equal_but_for(along: int | None, shapes: Sequence[Shape], name: str = "concatenate") -> Shape:
    for k, shape in enumerate(shapes):
        for axis in range(len(shape)):
            if axis != along:
                unify(shapes[0][axis], shape[axis], _differs(name, k, axis))
    return resolve_all(shapes[0])


def _join(nodes: Sequence[Node], offsets: Sequence[Index], shape: Shape, along: int) -> Node:
    """Each part padded to the whole length, and at each position the part that it belongs to."""
    total, padded = offsets[-1], []
    for k, node in enumerate(nodes):
        low = [offsets[k] if axis == along else ZERO for axis in range(len(shape))]
        high = [total - offsets[k + 1] if axis == along else ZERO for axis in range(len(shape))]
        padded.append(view.pad(node, low, high, const(0, node.dtype)))
    here = Position(loop(along, total))

    result: Expr = Operand(padded[-1].dtype, len(padded) - 1)
    for k in range(len(padded) - 2, -1, -1):
        inside = here < Position(offsets[k + 1])
        result = select(inside, Operand(padded[k].dtype, k), result)
    return MapReduce(shape, tuple(padded), result)


def stack(arrays: Sequence[object], axis: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The arrays side by side along a new axis. Raises ShapeError if their shapes differ.

    >>> import harp.numpy as hnp
    >>> hnp.stack([hnp.asarray([1, 2]), hnp.asarray([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]])
    """
    parts = [as_array(a) for a in _listed("stack", arrays)]
    if any(p.ndim != parts[0].ndim for p in parts):
        ranks = ", ".join(str(p.ndim) for p in parts)
        raise ShapeError(f"stack needs arrays with the same number of axes; they have {ranks}{where()}")
    at = normalize_axis(axis, parts[0].ndim + 1)
    _equal_but_for(None, [node_of(p).shape for p in parts], "stack")
    return concatenate([expand_dims(p, at) for p in parts], at, dtype)


def known_integers(value: object) -> object:
    """An array of known integers as a number or lists of them; all else as it is."""
    numbers = known_numbers(value)
    return numbers.tolist() if numbers is not None and numbers.dtype.kind in "iu" else value


def _uneven(axis: int, count: int) -> str:
    return (
        f"axis {axis} does not split into {count} equal sections (array_split makes sections of unequal sizes); its "
        f"size and the multiple of {count} below it"
    )


def split(ary: object, indices_or_sections: object, axis: int = 0) -> list[Array]:
    """Pieces along an axis: `indices_or_sections` of equal size, or, from a list or an array, cut at these positions.

    Raises ShapeError if the axis does not divide evenly.

    >>> import harp.numpy as hnp
    >>> [part.tolist() for part in hnp.split(hnp.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    """
    array = as_array(ary)
    k = normalize_axis(axis, array.ndim)
    before = (slice(None),) * k
    indices_or_sections = known_integers(indices_or_sections)
    if isinstance(indices_or_sections, (list, tuple)):
        bounds = [None, *indices_or_sections, None]
        return [getitem(array, (*before, slice(a, b))) for a, b in pairwise(bounds)]
    count = as_integer("sections of split", indices_or_sections)
    if count < 1:
        raise ArgumentError(f"split into {count} sections{where()}")
    size = resolve(node_of(array).shape[k])
    unify(size, floordiv(size, to_index(count)) * count, lambda: _uneven(k, count))
    each = resolve(floordiv(resolve(size), to_index(count)))
    return [take(array, k, each * j, each) for j in range(count)]


def tile(A: object, reps: object) -> Array:
    """The whole array repeated along axes, new ones in front if there are more repetitions than axes.

    >>> import harp.numpy as hnp
    >>> hnp.tile(hnp.asarray([1, 2]), 3)
    Array([1, 2, 1, 2, 1, 2])
    """
    array = as_array(A)
    times = [to_index(r) for r in to_shape(reps)]
    rank = max(array.ndim, len(times))
    times = [ONE] * (rank - len(times)) + times
    sizes = [ONE] * (rank - array.ndim) + list(resolve_all(node_of(array).shape))
    node = view.insert_axes(node_of(array), range(rank - array.ndim)) if rank > array.ndim else node_of(array)
    node = view.insert_axes(node, range(0, 2 * rank, 2))
    whole = tuple(p for pair in zip(times, sizes, strict=True) for p in pair)
    node = view.expand(node, whole, [True, False] * rank)
    return emit_like(array, view.reshape(node, tuple(t * s for t, s in zip(times, sizes, strict=True))))


def resize(a: object, new_shape: object) -> Array:
    """The elements in row-major order, and again from the first as long as there is place, in another shape.

    >>> import harp.numpy as hnp
    >>> hnp.resize(hnp.asarray([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]])
    """
    row, shape = ravel(a), to_shape(new_shape)
    size, count = resolve(node_of(row).shape[0]), resolve(product(shape))
    if not ask(Relation.NONNEGATIVE, size - 1, "resize asks whether there are elements"):
        return broadcast_to(in_common(as_array(0), row.kind), tuple(map(wrap, shape)))
    return reshape(take(tile(row, wrap(ceildiv(count, size))), 0, ZERO, count), tuple(map(wrap, shape)))


def repeat(a: object, repeats: object, axis: int | None = None, *, total_repeat_length: object = None) -> Array:
    """Each element repeated along an axis, all as often or each by its own number; flattened first if axis is None.

    Numbers of their own must be known, in a traced function an array of NumPy or a list, unless `total_repeat_length`
    says how long the result is: further elements are left out, and the last one repeats where there are fewer. Raises
    ArgumentError where they are not, ShapeError if there are not as many of them as elements.

    >>> import harp.numpy as hnp
    >>> hnp.repeat(hnp.asarray([1, 2]), 2), hnp.repeat(hnp.asarray([1, 2]), [3, 1])
    (Array([1, 1, 2, 2]), Array([1, 1, 1, 2]))
    """
    array = as_array(a)
    if axis is None or array.ndim == 0:
        array = ravel(array)
    k = normalize_axis(0 if axis is None else axis, array.ndim)
    if total_repeat_length is not None:
        return _repeat_to(array, repeats, k, total_repeat_length)
    if isinstance(repeats, (tuple, list)) or (isinstance(repeats, (Array, np.ndarray)) and repeats.ndim):
        return _repeat_each(array, repeats, k)
    (times,) = to_shape(repeats)
    shape = resolve_all(node_of(array).shape)
    node = view.insert_axes(node_of(array), [k + 1])
    whole = (*shape[: k + 1], times, *shape[k + 1 :])
    node = view.expand(node, whole, [axis == k + 1 for axis in range(len(whole))])
    return emit_like(array, view.reshape(node, (*shape[:k], shape[k] * times, *shape[k + 1 :])))


def _repeat_to(array: Array, times: object, axis: int, length: object) -> Array:
    """Place p of the result is of the first element up to which more than p are wanted."""
    size = resolve(node_of(array).shape[axis])
    repeats = as_array(np.asarray(times) if isinstance(times, (tuple, list)) else times)
    if not repeats.kind.is_integer or repeats.ndim > 1:
        raise ArgumentError(f"repeats is an integer, or a vector of integers{where()}")
    if repeats.ndim:
        join_sizes(size, node_of(repeats).shape[0], lambda: f"repeat along axis {axis}: one number for each")
    (count,) = to_shape((length,))
    hnp: Any = FUNCTIONS["numpy"]  # its modules are above this one
    ends = hnp.cumsum(hnp.broadcast_to(repeats, (wrap(size),)))
    places = hnp.searchsorted(ends, hnp.arange(wrap(count)), side="right")
    result: Array = hnp.take(array, places, axis, mode="clip")
    return result


def _repeat_each(array: Array, repeats: object, axis: int) -> Array:
    times = np.asarray(repeats) if isinstance(repeats, (tuple, list)) else known_numbers(repeats)
    if times is None or times.ndim != 1 or (times.size and times.dtype.kind not in "iu"):
        raise ArgumentError(
            "repeats is an integer, or a vector of integers that are known before the program runs, for the size of "
            f"the result depends on them{where()}"
        )
    to_shape(times)  # none is negative
    if times.size == 1:
        return repeat(array, int(times[0]), axis)
    unify(node_of(array).shape[axis], to_index(times.size), lambda: f"repeat along axis {axis}: one number for each")
    if array._value is not None:
        return from_numpy(np.repeat(array._value, times.astype(np.int64), axis), array.weak)
    places = np.repeat(np.arange(times.size), times.astype(np.int64))
    return array[(*[slice(None)] * axis, places)]
