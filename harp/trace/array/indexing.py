"""Indexing with integers, slices, None and `...`: views, whose sizes are exact for every size of the array.

A slice clamps as NumPy's does, but by an expression: `x[1:]` has max(n - 1, 0) elements. Only what an expression cannot
hold becomes a guard: that an integer is inside its axis, and the sign of a size that is used as an index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, SupportsIndex, cast

import numpy as np

from harp.errors import ArgumentError, IndexOutOfRangeError
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import emit
from harp.trace.eval import eager
from harp.trace.graph import view
from harp.trace.graph.node import MapReduce, Node, positions
from harp.trace.index.division import ceildiv, maximum, minimum, relu
from harp.trace.index.polynomial import ONE, ZERO, Index, as_index
from harp.trace.scalar.dtypes import DType, Kind, integer_limits
from harp.trace.scalar.expr import Const, const
from harp.trace.sizes.levels import current
from harp.trace.sizes.ranges import require_int64
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, describe, may_miss, resolve, to_index
from harp.trace.source_locations import plural, where

_BEYOND = 2**62  # more elements than any axis has


def getitem(array: Array, key: object) -> Array:
    """`array[key]` for integers, sizes, slices, None and `...`: a view.

    Raises IndexOutOfRangeError for an integer outside its axis and for too many indices, ArgumentError for arrays,
    lists and booleans.
    """
    if array._value is not None and current() is None:
        part = eager.part(array._value, key)
        if part is not None:
            return from_numpy(part, array.weak)
    node = node_of(array)
    keys = fill_ellipsis(key if isinstance(key, tuple) else (key,), len(node.shape))
    return emit(select(node, keys).view(node), array.weak)


class Taken(NamedTuple):
    """What a slice takes of an axis; `forward` says that the step is positive."""

    start: Index
    step: Index
    length: Index
    forward: bool


class Selection(NamedTuple):
    """What slices and integers take of each axis: `fixed` axes are not in the result, `inserted` ones are added. It
    `misses` if an integer need not find an element, since this is not computed."""

    taken: tuple[Taken, ...]
    fixed: dict[int, Index]
    inserted: tuple[int, ...]
    misses: bool = False

    def view(self, node: Node) -> Node:
        """The elements that are selected; what stands for those outside where it misses."""
        if self.misses:
            left = tuple(t.length for axis, t in enumerate(self.taken) if axis not in self.fixed)
            node = MapReduce(left, (), outside(node.dtype))
            return view.insert_axes(node, self.inserted) if self.inserted else node
        if self.fixed:
            node = view.drop_axes(node, self.fixed)
        taken = [t for axis, t in enumerate(self.taken) if axis not in self.fixed]
        shape = tuple(t.length for t in taken)
        if any(t.start is not ZERO or t.step is not ONE for t in taken) or shape != node.shape:
            index = tuple(t.start + loop * t.step for t, loop in zip(taken, positions(shape), strict=True))
            node = view.view(node, shape, index)
        return view.insert_axes(node, self.inserted) if self.inserted else node


def select(node: Node, keys: Sequence[object]) -> Selection:
    """The selection of integers, slices and None, one for each axis beside those of None."""
    fixed: dict[int, Index] = {}
    inserted: list[int] = []
    taken: list[Taken] = []
    misses = False
    rank = 0  # of the result so far
    for item in keys:
        axis = len(taken)
        if item is None:
            inserted.append(rank)
            rank += 1
            continue
        whole = Taken(ZERO, ONE, resolve(node.shape[axis]), True)
        if isinstance(item, slice):
            taken.append(slice_of(item, whole.length))
            rank += 1
        else:
            position = _position(item, whole.length, axis)
            misses |= position is None
            fixed[axis] = ZERO if position is None else position
            taken.append(whole)
    return Selection(tuple(taken), fixed, tuple(inserted), misses)


def outside(dtype: DType) -> Const:
    """The number that stands for elements outside: NaN, the lowest signed and the highest unsigned integer, True."""
    if dtype.is_integer:
        limits = integer_limits(dtype)
        return const(limits.min if dtype.kind is Kind.INT else limits.max, dtype)
    return const(True if dtype.kind is Kind.BOOL else np.nan, dtype)


def fill_ellipsis(keys: tuple[object, ...], rank: int) -> list[object]:
    """The keys with `...` (at the end, if there is none) replaced by full slices."""
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > rank:
        raise IndexOutOfRangeError(f"{plural(used, 'indices')} for an array with {plural(rank, 'axes')}{where()}")
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
        text = isinstance(item, str)
        advice = "fields have no names: use a dict of arrays" if text else "a half is n // 2, an integer"
        raise ArgumentError(
            f"{_name(item)} is not supported as an index; integers, sizes, slices, None, `...`, arrays of integers and "
            f"masks are; {advice}{where()}"
        )
    return to_index(cast(SupportsIndex, item).__index__())


def _name(item: object) -> str:
    if isinstance(item, (Array, np.ndarray)):
        return f"an array of {item.dtype} with {plural(item.ndim, 'axes')}"
    return f"{item!r} of type {type(item).__name__}"


def _nonnegative(p: Index) -> bool:
    return ask(Relation.NONNEGATIVE, p, "the sign of an index")


def _position(item: object, size: Index, axis: int) -> Index | None:
    """An integer index, counted from the start; in range by a guard where it is not certain. None if it need not be."""
    p = resolve(integer(item))
    from_start = _nonnegative(p)
    position = p if from_start else size + p
    room = size - 1 - p if from_start else position
    if not ask(Relation.NONNEGATIVE, resolve(room), f"an index is inside axis {axis}"):
        if may_miss(size):
            return None
        raise IndexOutOfRangeError(
            f"index {describe(p)} is out of range for axis {axis} of size {describe(size)}{where()}"
        )
    return resolve(position)


def slice_of(item: slice, size: Index) -> Taken:
    """What a slice takes of an axis of this size; no guard where the signs are known.

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
        return Taken(start, step, ceildiv(relu(stop - start), step), True)
    if step.constant is None and _nonnegative(step):
        raise ArgumentError(f"the step of a slice is 0{where()}")
    start, stop = _backward(first, last, size)
    return Taken(start, step, ceildiv(relu(start - stop), -step), False)


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
