"""The loop along memory goes innermost, in strips of constant length: what every other schedule falls back on."""

from __future__ import annotations

from harp.fields import frozen
from harp.lower.loops import LoopKind, Stmt
from harp.lower.rewrite import Numbers, Tile, distribute, nest, renamed
from harp.lower.target import Target
from harp.trace.division import ceildiv, minimum
from harp.trace.index import Loop, as_index

# Columns that one row of accumulators serves while it streams through memory.
_STRIP = 512


@frozen(eq=True)
class Context:
    """What the rules know besides the statement."""

    target: Target
    numbers: Numbers


def strips(context: Context, body: Stmt, column: Loop, width: int = _STRIP) -> Stmt:
    """for j: body  ->  for jb { for l < min(width, what is left) inside the body }"""
    extent, count = column.extent, column.extent.constant
    room = width if count is None else min(max(count, 1), width)
    blocks = as_index(1) if extent.constant is not None and extent.constant <= room else ceildiv(extent, room)
    block, position = context.numbers.loop(blocks)
    start = position * room
    head, lane = context.numbers.loop(minimum(room, extent - start), LoopKind.SIMD)
    inner = renamed(body, {column: start + lane})
    return nest(block, distribute(inner, Tile(head, (room,))) if head else inner)
