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
# Vectors of accumulators for a matrix times a vector: enough rows to make light of starting, few enough to deal out.
VECTORS = 16


@attrs.frozen
class Context:
    """What the rules know besides the statement."""

    target: Target
    numbers: Numbers


def strips(context: Context, body: Stmt, column: Loop) -> Stmt:
    """for j: body  ->  for jb { for l < min(STRIP, what is left) inside the body }"""
    count = column.extent.constant
    room = _STRIP if count is None else min(max(count, 1), _STRIP)
    return _strips_of(context, body, column, room)


def vectors(context: Context, body: Stmt, column: Loop, lanes: int) -> Stmt:
    """The same in strips of as many elements as `VECTORS` vectors have, whatever the extent."""
    return _strips_of(context, body, column, VECTORS * lanes)


def _strips_of(context: Context, body: Stmt, column: Loop, room: int) -> Stmt:
    extent = column.extent
    blocks = as_index(1) if extent.constant is not None and extent.constant <= room else ceildiv(extent, room)
    block, position = context.numbers.loop(blocks)
    start = position * room
    head, lane = context.numbers.loop(minimum(room, extent - start), LoopKind.SIMD)
    inner = renamed(body, {column: start + lane})
    return nest(block, distribute(inner, Tile(head, (room,))) if head else inner)
