"""The nests that groups of work-items share: products, transposes, sums of long rows, and sorts.

    for i, j { acc = 0; for k: ... }    ->  squares of the result        (`tiles`)
    for i, j: out[i, j] = f(x[j, i])    ->  tiles                        (`tiles`)
    for i { acc = 0; for k: acc += }    ->  a group for each row         (`rows`), or
                                            parts first, where it is long (`long_sums`)
    for k: out[idx[k]] += v(k)          ->  each element finds its own updates (`scatters`)
    for i: out[i] = sort(keys[i])       ->  all rows at once, by many launches
    for p: search for part p of values  ->  parts of 16 values, for more work-items

If work-items are cores, only sorts with fewer rows than cores are shared. Other nests stay as they are for `grid`: each
iteration is a work-item.
"""

from __future__ import annotations

import attrs

from harp.lower.device.grid import is_for_host, is_independent
from harp.lower.device.groups import ITEMS, suits
from harp.lower.device.long_sums import long_sums
from harp.lower.device.rows import shared_rows, shared_running_sum
from harp.lower.device.scatters import scattered
from harp.lower.device.tiles import product_sums, tiled, transposed
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Kernel, LoopKind, Nest, Repeat, Row, Seq, Stmt
from harp.lower.loopir.nests import FreshLoops, accumulation, nest, rebuilt
from harp.lower.loopir.products import is_contraction
from harp.lower.reductions.scan import in_parts
from harp.lower.rewrite.loop_primitives import specialise
from harp.lower.target import Target
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import ceildiv, maximum, minimum
from harp.trace.index.polynomial import ZERO, Loop, loops_in, of, product


def share(kernel: Kernel, target: Target) -> Kernel:
    """The kernel, in which work-items share nests."""
    scratch = list(kernel.scratch)
    body = _Sharing(FreshLoops(kernel), target, scratch).statement(kernel.body, frozenset())
    return attrs.evolve(kernel.with_body(body), scratch=tuple(scratch))


@attrs.frozen(repr=False)
class _Sharing:
    """Rewrites statements; `known` are the enclosing loops of the host."""

    fresh: FreshLoops
    target: Target
    scratch: list[Buffer]

    def statement(self, s: Stmt, known: frozenset[Loop]) -> Stmt:
        if isinstance(s, Nest):
            return self.nest(s, known)
        if isinstance(s, Repeat):
            known = known | {s.loop}
        found = self.running_sum(s) if self.target.wide else None
        found = found or sorted_together(s, self.target)
        if found is not None:
            return found
        if isinstance(s, (Seq, If, Alloc, Repeat)):
            found = rebuilt(s, lambda part: self.statement(part, known))
            return found if not isinstance(s, Alloc) or suits(found) else s
        return s

    def running_sum(self, s: Stmt) -> Stmt | None:
        short = shared_running_sum(self.fresh, s, self.target.sub_group)
        return short and long_sums(self.fresh, s, short, self.scratch, self.target.sub_group)

    def nest(self, s: Nest, known: frozenset[Loop]) -> Stmt:
        fresh, target, scratch = self.fresh, self.target, self.scratch
        together = sorted_together(s, target)
        if together is not None or not target.wide:
            return together or s
        if isinstance(s.body, Row):
            return searched(fresh, s, s.body, target.searched)
        if accumulation(s) is not None:
            return long_sums(fresh, s, s, scratch, target.sub_group)
        heads = s.heads
        for at, head in enumerate(heads):
            others = [*heads[:at], *heads[at + 1 :]]
            if not is_for_host(head, LoopKind.PLAIN, s, known):
                return s
            if not is_independent(head, others, s.body):
                return scattered(fresh, s, scratch, target.sub_group) or s
        if is_contraction(s):
            return product_sums(fresh, s, scratch, target.group >= ITEMS)
        found = (tiled(fresh, s, s) if target.group >= ITEMS else None) or transposed(fresh, s)
        short = None if found else shared_rows(fresh, s, target.sub_group)
        found = found or long_sums(fresh, s, short or s, scratch, target.sub_group)
        return rebuilt(s, lambda body: in_parts(fresh, body)) if found is s else found


def sorted_together(s: Stmt, target: Target) -> Stmt | None:
    """for i { work; out[i] = sort(keys[i]) }  ->  if n >= target.sorted_together: for grid i: out[i] = sort(keys[i])"""
    heads = s.heads if isinstance(s, Nest) else ()
    inner = s.body if isinstance(s, Nest) else s
    if not isinstance(inner, Alloc) or not isinstance(inner.body, Row) or inner.body.work is None:
        return None
    row = attrs.evolve(inner.body, work=None)
    loops = [p.atom for p in row.at]
    whole = tuple(loop.extent if isinstance(loop, Loop) else None for loop in loops) == row.target.shape[:-1]
    if not whole or len({*loops}) < len(loops) or row.start is not ZERO or row.lane.extent is not row.target.shape[-1]:
        return None
    grid = [For(h.loop, LoopKind.GRID) if isinstance(h, For) else h for h in heads]
    n, rows = row.lane.extent, product(row.target.shape[:-1])
    # One work-item for each of few rows would leave the others idle.
    few = minimum(n - target.least_sorted, target.many_rows - 1 - rows)
    idle = target.cores - 1 - rows
    pays = (maximum(n - target.sorted_together, few),) if target.wide else (n - target.sorted_by_cores, idle)
    return specialise(pays, nest(grid, row), s)


def searched(fresh: FreshLoops, s: Nest, row: Row, each: int) -> Stmt:
    """for part p { for i of the part: out[i] = search(table, values[i]) }  ->  the same with shorter parts"""
    *rows, part = s.heads
    if row.function is not RowOp.SEARCH or not isinstance(part, For) or {*loops_in(row.start)} != {part.loop}:
        return s
    length = row.target.shape[-1]
    short, p = fresh.loop(ceildiv(length, each))
    lane = Loop(fresh.loop(length + 1)[0][0].loop.axis, minimum(each, length - p * each))
    return nest((*rows, *short), attrs.evolve(row, index=(*row.at, p * each + of(lane)), lane=lane))
