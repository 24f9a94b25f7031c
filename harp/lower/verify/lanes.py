"""The rules for private arrays and the lanes of sub-groups: each work-item has its own element, and in lanes it reads
those of its sub-group only.

    for item t < 256 { digits (s, u) = t; parts[s, u] = ... }
    for item t < 256 { digits (s, u) = t; for v < 16: part += parts[s, v] }

A read of lanes is an exchange in which all work-items of a sub-group take part, with their values from before the item
loop: so it is the whole value of a store, no branch or loop round it depends on the work-item or on data, and the item
loop has an iteration for each lane, and does not store to the array that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from harp.lower.loopir.effects import effects, head_indices, head_names, loads
from harp.lower.loopir.loops import (
    Buffer,
    Digits,
    For,
    Head,
    If,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Space,
    Stmt,
    Store,
    offset,
    parts,
)
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO, Atom, Index, Indirect, Loop, of, product, value_atoms


@attrs.frozen(repr=False)
class _Item:
    """The item loop round a statement: its position, also by digits; the atoms that depend on it, the buffers that the
    loop stores to, and whether all work-items of a sub-group reach the statement."""

    loop: Loop
    place: Index
    varying: frozenset[Atom]
    written: frozenset[Buffer]
    uniform: bool = True

    def varies(self, indices: Iterable[Index]) -> bool:
        """Whether indices may differ between the work-items of a sub-group."""
        return any(a in self.varying or isinstance(a, Indirect) for p in indices for a in value_atoms(p))


def lane_errors(s: Stmt, item: _Item | None = None) -> Iterator[str]:
    """Errors in accesses to private arrays and lanes, one line each."""
    if isinstance(s, Nest):
        for place, head in enumerate(s.heads):
            item = _item_behind(head, item, (s.heads[place + 1 :], s.body))
    elif item is not None and (
        (isinstance(s, If) and item.varies(s.conditions)) or (isinstance(s, Repeat) and s.test is not None)
    ):
        item = attrs.evolve(item, uniform=False)
    if isinstance(s, Store) and not _is_own(s.buffer, s.index, item):
        yield f"{s.buffer.name}[{', '.join(map(repr, s.index))}] is stored to by another work-item"
    if isinstance(s, Store) and s.buffer.space is Space.LANES and s.reduce is not None:
        yield f"{s.buffer.name} is added to, which is an exchange besides"
    for load in loads(s):
        if load.buffer.space is Space.PRIVATE and not _is_own(load.buffer, load.index, item):
            yield f"{load!r} is private to another work-item"
        if load.buffer.space is Space.LANES and not (isinstance(s, Store) and s.value is load and _reaches(load, item)):
            yield f"{load!r} is no exchange of all work-items of a sub-group"
    for part in parts(s):
        yield from lane_errors(part, item)


def _item_behind(head: Head, item: _Item | None, inner: tuple[tuple[Head, ...], Stmt]) -> _Item | None:
    """The item loop behind a head."""
    if isinstance(head, For) and head.kind is LoopKind.ITEM:
        return _Item(head.loop, of(head.loop), frozenset({head.loop}), effects(Nest(*inner)).writes)
    if item is None:
        return None
    if isinstance(head, Digits) and head.flat.atom is item.loop:
        digits = [(loop, product(later.extent for later in head.loops[k:])) for k, loop in enumerate(head.loops, 1)]
        item = attrs.evolve(item, place=sum((of(loop) * step for loop, step in digits), ZERO))
    if not item.varies(head_indices(head)):
        ends_early = isinstance(head, For) and head.kind is LoopKind.SEARCH
        return attrs.evolve(item, uniform=item.uniform and not ends_early)
    uniform = item.uniform and not isinstance(head, For)
    return attrs.evolve(item, varying=item.varying | {*head_names(head)}, uniform=uniform)


def _is_own(buffer: Buffer, index: tuple[Index, ...], item: _Item | None) -> bool:
    """Whether an element belongs to this work-item, or to all."""
    if buffer.space is Space.PRIVATE:
        return item is not None and item.loop.extent is buffer.shape[0] and index[0].atom is item.loop
    if buffer.space is not Space.LANES:
        return True
    return item is not None and _are_all(buffer, item) and offset(buffer, index) is item.place


def _reaches(load: Load, item: _Item | None) -> bool:
    """Whether a load reads from a work-item of the same sub-group, at a statement that the whole sub-group reaches."""
    if item is None or not item.uniform or load.conditions or not _are_all(load.buffer, item):
        return False
    distance = item.place - load.index[0] * load.buffer.shape[1]
    inside = nonnegative(distance) and nonnegative(load.buffer.shape[1] - 1 - distance)
    return inside and load.buffer not in item.written


def _are_all(buffer: Buffer, item: _Item) -> bool:
    """Whether the loop has an iteration for each lane."""
    return len(buffer.shape) == 2 and item.loop.extent is product(buffer.shape)
