"""Many float updates that are added at places which are data go by blocks: a place sums those of a block first.

    for u < n: out[idx[u]] += v(u)
        ->  sums[n//block, m] = 0;    block = max(BLOCK, 8*m) for m places
            for b, u < block: sums[b, idx[b*block + u]] += v(b*block + u);
            again b { out += sums[b] };
            for u (the remainder): out[idx[u]] += v(u)

All updates may go to one place, where one float32 would stop to grow at 2**24. A block has eight times as many updates
as there are places, so that the sums take an eighth of the memory of the updates at most, and little time. Where blocks
end depends on the number of updates and places of one row of a batch only.
"""

from __future__ import annotations

import attrs

from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Buffer,
    For,
    If,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Space,
    Stmt,
    Store,
)
from harp.lower.loopir.nests import FreshLoops, Renaming, nest, sequence
from harp.lower.rewrite.loop_primitives import peel
from harp.trace.index.division import Substitution, floordiv, maximum
from harp.trace.index.polynomial import Index, Loop, Shape, indirect_in, loops_in, product
from harp.trace.scalar.expr import Apply, apply, const
from harp.trace.scalar.ops import Op

# The fewest updates of a block, and of a block for each place.
_BLOCK, _FOR_A_PLACE = 4096, 8


@attrs.frozen
class Updates:
    """A nest that adds updates: its loops, the store, the number of the loop over updates, and how many places there
    are."""

    heads: tuple[For, ...]
    body: Stmt
    store: Store
    loop: Loop
    places: Index


def cut_scatter(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    """The statement with the rule applied, if it fits; the scratch buffer that it takes goes to the list."""
    found = _match(s)
    if found is None:
        return None
    out, block = found.store.buffer, maximum(_FOR_A_PLACE * found.places, _BLOCK)
    blocks = peel(fresh, found.loop.extent, block)
    sums = Buffer(f"sums{len(scratch)}", out.dtype, (floordiv(found.loop.extent, block), *out.shape), Space.SCRATCH)
    scratch.append(sums)
    fill, at = _positions(fresh, sums.shape)
    again, b = fresh.loop(sums.shape[0])
    all_places, place = _positions(fresh, out.shape)
    total = Store(out, place, apply(Op.ADD, Load(out, place), Load(sums, (b, *place))))
    return sequence(
        (
            nest(fill, Store(sums, at, const(0, out.dtype))),
            nest(blocks.heads, _added(fresh, found, block, blocks.block * block, (sums, (blocks.block,)))),
            Repeat(again[0].loop, None, nest(all_places, total)),
            _added(fresh, found, blocks.rest, blocks.whole, (out, ())),
        )
    )


def _positions(fresh: FreshLoops, shape: Shape) -> tuple[list[For], Shape]:
    made = [fresh.loop(extent) for extent in shape]
    return [head for heads, _ in made for head in heads], tuple(position for _, position in made)


def _added(fresh: FreshLoops, found: Updates, count: Index, first: Index, to: tuple[Buffer, tuple[Index, ...]]) -> Stmt:
    """So many updates from the first one on, added to an array."""
    own, u = fresh.loop(count)
    moved = Renaming(Substitution({found.loop: first + u}), {found.store.buffer: to}).statement(found.body)
    heads = (own if head.loop is found.loop else (head,) for head in found.heads)
    return nest((head for loops in heads for head in loops), moved)


def _match(s: Stmt) -> Updates | None:
    if not isinstance(s, Nest):
        return None
    heads, store = _inside(s)
    if store is None or store.buffer.space not in MEMORY or not store.buffer.dtype.is_inexact:
        return None
    value = store.value
    if not isinstance(value, Apply) or value.op is not Op.ADD or not _is_place(value.args[0], store):
        return None
    if sum(load.buffer is store.buffer for load in value_loads(value)) > 1:
        return None
    # Along an axis whose index is a loop, as that of a batch, each update has its own place.
    data = [axis for axis, p in enumerate(store.index) if any(True for _ in indirect_in(p))]
    direct = {loop for axis, p in enumerate(store.index) if axis not in data for loop in loops_in(p)}
    own = [h.loop for h in heads if h.loop not in direct]
    outer = tuple(h for h in s.heads if isinstance(h, For))
    if (
        not data
        or len(own) != 1
        or own[0] not in {h.loop for h in outer}
        or any(loops_in(h.loop.extent) for h in heads)
    ):
        return None
    places = product(store.buffer.shape[axis] for axis in data)
    few = own[0].extent.constant
    if few is not None and few <= _BLOCK:
        return None
    return Updates(outer, s.body, store, own[0], places)


def _inside(s: Stmt) -> tuple[list[For], Store | None]:
    """The loops round the one store of a statement, perhaps behind conditions; None if it is something else."""
    if isinstance(s, If) and s.no is None:
        return _inside(s.yes)
    if isinstance(s, Nest) and all(isinstance(h, For) and h.kind is LoopKind.PLAIN for h in s.heads):
        heads, store = _inside(s.body)
        return [*(h for h in s.heads if isinstance(h, For)), *heads], store
    return [], s if isinstance(s, Store) else None


def _is_place(e: object, store: Store) -> bool:
    return isinstance(e, Load) and e.buffer is store.buffer and e.index == store.index and not e.conditions
