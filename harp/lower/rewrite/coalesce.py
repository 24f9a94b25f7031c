"""Loops in the order of memory: two loops are merged if everything they access is contiguous; else the loop that runs
along memory becomes the innermost one.

    for i < m, j < n: out[i, j] = f(x[i, j])  ->  for f < m*n: out[f//n, f%n] = f(x[f//n, f%n])

The divisions are only notation: the offset of an element is f again, and that is what is printed. So the long direction
of 1 x n and n x 4 is found without knowing which one it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harp.lower.loopir.effects import loads as all_loads
from harp.lower.loopir.loops import MEMORY, Buffer, For, If, LoopKind, Nest, Stmt, Store, offset, walk
from harp.lower.loopir.nests import (
    FreshLoops,
    accumulation,
    accumulations,
    is_plain,
    loads,
    nest,
    rebuilt,
    renamed,
    score,
)
from harp.lower.rewrite.loop_primitives import Context, everywhere
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, indirect_in, split_linear, value_atoms
from harp.trace.scalar.expr import Position
from harp.trace.scalar.expr import walk as walk_expr


def coalesce(context: Context, s: Stmt) -> Stmt | None:
    """The rule for loop nests; see the top of the file."""
    if not isinstance(s, Nest) or not is_plain(s):
        return None
    heads, body = coalesced(context.fresh, [h for h in s.heads if isinstance(h, For)], s.body)
    return nest(heads, body) if len(heads) < len(s.heads) else None


def coalesced(fresh: FreshLoops, heads: Sequence[For], body: Stmt) -> tuple[list[For], Stmt]:
    """As few loops as possible with the same body, from the inside out."""
    heads = list(heads)
    for at in range(len(heads) - 2, -1, -1):
        a, b = heads[at], heads[at + 1]
        if a.kind is not LoopKind.PLAIN or b.kind is not LoopKind.PLAIN or not _one_direction(body, a.loop, b.loop):
            continue
        inner = b.loop.extent
        (together,), f = fresh.loop(a.loop.extent * inner)
        row = floordiv(f, inner)
        body = renamed(body, {a.loop: row, b.loop: f - row * inner})
        heads[at : at + 2] = [together]
    return heads, body


def _one_direction(body: Stmt, a: Loop, b: Loop) -> bool:
    """Whether a step of `a` is as long as all steps of `b`, at every access to memory; and nothing else has them."""
    if a.extent.constant == 1 or b.extent.constant == 1:
        return False
    whole: list[Index] = []
    for buffer, index in _accesses(body):
        if buffer.space not in MEMORY:
            if any(loop in value_atoms(p) for p in index for loop in (a, b)):
                return False
            continue
        whole.append(offset(buffer, without_indirect(index)))
    for stmt in walk(body):
        if isinstance(stmt, Store):
            whole += [e.index for e in walk_expr((stmt.value,)) if isinstance(e, Position)]
    return all(steps(p, a, b) for p in whole) and not any(_mentions(p, a, b) for p in _others(body))


def _accesses(body: Stmt) -> Iterable[tuple[Buffer, tuple[Index, ...]]]:
    for stmt in walk(body):
        if isinstance(stmt, Store):
            yield stmt.buffer, stmt.index
            for load in all_loads(stmt):
                yield load.buffer, load.index


def without_indirect(index: tuple[Index, ...]) -> tuple[Index, ...]:
    """The index without elements of index arrays, which are accesses of their own."""
    indirects: dict[Atom, Index] = {indirect: ZERO for p in index for indirect in indirect_in(p)}
    return Substitution(indirects).each(index) if indirects else index


def _others(body: Stmt) -> Iterable[Index]:
    """The conditions and extents in the body."""
    for stmt in walk(body):
        if isinstance(stmt, If):
            yield from stmt.conditions
        elif isinstance(stmt, Nest):
            yield from (h.loop.extent for h in stmt.heads if isinstance(h, For))
        elif isinstance(stmt, Store):
            yield from (c for load in all_loads(stmt) for c in load.conditions)


def _mentions(p: Index, *loops: Loop) -> bool:
    return any(loop in value_atoms(p) for loop in loops)


def steps(p: Index, a: Loop, b: Loop, length: int | None = None) -> bool:
    """Whether a step of `a` is as long as all steps of `b`, and these have the given length, if any."""
    outer = split_linear(p, a)
    inner = None if outer is None else split_linear(outer[1], b)
    if outer is None or inner is None or _mentions(outer[0], b):
        return False
    return outer[0] is inner[0] * b.extent and (length is None or inner[0].constant == length)


def interchanged(context: Context, s: Stmt) -> Stmt | None:
    """Loop interchange: the loop that runs along memory becomes the innermost one.

        for k, l: acc += x[l, k]  ->  for l, k: acc += x[l, k]

    The loops round reductions are interchanged, too.
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    found = accumulation(s)
    stores = [found[1]] if found else [store for _, store in accumulations(s.body)]
    accesses = [load for store in stores for load in loads(store.value)]
    heads = [h for h in s.heads if isinstance(h, For)]
    scores = [score(accesses, h.loop) for h in heads]
    if scores[-1] > 0 or max(scores) <= 0:
        return None
    best = heads.pop(scores.index(max(scores)))
    return rebuilt(nest((*heads, best), s.body), lambda part: everywhere(context, interchanged, part))
