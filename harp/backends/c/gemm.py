"""Sums of products in C: which loop nests are one, and the call of the kernel that computes it.

    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])
        ->  harp_gemm_panel_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, b_column, &c, c_row)
        ->  harp_gemm_microkernel_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, &c, c_row)

The second one is for right factors of which whole rows may be read: both compute up to two vectors of columns, also
where they are asked for fewer. A nest qualifies where rows of c have room for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from harp.backends.c.kernels import LANES, KernelCall, gemm_microkernel, gemm_panel
from harp.lower.loops import Buffer, For, Load, Nest, Store, flat
from harp.trace.bounds import nonnegative
from harp.trace.expr import Apply
from harp.trace.index import ONE, ZERO, Index, Loop, split_linear
from harp.trace.ops import Op


class Access(NamedTuple):
    """The element at the start of the loops, and how far it moves with two of them; by its stride for each axis."""

    buffer: Buffer
    first: tuple[Index, ...]
    row: tuple[Index, ...]
    step: tuple[Index, ...]

    @property
    def is_along(self) -> bool:
        """Whether it moves along memory with its step, by one: not so a variable, which has no axis to move along."""
        return self.step[-1:] == (ONE,) and all(p is ZERO for p in self.step[:-1])


class Print(NamedTuple):
    """How an index, an element of a buffer, and its distance from the first one are printed."""

    number: Callable[[Index], str]
    element: Callable[[Buffer, tuple[Index, ...]], str]
    offset: Callable[[Buffer, tuple[Index, ...]], str]

    def pointer(self, access: Access) -> str:
        """To the element at the start of the loops."""
        return f"&{self.element(access.buffer, access.first)}"


class Products(NamedTuple):
    """A nest that adds products to rows of `width` elements, which are two vectors."""

    rows: Index
    columns: Index
    depth: Index
    a: Access
    b: Access
    c: Access
    width: int

    def arguments(self, prints: Print, steps: Sequence[tuple[Index, ...]]) -> str:
        """Of a call: extents, and where the three operands lie; `b` moves by these steps."""
        a, b, c = self.a, self.b, self.c
        places = ((a, (a.row, a.step)), (b, steps), (c, (c.row,)))
        texts = [prints.number(extent) for extent in (self.rows, self.columns, self.depth)]
        for access, moves in places:
            texts += [prints.pointer(access), *(prints.offset(access.buffer, move) for move in moves)]
        return ", ".join(texts)


def inside_loops(stmt: Nest) -> Nest:
    """A nest whose innermost loops add products, with those as its body: a sum over several axes adds them again."""
    inner = Nest(stmt.heads[-3:], stmt.body)
    return Nest(stmt.heads[:-3], inner) if len(stmt.heads) > 3 and products(inner) is not None else stmt


def products(stmt: Nest) -> Products | None:
    """The products that a nest adds, if it does that."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 3 or len(stmt.heads) != 3 or store.reduce is not None:
        return None
    value, dtype = store.value, store.buffer.dtype
    if not isinstance(value, Apply) or value.op is not Op.FMA or dtype not in LANES:
        return None
    found = [e for e in value.args if isinstance(e, Load) and not e.conditions]
    if len(found) < 3 or found[2].buffer is not store.buffer or found[2].index != store.index:
        return None
    k, i, lane = loops
    a, b, c = map(access, found, [loops] * 3, (i, k, i), (k, lane, lane))
    if a is None or b is None or c is None or store.buffer in (a.buffer, b.buffer):
        return None
    if not c.is_along:
        return None
    width = c.buffer.shape[-1].constant or 0
    if width // 2 not in LANES[dtype] or not nonnegative(width - lane.extent) or not _has_room(c, width):
        return None
    return Products(i.extent, lane.extent, k.extent, a, b, c, width)


def access(load: Load, loops: Sequence[Loop], row: Loop, step: Loop) -> Access | None:
    """None where the element moves with another one of the loops, or not in proportion.

    Where axes were merged, the element is counted along the last axis, from the start of the buffer.
    """
    whole = flat(load.buffer, load.index)
    first = load.index if whole is None else (*(ZERO for _ in load.index[1:]), whole)
    slopes: dict[Loop, tuple[Index, ...]] = {}
    for loop in loops:
        split = [split_linear(p, loop) for p in first]
        if any(s is None for s in split):
            return None
        slopes[loop] = tuple(s[0] for s in split if s is not None)
        first = tuple(s[1] for s in split if s is not None)
    if any(p is not ZERO for loop in loops if loop not in (row, step) for p in slopes[loop]):
        return None
    return Access(load.buffer, first, slopes[row], slopes[step])


def _has_room(access: Access, width: int) -> bool:
    """Whether whole rows may be read and written, of an access that is along them."""
    return access.buffer.shape[-1].constant == width and access.first[-1] is ZERO


def call(found: Products, prints: Print) -> KernelCall:
    """The call."""
    dtype, lanes, b = found.c.buffer.dtype, found.width // 2, found.b
    if b.is_along and _has_room(b, found.width):
        return KernelCall(gemm_microkernel(dtype, lanes), found.arguments(prints, (b.row,)))
    return KernelCall(gemm_panel(dtype, lanes), found.arguments(prints, (b.row, b.step)))
