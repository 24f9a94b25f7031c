"""Strip mining, which the rules for loop nests share: strips of constant length, on which every other schedule falls
back, and one loop in place of several."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harp.lower.loopir.loops import Digits, For, Head, LoopKind, Stmt
from harp.lower.loopir.nests import FreshLoops, Tile, nest, privatise, renamed
from harp.lower.rewrite.loop_primitives import split
from harp.lower.target import Target
from harp.trace.index.polynomial import Loop
from harp.trace.index.polynomial import product as product_of

# Columns that one row of accumulators serves while it streams through memory.
_STRIP = 512


@attrs.frozen
class Context:
    """What the rules know besides the statement."""

    target: Target
    fresh: FreshLoops


def strips(context: Context, body: Stmt, column: Loop, width: int = _STRIP) -> Stmt:
    """for j: body  ->  for jb { for l < min(width, remainder) inside the body }"""
    extent, count = column.extent, column.extent.constant
    room = width if count is None else min(max(count, 1), width)
    blocks = split(context.fresh, extent, room)
    head, lane = context.fresh.loop(blocks.length, LoopKind.SIMD)
    inner = renamed(body, {column: blocks.start + lane})
    return nest(blocks.heads, privatise(inner, Tile(head, (room,))) if head else inner)


def flat(context: Context, heads: Sequence[For]) -> tuple[Head, ...]:
    """One loop in place of several, so that threads can share the iterations of all of them."""
    if len(heads) < 2:
        return tuple(heads)
    head, flat = context.fresh.loop(product_of(h.loop.extent for h in heads))
    return (*head, Digits(tuple(h.loop for h in heads), flat))
