"""Interleaving: several rows of running sums, products, extrema and recurrences at once.

    for rows { acc = id; for i { acc += x[i]; out[i] = f(acc) } }

A step waits for the one before it. So several rows are computed at once: the loop over rows is unrolled and jammed into
the one along them, if the axis is the last one; else the vector runs across columns.
"""

from __future__ import annotations

from harp.lower.loopir.loops import Alloc, For, Nest, Seq, Stmt, Store, walk
from harp.lower.loopir.nests import Tile, is_even, is_sequential, loads, nest, privatise, renamed, score, sequence
from harp.lower.reductions.scan import ROWS, in_parts
from harp.lower.rewrite.loop_primitives import peel
from harp.lower.rewrite.strip_mining import Context, strips
from harp.trace.index.polynomial import ZERO


def interleaved(context: Context, s: Stmt) -> Stmt | None:
    """A rule for `harp.lower.nest_rules`.

    for row { acc = id; for i { acc += x[row, i]; out[row, i] = acc } }
        ->  for rb { acc[R] = id; for i { for unroll r: acc[r] += x[rb*R + r, i]; ... } }; for row (the remainder) ...
    for column { acc = id; for i { acc += x[i, column]; out[i, column] = acc } }
        ->  for jb { acc[W] = id; for i { for simd l: acc[l] += x[i, jb*W + l]; ... } }
    """
    if not isinstance(s, Nest) or not is_running(s.body):
        return None
    *outer, row = [h for h in s.heads if isinstance(h, For)]
    if not is_even(s.body, row.loop):
        return None
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    accesses = [load for store in stores for load in loads(store.value)]
    if score(accesses, row.loop) > 0:
        return nest(outer, strips(context, in_parts(context.fresh, s.body), row.loop))
    rows = peel(context.fresh, row.loop.extent, ROWS)
    parts: list[Stmt] = []
    if rows.whole is not ZERO:
        lane, r = context.fresh.loop(ROWS)
        tile = Tile(lane, (ROWS,), unroll=True)
        parts.append(nest(rows.heads, privatise(renamed(s.body, {row.loop: rows.block * ROWS + r}), tile)))
    if rows.rest is not ZERO:
        single, position = context.fresh.loop(rows.rest)
        parts.append(nest(single, renamed(s.body, {row.loop: rows.whole + position})))
    return nest(outer, sequence(parts))


def is_running(s: Stmt) -> bool:
    """Whether it is one ordered loop, or such loops inside each other, with the variables that they carry."""
    inside = list(walk(s))
    nests = [part for part in inside if isinstance(part, Nest)]
    if isinstance(s, Nest) or not nests or any(len(part.heads) != 1 for part in nests):
        return False
    beside = len(nests) - sum(isinstance(part, Nest) for outer in nests for part in walk(outer.body))
    plain = all(isinstance(part, (Nest, Alloc, Seq, Store)) for part in inside)
    return plain and beside == 1 and all(map(is_sequential, nests))
