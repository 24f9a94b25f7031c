"""The outermost loops with independent iterations become parallel, and long vector loops are split into parts.

    for i: body                ->  for parallel i: body
    for simd i < n: out[i] = v ->  for parallel c { for simd l < min(PART, n - c*PART): out[c*PART + l] = v }
    for k { for simd j: out[idx[k], j] += v }
        ->  for parallel c { for k { for simd l: out[idx[k], c*STRIP + l] += v } }

The steps of a `Repeat` stay in order; loops inside of a step are treated like all others.

Only loops that are proved to be independent are marked. The result of an iteration does not depend on the thread that
runs it, so neither the number of threads nor the distribution of iterations changes a bit.
"""

from __future__ import annotations

from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.loops import (
    Alloc,
    For,
    ForeignCall,
    If,
    Kernel,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import FreshLoops, nest, rebuilt, renamed
from harp.lower.rewrite.hoisting import hoisted
from harp.lower.rewrite.loop_primitives import Context, split
from harp.lower.target import Target
from harp.trace.index.polynomial import Loop, indirect_in, value_atoms


def parallel(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with parallel loops, and with names for elements of index arrays."""
    return hoisted(kernel.with_body(_parallel(Context(target, FreshLoops(kernel)), kernel.body)))


def _parallel(context: Context, s: Stmt) -> Stmt:
    if isinstance(s, Nest):
        return _outermost(context, s)
    if isinstance(s, (Seq, Alloc, If, Repeat)):
        return rebuilt(s, lambda part: _parallel(context, part))
    return s


def _outermost(context: Context, s: Nest) -> Stmt:
    head = s.heads[0]
    if not isinstance(head, For) or not _stores_outside(s):
        return s
    if head.kind is LoopKind.SIMD and len(s.heads) == 1:
        count = head.loop.extent.constant
        if count is None or count > context.target.part:
            return _parts(context, s, head)
    if head.kind is not LoopKind.PLAIN:
        return s
    first, rest = For(head.loop, LoopKind.PARALLEL), s.heads[1:]
    report = check_parallel(first, rest, s.body, {})
    if report.errors or report.unproven:
        return _strips(context, s) or s
    return Nest((first, *rest), s.body)


def _strips(context: Context, s: Nest) -> Stmt | None:
    """Updates of columns in strips; all rows of a strip run in order."""
    inner = _innermost(s)
    last = inner.heads[-1] if inner is not None else None
    if inner is None or not isinstance(last, For) or last.kind is not LoopKind.SIMD:
        return None
    if not isinstance(inner.body, Store) or not any(indirect_in(p) for p in inner.body.index):
        return None
    extent = last.loop.extent
    strips = split(context.fresh, extent, context.target.scatter_strip, LoopKind.PARALLEL)
    if not strips.heads or any(isinstance(a, Loop) for a in value_atoms(extent)):
        return None
    columns, lane = context.fresh.loop(strips.length, LoopKind.SIMD)
    body = nest((*inner.heads[:-1], *columns), renamed(inner.body, {last.loop: strips.start + lane}))
    whole = _with_innermost(s, body)
    report = check_parallel(strips.heads[0], (), whole, {})
    return None if report.errors or report.unproven else nest(strips.heads, whole)


def _innermost(s: Stmt) -> Nest | None:
    """The nest round the only store, possibly under a condition."""
    if isinstance(s, Nest):
        return s if isinstance(s.body, Store) else _innermost(s.body)
    return _innermost(s.yes) if isinstance(s, If) and s.no is None else None


def _with_innermost(s: Stmt, inner: Stmt) -> Stmt:
    """The statement with another innermost nest."""
    if isinstance(s, Nest) and not isinstance(s.body, Store):
        return nest(s.heads, _with_innermost(s.body, inner))
    return If(s.conditions, _with_innermost(s.yes, inner)) if isinstance(s, If) else inner


def _stores_outside(s: Stmt) -> bool:
    """Whether all results are in memory outside of the kernel: filling a small private array is not worth a thread."""
    own = {part.buffer for part in walk(s) if isinstance(part, Alloc)}
    stores = [part.buffer for part in walk(s) if isinstance(part, Store)]
    stores += [target for part in walk(s) if isinstance(part, (Row, ForeignCall)) for target in part.targets]
    return all(buffer in own or buffer.space in (Space.OUTPUT, Space.SCRATCH) for buffer in stores)


def _parts(context: Context, s: Nest, head: For) -> Stmt:
    parts = split(context.fresh, head.loop.extent, context.target.part)
    if not parts.heads:  # it is short, for all sizes
        return s
    inner, lane = context.fresh.loop(parts.length, LoopKind.SIMD)
    return _parallel(context, nest(parts.heads + inner, renamed(s.body, {head.loop: parts.start + lane})))
