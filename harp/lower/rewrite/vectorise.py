"""Vectorisation: an innermost loop with independent iterations is marked for vectors.

for i { out[i] = v; ... }  ->  for simd i { out[i] = v; ... }, or in segments if the chain is long

Short constant loops round a short vector loop are unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

import attrs

from harp.lower.cost_model import weigh
from harp.lower.loopir.conditions import given
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.loops import MEMORY, For, If, Kernel, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import is_straight, loads, nest, rebuilt
from harp.lower.rewrite.coalesce import without_indirect
from harp.lower.rewrite.loop_fission import fissioned
from harp.lower.rewrite.loop_primitives import Context
from harp.trace.index.polynomial import Index, Loop, indirect_in, loops_in, split_linear

# The most columns that are stored by shuffles; compilers scatter more columns, which is slower than scalar stores.
_COLUMNS = 8
# The most iterations, elements, and operations of loops that are unrolled.
_ITERATIONS, _ELEMENTS, _OPERATIONS = 8, 25, 64


def vectorised(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest):
        return None
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    if not is_straight(s.body):
        columns = last.kind is LoopKind.PLAIN and _are_columns(s.body, stores, last.loop)
        return nest((*outer, For(last.loop, LoopKind.SIMD)), s.body) if columns else None
    if last.kind is not LoopKind.PLAIN or not all(_moves(store, last.loop) for store in stores):
        return None
    stored = {store.buffer: store.index for store in stores}
    accesses = [load for store in stores for load in loads(store.value)]
    if any(load.index != stored.get(load.buffer, load.index) for load in accesses):
        report = check_parallel(For(last.loop), (), s.body, {})
        if report.errors or report.unproven:
            return None
    found = fissioned(context, s.body, last.loop)
    return nest((*outer, For(last.loop, LoopKind.SIMD)), s.body) if found is None else nest(outer, found)


def _are_columns(body: Stmt, stores: Sequence[Store], loop: Loop) -> bool:
    """Whether it only stores, to several columns of a buffer that it does not read: out[i, 0] = v; out[i, 1] = w."""
    if not isinstance(body, Seq) or len(body.parts) > _COLUMNS or not all(isinstance(p, Store) for p in body.parts):
        return False
    read = {load.buffer for store in stores for load in loads(store.value)}
    for number, store in enumerate(stores):
        if store.reduce is not None or store.buffer in read or any(map(indirect_in, store.index)):
            return False
        others = [other for other in stores[:number] if other.buffer is store.buffer]
        if not _moves(store, loop) or not all(_is_apart(store.index, other.index) for other in others):
            return False
    return True


def _is_apart(a: Sequence[Index], b: Sequence[Index]) -> bool:
    """Whether two columns differ for all rows: out[i, 0] and out[i, 1], or out[2*i] and out[2*i + 1]."""
    return any(_never_meet(p, q) for p, q in zip(a, b, strict=True))


def _never_meet(p: Index, q: Index) -> bool:
    """Whether p and q, with loops of their own, differ by no multiple of the loops' steps."""
    distance, slopes = (p - q).constant, [split_linear(p, loop) for loop in loops_in(p)]
    steps = [0 if slope is None else slope[0].constant or 0 for slope in slopes]
    step = gcd(*steps) if all(steps) else 1
    return bool(distance) if not steps else distance is not None and distance % step != 0


def _moves(store: Store, loop: Loop) -> bool:
    """Whether the loop moves the index. An element of an index array may be the same in two iterations."""
    return store.buffer.space is Space.REG or any(loop in loops_in(p) for p in without_indirect(store.index))


def written_out(context: Context, s: Stmt) -> Stmt | None:
    """Unroll small matrices, such as loop-carried ones, which then stay in registers. Those that are made for each
    iteration of other loops are not unrolled: compilers do better with loops.

    for i < 4 { for simd j < 4: s(i, j) }  ->  for unroll i < 4 { for simd j < 4: s(i, j) }
    """
    if not isinstance(s, Nest):
        return None
    if len(s.heads) < 2 or not is_straight(s.body) or not all(isinstance(h, For) for h in s.heads):
        return s
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    if last.kind is not LoopKind.SIMD or any(h.kind is not LoopKind.PLAIN for h in outer):
        return s
    times, width = prod(h.loop.extent.constant or 0 for h in outer), last.loop.extent.constant or 0
    work = sum(1 + weigh(part.value) for part in walk(s.body) if isinstance(part, Store))
    if times > _ITERATIONS or not 0 < times * width <= _ELEMENTS or times * work > _OPERATIONS:
        return s
    return attrs.evolve(s, heads=(*(For(h.loop, LoopKind.UNROLL) for h in outer), last))


def unswitched(kernel: Kernel) -> Kernel:
    """Decide conditions of loads that are the same for all elements of a vector once for the vector, in sums.

    for simd i: acc[i] += x[j, i] if j >= 1 else 0
        ->  if j >= 1 { for simd i: acc[i] += x[j, i] } else { for simd i: acc[i] += 0 }
    """
    body = _unswitched(kernel.body)
    return kernel if body is kernel.body else kernel.with_body(body)


def _unswitched(s: Stmt) -> Stmt:
    if not isinstance(s, Nest) or not isinstance(s.body, Store):
        return rebuilt(s, _unswitched)
    *outer, last = s.heads
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or s.body.buffer.space in MEMORY:
        return s
    tests = {t for load in loads(s.body.value) if (t := _apart(load, last.loop))}
    if len(tests) != 1:
        return s
    (own,) = tests
    sides = [nest((last,), given(s.body, dict.fromkeys(own, holds))) for holds in (True, False)]
    return nest(outer, If(own, *sides))


def _apart(load: Load, loop: Loop) -> tuple[Index, ...]:
    """The conditions of a load that do not depend on a loop, nor on data."""
    return tuple(c for c in load.conditions if loop not in loops_in(c) and loops_in(c) and not indirect_in(c))
