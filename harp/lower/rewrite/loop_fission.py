"""Loop fission: a loop over a long chain of operations is strip-mined, and distributed over segments of the chain.

    for i: out[i] = g(f(x[i]))
        ->  for ib { for simd l < STRIP: t[l] = f(x[ib*STRIP + l]); for simd l < STRIP: out[ib*STRIP + l] = g(t[l]) }

Each operation of a chain waits for the one before. A processor computes other elements meanwhile, but looks only a few
hundred instructions ahead: in a longer chain it sees one vector at a time. Segments are so short that it sees many
vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harp.lower.loopir.loops import Alloc, Buffer, Load, LoopKind, Seq, Space, Stmt, Store
from harp.lower.loopir.nests import makes_index_arrays, nest, renamed, sequence
from harp.lower.rewrite.loop_primitives import Context, split
from harp.trace.index.polynomial import Loop, as_index
from harp.trace.scalar.expr import Apply, Expr, apply, rewrite, walk
from harp.trace.scalar.ops import INFO

# The fewest dependent operations of a segment, and the elements of a strip.
_SEGMENT, _STRIP = 16, 256
# The most segments: each is a loop, and compile time depends more on loops than on their bodies.
_MOST = 16
# A chain with this many times its length of operations has enough independent ones.
_WIDTH = 4
# The most values kept from one segment to the next: storing more would cost as much as waiting.
_KEPT = 6


def fissioned(context: Context, body: Stmt, loop: Loop) -> Stmt | None:
    """The loop over straight code in segments; None if the code has no long chain."""
    if makes_index_arrays(body):
        return None
    stores = _inlined(body)
    depths = _depths([store.value for store in stores])
    depth = max(depths.values(), default=0)
    length = max(_SEGMENT, -(-depth // _MOST))
    stages = {e: (d - 1) // length if d else 0 for e, d in depths.items()}
    last = max(stages.values(), default=0)
    if last < 2 or len(stages) > _WIDTH * (depth + length) or reads_what_it_stores(stores):
        return None
    kept = _kept(stores, stages, last)
    if any(sum(stages[e] <= stage < until for e, until in kept.items()) > _KEPT for stage in range(last)):
        return None
    blocks = split(context.fresh, loop.extent, _STRIP)
    head, lane = context.fresh.loop(blocks.length, LoopKind.SIMD)
    if not blocks.heads or not head:
        return None
    room = (as_index(_STRIP),)
    tiles = {e: Buffer(f"kept{number}", e.dtype, room, Space.LOCAL) for number, e in enumerate(kept)}
    parts = _segments(stores, stages, {e: Load(tile, (lane,)) for e, tile in tiles.items()}, last)
    whole = sequence(nest(head, renamed(part, {loop: blocks.start + lane})) for part in parts)
    for tile in tiles.values():
        whole = Alloc(tile, whole)
    return nest(blocks.heads, whole)


def _inlined(body: Stmt) -> list[Store]:
    """The stores to memory, with the values of variables inlined."""
    values: dict[Buffer, Expr] = {}
    stores: list[Store] = []

    def leaf(e: Expr) -> Expr:
        return values.get(e.buffer, e) if isinstance(e, Load) else e

    def visit(s: Stmt) -> None:
        if isinstance(s, Alloc):
            visit(s.body)
        elif isinstance(s, Seq):
            for part in s.parts:
                visit(part)
        elif isinstance(s, Store):
            value = rewrite((s.value,), leaf)[0]
            if s.buffer.space is Space.REG:
                values[s.buffer] = value
            else:
                stores.append(Store(s.buffer, s.index, value))

    visit(body)
    return stores


def _depths(values: Iterable[Expr]) -> dict[Expr, int]:
    """The weight of the longest chain of operations that ends with each value."""
    depth: dict[Expr, int] = {}
    for e in walk(values):
        if isinstance(e, Apply):
            depth[e] = INFO[e.op].weight + max((depth.get(a, 0) for a in e.args), default=0)
    return depth


def reads_what_it_stores(stores: Sequence[Store]) -> bool:
    """Whether a later segment could read what an earlier statement stored; a single store comes after all loads."""
    stored = {store.buffer for store in stores}
    loaded = {e.buffer for e in walk(store.value for store in stores) if isinstance(e, Load)}
    return len(stores) > 1 and not stored.isdisjoint(loaded)


def _kept(stores: Sequence[Store], stages: Mapping[Expr, int], last: int) -> dict[Expr, int]:
    """The operations that later segments need, and the last of these segments. All stores are in the last segment."""
    until: dict[Expr, int] = {}
    for e in stages:
        for a in e.args:
            if a in stages and stages[a] < stages[e]:
                until[a] = max(until.get(a, 0), stages[e])
    for store in stores:
        if stages.get(store.value, last) < last:
            until[store.value] = last
    return until


def _segments(
    stores: Sequence[Store], stages: Mapping[Expr, int], kept: Mapping[Expr, Load], last: int
) -> Iterable[Stmt]:
    """The statements of each segment, in which kept values of earlier segments are loaded."""
    here: dict[Expr, Expr] = {}
    written: dict[int, list[Stmt]] = {stage: [] for stage in range(last + 1)}

    def read(e: Expr, stage: int) -> Expr:
        return kept[e] if e in kept and stages[e] < stage else here.get(e, e)

    for e, stage in stages.items():
        assert isinstance(e, Apply)
        here[e] = apply(e.op, *(read(a, stage) for a in e.operands), cast_to=e.dtype)
        if e in kept:
            written[stage].append(Store(kept[e].buffer, kept[e].index, here[e]))
    written[last] += [Store(s.buffer, s.index, read(s.value, last)) for s in stores]
    return [sequence(part) for part in written.values() if part]
