"""The rules that make loop nests fast, in order. Each is applied once to the whole kernel, to the outermost statements
that it fits, and sees what those before it made.

Which rule fits is decided from strides and constants, never from sizes at run time, and the order in which an element
is accumulated is the same in all versions of a loop: a row of a batch has the same bits at every batch size.
"""

from __future__ import annotations

from harp.lower.loopir.loops import Kernel
from harp.lower.loopir.nests import FreshLoops
from harp.lower.reductions.accumulators import blocked_sums, early_exits, partial_accumulators, several_terms
from harp.lower.reductions.columns import columns, narrow_columns
from harp.lower.reductions.contraction import contraction
from harp.lower.reductions.row_dots import row_dots
from harp.lower.reductions.scan import interleaved
from harp.lower.reductions.short_rows import few_terms, outer_vectorised
from harp.lower.reductions.small_matrices import small_matrices, small_products
from harp.lower.rewrite.coalesce import coalesce, interchanged
from harp.lower.rewrite.loop_primitives import Context, Rule, everywhere
from harp.lower.rewrite.packed_rows import packed_rows
from harp.lower.rewrite.staged_halves import staged_halves
from harp.lower.rewrite.transpose_tiling import transpose_tiles
from harp.lower.rewrite.vectorise import vectorised, written_out
from harp.lower.target import Target


def rewrite_nests(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the rules applied."""
    context = Context(target, FreshLoops(kernel))
    body = kernel.body
    for rule in RULES:
        body = everywhere(context, rule, body)
    return kernel.with_body(body)


RULES: tuple[Rule, ...] = (
    small_products,
    interleaved,
    contraction,
    few_terms,
    transpose_tiles,
    coalesce,
    small_matrices,
    packed_rows,
    interchanged,
    narrow_columns,
    columns,
    outer_vectorised,
    row_dots,
    partial_accumulators,
    blocked_sums,
    several_terms,
    early_exits,
    vectorised,
    staged_halves,
    written_out,
)
