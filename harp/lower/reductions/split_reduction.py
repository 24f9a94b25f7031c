"""Split reductions: what is reduced over everything goes by chunks, which threads can share.

    acc = 0; for k < n: acc += v(k)
        ->  parts[ceil(n/CHUNK)];
            for c { part = 0; for k < min(CHUNK, n - c*CHUNK): part += v(c*CHUNK + k); parts[c] = part };
            acc = 0; for g { group = 0; for c < min(GROUP, ...): group += parts[g*GROUP + c]; acc += group }

Loops over memory without gaps are one loop first. Where several are left, a chunk is a few rounds of the outermost.
The order depends on the sizes only, never on the number of threads; and partial sums keep long sums accurate. A
reduction inside other loops, such as that of the rows of a batch, stays as it is.
"""

from __future__ import annotations

import attrs

from harp.lower.loopir.loops import Alloc, Buffer, For, Kernel, Load, Seq, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, accumulation, loads, nest, score, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import rfactor, split
from harp.trace.index.polynomial import ZERO
from harp.trace.scalar.ops import Reduce

# Elements of a chunk: a few microseconds of work. Rounds of a loop round other loops: enough to make light of a part.
_CHUNK, _ROUNDS = 8192, 16
# Parts that are reduced before the sum of all is touched. They are few: a plain loop is fast enough.
_GROUP = 32


def split_reductions(kernel: Kernel) -> Kernel:
    """The kernel with its outermost reductions in chunks, and scratch buffers for the partial results."""
    scratch = list(kernel.scratch)
    body = _outermost(FreshLoops(kernel), kernel.body, scratch)
    return attrs.evolve(kernel.with_body(body), scratch=tuple(scratch)) if body is not kernel.body else kernel


def _outermost(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt:
    """Reductions in sequences and variables are outermost; there are no others outside of loops."""
    if isinstance(s, Alloc):
        body = _outermost(fresh, s.body, scratch)
        return s if body is s.body else Alloc(s.buffer, body)
    if isinstance(s, Seq):
        parts = tuple(_outermost(fresh, part, scratch) for part in s.parts)
        return s if all(a is b for a, b in zip(parts, s.parts, strict=True)) else sequence(parts)
    found = accumulation(s)
    if found is None:
        return s
    heads, store = _ordered(fresh, *found)
    made = _parts(fresh, heads, store, f"parts{len(scratch)}")
    if made is None:
        return s
    scratch.append(made[0])
    return made[1]


def _ordered(fresh: FreshLoops, heads: tuple[For, ...], store: Store) -> tuple[list[For], Store]:
    """As few loops as there can be: as they stand, else with the one along memory innermost."""
    few, body = coalesced(fresh, heads, store)
    if len(few) > 1:
        accesses = loads(store.value)
        best = max(heads, key=lambda head: score(accesses, head.loop))
        moved = coalesced(fresh, [*(h for h in heads if h is not best), best], store)
        few, body = min((few, body), moved, key=lambda found: len(found[0]))
    assert isinstance(body, Store)
    return few, body


def _parts(fresh: FreshLoops, heads: list[For], store: Store, name: str) -> tuple[Buffer, Stmt] | None:
    """The buffer, and the statement; None if one chunk is enough for all sizes."""
    outer, size = heads[0].loop, _CHUNK if len(heads) == 1 else _ROUNDS
    blocks = split(fresh, outer.extent, size)
    if not blocks.heads or blocks.heads[0].loop.extent is ZERO:
        return None
    dtype, reduce = store.buffer.dtype, store.reduce or Reduce.SUM
    buffer = Buffer(name, dtype, (blocks.heads[0].loop.extent,), Space.SCRATCH)
    part = rfactor(fresh, heads, store, blocks, lambda part: Store(buffer, (blocks.block,), part))
    return buffer, sequence((nest(blocks.heads, part), _total(fresh, buffer, store.buffer, reduce)))


def _total(fresh: FreshLoops, parts: Buffer, acc: Buffer, reduce: Reduce) -> Stmt:
    """The parts in groups."""
    (count,) = parts.shape
    groups = split(fresh, count, _GROUP)
    head, c = fresh.loop(count)
    added = Store(acc, (), Load(parts, (c,)), reduce)
    return nest(groups.heads, rfactor(fresh, head, added, groups, lambda group: Store(acc, (), group, reduce)))
