"""Extrema of few columns: the vector runs over many rows at once, which lie one after the other in memory.

    for j < m { acc = inf; for k: acc min= x[k, j]; out[j] = acc }
        ->  if m <= NARROW:
                part[ROWS*m] = inf; for kb { for simd l < ROWS*m: part[l] min= x[kb*ROWS + l//m, l % m] };
                for k (the remainder) { for simd j < m: part[j] min= x[k, j] };
                part[:ROWS*m/2] min= part[ROWS*m/2:], and so on, until one row is left;  out[j] = part[j]
            else: as it was

Sums are left alone: they would be added in another order than those of many columns, and a column of a batch has the
same bits whatever the number of columns. An extremum does not depend on the order.
"""

from __future__ import annotations

from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Space, Stmt, Store, offset, walk
from harp.lower.loopir.nests import Tile, accumulations, is_even, loads, nest, privatise, rebuilt, renamed, sequence
from harp.lower.reductions.columns import columns
from harp.lower.rewrite.coalesce import steps
from harp.lower.rewrite.loop_primitives import peel, specialise
from harp.lower.rewrite.strip_mining import Context
from harp.trace.index.division import floordiv, minimum
from harp.trace.index.polynomial import ZERO, Index, Loop, as_index, loops_in
from harp.trace.scalar.expr import Position, apply, const
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Reduce

# The most columns that are few; rows that the vector runs over, a power of two.
NARROW, _ROWS = 8, 64


def narrow_columns(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
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
    """Whether it is an extremum along one loop, of what lies in memory row by row or is the same everywhere."""
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
    """The statement, in which extrema along rows go over many rows at once.

    A single row, such as one of padding, has no loop over rows, and stays as it is.
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
