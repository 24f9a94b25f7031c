"""Loop interchange: the loop that runs along memory goes innermost.

    for k, l: acc += x[l, k]  ->  for l, k: acc += x[l, k]

The same for the loops round reductions.
"""

from __future__ import annotations

from harp.lower.loopir.loops import For, Nest, Stmt
from harp.lower.loopir.nests import accumulation, accumulations, loads, nest, rebuilt, score
from harp.lower.rewrite.everywhere import everywhere
from harp.lower.rewrite.strip_mining import Context


def interchanged(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
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
