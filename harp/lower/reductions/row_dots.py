"""Dot products of the rows of a matrix, several rows at once, for which the library has code.

    for i { acc = 0; for k: acc = fma(a[i, k], b[k], acc); rest(i, acc) }
        ->  for ib { sums[R] = 0; for r { for k: sums[r] = fma(a[ib*R + r, k], b[k], sums[r]) };
                     for r { acc = sums[r]; rest(ib*R + r, acc) } }

The nest over r and k, or the one over k for a single row, becomes a call of the library, which adds in the order of
`harp.lower.reductions.accumulators`, whichever rows are together: a row has the same bits at every batch size. Short
rows were handled before (`harp.lower.reductions.short_rows`).
"""

from __future__ import annotations

from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, accumulation, is_plain, nest, renamed, sequence
from harp.lower.reductions.short_rows import SHORT
from harp.lower.rewrite.loop_primitives import Context, split
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ONE, Loop, as_index, loops_in, split_linear
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Apply
from harp.trace.scalar.ops import Op

# Rows of a call: as many as registers hold sums of. More would leave threads without work.
_ROWS = 4
# Dtypes for which the library has code.
_DTYPES = (f32, f64)


def row_dots(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or not isinstance(s.heads[-1], For) or s.heads[-1].kind is not LoopKind.PLAIN:
        return None
    head, body = s.heads[-1], s.body
    variables, steps = _variables(body)
    if len(steps) < 3 or not is_plain(body):
        return None
    first, dots, *rest = steps
    found = accumulation(dots)
    if (
        not isinstance(first, Store)
        or found is None
        or found[1].buffer is not first.buffer
        or not is_dot(dots, head.loop)
    ):
        return None
    total = first.buffer
    allocated = [part.buffer for part in walk(body) if isinstance(part, Alloc)]
    if total not in variables or len(set(allocated)) < len(allocated):
        return None
    report = check_parallel(For(head.loop, LoopKind.PARALLEL), (), body, {})
    if report.errors or report.unproven:
        return None
    count = head.loop.extent.constant
    blocks = split(context.fresh, head.loop.extent, _ROWS if count is None else min(max(count, 1), _ROWS))
    sums = Buffer(f"{total.name}_sums", total.dtype, (as_index(_ROWS),), Space.LOCAL)
    parts = []
    for part, kind in ((first, LoopKind.SIMD), (dots, LoopKind.PLAIN)):
        rows, row = context.fresh.loop(blocks.length, kind)
        here = Renaming(Substitution({head.loop: blocks.start + row}), {total: (sums, (row,))})
        parts.append(nest(rows, here.statement(part)))
    rows, row = context.fresh.loop(blocks.length)
    own: Stmt = sequence(
        [Store(total, (), Load(sums, (row,))), renamed(sequence(rest), {head.loop: blocks.start + row})]
    )
    for variable in reversed(variables):
        own = Alloc(variable, own)
    parts.append(nest(rows, own))
    return nest((*s.heads[:-1], *blocks.heads), Alloc(sums, sequence(parts)))


def _variables(s: Stmt) -> tuple[list[Buffer], list[Stmt]]:
    """The variables of a statement up to the first one that is computed, and the following statements in order."""
    if isinstance(s, Alloc) and s.buffer.space is Space.REG:
        variables, steps = _variables(s.body)
        return [s.buffer, *variables], steps
    if isinstance(s, Seq):
        variables, steps = _variables(s.parts[0])
        return variables, [*steps, *s.parts[1:]]
    return [], [s]


def is_dot(s: Stmt, row: Loop | None = None) -> bool:
    """Whether a nest adds products of elements that are contiguous along it to a variable, and moves linearly with
    `row`, if that is given."""
    found = accumulation(s)
    if found is None or len(found[0]) != 1:
        return False
    (head,), store = found
    value = store.value
    if store.buffer.dtype not in _DTYPES or not isinstance(value, Apply) or value.op is not Op.FMA:
        return False
    if nonnegative(SHORT - head.loop.extent) or row in loops_in(head.loop.extent):
        return False
    *factors, total = value.args
    if not isinstance(total, Load) or total.buffer is not store.buffer:
        return False
    if not all(isinstance(factor, Load) and _is_along(factor, head.loop, row) for factor in factors):
        return False
    return row is None or any(row in loops_in(p) for load in value_loads(value) for p in load.index)


def _is_along(load: Load, loop: Loop, row: Loop | None) -> bool:
    """Whether the loop moves the element by one along memory, and the row moves it linearly."""
    if load.conditions or not load.index:
        return False
    *others, last = load.index
    split_last = split_linear(last, loop)
    if split_last is None or split_last[0] is not ONE or any(loop in loops_in(p) for p in others):
        return False
    return row is None or all(split_linear(p, row) is not None for p in load.index)
