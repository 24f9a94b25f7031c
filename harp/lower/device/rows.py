"""Rows on groups of work-items: sums along rows, and loops over their elements, are shared by a group.

    for i { acc = 0; for k < n: acc += v(i, k); for j: out[i, j] = f(acc, i, j) }
        ->  if n >= LONG:
                for grid i { acc = 0
                    group parts[ITEMS], sums[BRANCHES]
                    for item t < ITEMS { part = 0; for every ITEMS-th k from t on: part += v(i, k); parts[t] = part }
                    for item h < BRANCHES { part = 0; for u: part += parts[h*... + u]; sums[h] = part }
                    for h < BRANCHES: acc += sums[h]
                    for item j: out[i, j] = f(acc, i, j) }
            else: as it was

A private array of a row, such as the exponentials of a softmax, becomes an array in the workspace of the group:

    for i { thread e[n]; for k: e[k] = v(i, k); ...; for j: out[i, j] = e[j] / acc }
        ->  for grid i { workspace e[n]; for item k: e[k] = v(i, k); ...; for item j: out[i, j] = e[j] / acc }

Neighbours read memory side by side, and the order of additions is that of this tree: it depends on the length of a row
only, not on the number of rows or the device. Running sums are in `running_sums`.
"""

from __future__ import annotations

import attrs

from harp.lower.device.grid import is_independent
from harp.lower.device.groups import ARRAYS, FEW, Unsuited, sum_of, tree_sum
from harp.lower.device.running_sums import running_sum
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    Alloc,
    For,
    If,
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
    accumulations,
    is_plain,
    loads,
    nest,
    rebuilt,
    score,
)
from harp.lower.loopir.products import is_contraction
from harp.lower.reductions.scan import match_scan
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, loops_in
from harp.trace.index.polynomial import product as product_of


def shared_rows(fresh: FreshLoops, s: Nest, lanes: int) -> Stmt | None:
    """The rule for nests of independent loops; None if it does not fit."""
    if not is_plain(s) or is_contraction(s):
        return None
    heads = tuple(h for h in s.heads if isinstance(h, For))
    length = _length(heads, s.body)
    if length is None:
        return None
    try:
        body = _statement(fresh, s.body, lanes)
    except Unsuited:
        return None
    arrays = {part.buffer.space for part in walk(body) if isinstance(part, Alloc)}
    if arrays >= {Space.WORKSPACE, Space.THREAD}:
        return None  # a launch has memory for each group, or for each work-item, not both
    groups = nest((For(h.loop, LoopKind.GRID) for h in heads), body)
    return groups if loops_in(length) else specialise((length - FEW,), groups, s)


def shared_running_sum(fresh: FreshLoops, s: Stmt, lanes: int) -> Stmt | None:
    """The rule for a running sum outside of loops."""
    scan = match_scan(s)
    if scan is None or scan.heads:
        return None
    try:
        return specialise((scan.loop.extent - FEW,), running_sum(fresh, scan, lanes), s)
    except Unsuited:
        return None


def _length(heads: tuple[For, ...], body: Stmt) -> Index | None:
    """The length of the first row that is summed along memory."""
    rows = [
        (loops[-1].loop, store.value, product_of(h.loop.extent for h in loops)) for loops, store in accumulations(body)
    ]
    scans = [found for part in walk(body) if (found := match_scan(part)) is not None and not found.heads]
    rows += [(scan.loop, scan.added, scan.loop.extent) for scan in scans]
    for loop, value, length in rows:
        accesses = loads(value)
        if score(accesses, loop) > 0 and not any(score(accesses, head.loop) > 0 for head in heads):
            return length
    return None


def _statement(fresh: FreshLoops, s: Stmt, lanes: int) -> Stmt:
    scan = match_scan(s)
    if scan is not None and not scan.heads:
        return running_sum(fresh, scan, lanes)
    if isinstance(s, Alloc) and s.buffer.space is Space.THREAD:
        return _kept_by_group(fresh, s, lanes)
    if isinstance(s, Alloc) and s.buffer.space is Space.REG:
        return Alloc(s.buffer, _statement(fresh, s.body, lanes))
    if isinstance(s, (Seq, If)):
        return rebuilt(s, lambda part: _statement(fresh, part, lanes))
    if isinstance(s, Store):
        return s
    terms = sum_of(fresh, s)
    if terms is not None:
        return tree_sum(fresh, terms, lanes)
    if isinstance(s, Nest):
        return _elements(fresh, s)
    raise Unsuited


def _kept_by_group(fresh: FreshLoops, s: Alloc, lanes: int) -> Stmt:
    """The private memory of a work-item becomes that of the group, of a size that the host knows."""
    if any(loops_in(extent) for extent in s.buffer.shape):
        raise Unsuited
    kept = attrs.evolve(s.buffer, space=Space.WORKSPACE)
    return Alloc(kept, _statement(fresh, Renaming(Substitution({}), {s.buffer: (kept, ())}).statement(s.body), lanes))


def _elements(fresh: FreshLoops, s: Nest) -> Stmt:
    """for j: out[j] = v(j)  ->  for item j: out[j] = v(j)"""
    heads, body = coalesced(fresh, [h for h in s.heads if isinstance(h, For)], s.body)
    if not all(b.space in ARRAYS for b in effects(s).writes):
        raise Unsuited
    for at in reversed(range(len(heads))):
        head, others = heads[at], [*heads[:at], *heads[at + 1 :]]
        bound = {h.loop for h in others}
        if (
            head.kind is LoopKind.PLAIN
            and not bound & {*loops_in(head.loop.extent)}
            and is_independent(head, others, body)
        ):
            return nest((For(head.loop, LoopKind.ITEM), *others), body)
    raise Unsuited
