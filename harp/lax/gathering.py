"""General indexing under JAX's names: windows of an array, at places that arrays of indices give.

A window of every place is an index for each axis of the array, which broadcast: the rest is `x[...]` and `x.at[...]`,
with their derivatives and batches. A window counts as a whole: one that is partly outside is moved, or left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.creation import arange, full, zeros
from harp.numpy.elementwise import clip, greater_equal, less, less_equal, logical_and, minimum
from harp.numpy.elementwise import where as choose
from harp.numpy.manipulation import broadcast_to, expand_dims, reshape, transpose
from harp.numpy.reductions import max as max_
from harp.trace.array.array import Array, node_of
from harp.trace.array.at import Updates
from harp.trace.array.primitives import as_array, as_tuple
from harp.trace.scalar.dtypes import i64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, to_index, unify, wrap
from harp.trace.source_locations import where
from harp.transforms.batching.vmap import vmap
from harp.transforms.control.scan import fori_loop

# The largest index that has a sign.
_LAST = np.uint64(2**63 - 1)


class GatherScatterMode(Enum):
    """What a window that is partly outside does: it is moved inside, left out, or does not occur.

    >>> GatherScatterMode.CLIP.name
    'CLIP'
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3


class GatherDimensionNumbers(NamedTuple):
    """Which axis is which for `gather`: axes of the result that are of windows; axes of the array that windows do not
    keep; axes of the array that the numbers of an index are for; axes of the array and of the indices that go together.

    >>> GatherDimensionNumbers((1,), (0,), (0,)).collapsed_slice_dims
    (0,)
    """

    offset_dims: Sequence[int]
    collapsed_slice_dims: Sequence[int]
    start_index_map: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    start_indices_batching_dims: Sequence[int] = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for `scatter`, whose updates are what the result of `gather` is.

    >>> ScatterDimensionNumbers((1,), (0,), (0,)).update_window_dims
    (1,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


_MODES = {
    "clip": GatherScatterMode.CLIP,
    **dict.fromkeys(("fill", "drop"), GatherScatterMode.FILL_OR_DROP),
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


# What `x.at[...]` calls them, whose windows are already inside where they are to be.
_CALLED = {
    GatherScatterMode.CLIP: "clip",
    GatherScatterMode.FILL_OR_DROP: "fill",
    GatherScatterMode.PROMISE_IN_BOUNDS: "promise_in_bounds",
}


def _indices(given: object) -> Array:
    """Raises DTypeError for others than integers, ShapeError for no axis."""
    indices = as_array(given)
    if not indices.kind.is_integer:
        raise DTypeError(f"indices are integers, not {indices.dtype}{where()}")
    if not indices.ndim:
        raise ShapeError(f"indices have a last axis, of a number for each axis that they are for{where()}")
    return indices


def _mode(mode: object) -> GatherScatterMode:
    """Raises ArgumentError for one that is not there."""
    found = GatherScatterMode.FILL_OR_DROP if mode is None else _MODES.get(mode) if isinstance(mode, str) else mode
    if not isinstance(found, GatherScatterMode):
        raise ArgumentError(f"mode is one of {', '.join(map(repr, _MODES))}, not {mode!r}{where()}")
    return found


def _check(numbers: GatherDimensionNumbers, rank: int, indices: Array, windows: int) -> None:
    """Raises ShapeError where dimension numbers do not fit an array, indices, and the axes of windows in the result."""
    offsets, collapsed, mapped, own, others = numbers
    kept = windows + len(collapsed) + len(own) == rank == len({*collapsed, *own}) + windows
    for name, axes, size in (
        ("the array", (*collapsed, *own), rank),
        ("the array that indices are for", (*mapped, *own), rank),
        ("the indices", others, indices.ndim - 1),
        ("the result", offsets, indices.ndim - 1 + windows),
    ):
        if len({*axes}) < len(axes) or not all(0 <= axis < size for axis in axes):
            raise ShapeError(f"dimension_numbers name axes {axes} of {name}, which has {size}: each once{where()}")
    if not kept or len(own) != len(others) or tuple(sorted(offsets)) != tuple(offsets):
        raise ShapeError(f"{numbers} does not fit an array of {rank} axes, and {windows} axes of windows{where()}")
    if indices.shape[-1] != len(mapped):
        raise ShapeError(
            f"indices have a last axis of {len(mapped)}, a number for each of the axes {tuple(mapped)}, not of "
            f"{indices.shape[-1]}{where()}"
        )


def _windows(
    array: Array, indices: Array, numbers: GatherDimensionNumbers, sizes: Sequence[object], mode: GatherScatterMode
) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """An index for each axis of the array, over the axes of places and then those of windows, and which of these is
    each axis of the result. Windows that are left out are at the end of their axes."""
    offsets, collapsed, mapped, own, others = numbers
    windowed = [axis for axis in range(array.ndim) if axis not in collapsed and axis not in own]
    places = indices.ndim - 1
    total = places + len(windowed)
    if indices.dtype == np.uint64:  # a place beyond all axes stays one
        indices = minimum(indices, as_array(_LAST))
    starts = {axis: indices[..., k].astype(i64) for k, axis in enumerate(mapped)}
    for axis, size in enumerate(sizes):
        room = resolve(node_of(array).shape[axis]) - resolve(to_index(size))
        if not ask(Relation.NONNEGATIVE, room, "a window is inside its axis"):
            raise ShapeError(f"a window of {size} does not fit axis {axis} of the shape {array.shape}{where()}")
    highest = {axis: wrap(resolve(node_of(array).shape[axis]) - resolve(to_index(sizes[axis]))) for axis in mapped}
    inside: object = True
    if mode is GatherScatterMode.CLIP:
        starts = {axis: clip(start, 0, highest[axis]) for axis, start in starts.items()}
    elif mode is GatherScatterMode.FILL_OR_DROP:
        for axis, start in starts.items():
            inside = logical_and(inside, logical_and(greater_equal(start, 0), less_equal(start, highest[axis])))
        starts = {axis: choose(inside, start, array.shape[axis]) for axis, start in starts.items()}
    keys = []
    for axis, size in enumerate(sizes):
        key = as_array(0)
        if axis in own:
            along = others[list(own).index(axis)]
            key = reshape(arange(array.shape[axis]), (-1, *(1,) * (total - along - 1)))
        elif axis in windowed:
            key = reshape(arange(size), (size, *(1,) * (len(windowed) - windowed.index(axis) - 1)))
        if axis in starts:
            key = key + expand_dims(starts[axis], tuple(range(places, total)))
        keys.append(key)
    rest = iter(range(places))
    order = tuple(places + list(offsets).index(k) if k in offsets else next(rest) for k in range(total))
    whole = (*indices.shape[:-1], *(sizes[axis] for axis in windowed))
    return tuple(broadcast_to(key, whole) for key in keys), order


def gather(
    operand: object,
    start_indices: object,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: object,
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: object = None,
) -> Array:
    """Windows of these sizes, from every start that the last axis of the indices gives.

    A window that is partly outside is `fill_value`, by default NaN, the lowest signed or the highest unsigned integer;
    by the mode "clip" it is moved inside. Raises ShapeError where axes or sizes do not fit, DTypeError for indices that
    are no integers.

    >>> import harp.numpy as hnp
    >>> numbers = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(), start_index_map=(0,))
    >>> gather(hnp.arange(5), hnp.asarray([[0], [3]]), numbers, (2,))
    Array([[0, 1],
           [3, 4]])
    """
    array, indices, how = as_array(operand), _indices(start_indices), _mode(mode)
    numbers, sizes = GatherDimensionNumbers(*map(tuple, dimension_numbers)), as_tuple(slice_sizes)
    if len(sizes) != array.ndim:
        raise ShapeError(f"slice_sizes has {len(sizes)} sizes for an array of {array.ndim} axes{where()}")
    _check(numbers, array.ndim, indices, len(numbers.offset_dims))
    for axis in (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims):
        if sizes[axis] != 1:
            raise ShapeError(
                f"a window has 1 element along axis {axis}, which it does not keep, not {sizes[axis]}{where()}"
            )
    keys, order = _windows(array, indices, numbers, sizes, how)
    found = Updates(array, keys).get(_CALLED[how], fill_value) if keys else broadcast_to(array, indices.shape[:-1])
    return transpose(found, order)


def _scatter(
    name: str,
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> Array:
    array, indices, values, how = as_array(operand), _indices(scatter_indices), as_array(updates), _mode(mode)
    numbers = GatherDimensionNumbers(*map(tuple, dimension_numbers))
    windows = len(numbers.offset_dims)
    _check(numbers, array.ndim, indices, windows)
    if values.ndim != indices.ndim - 1 + windows:
        raise ShapeError(
            f"updates have {indices.ndim - 1} axes of places and {windows} of windows, not {values.ndim}{where()}"
        )
    sizes = _sizes(numbers, array.ndim, values.shape)
    keys, order = _windows(array, indices, numbers, sizes, how)
    values = transpose(values, [order.index(k) for k in range(len(order))])
    for axis, size in enumerate(node_of(indices).shape[:-1]):
        unify(size, node_of(values).shape[axis], lambda: "updates and indices have the same places")
    number = not keys
    if number:
        keys, array = (broadcast_to(as_array(0).astype(i64), indices.shape[:-1]),), expand_dims(array)
    result: Array = getattr(Updates(array, keys), name)(values, _CALLED[how], unique_indices and not number)
    return result[0] if number else result


def _sizes(numbers: GatherDimensionNumbers, rank: int, shape: Sequence[object]) -> list[object]:
    """Of windows along each axis of an array, which updates of a shape are for."""
    left_out = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept = iter(numbers.offset_dims)
    return [1 if axis in left_out else shape[next(kept)] for axis in range(rank)]


def scatter(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with updates in place of windows, from every start that the last axis of the indices gives.

    A window that is partly outside is left out; by the mode "clip" it is moved inside. Raises ShapeError where axes or
    sizes do not fit, DTypeError for indices that are no integers.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([7, 3, 1])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("set", operand, scatter_indices, updates, *rest)


def scatter_add(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with updates added to windows, as `scatter`.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([9, 3, 5])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("add", operand, scatter_indices, updates, *rest)


def scatter_sub(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with updates subtracted from windows, as `scatter`.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([-5,  3,  3])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("subtract", operand, scatter_indices, updates, *rest)


def scatter_mul(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with windows multiplied by updates, as `scatter`.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([14,  3,  4])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("multiply", operand, scatter_indices, updates, *rest)


def scatter_min(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with the lesser of windows and updates, as `scatter`.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([2, 3, 1])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("min", operand, scatter_indices, updates, *rest)


def scatter_max(
    operand: object,
    scatter_indices: object,
    updates: object,
    dimension_numbers: ScatterDimensionNumbers,
    *,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with the greater of windows and updates, as `scatter`.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [5]]), hnp.asarray([7, 1, 9]), numbers)
    Array([7, 3, 4])
    """
    rest = dimension_numbers, indices_are_sorted, unique_indices, mode
    return _scatter("max", operand, scatter_indices, updates, *rest)


def scatter_apply(
    operand: object,
    scatter_indices: object,
    func: Callable[[Array], object],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: object = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The array with a function of each number of a window in its place, as `scatter` with updates of a shape.

    A number that is in several windows is replaced as many times; by `unique_indices` once. Unlike JAX's, this has
    derivatives.

    >>> import harp.numpy as hnp
    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_apply(hnp.asarray([2, 3, 4]), hnp.asarray([[0], [2], [0]]), hnp.square, numbers, update_shape=(3,))
    Array([16,  3, 16])
    """
    array, shape = as_array(operand), as_tuple(update_shape)
    ones = full(shape, 1, i64)
    counts = scatter_add(zeros(array.shape, i64), scatter_indices, ones, dimension_numbers, mode=mode)
    numbers = GatherDimensionNumbers(*map(tuple, dimension_numbers))
    sizes = _sizes(numbers, array.ndim, shape)
    times = gather(counts, scatter_indices, numbers, sizes, mode=mode, fill_value=0)
    each = vmap(func)

    def applied(k: Array, found: Array) -> Array:
        return choose(less(k, times), reshape(each(reshape(found, (-1,))), found.shape), found)

    taken = gather(array, scatter_indices, numbers, sizes, mode=mode, fill_value=0)
    found = applied(as_array(0), taken) if unique_indices else fori_loop(0, max_(times, initial=0), applied, taken)
    return scatter(array, scatter_indices, found, dimension_numbers, unique_indices=unique_indices, mode=mode)
