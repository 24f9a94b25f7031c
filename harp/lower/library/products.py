"""Sums of products: of matrices, whose sums are rows of two vectors, of a vector and a matrix, and of rows.

    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])  ->  gemm panel, or gemm microkernel

The second is for right factors of which whole rows may be read: both compute up to two vectors of columns, also where
there are fewer. A nest qualifies where rows of c have room for that. Loops round it, as of a sum over several axes,
call it again.
"""

from __future__ import annotations

from math import prod

from harp.lower.library.operands import LANES, multiply_add
from harp.lower.loopir.loops import For, LibraryCall, LibraryOperand, LoopKind, Nest, Routine, Space
from harp.lower.reductions.short_rows import SHORT
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO

# A row vector times a matrix, whose rows it reads in order.
#
# for k, l: c[l] = fma(a[k], b[k, l], c[l])  ->  gemv axpy

# The fewest multiply-adds that are worth a call.
_GEMV_CALL = 64
# The loops in order: the depth of the product, and its columns.
_GEMV_K, _GEMV_L = range(2)


def gemv_axpy(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    found = multiply_add(s, 2)
    if found is None:
        return None
    loops, (a, b, c) = found
    if prod(loop.extent.constant or _GEMV_CALL for loop in loops) < _GEMV_CALL:  # the compiler writes it out
        return None
    if a.moves(_GEMV_L):
        a, b = b, a
    if a.moves(_GEMV_L) or c.moves(_GEMV_K) or not (b.is_along(_GEMV_L) and c.is_along(_GEMV_L)):
        return None
    return LibraryCall(Routine.GEMV_AXPY, 0, loops, (a, b, c))


# Sums of products along the rows of two matrices, or along two vectors.
#
# for r { for k: c[r] = fma(a[r, k], b[r, k], c[r]) }  ->  row dots
# for k: c = fma(a[k], b[k], c)                        ->  dot
#
# The loop along the rows is the inner one. The routine has an order of additions of its own, that of
# `harp.lower.reductions.accumulators`.

# The loops in order: rows, and along each of them.
_DOT_ROW, _DOT_K = range(2)


def row_dots(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    return _of_rows(s) or _of_vectors(s)


def _of_rows(s: Nest) -> LibraryCall | None:
    found = multiply_add(Nest(s.heads[-2:], s.body), 2)
    if found is None or not _is_long(s):
        return None
    loops, (a, b, c) = found
    along = a.is_along(_DOT_K) and b.is_along(_DOT_K) and not c.moves(_DOT_K) and c.is_along(_DOT_ROW)
    if not along or not (a.moves(_DOT_ROW) or b.moves(_DOT_ROW)):
        return None
    return LibraryCall(Routine.ROW_DOTS, 0, loops, (a, b, c) if a.moves(_DOT_ROW) else (b, a, c))


def _of_vectors(s: Nest) -> LibraryCall | None:
    found = multiply_add(s, 1)
    if found is None or not _is_long(s):
        return None
    loops, (a, b, c) = found
    if not (a.is_along(0) and b.is_along(0)) or c.buffer.space is not Space.REG:
        return None
    return LibraryCall(Routine.DOT, 0, loops, (a, b, c))


def _is_long(s: Nest) -> bool:
    """Whether the innermost loop may be longer than what compilers write out, or vectors run across."""
    last = s.heads[-1]
    assert isinstance(last, For)
    return last.kind in (LoopKind.PLAIN, LoopKind.SIMD) and not nonnegative(SHORT - last.loop.extent)


# The fewest multiply-adds that are worth a call.
_GEMM_CALL = 1024
# The loops in order: the depth of the product, its rows, and its columns.
_K, _I, _L = range(3)


def gemm(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    found = multiply_add(Nest(s.heads[-3:], s.body), 3)
    if found is None:
        return None
    loops, (a, b, c) = found
    work = prod(loop.extent.constant or _GEMM_CALL for loop in loops)
    if work < _GEMM_CALL:  # the compiler writes it out
        return None
    width = c.buffer.shape[-1].constant or 0 if c.buffer.shape else 0
    if a.moves(_L) or b.moves(_I) or c.moves(_K) or not c.is_along(_L):
        return None
    if width // 2 not in LANES[c.buffer.dtype] or not _has_room(c, width):
        return None
    if not nonnegative(width - loops[_L].extent):
        return None
    whole_rows = b.is_along(_L) and _has_room(b, width)
    routine = Routine.GEMM_MICROKERNEL if whole_rows else Routine.GEMM_PANEL
    return LibraryCall(routine, width // 2, loops, (a, b, c))


def _has_room(operand: LibraryOperand, width: int) -> bool:
    """Whether whole rows may be read and written, of an operand that lies along them."""
    return operand.buffer.shape[-1].constant == width and operand.first[-1] is ZERO
