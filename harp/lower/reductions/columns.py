"""Reductions of columns: the loop along memory becomes the innermost one, whose iterations are independent; there is
one accumulator per column, in an array.

    for j < n { acc = 0; for k < m: acc += x[k, j]; out[j] = acc }
        ->  for jb { acc[W] = 0; for k < m { for simd l < W: acc[l] += x[k, jb*W + l] };
                     for simd l < W: out[jb*W + l] = acc[l] }

For the extrema of few columns the vector runs over many rows at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from harp.lower.cost_model import count_operations
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, LoopKind, Nest, Space, Stmt, Store, offset, walk
from harp.lower.loopir.nests import (
    Tile,
    accumulations,
    is_even,
    loads,
    nest,
    privatise,
    rebuilt,
    renamed,
    score,
    sequence,
)
from harp.lower.reductions.accumulators import in_blocks
from harp.lower.rewrite.coalesce import steps
from harp.lower.rewrite.loop_primitives import Context, peel, specialise, strips
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import floordiv, minimum
from harp.trace.index.polynomial import ZERO, Index, Loop, as_index, loops_in
from harp.trace.scalar.expr import Position, apply, const
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Reduce

# Scalar operations in a body that is unrolled, and in one that is printed in several versions.
_UNROLLED, _REPEATED = 6, 64
# The width of the tiles that take the remainder beside the widest ones.
_NARROW = 8


def columns(context: Context, s: Stmt) -> Stmt | None:
    """Reductions of columns, and of rows times columns, for which the accumulators are a tile of rows and columns.

    Each sum is split into partial sums first (`harp.lower.reductions.accumulators`), whichever tile it is in.

        for i, j { acc = 0; for k: acc += a[i, k]*b[k, j]; out[i, j] = acc }
            ->  for jb, ib { acc[R, W]; ...; for k { for r, l: acc[r, l] += a[ib*R + r, k]*b[k, jb*W + l] }; ... }

    There are full tiles, narrower ones, and single rows; without reuse along i, strips of single rows only, which are
    wider if there are enough for all threads: memory is read faster in long runs.
    """
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
    wide = context.target.wide_strip
    narrow, many = strips(context, body, last.loop), last.loop.extent - wide * context.target.cores
    if outer or nonnegative(-many - 1) or not _small(s.body, []):
        return nest(outer, narrow)
    return If((many,), strips(context, body, last.loop, wide), narrow)


def _has_memory(s: Stmt) -> bool:
    """Whether each iteration has private memory, which would be needed for each element of a strip."""
    return any(isinstance(part, Alloc) and part.buffer.space is Space.THREAD for part in walk(s))


def _reused(accesses: Iterable[Load], along: Loop, across: Loop) -> bool:
    """Whether some load is invariant along one loop and moves along the other."""
    for load in accesses:
        moving = {loop for p in load.index for loop in loops_in(p)}
        if along in moving and across not in moving:
            return True
    return False


def _small(body: Stmt, unrolled: Iterable[Store]) -> bool:
    total = sum(count_operations(part.value) for part in walk(body) if isinstance(part, Store))
    return total <= _REPEATED and sum(count_operations(store.value) for store in unrolled) <= _UNROLLED


def _blocks(context: Context, body: Stmt, row: Loop, column: Loop, store: Store, chains: int) -> Stmt:
    """Tiles of rows and columns that fill the registers, then the remaining rows."""
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
    """Tiles of constant size, columns from `start` on. Columns are the outer loop: their operands stay in cache."""
    (row, row_count, height), (column, column_count, width) = rows, columns
    column_block, jb = context.fresh.loop(column_count)
    row_block, ib = context.fresh.loop(row_count)
    row_head, r = context.fresh.loop(height)
    column_head, lane = context.fresh.loop(width, LoopKind.SIMD)
    inner = renamed(body, {row: ib * height + r, column: start + jb * width + lane})
    heads = row_head + column_head
    room = (height, width)[: len(heads)]
    return nest(column_block + row_block, privatise(inner, Tile(heads, room, unroll=True)))


# The most columns that are few; rows that the vector runs over, a power of two.
NARROW, _ROWS = 8, 64


def narrow_columns(context: Context, s: Stmt) -> Stmt | None:
    """Extrema of few columns: the vector runs over many rows at once, which are contiguous in memory.

        for j < m { acc = inf; for k: acc min= x[k, j]; out[j] = acc }
            ->  if m <= NARROW:
                    part[ROWS*m] = inf; for kb { for simd l < ROWS*m: part[l] min= x[kb*ROWS + l//m, l % m] };
                    for k (the remainder) { for simd j < m: part[j] min= x[k, j] };
                    part[:ROWS*m/2] min= part[ROWS*m/2:], and so on, until one row is left;  out[j] = part[j]
                else: as it was

    Sums are not changed: they would be added in another order than sums of many columns, but a column of a batch has
    the same bits for any number of columns. An extremum does not depend on the order.
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    found = list(accumulations(s.body))
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    count = last.loop.extent.constant
    if not found or len(outer) + 1 < len(s.heads) or (count is not None and count > NARROW):
        return None
    if loops_in(last.loop.extent) or not is_even(s.body, last.loop) or not all(_fits(h, t, last) for h, t in found):
        return None
    if any(isinstance(part, Alloc) and part.buffer.space is not Space.REG for part in walk(s.body)):
        return None
    width = last.loop.extent
    head, lane = context.fresh.loop(minimum(NARROW, width), LoopKind.SIMD)
    if not head:
        return None
    apart = privatise(renamed(s.body, {last.loop: lane}), Tile(head, (NARROW,)))
    fast = nest(outer, _over_rows(context, apart, width))
    return specialise((NARROW - width,), fast, columns(context, s) or s)


def _fits(heads: tuple[For, ...], store: Store, column: For) -> bool:
    """Whether it is an extremum along one loop, of operands that are contiguous by rows, or invariant."""
    if len(heads) != 1 or store.reduce not in (Reduce.MIN, Reduce.MAX):
        return False
    row = heads[0].loop
    moving = {row, column.loop}
    for e in walk_expr((store.value,)):
        if isinstance(e, Position) and loops_in(e.index) & moving:
            return False
        if isinstance(e, Load) and {loop for p in (*e.index, *e.conditions) for loop in loops_in(p)} & {
            row,
            column.loop,
        }:
            if e.conditions or not steps(offset(e.buffer, e.index), row, column.loop, 1):
                return False
    return bool(loads(store.value))


def _over_rows(context: Context, s: Stmt, width: Index) -> Stmt:
    """The statement, in which extrema along rows run over many rows at once.

    A single row, such as one of padding, has no loop over rows and stays as it is.
    """
    if isinstance(s, Nest) and isinstance(s.body, Store) and s.body.reduce in (Reduce.MIN, Reduce.MAX):
        *rows, lane = s.heads
        if not rows:
            return s
        (row,) = rows
        assert isinstance(row, For) and isinstance(lane, For)
        return _many(context, row.loop, lane.loop, width, s.body)
    return rebuilt(s, lambda part: _over_rows(context, part, width))


def _many(context: Context, row: Loop, column: Loop, width: Index, store: Store) -> Stmt:
    fresh, reduce = context.fresh, store.reduce
    assert reduce is not None
    part = Buffer(f"{store.buffer.name}_rows", store.buffer.dtype, (as_index(_ROWS * NARROW),), Space.LOCAL)
    blocks = peel(fresh, row.extent, _ROWS)

    def added(rows: Index | int, start: Index) -> Stmt:
        head, lane = fresh.loop(width * rows, LoopKind.SIMD)
        along = floordiv(lane, width)
        value = Store(part, (lane,), store.value, reduce)
        moved = renamed(value, {row: start + along, column: lane - along * width})
        return nest(head, moved)

    fill, lane = fresh.loop(width * _ROWS, LoopKind.SIMD)
    zero = const(reduce.identity(store.buffer.dtype), store.buffer.dtype)
    statements: list[Stmt] = [
        nest(fill, Store(part, (lane,), zero)),
        nest(blocks.heads, added(_ROWS, blocks.block * _ROWS)),
    ]
    if blocks.rest is not ZERO:
        heads, k = fresh.loop(blocks.rest)
        statements.append(nest(heads, added(1, blocks.whole + k)))
    half = _ROWS // 2
    while half:
        head, lane = fresh.loop(width * half, LoopKind.SIMD)
        other = Load(part, (lane + width * half,))
        statements.append(nest(head, Store(part, (lane,), apply(reduce.value, Load(part, (lane,)), other))))
        half //= 2
    head, lane = fresh.loop(column.extent, LoopKind.SIMD)
    statements.append(nest(head, Store(store.buffer, (lane,), Load(part, (lane,)), reduce)))
    return Alloc(part, sequence(statements))
