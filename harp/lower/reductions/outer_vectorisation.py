"""Outer vectorisation, for reductions over short rows: the vector runs across rows, for there is too little to do along
them.

    for i { acc = 0; for k < m: acc += x[i, k]; out[i] = acc }
        ->  if m <= SHORT:
                for ib { acc[R] = 0; for k { for simd l: acc[l] += x[ib*R + l, k] }; for l: out[ib*R + l] = acc[l] }
            else: as it was

Which version runs depends on the length of the rows only, so a row has the same bits at every batch size.
"""

from __future__ import annotations

from harp.lower.loopir.loops import For, LoopKind, Nest, Stmt, walk
from harp.lower.loopir.nests import accumulations, loads, nest, score
from harp.lower.rewrite.loop_primitives import specialise
from harp.lower.rewrite.strip_mining import Context, strips
from harp.trace.index.polynomial import loops_in

# The longest rows that are short, in elements.
SHORT = 32


def outer_vectorised(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or not any(True for _ in accumulations(s.body)):
        return None
    *outer, row = [h for h in s.heads if isinstance(h, For)]
    accesses = [load for _, store in accumulations(s.body) for load in loads(store.value)]
    if score(accesses, row.loop) > 0:
        return None
    inside = [h for part in walk(s.body) if isinstance(part, Nest) for h in part.heads if isinstance(h, For)]
    if any(h.kind is not LoopKind.PLAIN or loops_in(h.loop.extent) for h in inside):
        return None
    room = dict.fromkeys(SHORT - h.loop.extent for h in inside)
    if any(r.constant is not None and r.constant < 0 for r in room):
        return None
    return specialise(room, nest(outer, strips(context, s.body, row.loop)), s)
