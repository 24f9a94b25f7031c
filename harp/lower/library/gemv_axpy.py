"""A row vector times a matrix, whose rows it reads in order.

for k, l: c[l] = fma(a[k], b[k, l], c[l])  ->  gemv axpy
"""

from __future__ import annotations

from math import prod

from harp.lower.library.operands import multiply_add
from harp.lower.loopir.loops import LibraryCall, Nest, Routine

# The fewest multiply-adds that are worth a call.
_CALL = 64
# The loops in order: the depth of the product, and its columns.
_DEPTH, _COLUMN = range(2)


def gemv_axpy(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    found = multiply_add(s, 2)
    if found is None:
        return None
    loops, (a, b, c) = found
    if prod(loop.extent.constant or _CALL for loop in loops) < _CALL:  # the compiler writes it out
        return None
    if a.moves(_COLUMN):
        a, b = b, a
    if a.moves(_COLUMN) or c.moves(_DEPTH) or not (b.is_along(_COLUMN) and c.is_along(_COLUMN)):
        return None
    return LibraryCall(Routine.GEMV_AXPY, 0, loops, (a, b, c))
