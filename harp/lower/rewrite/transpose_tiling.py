"""Operands that lie across the vector loop are transposed by tiles, so that each cache line is read once.

    for i, j: out[i, j] = f(x[j, i], y[i, j])
        ->  for ib, jb { tile[H, W]; for j, i: tile[i, j] = x[jb*W + j, ib*H + i];
                         for i, j: out[ib*H + i, jb*W + j] = f(tile[i, j], y[ib*H + i, jb*W + j]) }

where loops end with the arrays. H is the length of a cache line, and W several vectors, since memory is written faster
in long runs; backends transpose squares in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from harp.lower.cost_model import weigh
from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import FreshLoops, Renaming, is_straight, loads, makes_index_arrays, nest, sequence, stride
from harp.lower.rewrite.loop_primitives import Context, flat, specialise, split, stage
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ONE, Index, Loop, as_index, loops_in, split_linear
from harp.trace.index.polynomial import product as product_of

# The fewest rows and columns for which it pays, and the most operations of code that is printed in two versions.
_LEAST, _REPEATED = 16, 64
# The most transposed operands, each with a tile in the L1 cache, and the sizes of elements for which squares exist.
_TRANSPOSED, _SIZES = 4, (4, 8)
# Vectors of a row of a tile, and the most elements of a row.
VECTORS, _MOST = 8, 128
_RESULTS = (Space.OUTPUT, Space.SCRATCH)


def transpose_tiles(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or len(s.heads) < 2 or not is_straight(s.body) or makes_index_arrays(s.body):
        return None
    heads = [h for h in s.heads if isinstance(h, For) and h.kind is LoopKind.PLAIN and not loops_in(h.loop.extent)]
    if len(heads) < len(s.heads):
        return None
    *outer, column = heads
    for row in reversed(outer):
        transposed = transposed_loads(s.body, row.loop, column.loop)
        if not 0 < len(transposed) <= _TRANSPOSED:
            continue
        itemsize = max(load.dtype.itemsize for load in transposed)
        # The cache lines that a row reads are still in the L1 cache for the next row if they fit, unless strides are
        # powers of two: then they compete for few sets of the cache.
        read = product_of(head.loop.extent for head in heads[heads.index(row) :]) * itemsize
        room = [read - context.target.l1 // 4, *(head.loop.extent - _LEAST for head in (row, column))]
        if any(r.constant is not None and r.constant < 0 for r in room):
            continue
        made = _by_tiles(context, [h for h in outer if h is not row], s.body, row.loop, column.loop, transposed)
        dear = sum(weigh(part.value) for part in walk(s.body) if isinstance(part, Store)) > _REPEATED
        return made if dear else specialise(room, made, s)
    return None


def transposed_loads(body: Stmt, row: Loop, column: Loop) -> list[Load]:
    """The loads that are contiguous along rows and strided along columns; none if iterations may not be reordered."""
    stores = [part for part in walk(body) if isinstance(part, Store)]
    stored = {store.buffer: store.index for store in stores}
    for buffer, index in stored.items():
        if buffer.space is not Space.REG and not (buffer.space in _RESULTS and _lies(index, column, row)):
            return []
    read = [load for store in stores for load in loads(store.value)]
    if any(stored.get(load.buffer, load.index) != load.index for load in read):
        return []
    read = [load for load in read if not load.conditions and load.dtype.itemsize in _SIZES]
    across = [load for load in read if stride(load, column) not in (-1, 0, 1) and _lies(load.index, row, column)]
    return list(dict.fromkeys(across))


def _lies(index: Sequence[Index], along: Loop, across: Loop) -> bool:
    """Whether `along` moves the last axis by one, and `across` moves one other axis linearly."""
    if not index:
        return False
    *before, last = index
    moving = [p for p in before if across in loops_in(p)]
    if len(moving) != 1 or across in loops_in(last) or any(along in loops_in(p) for p in before):
        return False
    split, steps = split_linear(last, along), split_linear(moving[0], across)
    return split is not None and split[0] is ONE and steps is not None and steps[0].constant is not None


@attrs.frozen(repr=False)
class _Tile:
    """A tile of `rows` and `columns` from `top` and `start` on, in the loops of the nest."""

    row: Loop
    column: Loop
    top: Index
    start: Index
    rows: Index
    columns: Index

    def nest(self, fresh: FreshLoops, across: bool, make: Callable[[Index, Index], Stmt]) -> Stmt:
        """Loops over the tile round the statement for a row and a column; the vector runs `across` or along rows."""
        i_head, i = fresh.loop(self.rows)
        j_head, j = fresh.loop(self.columns)
        places = Substitution({self.row: self.top + i, self.column: self.start + j})
        return nest(j_head + i_head if across else i_head + j_head, Renaming(places, {}).statement(make(i, j)))


def _by_tiles(
    context: Context, outer: Sequence[For], body: Stmt, row: Loop, column: Loop, transposed: Sequence[Load]
) -> Stmt:
    fresh = context.fresh
    itemsize = max(load.dtype.itemsize for load in transposed)
    height, width = context.target.line // itemsize, min(VECTORS * context.target.lanes(itemsize), _MOST)
    row_blocks, column_blocks = split(fresh, row.extent, height), split(fresh, column.extent, width)
    tile = _Tile(row, column, row_blocks.start, column_blocks.start, row_blocks.length, column_blocks.length)
    blocks = flat(context, (*outer, *row_blocks.heads, *column_blocks.heads))
    shape = (as_index(height), as_index(width))
    copies = {load: Buffer(f"tile{n}", load.dtype, shape, Space.LOCAL) for n, load in enumerate(transposed)}
    inside = [tile.nest(fresh, True, _copy(load, copy)) for load, copy in copies.items()]
    made = sequence((*inside, tile.nest(fresh, False, _reading(body, copies))))
    for copy in copies.values():
        made = Alloc(copy, made)
    return nest(blocks, made)


def _copy(load: Load, copy: Buffer) -> Callable[[Index, Index], Stmt]:
    return lambda i, j: Store(copy, (i, j), load)


def _reading(body: Stmt, copies: Mapping[Load, Buffer]) -> Callable[[Index, Index], Stmt]:
    """The body for a row and a column, with elements of the copies in place of loads."""
    return lambda i, j: stage(body, {load: Load(copy, (i, j)) for load, copy in copies.items()})
