"""Indexing with integers, slices, None and `...`: views, whose sizes are exact for every size of the array.

A slice clamps as NumPy's does, but by an expression: `x[1:]` has max(n - 1, 0) elements. Only what an expression cannot
hold becomes a guard: that an integer is inside its axis, and the sign of a size that is used as an index.
"""

from __future__ import annotations

from typing import SupportsIndex, cast

import numpy as np

from harp.errors import ArgumentError, IndexOutOfRangeError
from harp.trace import view
from harp.trace.array import OPERATORS, Array, node_of
from harp.trace.division import ceildiv, maximum, minimum, relu
from harp.trace.index import ONE, ZERO, Index, as_index
from harp.trace.node import Node, positions
from harp.trace.primitives import emit
from harp.trace.ranges import require_int64
from harp.trace.scope import Relation
from harp.trace.sites import where
from harp.trace.sizes import Size, ask, describe, resolve, to_index

_BEYOND = 2**62  # more elements than any axis has


def getitem(array: Array, key: object) -> Array:
    """`array[key]` for integers, sizes, slices, None and `...`: a view.

    Raises IndexOutOfRangeError for an integer outside its axis and for too many indices, ArgumentError for arrays,
    lists and booleans.
    """
    node = node_of(array)
    keys = _fill_ellipsis(key if isinstance(key, tuple) else (key,), len(node.shape))
    fixed: dict[int, Index] = {}
    inserted: list[int] = []
    starts: list[Index] = []
    steps: list[Index] = []
    lengths: list[Index] = []
    rank = 0  # of the result so far
    for item in keys:
        axis = len(starts)
        if item is None:
            inserted.append(rank)
            rank += 1
            continue
        start, step, length = ZERO, ONE, resolve(node.shape[axis])
        if isinstance(item, slice):
            start, step, length = slice_bounds(item, length)
            rank += 1
        else:
            fixed[axis] = _position(item, length, axis)
        starts.append(start)
        steps.append(step)
        lengths.append(length)
    return emit(_indexed(node, starts, steps, lengths, fixed, inserted), array.weak)


def _indexed(
    node: Node,
    starts: list[Index],
    steps: list[Index],
    lengths: list[Index],
    fixed: dict[int, Index],
    inserted: list[int],
) -> Node:
    if fixed:
        node = view.drop_axes(node, fixed)
        starts, steps, lengths = ([p for k, p in enumerate(ps) if k not in fixed] for ps in (starts, steps, lengths))
    shape = tuple(lengths)
    if any(p is not ZERO for p in starts) or any(p is not ONE for p in steps) or shape != node.shape:
        loops = positions(shape)
        index = tuple(start + loop * step for start, step, loop in zip(starts, steps, loops, strict=True))
        node = view.view(node, shape, index)
    return view.insert_axes(node, inserted) if inserted else node


def _fill_ellipsis(keys: tuple[object, ...], rank: int) -> list[object]:
    """The keys with `...` (at the end, if there is none) replaced by full slices."""
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > rank:
        raise IndexOutOfRangeError(f"{used} indices for an array with {rank} axes{where()}")
    dots = [k for k, key in enumerate(keys) if key is Ellipsis]
    if len(dots) > 1:
        raise IndexOutOfRangeError(f"an index can have one `...` only, not {len(dots)}{where()}")
    at = dots[0] if dots else len(keys)
    return [*keys[:at], *[slice(None)] * (rank - used), *keys[at + 1 :]]


def integer(item: object) -> Index:
    """An index or slice bound as an expression. Raises ArgumentError for what is not one integer."""
    if isinstance(item, Size):
        return require_int64(item.index)
    single = not isinstance(item, (Array, np.ndarray)) or item.ndim == 0
    kind = item.dtype.kind if isinstance(item, (Array, np.ndarray, np.generic)) else "i"
    if isinstance(item, bool) or not hasattr(item, "__index__") or not single or kind not in "iu":
        raise ArgumentError(
            f"{_name(item)} is not supported as an index; integers, sizes, slices, None and `...` are. To choose "
            f"elements by a condition, use harp.numpy.where{where()}"
        )
    return to_index(cast(SupportsIndex, item).__index__())


def _name(item: object) -> str:
    if isinstance(item, (Array, np.ndarray)):
        return f"an array of {item.dtype} with {item.ndim} axes"
    return f"{item!r} of type {type(item).__name__}"


def _nonnegative(p: Index) -> bool:
    return ask(Relation.NONNEGATIVE, p, "the sign of an index")


def _position(item: object, size: Index, axis: int) -> Index:
    """An integer index, counted from the start; in range by a guard where it is not certain."""
    p = resolve(integer(item))
    position = p if _nonnegative(p) else size + p
    room = size - 1 - p if position is p else position
    if not ask(Relation.NONNEGATIVE, resolve(room), f"an index is inside axis {axis}"):
        raise IndexOutOfRangeError(
            f"index {describe(p)} is out of range for axis {axis} of size {describe(size)}{where()}"
        )
    return resolve(position)


def slice_bounds(item: slice, size: Index) -> tuple[Index, Index, Index]:
    """(start, step, length) of a slice along an axis of this size; no guard where the signs are known.

    A bound is clamped only on the side where it would add elements: on the other side the length is max(..., 0).
    """
    step = ONE if item.step is None else bound(item.step)
    if step is ZERO:
        raise ArgumentError(f"the step of a slice is 0{where()}")
    forward = _nonnegative(step - 1)
    first = None if item.start is None else bound(item.start)
    last = None if item.stop is None else bound(item.stop)
    if forward:
        start, stop = _forward(first, last, size)
        return start, step, ceildiv(relu(stop - start), step)
    if step.constant is None and _nonnegative(step):
        raise ArgumentError(f"the step of a slice is 0{where()}")
    start, stop = _backward(first, last, size)
    return start, step, ceildiv(relu(start - stop), -step)


def bound(item: object) -> Index:
    """A slice's bound; a number that is beyond every axis is as good as one at its end."""
    p = resolve(integer(item))
    return p if p.constant is None else as_index(max(min(p.constant, _BEYOND), -_BEYOND))


def _forward(first: Index | None, last: Index | None, size: Index) -> tuple[Index, Index]:
    if first is None:
        start = ZERO
    else:
        start = first if _nonnegative(first) else maximum(size + first, 0)
    if last is None:
        return start, size
    return start, minimum(last, size) if _nonnegative(last) else size + last


def _backward(first: Index | None, last: Index | None, size: Index) -> tuple[Index, Index]:
    if first is None:
        start = size - 1
    else:
        start = minimum(first, size - 1) if _nonnegative(first) else size + first
    if last is None:
        return start, -ONE
    return start, last if _nonnegative(last) else maximum(size + last, -1)


OPERATORS["getitem"] = getitem
