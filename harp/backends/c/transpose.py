"""Transposition of a part of a matrix: which loop nests are that, and the call of the kernel that does it.

    for r, k: tile[k, r] = b[r, k]  ->  harp_transpose_32_x16(rows, columns, &b, b_row, &tile, width)

Elements are moved as they are, so there is one kernel for all dtypes of a size.
"""

from __future__ import annotations

from typing import NamedTuple

from harp.backends.c.gemm import Access, Print, access
from harp.backends.c.kernels import LANES, KernelCall, transpose
from harp.lower.across import VECTORS
from harp.lower.loops import For, Load, Nest, Space, Store
from harp.trace.index import Index

# By bytes of an element, a dtype of that size.
_BY_SIZE = {dtype.itemsize: dtype for dtype in LANES}


class Transposed(NamedTuple):
    """A nest that copies rows of `b` to columns of `c`."""

    kernel: str
    rows: Index
    columns: Index
    b: Access
    c: Access


def match(stmt: Nest) -> Transposed | None:
    """The part that a nest transposes, if it does that."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 2 or len(stmt.heads) != 2 or store.reduce is not None:
        return None
    value, tile = store.value, store.buffer
    if not isinstance(value, Load) or value.conditions or tile.space is not Space.TILE or len(tile.shape) != 2:
        return None
    dtype, lanes = _BY_SIZE.get(tile.dtype.itemsize), (tile.shape[-1].constant or 0) // VECTORS
    if dtype is None or lanes not in LANES[dtype] or value.buffer is tile:
        return None
    r, k = loops
    b, c = access(value, loops, r, k), access(Load(tile, store.index), loops, k, r)
    if b is None or c is None or not (b.is_along and c.is_along):
        return None
    return Transposed(transpose(dtype, lanes), r.extent, k.extent, b, c)


def call(found: Transposed, prints: Print) -> KernelCall:
    """The call."""
    extents = f"{prints.number(found.rows)}, {prints.number(found.columns)}"
    b, c = (f"{prints.pointer(x)}, {prints.offset(x.buffer, x.row)}" for x in (found.b, found.c))
    return KernelCall(found.kernel, f"{extents}, {b}, {c}")
