"""Long sums in chunks, which threads share; the sums of chunks are in scratch memory.

The pass "long rows" (`long_rows`) splits the sums of rows, so that threads can share also a few long rows:

    for i < m { acc = 0; for k < n: acc += v(i, k); out[i] = f(acc) }
        ->  if n >= LONG:
                parts[m, n//CHUNK];
                for i, c { part = 0; for k < CHUNK: part += v(i, c*CHUNK + k); parts[i, c] = part };
                for i { acc = 0; for c: acc += parts[i, c]; for k (the remainder): acc += v(i, k); out[i] = f(acc) }
            else: as it was

In the same pass running sums go by chunks (`harp.lower.reductions.scan`), and scatters by blocks of updates, each of
which is summed on its own first (`cut_scatter`). The pass "split reduction" (`split_reductions`) splits reductions over
everything, which are in no other loop.

Where a sum is split, and which version runs, depends on its length only, not on the number of threads or rows: a row
has the same bits for any number of rows. Partial sums also keep long sums accurate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set

import attrs

from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    If,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import (
    FreshLoops,
    Renaming,
    accumulation,
    is_plain,
    loads,
    nest,
    rebuilt,
    score,
    sequence,
)
from harp.lower.loopir.products import is_contraction
from harp.lower.reductions.scan import cut_scan
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import Blocks, peel, rfactor, specialise, split
from harp.trace.index.division import Substitution, floordiv, maximum
from harp.trace.index.polynomial import ZERO, Index, Loop, Shape, as_index, indirect_in, loops_in, of, product
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.expr import Apply, Expr, apply, const
from harp.trace.scalar.ops import Op, Reduce

# The elements of a chunk, enough to amortise its lanes; and the length of the shortest row that is split into chunks.
CHUNK, LONG = 1 << 15, 1 << 16


@attrs.frozen(repr=False)
class RowSum:
    """A sum along a row: the loops over rows, and the nest that adds."""

    heads: tuple[For, ...]
    nest: Stmt
    loop: Loop
    store: Store


def long_rows(kernel: Kernel) -> Kernel:
    """The pass "long rows"; see the top of the file."""
    return _outermost(kernel, (Seq,), _cut_long)


Rule = Callable[[FreshLoops, Stmt, list[Buffer]], Stmt | None]


def _outermost(kernel: Kernel, inside: tuple[type[Stmt], ...], rule: Rule) -> Kernel:
    """The kernel with a rule applied to its outermost statements, and the new scratch buffers."""
    fresh, scratch = FreshLoops(kernel), list(kernel.scratch)

    def statement(s: Stmt) -> Stmt:
        return rebuilt(s, statement) if isinstance(s, inside) else rule(fresh, s, scratch) or s

    body = statement(kernel.body)
    return attrs.evolve(kernel.with_body(body), scratch=tuple(scratch)) if body is not kernel.body else kernel


def _cut_long(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    return cut_scan(fresh, s, scratch) or cut_scatter(fresh, s, scratch) or _cut_rows(fresh, s, scratch)


def _cut_rows(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    row = _match(fresh, s)
    if row is None:
        return None
    assert isinstance(s, Nest)
    count = floordiv(row.loop.extent, CHUNK)
    shape = (*(head.loop.extent for head in row.heads), count)
    parts = Buffer(f"parts{len(scratch)}", row.store.buffer.dtype, shape, Space.SCRATCH)
    scratch.append(parts)
    cut = sequence((_chunks(fresh, row, parts), _totals(fresh, row, parts, s.body)))
    return specialise((row.loop.extent - LONG,), cut, s)


def _match(fresh: FreshLoops, s: Stmt) -> RowSum | None:
    """The only sum of a nest, if it runs along memory and its terms are loaded from memory."""
    if not isinstance(s, Nest) or not is_plain(s) or is_contraction(s):
        return None
    heads = tuple(h for h in s.heads if isinstance(h, For) and h.kind is LoopKind.PLAIN)
    found = [(part, *sums) for part in walk(s.body) if (sums := accumulation(part)) is not None]
    if len(heads) < len(s.heads) or len(found) != 1:
        return None
    part, loops, store = found[0]
    if not any(inner is part for inner in _once(s.body)):
        return None
    few, body = coalesced(fresh, loops, store)
    loop = few[0].loop
    triangular = any(loops_in(head.loop.extent) for head in (*heads, few[0]))
    if len(few) > 1 or not isinstance(body, Store) or triangular:
        return None
    short = loop.extent.constant is not None and loop.extent.constant < LONG
    accesses = loads(body.value)
    if short or score(accesses, loop) <= 0 or any(score(accesses, head.loop) > 0 for head in heads):
        return None
    made = {inner.buffer for inner in walk(s.body) if isinstance(inner, Store)} - {store.buffer}
    return RowSum(heads, part, loop, body) if _is_there(body.value, store.buffer, made) else None


def _once(s: Stmt) -> Iterator[Stmt]:
    """The statements that run once for each row."""
    yield s
    for part in s.parts if isinstance(s, Seq) else (s.body,) if isinstance(s, Alloc) else ():
        yield from _once(part)


def _is_there(value: Expr, acc: Buffer, made: Set[Buffer]) -> bool:
    """Whether all terms are in memory before the nest begins."""
    loaded = {load.buffer for load in value_loads(value)} - {acc}
    return not loaded & made and all(buffer.space in MEMORY for buffer in loaded)


def _chunks(fresh: FreshLoops, row: RowSum, parts: Buffer) -> Stmt:
    """for i, c { part = 0; for k < CHUNK: part += v(i, c*CHUNK + k); parts[i, c] = part }"""
    (chunk,), c = fresh.loop(parts.shape[-1])
    place = (*(of(h.loop) for h in row.heads), c)
    blocks = Blocks((chunk,), c, c * CHUNK, as_index(CHUNK))
    part = rfactor(fresh, (For(row.loop),), row.store, blocks, lambda part: Store(parts, place, part))
    return _shared(fresh, (*row.heads, chunk), part)


def _totals(fresh: FreshLoops, row: RowSum, parts: Buffer, body: Stmt) -> Stmt:
    """for i { ...; for c: acc += parts[i, c]; for k (the remainder): acc += v(i, k); ... }"""
    acc, count = row.store.buffer, parts.shape[-1]
    chunk, c = fresh.loop(count)
    head, k = fresh.loop(row.loop.extent - count * CHUNK)
    place = (*(of(h.loop) for h in row.heads), c)
    added = nest(chunk, Store(acc, (), Load(parts, place), _reduce(row)))
    rest = nest(head, Renaming(Substitution({row.loop: count * CHUNK + k}), {}).statement(row.store))
    return _shared(fresh, row.heads, _replaced(body, row.nest, sequence((added, rest))))


def _reduce(row: RowSum) -> Reduce:
    return row.store.reduce or Reduce.SUM


def _shared(fresh: FreshLoops, heads: Sequence[For], body: Stmt) -> Stmt:
    """One merged loop, so that threads can share it; it is not rewritten further."""
    if not heads:
        return body
    extents: tuple[Index, ...] = tuple(h.loop.extent for h in heads)
    head, flat = fresh.loop(product_of(extents))
    return nest((*head, Digits(tuple(h.loop for h in heads), flat)), body)


def _replaced(s: Stmt, old: Stmt, new: Stmt) -> Stmt:
    return new if s is old else rebuilt(s, lambda part: _replaced(part, old, new))


# Elements of a chunk: a few microseconds of work. Rounds of a loop round other loops: enough to make light of a part.
_CHUNK, _ROUNDS = 8192, 16
# Parts that are reduced in a group first. Groups are few: a plain loop is fast enough.
_GROUP = 32


def split_reductions(kernel: Kernel) -> Kernel:
    """The pass "split reduction": a reduction over everything is split into chunks, which threads share.

        acc = 0; for k < n: acc += v(k)
            ->  parts[ceil(n/CHUNK)];
                for c { part = 0; for k < min(CHUNK, n - c*CHUNK): part += v(c*CHUNK + k); parts[c] = part };
                acc = 0; for g { group = 0; for c < min(GROUP, ...): group += parts[g*GROUP + c]; acc += group }

    Loops over contiguous memory are merged first. If several loops remain, a chunk is some iterations of the outermost.
    The order depends on the sizes only, not on the number of threads, and partial sums keep long sums accurate. A
    reduction inside of other loops, such as over the rows of a batch, stays as it is.
    """
    return _outermost(kernel, (Alloc, Seq), _split)


def _split(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    """Reductions in sequences and allocations are outermost; there are no others outside of loops."""
    found = accumulation(s)
    made = None if found is None else _parts(fresh, *_ordered(fresh, *found), f"parts{len(scratch)}")
    if made is None:
        return None
    scratch.append(made[0])
    return made[1]


def _ordered(fresh: FreshLoops, heads: tuple[For, ...], store: Store) -> tuple[list[For], Store]:
    """As few loops as possible: in their order, or else with the loop along memory innermost."""
    few, body = coalesced(fresh, heads, store)
    if len(few) > 1:
        accesses = loads(store.value)
        best = max(heads, key=lambda head: score(accesses, head.loop))
        moved = coalesced(fresh, [*(h for h in heads if h is not best), best], store)
        few, body = min((few, body), moved, key=lambda found: len(found[0]))
    assert isinstance(body, Store)
    return few, body


def _parts(fresh: FreshLoops, heads: list[For], store: Store, name: str) -> tuple[Buffer, Stmt] | None:
    """The buffer of the parts, and the statement that fills it; None if one chunk is enough for all sizes."""
    outer, size = heads[0].loop, _CHUNK if len(heads) == 1 else _ROUNDS
    blocks = split(fresh, outer.extent, size)
    if not blocks.heads or blocks.heads[0].loop.extent is ZERO:
        return None
    dtype, reduce = store.buffer.dtype, store.reduce or Reduce.SUM
    buffer = Buffer(name, dtype, (blocks.heads[0].loop.extent,), Space.SCRATCH)
    part = rfactor(fresh, heads, store, blocks, lambda part: Store(buffer, (blocks.block,), part))
    return buffer, sequence((nest(blocks.heads, part), _total(fresh, buffer, store.buffer, reduce)))


def _total(fresh: FreshLoops, parts: Buffer, acc: Buffer, reduce: Reduce) -> Stmt:
    """The sum of the parts, by groups."""
    (count,) = parts.shape
    groups = split(fresh, count, _GROUP)
    head, c = fresh.loop(count)
    added = Store(acc, (), Load(parts, (c,)), reduce)
    return nest(groups.heads, rfactor(fresh, head, added, groups, lambda group: Store(acc, (), group, reduce)))


# The fewest updates of a block, and of a block per element.
_BLOCK, _FOR_A_PLACE = 4096, 8


@attrs.frozen(repr=False)
class Updates:
    """A nest that adds updates: its loops, the store, the number of the loop over updates, and the number of elements
    that updates can go to."""

    heads: tuple[For, ...]
    body: Stmt
    store: Store
    loop: Loop
    places: Index


def cut_scatter(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    """Many float updates at indices that are data are summed by blocks: each element first sums the updates of a block.

        for u < n: out[idx[u]] += v(u)
            ->  sums[n//block, m] = 0;    block = max(BLOCK, 8*m) for m places
                for b, u < block: sums[b, idx[b*block + u]] += v(b*block + u);
                for u (the remainder): out[idx[u]] += v(u);
                again b { out += sums[b] }

    All updates may go to one element, where one float32 would stop growing at 2**24; so the remainder, single updates,
    comes before the sums. A block has eight times as many updates as elements, so that sums take at most an eighth of
    the memory of the updates, and little time. Where blocks end depends only on the numbers of updates and elements of
    one row of a batch.
    """
    found = _updates(s)
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
            _added(fresh, found, blocks.rest, blocks.whole, (out, ())),
            Repeat(again[0].loop, None, nest(all_places, total)),
        )
    )


def _positions(fresh: FreshLoops, shape: Shape) -> tuple[list[For], Shape]:
    made = [fresh.loop(extent) for extent in shape]
    return [head for heads, _ in made for head in heads], tuple(position for _, position in made)


def _added(fresh: FreshLoops, found: Updates, count: Index, first: Index, to: tuple[Buffer, tuple[Index, ...]]) -> Stmt:
    """This many updates from the first one on, added to an array."""
    own, u = fresh.loop(count)
    moved = Renaming(Substitution({found.loop: first + u}), {found.store.buffer: to}).statement(found.body)
    heads = (own if head.loop is found.loop else (head,) for head in found.heads)
    return nest((head for loops in heads for head in loops), moved)


def _updates(s: Stmt) -> Updates | None:
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
    # Along an axis whose index is a loop, as that of a batch, each update has its own element.
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
    """The loops round the only store of a statement, possibly under conditions; None for other statements."""
    if isinstance(s, If) and s.no is None:
        return _inside(s.yes)
    if isinstance(s, Nest) and all(isinstance(h, For) and h.kind is LoopKind.PLAIN for h in s.heads):
        heads, store = _inside(s.body)
        return [*(h for h in s.heads if isinstance(h, For)), *heads], store
    return [], s if isinstance(s, Store) else None


def _is_place(e: object, store: Store) -> bool:
    return isinstance(e, Load) and e.buffer is store.buffer and e.index == store.index and not e.conditions
