"""The pass: a loop nest, or its innermost loops, becomes a call if a function of the library computes just that.

    for b { for k, i, l: c[i, l] = fma(a[b, i, k], w[k, l], c[i, l]) }  ->  for b { gemm panel(...) }

It comes last, so that all other rewrites see loops only. A call keeps the loops that it stands for, as
`LibraryCall.body`: whatever reads statements, verifiers and the interpreter included, reads those.
"""

from __future__ import annotations

from collections.abc import Callable

from harp.lower.library.moves import conversion, copy, transpose, zero
from harp.lower.library.products import gemm, gemv_axpy, row_dots
from harp.lower.loopir.loops import Kernel, LibraryCall, Nest, Stmt
from harp.lower.loopir.nests import nest, rebuilt

# The first that fits is taken.
RULES: tuple[Callable[[Nest], LibraryCall | None], ...] = (
    gemm,
    gemv_axpy,
    row_dots,
    transpose,
    zero,
    copy,
    conversion,
)


def select_routines(kernel: Kernel) -> Kernel:
    """The kernel with calls of the library."""
    return kernel.with_body(_selected(kernel.body))


def _selected(s: Stmt) -> Stmt:
    if isinstance(s, Nest):
        for rule in RULES:
            call = rule(s)
            if call is not None:
                return nest(s.heads[: len(s.heads) - len(call.loops)], call)
    return rebuilt(s, _selected)
