"""The loop along memory goes innermost, in strips of constant length: what every other schedule falls back on."""

from __future__ import annotations

import attrs

from harp.lower.loops import LoopKind, Stmt
from harp.lower.rewrite import Numbers, Tile, distribute, nest, renamed
from harp.lower.target import Target
from harp.trace.division import ceildiv, minimum
from harp.trace.index import Loop, as_index

# Columns that one row of accumulators serves while it streams through memory.
_STRIP = 512


@attrs.frozen
class Context:
    """What the rules know besides the statement."""

    target: Target
    numbers: Numbers


def strips(context: Context, body: Stmt, column: Loop) -> Stmt:
    """for j: body  ->  for jb { for l < min(STRIP, what is left) inside the body }"""
    extent = column.extent
    count = extent.constant
    if count is not None and count <= _STRIP:
        blocks, room = as_index(1), max(count, 1)
    else:
        blocks, room = ceildiv(extent, _STRIP), _STRIP
    block, position = context.numbers.loop(blocks)
    start = position * room
    head, lane = context.numbers.loop(minimum(room, extent - start), LoopKind.SIMD)
    inner = renamed(body, {column: start + lane})
    return nest(block, distribute(inner, Tile(head, (room,))) if head else inner)
