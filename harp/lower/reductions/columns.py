"""Reductions of columns: the loop along memory goes innermost and carries nothing; its accumulators are a tile.

Each sum is one of partial sums first (`harp.lower.reductions.accumulators`), whichever tile it is in.

    for i, j { acc = 0; for k: acc += a[i, k]*b[k, j]; out[i, j] = acc }
        ->  for jb, ib { acc[R, W]; ...; for k { for r, l: acc[r, l] += a[ib*R + r, k]*b[k, jb*W + l] }; ... }

There are full tiles, narrower ones, and single rows; without reuse along i, strips of single rows only, which are wider
where there are enough for all threads: memory is read faster in long pieces.
"""

from __future__ import annotations

from collections.abc import Iterable

from harp.lower.cost_model import count_operations
from harp.lower.loopir.loops import Alloc, For, If, Load, LoopKind, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import Tile, accumulations, is_even, loads, nest, privatise, renamed, score, sequence
from harp.lower.reductions.accumulators import in_blocks
from harp.lower.rewrite.strip_mining import Context, strips
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, loops_in

# Scalar operations in a body that is unrolled, and in one that is printed in several versions.
_UNROLLED, _REPEATED = 6, 64
# The width of the tiles that take the remainder beside the widest ones.
_NARROW = 8
# Columns of a wide strip, whose accumulators fill a part of the L1 cache.
_WIDE = 2048


def columns(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    found = list(accumulations(s.body))
    accesses = [load for _, store in found for load in loads(store.value)]
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    if not found or score(accesses, last.loop) <= 0 or _has_memory(s.body) or not is_even(s.body, last.loop):
        return None
    body = in_blocks(context.fresh, s.body)
    if (
        outer
        and is_even(s.body, outer[-1].loop)
        and _reused(accesses, last.loop, outer[-1].loop)
        and _small(s.body, [store for _, store in found])
    ):
        return nest(outer[:-1], _blocks(context, body, outer[-1].loop, last.loop, found[0][1], len(found)))
    narrow, many = strips(context, body, last.loop), last.loop.extent - _WIDE * context.target.cores
    if outer or nonnegative(-many - 1) or not _small(s.body, []):
        return nest(outer, narrow)
    return If((many,), strips(context, body, last.loop, _WIDE), narrow)


def _has_memory(s: Stmt) -> bool:
    """Whether each iteration has memory of its own, which would be there for each element of a strip."""
    return any(isinstance(part, Alloc) and part.buffer.space is Space.THREAD for part in walk(s))


def _reused(accesses: Iterable[Load], along: Loop, across: Loop) -> bool:
    """Whether some load along one loop is the same for all positions of the other."""
    for load in accesses:
        moving = {loop for p in load.index for loop in loops_in(p)}
        if along in moving and across not in moving:
            return True
    return False


def _small(body: Stmt, unrolled: Iterable[Store]) -> bool:
    total = sum(count_operations(part.value) for part in walk(body) if isinstance(part, Store))
    return total <= _REPEATED and sum(count_operations(store.value) for store in unrolled) <= _UNROLLED


def _blocks(context: Context, body: Stmt, row: Loop, column: Loop, store: Store, chains: int) -> Stmt:
    """Tiles of rows and columns that fill the registers, then the rows that are left."""
    width = 2 * context.target.lanes(store.buffer.dtype.itemsize)
    height = max(context.target.tile_rows // chains, 2)
    extent, done = column.extent, ZERO
    whole_rows = floordiv(row.extent, height)
    parts: list[Stmt] = []
    for size in sorted({width, min(width, _NARROW), 1}, reverse=True):
        end = floordiv(extent, size) * size
        count = floordiv(end - done, size)
        if count is not ZERO and whole_rows is not ZERO:
            parts.append(_tiles(context, body, (row, whole_rows, height), (column, count, size), done))
        done = end
    left = row.extent - whole_rows * height
    if left is not ZERO:
        head, position = context.fresh.loop(left)
        parts.append(nest(head, strips(context, renamed(body, {row: whole_rows * height + position}), column)))
    return sequence(parts)


def _tiles(
    context: Context, body: Stmt, rows: tuple[Loop, Index, int], columns: tuple[Loop, Index, int], start: Index
) -> Stmt:
    """Tiles of constant size, columns from `start` on. Columns are the outer loop: what they read stays in cache."""
    (row, row_count, height), (column, column_count, width) = rows, columns
    column_block, jb = context.fresh.loop(column_count)
    row_block, ib = context.fresh.loop(row_count)
    row_head, r = context.fresh.loop(height)
    column_head, lane = context.fresh.loop(width, LoopKind.SIMD)
    inner = renamed(body, {row: ib * height + r, column: start + jb * width + lane})
    heads = row_head + column_head
    room = (height, width)[: len(heads)]
    return nest(column_block + row_block, privatise(inner, Tile(heads, room, unroll=True)))
