"""Sums of products, which add to rows of two vectors.

    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])  ->  gemm panel, or gemm microkernel

The second is for right factors of which whole rows may be read: both compute up to two vectors of columns, also where
there are fewer. A nest qualifies where rows of c have room for that. Loops round it, as of a sum over several axes,
call it again.
"""

from __future__ import annotations

from math import prod

from harp.lower.library.operands import LANES, multiply_add
from harp.lower.loopir.loops import LibraryCall, LibraryOperand, Nest, Routine
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO

# The fewest multiply-adds that are worth a call.
_CALL = 1024
# The loops in order: the depth of the product, its rows, and its columns.
_DEPTH, _ROW, _COLUMN = range(3)


def gemm(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    found = multiply_add(Nest(s.heads[-3:], s.body), 3)
    if found is None:
        return None
    loops, (a, b, c) = found
    work = prod(loop.extent.constant or _CALL for loop in loops)
    if work < _CALL:  # the compiler writes it out
        return None
    width = c.buffer.shape[-1].constant or 0 if c.buffer.shape else 0
    if a.moves(_COLUMN) or b.moves(_ROW) or c.moves(_DEPTH) or not c.is_along(_COLUMN):
        return None
    if width // 2 not in LANES[c.buffer.dtype] or not _has_room(c, width):
        return None
    if not nonnegative(width - loops[_COLUMN].extent):
        return None
    whole_rows = b.is_along(_COLUMN) and _has_room(b, width)
    routine = Routine.GEMM_MICROKERNEL if whole_rows else Routine.GEMM_PANEL
    return LibraryCall(routine, width // 2, loops, (a, b, c))


def _has_room(operand: LibraryOperand, width: int) -> bool:
    """Whether whole rows may be read and written, of an operand that lies along them."""
    return operand.buffer.shape[-1].constant == width and operand.first[-1] is ZERO
