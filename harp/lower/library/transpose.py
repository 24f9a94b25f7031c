"""The transposition of a part of a matrix.

    for r, k: tile[k, r] = b[r, k]  ->  transpose

Elements are moved as they are, so a routine for a dtype does for all dtypes of its size.
"""

from __future__ import annotations

from harp.lower.library.operands import LANES, loops_of, operand
from harp.lower.loopir.loops import LibraryCall, Load, Nest, Routine, Space, Store
from harp.lower.rewrite.transpose_tiling import VECTORS

# By bytes of an element, the lanes that there are functions for.
_LANES = {dtype.itemsize: lanes for dtype, lanes in LANES.items()}
# The loops in order: rows and columns of what is read.
_ROW, _COLUMN = range(2)


def transpose(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    loops, store = loops_of(s, 2), s.body
    if loops is None or not isinstance(store, Store) or store.reduce is not None:
        return None
    value, tile = store.value, store.buffer
    if not isinstance(value, Load) or value.conditions or tile.space is not Space.LOCAL or len(tile.shape) != 2:
        return None
    lanes = (tile.shape[-1].constant or 0) // VECTORS
    if lanes not in _LANES.get(tile.dtype.itemsize, ()) or value.buffer is tile:
        return None
    b, c = operand(value, loops), operand(Load(tile, store.index), loops)
    if b is None or c is None or not (b.is_along(_COLUMN) and c.is_along(_ROW)):
        return None
    return LibraryCall(Routine.TRANSPOSE, lanes, loops, (b, c))
