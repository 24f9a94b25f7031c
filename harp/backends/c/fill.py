"""Loops that set memory to zero, or copy a run of it, are one call, which costs the compiler nothing.

for i, l: buffer[i, l] = 0          ->  __builtin_memset(&buffer[...], 0, bytes)
for l: buffer[i, l] = other[i, l]   ->  __builtin_memcpy(&buffer[...], &other[...], bytes)

The elements lie one after the other. A copy takes a loop of vectors twice as long if its ends are not aligned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harp.backends.c.scalar import TYPES
from harp.lower.loops import MEMORY, Buffer, For, Load, LoopKind, Nest, Space, Store
from harp.trace.bounds import nonnegative
from harp.trace.dtypes import bool_
from harp.trace.expr import Const
from harp.trace.index import ONE, ZERO, Index, Loop, picks_in, split_linear


class Fill(NamedTuple):
    """Zeros from the element at `first` on, as many as the product of the extents."""

    buffer: Buffer
    first: tuple[Index, ...]
    extents: tuple[Index, ...]


def match(stmt: Nest) -> Fill | None:
    """The fill that a nest is, if it is one."""
    store, loops = stmt.body, [h.loop for h in stmt.heads if isinstance(h, For) and h.kind is not LoopKind.PARALLEL]
    if not isinstance(store, Store) or store.reduce is not None or len(loops) != len(stmt.heads):
        return None
    value = store.value
    if not isinstance(value, Const) or value.value.tobytes().strip(b"\0") or not 1 <= len(loops) <= len(store.index):
        return None
    first, extents = store.index, []
    for axis in range(1, len(loops) + 1):  # from the last axis on
        loop = loops[-axis]
        found = _alone(first, loop, len(first) - axis)
        if (
            found is None
            or not nonnegative(loop.extent)
            or (axis < len(loops) and loop.extent is not _room(store, axis))
        ):
            return None
        first = found
        extents.append(loop.extent)
    return Fill(store.buffer, first, tuple(extents))


class Copy(NamedTuple):
    """As many elements as the extent, from one buffer to another one."""

    target: Buffer
    first: tuple[Index, ...]
    source: Buffer
    origin: tuple[Index, ...]
    extent: Index


def copied(loop: Loop, store: Store) -> Copy | None:
    """The copy that a loop round a store is, if it is one of memory that other kernels see."""
    value = store.value
    if not isinstance(value, Load) or value.conditions or store.reduce is not None or value.buffer is store.buffer:
        return None
    if {value.buffer.space, store.buffer.space} - {*MEMORY} or not nonnegative(loop.extent):
        return None
    if not store.index or not value.index:
        return None
    if value.buffer.dtype is not store.buffer.dtype or any(map(picks_in, (*store.index, *value.index))):
        return None
    if value.buffer.dtype is bool_ and value.buffer.space is Space.INPUT:
        return None  # a caller's truth values may be any byte, and become 0 or 1
    first, origin = (_alone(index, loop, len(index) - 1) for index in (store.index, value.index))
    return None if first is None or origin is None else Copy(store.buffer, first, value.buffer, origin, loop.extent)


def copy(found: Copy, text: Callable[[Index], str], element: Callable[[Buffer, tuple[Index, ...]], str]) -> str:
    """The call, given how an index and an element are printed."""
    target, source = element(found.target, found.first), element(found.source, found.origin)
    size = f"(size_t)({text(found.extent)})*sizeof({TYPES[found.target.dtype]})"
    return f"__builtin_memcpy(&{target}, &{source}, {size});"


def _room(store: Store, axis: int) -> Index:
    return store.buffer.shape[-axis]


def _alone(index: tuple[Index, ...], loop: Loop, axis: int) -> tuple[Index, ...] | None:
    """The index at the start of the loop, if that moves one axis by one, and no other."""
    split = [split_linear(p, loop) for p in index]
    slopes = [None if s is None else s[0] for s in split]
    if slopes[axis] is not ONE or any(s is not ZERO for k, s in enumerate(slopes) if k != axis):
        return None
    return tuple(s[1] for s in split if s is not None)


def call(fill: Fill, text: Callable[[Index], str], element: Callable[[Buffer, tuple[Index, ...]], str]) -> str:
    """The call, given how an index and an element are printed."""
    factors = [f"(size_t)({text(extent)})" for extent in fill.extents if extent is not ONE]
    size = "*".join([*factors, f"sizeof({TYPES[fill.buffer.dtype]})"])
    return f"__builtin_memset(&{element(fill.buffer, fill.first)}, 0, {size});"
