"""Sums of products along the rows of two matrices, or along two vectors.

for r { for k: c[r] = fma(a[r, k], b[r, k], c[r]) }  ->  row dots
for k: c = fma(a[k], b[k], c)                        ->  dot

The loop along the rows is the inner one. The routine has an order of additions of its own, that of
`harp.lower.reductions.accumulators`.
"""

from __future__ import annotations

from harp.lower.library.operands import multiply_add
from harp.lower.loopir.loops import For, LibraryCall, LoopKind, Nest, Routine, Space
from harp.lower.reductions.short_rows import SHORT
from harp.trace.index.bounds import nonnegative

# The loops in order: rows, and along each of them.
_ROW, _DEPTH = range(2)


def row_dots(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    return _of_rows(s) or _of_vectors(s)


def _of_rows(s: Nest) -> LibraryCall | None:
    found = multiply_add(Nest(s.heads[-2:], s.body), 2)
    if found is None or not _is_long(s):
        return None
    loops, (a, b, c) = found
    along = a.is_along(_DEPTH) and b.is_along(_DEPTH) and not c.moves(_DEPTH) and c.is_along(_ROW)
    if not along or not (a.moves(_ROW) or b.moves(_ROW)):
        return None
    return LibraryCall(Routine.ROW_DOTS, 0, loops, (a, b, c) if a.moves(_ROW) else (b, a, c))


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
