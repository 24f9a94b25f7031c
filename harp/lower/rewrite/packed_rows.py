"""Narrow rows are packed: the vector runs over several rows at once, and operands that do not vary along memory are
expanded for it.

    for i, j < d: out[i, j] = f(x[i, j], w[j], g[i])
        ->  if d <= NARROW:
                for ib { w'[64*d] = w, 64 times; for ic < 8 { g'[64*d] = each of 64 elements of g, d times;
                    for simd l < 64*d: out[row(l), l % d] = f(x[row(l), l % d], w'[l], g'[l]) } }
            else: as it was

where row(l) is the l//d-th of the 64 rows; in memory that is one run, and no division remains. A row of g' is stored as
a whole vector, whose excess elements are overwritten by later rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Space, Stmt, Store, offset, walk
from harp.lower.loopir.nests import Renaming, is_straight, makes_index_arrays, nest, sequence
from harp.lower.rewrite.coalesce import steps
from harp.lower.rewrite.loop_primitives import Context, specialise, split, stage
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, loops_in
from harp.trace.scalar.expr import Apply, Expr, Position
from harp.trace.scalar.expr import walk as walk_expr

# The longest rows that are narrow, also the length of a vector that fills a row.
NARROW = 8
# Rows that the vector runs over, and the number of times that w' is used before it is expanded again.
_ROWS, _TIMES = 64, 8
# The most expanded operands, and operations of code that is printed in two versions.
_LAID_OUT, _REPEATED = 6, 64
_RESULTS = (Space.OUTPUT, Space.SCRATCH)


class _Leaves(NamedTuple):
    """The loads that are not contiguous: those by row only, and those by column only."""

    rows: list[Load]
    columns: list[Load]


def packed_rows(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or len(s.heads) < 2 or not is_straight(s.body) or makes_index_arrays(s.body):
        return None
    *outer, row, column = [h for h in s.heads if isinstance(h, For)]
    if row.kind is not LoopKind.PLAIN or column.kind is not LoopKind.PLAIN or loops_in(column.loop.extent):
        return None
    leaves = _leaves(s.body, row.loop, column.loop)
    room = NARROW - column.loop.extent
    if leaves is None or not 0 < len(leaves.rows) + len(leaves.columns) <= _LAID_OUT or _is_never(room):
        return None
    if sum(isinstance(e, Apply) for e in _values(s.body)) > _REPEATED:
        return None
    together = nest(outer, _together(context, s.body, row.loop, column.loop, leaves))
    # In many matrices of few rows each, expanding operands does not pay.
    return specialise((room, row.loop.extent - _ROWS if outer else ZERO), together, s)


def _is_never(room: Index) -> bool:
    return room.constant is not None and not 0 <= room.constant < NARROW - 1  # one column has no rows to lay out


def _values(s: Stmt) -> Iterator[Expr]:
    return walk_expr(part.value for part in walk(s) if isinstance(part, Store))


def _leaves(body: Stmt, row: Loop, column: Loop) -> _Leaves | None:
    """None if a load is neither contiguous, nor invariant along rows or along columns."""
    found = _Leaves([], [])
    stored = {part.buffer: part.index for part in walk(body) if isinstance(part, Store)}
    own = {part.buffer for part in walk(body) if isinstance(part, Alloc) and part.buffer.space is Space.REG}
    for buffer, index in stored.items():
        if buffer not in own and not (buffer.space in _RESULTS and _along(buffer, index, row, column)):
            return None
    for e in _values(body):
        if isinstance(e, Position) and loops_in(e.index) & {row, column}:
            return None
        if not isinstance(e, Load) or e.buffer in own:
            continue
        if stored.get(e.buffer, e.index) != e.index:
            return None
        moving = {loop for p in (*e.index, *e.conditions) for loop in loops_in(p)} & {row, column}
        if moving == {row}:
            found.rows.append(e)
        elif moving == {column}:
            found.columns.append(e)
        elif moving and (e.conditions or not _along(e.buffer, e.index, row, column)):
            return None
    return found


def _along(buffer: Buffer, index: Sequence[Index], row: Loop, column: Loop) -> bool:
    """Whether rows are contiguous in memory, one after the other."""
    whole = offset(buffer, tuple(index))
    return steps(whole, row, column, 1)


def _together(context: Context, body: Stmt, row: Loop, column: Loop, leaves: _Leaves) -> Stmt:
    fresh, width = context.fresh, column.extent
    blocks = split(fresh, row.extent, _ROWS * _TIMES)
    groups = split(fresh, blocks.length, _ROWS)
    first, rows = blocks.start + groups.start, groups.length
    head, lane = fresh.loop(rows * width, LoopKind.SIMD)
    laid_out = {
        e: Buffer(f"row{n}", e.dtype, (width * _ROWS + NARROW,), Space.THREAD) for n, e in enumerate(leaves.rows)
    }
    laid_out |= {e: Buffer(f"column{n}", e.dtype, (width * _ROWS,), Space.THREAD) for n, e in enumerate(leaves.columns)}
    work = nest(head, _over_rows(body, {e: Load(b, (lane,)) for e, b in laid_out.items()}, row, column, first, lane))
    for e in leaves.rows:
        heads, i = fresh.loop(rows)
        vector, v = fresh.loop(NARROW, LoopKind.SIMD)
        value = Renaming(Substitution({row: first + i}), {}).value(e)
        work = sequence((nest((*heads, *vector), Store(laid_out[e], (i * width + v,), value)), work))
    work = nest(groups.heads, work)
    for e in leaves.columns:
        heads, i = fresh.loop(_ROWS)
        inner, j = fresh.loop(width)
        value = Renaming(Substitution({column: j}), {}).value(e)
        work = sequence((nest((*heads, *inner), Store(laid_out[e], (i * width + j,), value)), work))
    for buffer in laid_out.values():
        work = Alloc(buffer, work)
    return nest(blocks.heads, work)


def _over_rows(body: Stmt, laid_out: dict[Load, Load], row: Loop, column: Loop, first: Index, lane: Index) -> Stmt:
    """The body at one position of the run over several rows."""
    along = floordiv(lane, column.extent)
    places = Substitution({row: first + along, column: lane - along * column.extent})
    return Renaming(places, {}).statement(stage(body, laid_out))
