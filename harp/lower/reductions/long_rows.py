"""Long rows are summed by chunks, which threads can share also where there are few rows.

    for i { acc = 0; for k < n: acc += v(i, k); out[i] = f(acc) }
        ->  if n >= LONG:
                parts[m, n//CHUNK];
                for i, c { part = 0; for k < CHUNK: part += v(i, c*CHUNK + k); parts[i, c] = part };
                for i { acc = 0; for c: acc += parts[i, c]; for k (the remainder): acc += v(i, k); out[i] = f(acc) }
            else: as it was

Where a row is cut, and which version runs, depends on its length only: it has the same bits at every number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import attrs

from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    Kernel,
    Load,
    LoopKind,
    Nest,
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
from harp.lower.reductions.long_scatters import cut_scatter
from harp.lower.reductions.scan import cut_scan
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import Blocks, rfactor, specialise
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import Index, Loop, as_index, loops_in, of
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.expr import Expr
from harp.trace.scalar.ops import Reduce

# Elements of a chunk, enough to make light of its lanes; and of the shortest row that is cut.
CHUNK, LONG = 1 << 15, 1 << 16


@attrs.frozen
class RowSum:
    """A sum along a row: the loops of the rows, and the nest that adds."""

    heads: tuple[For, ...]
    nest: Stmt
    loop: Loop
    store: Store


def long_rows(kernel: Kernel) -> Kernel:
    """The kernel with the rule applied, and the scratch buffers that it takes."""
    scratch = list(kernel.scratch)
    body = _outermost(FreshLoops(kernel), kernel.body, scratch)
    return attrs.evolve(kernel.with_body(body), scratch=tuple(scratch)) if body is not kernel.body else kernel


def _outermost(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt:
    if isinstance(s, Seq):
        return rebuilt(s, lambda part: _outermost(fresh, part, scratch))
    cut = cut_scan(fresh, s, scratch) or cut_scatter(fresh, s, scratch)
    if cut is not None:
        return cut
    row = _match(fresh, s)
    if row is None:
        return s
    assert isinstance(s, Nest)
    count = floordiv(row.loop.extent, CHUNK)
    shape = (*(head.loop.extent for head in row.heads), count)
    parts = Buffer(f"parts{len(scratch)}", row.store.buffer.dtype, shape, Space.SCRATCH)
    scratch.append(parts)
    cut = sequence((_chunks(fresh, row, parts), _totals(fresh, row, parts, s.body)))
    return specialise((row.loop.extent - LONG,), cut, s)


def _match(fresh: FreshLoops, s: Stmt) -> RowSum | None:
    """The one sum of a nest, if it goes along memory and its terms are of memory only."""
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
    """Whether all that is added is in memory before the nest begins."""
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
    """One loop for all of them, so that threads can share it; it is not rewritten any more."""
    if not heads:
        return body
    extents: tuple[Index, ...] = tuple(h.loop.extent for h in heads)
    head, flat = fresh.loop(product_of(extents))
    return nest((*head, Digits(tuple(h.loop for h in heads), flat)), body)


def _replaced(s: Stmt, old: Stmt, new: Stmt) -> Stmt:
    return new if s is old else rebuilt(s, lambda part: _replaced(part, old, new))
