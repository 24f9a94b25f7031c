"""Early exits: searches for the first position that fits may stop where it is found.

    for k { for simd l: first[l] min= select(fits, k, last) }
        ->  for b { for search k { for simd l < FEW: first[FEW*b + l] min= ... } }

What later iterations could store is k or more, so as soon as no element is above k they change nothing. A backend may
leave the loop then, or go on: the result is the same. Few elements are searched for at a time, so that the loop may end
when these few are found.
"""

from __future__ import annotations

from typing import NamedTuple

from harp.lower.loopir.loops import For, LoopKind, Nest, Space, Stmt, Store
from harp.lower.loopir.nests import nest, renamed
from harp.lower.rewrite.loop_primitives import split
from harp.lower.rewrite.strip_mining import Context
from harp.trace.index.polynomial import loops_in, of
from harp.trace.scalar.expr import Apply, Const, Position
from harp.trace.scalar.ops import Op, Reduce

# Elements that are searched for together: several vectors, of which the slowest makes the others wait.
FEW = 64


class _Search(NamedTuple):
    """The loop of the positions, that of the elements, and the store."""

    position: For
    lane: For
    store: Store


def _match(s: Stmt) -> _Search | None:
    """The search that the two inner loops of a nest are, if they are one."""
    if not isinstance(s, Nest) or len(s.heads) < 2 or not isinstance(s.body, Store):
        return None
    position, lane = s.heads[-2:]
    store, value = s.body, s.body.value
    if not isinstance(position, For) or not isinstance(lane, For) or lane.kind is not LoopKind.SIMD:
        return None
    if position.kind is not LoopKind.PLAIN or store.buffer.space is not Space.LOCAL or len(store.index) != 1:
        return None
    if store.reduce is not Reduce.MIN or not isinstance(value, Apply) or value.op is not Op.SELECT:
        return None
    _, found, last = value.operands
    if not isinstance(found, Position) or found.index is not of(position.loop) or not isinstance(last, Const):
        return None
    count = position.loop.extent.constant
    fits = count is not None and int(last.value) >= count - 1
    moves = any(position.loop in loops_in(p) for p in store.index)
    return _Search(position, lane, store) if fits and not moves else None


def early_exits(context: Context, s: Stmt) -> Stmt | None:
    """The rule, for `harp.lower.nest_rules`."""
    search = _match(s)
    if search is None or not isinstance(s, Nest):
        return None
    blocks = split(context.fresh, search.lane.loop.extent, FEW)
    lane, place = context.fresh.loop(blocks.length, LoopKind.SIMD)
    heads = (*s.heads[:-2], *blocks.heads, For(search.position.loop, LoopKind.SEARCH), *lane)
    return nest(heads, renamed(search.store, {search.lane.loop: blocks.start + place}))
