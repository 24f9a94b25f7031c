"""A row vector times a matrix: which loop nests are that, and the call of the kernel that computes it.

for k, l: c[l] = fma(a[k], b[k, l], c[l])  ->  harp_gemv_axpy_f32(columns, depth, &a, a_step, &b, b_step, &c)
"""

from __future__ import annotations

from typing import NamedTuple

from harp.backends.c.gemm import Access, Print, access
from harp.backends.c.kernels import LANES, KernelCall, gemv_axpy
from harp.lower.cost import mentioned
from harp.lower.loops import For, Load, Nest, Store
from harp.trace.expr import Apply
from harp.trace.index import Index
from harp.trace.ops import Op


class RowTimesMatrix(NamedTuple):
    """A nest that is such a product."""

    columns: Index
    depth: Index
    a: Access
    b: Access
    c: Access


def match(stmt: Nest) -> RowTimesMatrix | None:
    """The product that a nest is, if it is one."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 2 or len(stmt.heads) != 2 or store.reduce is not None:
        return None
    value, dtype = store.value, store.buffer.dtype
    if not isinstance(value, Apply) or value.op is not Op.FMA or dtype not in LANES:
        return None
    found = [e for e in value.args if isinstance(e, Load) and not e.conditions]
    if len(found) < 3 or found[2].buffer is not store.buffer or found[2].index != store.index:
        return None
    k, lane = loops
    left, right, sums = found
    if any(lane in mentioned(p) for p in left.index):
        left, right = right, left
    a, b, c = access(left, loops, k, k), access(right, loops, k, lane), access(sums, loops, lane, lane)
    if a is None or b is None or c is None or store.buffer in (a.buffer, b.buffer):
        return None
    if not (b.is_along and c.is_along):
        return None
    return RowTimesMatrix(lane.extent, k.extent, a, b, c)


def call(found: RowTimesMatrix, prints: Print) -> KernelCall:
    """The call."""
    a, b, c = found.a, found.b, found.c
    extents = f"{prints.number(found.columns)}, {prints.number(found.depth)}"
    left = f"{prints.pointer(a)}, {prints.offset(a.buffer, a.step)}"
    right = f"{prints.pointer(b)}, {prints.offset(b.buffer, b.row)}"
    return KernelCall(gemv_axpy(c.buffer.dtype), f"{extents}, {left}, {right}, {prints.pointer(c)}")
