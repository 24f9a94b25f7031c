"""What lies across the columns of a result is transposed in memory that a group shares.

    for i, j: out[i, j] = f(x[j, i], y[i, j])
        ->  for grid ib < ceil(m/SIDE), jb < ceil(n/SIDE) {
                group tile[SIDE, SIDE + 1]
                for item t: tile[j, i] = x[jb*SIDE + j, ib*SIDE + i]
                for item t: out[ib*SIDE + i, jb*SIDE + j] = f(tile[j, i], y[...]) }

Neighbours read and store what is side by side in memory, both times. A row of the tile is longer by one, so that
neighbours do not meet in one bank of the shared memory. Source: G. Ruetsch, P. Micikevicius: "Optimizing matrix
transpose in CUDA", 2009.
"""

from __future__ import annotations

from harp.lower.device.groups import ITEMS, items
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, If, Load, LoopKind, Nest, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, is_straight, makes_index_arrays, nest, renamed, sequence
from harp.lower.rewrite.loop_primitives import specialise, stage
from harp.lower.rewrite.transpose_tiling import transposed_loads
from harp.trace.index.division import ceildiv
from harp.trace.index.polynomial import Atom, Index, as_index, loops_in

# Rows and columns of a tile, elements of a work-item, and operands that have one.
_SIDE, _TILES = 32, 4
_EACH = _SIDE * _SIDE // ITEMS


def transposed(fresh: FreshLoops, s: Nest) -> Stmt | None:
    """The rule for loop nests, whose loops are independent of each other; None if it does not fit."""
    heads = [h for h in s.heads if isinstance(h, For) and not loops_in(h.loop.extent)]
    if len(heads) < max(len(s.heads), 2) or not is_straight(s.body) or makes_index_arrays(s.body):
        return None
    *outer, column = heads
    for row in reversed(outer):
        across = transposed_loads(s.body, row.loop, column.loop)
        if 0 < len(across) <= _TILES:
            tiles = {load: _tile(load, number) for number, load in enumerate(across)}
            others = [h for h in outer if h is not row]
            made = _by_tiles(fresh, others, row, column, s.body, tiles)
            return specialise((row.loop.extent - _SIDE, column.loop.extent - _SIDE), made, s)
    return None


def _tile(load: Load, number: int) -> Buffer:
    return Buffer(f"tile{number}", load.dtype, (as_index(_SIDE), as_index(_SIDE + 1)), Space.GROUP)


def _by_tiles(
    fresh: FreshLoops, outer: list[For], row: For, column: For, body: Stmt, tiles: dict[Load, Buffer]
) -> Stmt:
    ib, rows = fresh.loop(ceildiv(row.loop.extent, _SIDE), LoopKind.GRID)
    jb, columns = fresh.loop(ceildiv(column.loop.extent, _SIDE), LoopKind.GRID)
    top, start = rows * _SIDE, columns * _SIDE

    def shared(along_rows: bool) -> Stmt:
        """A loop over the tile, neighbours being in one row of `x` or of the result, if they are there."""
        head, t = items(fresh)
        (high_head,), high = fresh.loop(ITEMS // _SIDE)
        (low_head,), low = fresh.loop(_SIDE)
        repeat, r = fresh.loop(_EACH, LoopKind.UNROLL)
        far = high * _EACH + r
        i, j = (low, far) if along_rows else (far, low)
        places: dict[Atom, Index] = {row.loop: top + i, column.loop: start + j}
        if along_rows:
            made: Stmt = sequence(Store(tile, (j, i), load) for load, tile in tiles.items())
        else:
            made = stage(body, {load: Load(tile, (j, i)) for load, tile in tiles.items()})
        conditions = (row.loop.extent - 1 - (top + i), column.loop.extent - 1 - (start + j))
        digits = Digits((high_head.loop, low_head.loop), t)
        return nest((*head, digits, *repeat), If(conditions, renamed(made, places)))

    whole = sequence((shared(True), shared(False)))
    for tile in tiles.values():
        whole = Alloc(tile, whole)
    return nest((*(For(h.loop, LoopKind.GRID) for h in outer), *ib, *jb), whole)
