"""Several accumulators for one sum along memory, partial sums for other long sums, and several terms for each load of a
sum that is in memory; the first positions at which conditions hold (`first_positions`, `early_exits`).

    for k: acc += x[k]  ->  lane[32] = 0; for kb { for l < 32: lane[l] += x[32*kb + l] };
                            for l < (the remainder): lane[l] += x[...];
                            for l < 8: lane[l] = (lane[l] + lane[l+16]) + (lane[l+8] + lane[l+24]);
                            acc += the sum of lane[:8] by the same kind of tree

    for k: acc += x[k, j]  ->  for kb { part = 0; for k < 4096: part += x[4096*kb + k, j]; acc += part }

    for k { for simd l: acc[l] += v(k) }
        ->  for kb { for simd l: acc[l] = acc[l] + v(4*kb) + ... + v(4*kb + 3) }; for k (the remainder) { ... }

The first two change the order of additions, to one that is the same on every machine, however many sums are computed
together; the third keeps the order. Partial sums bound the error by that of some thousand terms and of the number of
blocks; a single float32 accumulator of ones stops growing at 2**24 (N. J. Higham: "The accuracy of floating point
summation", 1993).
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from harp.lower.cost_model import weigh
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, LoopKind, Nest, Seq, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, Renaming, accumulation, loads, nest, rebuilt, renamed, score, sequence
from harp.lower.reductions.row_dots import is_dot
from harp.lower.rewrite.loop_primitives import Context, peel, rfactor, split
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import ONE, ZERO, Index, Loop, as_index, loops_in, of, product, split_linear
from harp.trace.scalar.dtypes import bool_, i32, i64, real_of
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply, cast, const, select
from harp.trace.scalar.ops import Op, Reduce

# The accumulators of a reduction along memory: element j goes to number j mod LANES, on every machine.
LANES = 32
# Lanes that are left when vectors have been added to vectors.
_VECTOR = 8
# Terms of a partial sum: the rounding errors of 20 million terms are those of 9,000, and a block costs nothing that can
# be measured. Rounds of a loop round loops of sizes that are not known.
_BLOCK, _ROUNDS = 4096, 64
# Scalar operations of a term that is written out several times.
_WRITTEN_OUT = 6
# Terms that are added to a sum each time it is read from memory.
_TERMS = 4


def partial_accumulators(context: Context, s: Stmt) -> Stmt | None:
    """A fixed number of accumulators along memory, and a fixed tree; the first rule at the top of the file."""
    found = accumulation(s)
    if found is None:
        return None
    (*outer, last), store = found
    extent = last.loop.extent
    if score(loads(store.value), last.loop) <= 0 or _is_short(extent) or is_dot(s):
        return None
    reduce = store.reduce or Reduce.SUM
    dtype = store.buffer.dtype
    # A complex sum has its real and imaginary parts in lanes of their own, which registers hold.
    parts = (Op.REAL, Op.IMAG) if dtype.is_complex and reduce is Reduce.SUM else (None,)
    inner = real_of(dtype) if len(parts) > 1 else dtype
    names, count = ("lanes", "imag"), 2 * _VECTOR * 4 // inner.itemsize if len(parts) > 1 else LANES
    made = [
        Buffer(f"{store.buffer.name}_{names[k]}", inner, (as_index(count),), Space.LOCAL) for k in range(len(parts))
    ]
    whole = peel(context.fresh, extent, count)

    def to_lanes(room: Index | int, start: Index) -> Stmt:
        head, position = context.fresh.loop(room, LoopKind.SIMD)
        along = Substitution({last.loop: start + position})
        stores = []
        for lane, part in zip(made, parts, strict=True):
            value = store.value if part is None else apply(part, store.value)
            renaming = Renaming(along, {store.buffer: (lane, (position,))})
            stores.append(renaming.statement(Store(store.buffer, (), value, store.reduce)))
        return nest(head, sequence(stores))

    fill, j = context.fresh.loop(count, LoopKind.SIMD)
    zero = const(reduce.identity(inner), inner)
    statements: list[Stmt] = [nest(fill, sequence([Store(lane, (j,), zero) for lane in made]))]
    strips = [nest(whole.heads, to_lanes(count, whole.block * count))]
    if whole.rest is not ZERO:
        strips.append(_where(whole.rest - 1, to_lanes(whole.rest, whole.whole)))
    statements.append(nest(outer, sequence(strips)))
    for lane in made:
        head, j = context.fresh.loop(_VECTOR, LoopKind.SIMD)
        statements.append(nest(head, Store(lane, (j,), _tree(reduce, lane, j, count, _VECTOR))))
    total = [_tree(reduce, lane, ZERO, _VECTOR, 1) for lane in made]
    value = total[0] if len(total) == 1 else apply(Op.COMPLEX, *total)
    statements.append(Store(store.buffer, (), value, reduce))
    body = sequence(statements)
    for lane in reversed(made):
        body = Alloc(lane, body)
    return body


# The most terms of which a lane counts blocks in 32 bits, and the number of no block.
_COUNTED, _NONE = 1 << 30, (1 << 31) - 1


def first_positions(context: Context, s: Stmt) -> Stmt | None:
    """The first position along memory where something holds: each lane keeps the number of a block, in 32 bits, for
    vectors hold twice as many of these as of positions.

        for k: first min= select(fits(k), a + k, n)
            ->  near[32] = NONE;
                for kb { for simd l < 32: near[l] min= select(fits(32*kb + l), kb, NONE) }; the same for the remainder
                for simd l < 32: at[l] = select(near[l] < NONE, a + 32*near[l] + l, n); first min= the least of at

    Here n is no position before the last one.
    """
    found = accumulation(s)
    if found is None or len(found[0]) != 1 or _is_short(found[0][0].loop.extent):
        return None
    ((head,), store), fresh = found, context.fresh
    value, extent = store.value, head.loop.extent
    if store.reduce is not Reduce.MIN or not isinstance(value, Apply) or value.op is not Op.SELECT:
        return None
    fits, position, end = value.operands
    if not isinstance(position, Position) or not isinstance(end, Position) or score(loads(fits), head.loop) <= 0:
        return None
    slope = split_linear(position.index, head.loop)
    last = Substitution({head.loop: extent - 1})(position.index)
    if slope is None or slope[0] is not ONE or not nonnegative(end.index - last):
        return None
    near, at = (Buffer(f"{store.buffer.name}_{name}", dtype, (as_index(LANES),), Space.LOCAL) for name, dtype in _NEAR)
    number = Buffer(f"{store.buffer.name}_block", i32, (), Space.REG)
    parts = split(fresh, extent, _COUNTED)
    whole = peel(fresh, parts.length, LANES)

    def lanes(room: Index | int, block: Index) -> Stmt:
        each, lane = fresh.loop(room, LoopKind.SIMD)
        here = Renaming(Substitution({head.loop: parts.start + block * LANES + lane}), {})
        least = select(here.value(fits), Load(number, ()), const(_NONE, i32))
        counted = Store(number, (), cast(Position(block), i32))  # apart, or gcc 12 chooses in 64 bits
        return Alloc(number, sequence((counted, nest(each, Store(near, (lane,), least, Reduce.MIN)))))

    fill, j = fresh.loop(LANES, LoopKind.SIMD)
    statements = [nest(fill, Store(near, (j,), const(_NONE, i32))), nest(whole.heads, lanes(LANES, whole.block))]
    if whole.rest is not ZERO:
        statements.append(_where(whole.rest - 1, lanes(whole.rest, floordiv(parts.length, LANES))))
    each, lane = fresh.loop(LANES, LoopKind.SIMD)
    block = Load(near, (lane,))
    place = cast(block, i64) * const(LANES, i64) + Position(slope[1] + parts.start + lane)
    is_there = apply(Op.LT, block, const(_NONE, i32))
    statements.append(nest(each, Store(at, (lane,), select(is_there, place, end))))
    statements.append(Store(store.buffer, (), _tree(Reduce.MIN, at, ZERO, LANES, 1), Reduce.MIN))
    return nest(parts.heads, Alloc(near, Alloc(at, sequence(statements))))


_NEAR = (("near", i32), ("at", i64))


def blocked_sums(context: Context, s: Stmt) -> Stmt | None:
    """Partial sums where the terms do not lie along memory; the second rule at the top of the file."""
    found = accumulation(s)
    if found is None or score(loads(found[1].value), found[0][-1].loop) > 0:
        return None
    return _in_blocks(context.fresh, *found)


def in_blocks(fresh: FreshLoops, s: Stmt) -> Stmt:
    """The statement with partial sums in place of the float sums inside it."""
    found = accumulation(s)
    blocked = None if found is None else _in_blocks(fresh, *found)
    return rebuilt(s, partial(in_blocks, fresh)) if blocked is None else blocked


def _in_blocks(fresh: FreshLoops, heads: tuple[For, ...], store: Store) -> Stmt | None:
    dtype, reduce = store.buffer.dtype, store.reduce or Reduce.SUM
    if reduce is not Reduce.SUM or dtype.is_integer or dtype is bool_:
        return None
    rows = product(head.loop.extent for head in heads[1:]).constant
    blocks = split(fresh, heads[0].loop.extent, max(_BLOCK // (rows or _ROUNDS), 1))
    if not blocks.heads:
        return None
    acc = store.buffer
    return nest(blocks.heads, rfactor(fresh, heads, store, blocks, lambda part: Store(acc, (), part, reduce)))


def stay_in_registers(lane: Loop, body: Stmt) -> bool:
    """Whether a loop over accumulators is to be unrolled, so that compilers keep them in registers."""
    stores = body.parts if isinstance(body, Seq) else (body,)
    return lane.extent.constant == LANES and all(_accumulates(s, lane) for s in stores)


def _accumulates(s: Stmt, lane: Loop) -> bool:
    if not isinstance(s, Store) or s.buffer.space is not Space.LOCAL or s.index != (of(lane),):
        return False
    own = s.reduce is not None or any(load.buffer is s.buffer for load in value_loads(s.value))
    return own and weigh(s.value) <= _WRITTEN_OUT


def _is_short(extent: Index) -> bool:
    """Whether lanes have nothing to share, for all sizes."""
    return nonnegative(LANES - extent - (0 if extent.constant is None else 1))


def _tree(reduce: Reduce, lane: Buffer, first: Index, count: int, step: int) -> Expr:
    """A balanced tree over the elements first, first + step, ... below first + count."""
    level: list[Expr] = [Load(lane, (first + at,)) for at in range(0, count, step)]
    while len(level) > 1:
        half = len(level) // 2
        level = [apply(reduce.value, a, b) for a, b in zip(level[:half], level[half:], strict=True)]
    return level[0]


def _where(condition: Index, s: Stmt) -> Stmt:
    return s if nonnegative(condition) else If((condition,), s)


def several_terms(context: Context, s: Stmt) -> Stmt | None:
    """A sum in memory takes several terms each time it is read and written; the third rule at the top."""
    if not isinstance(s, Nest) or not isinstance(s.body, Store) or len(s.heads) < 2:
        return None
    if s.body.reduce is None:
        return None
    *outer, k, lane = [h for h in s.heads if isinstance(h, For)]
    if lane.loop.extent.constant is not None and lane.loop.extent.constant <= LANES:  # they stay in registers
        return None
    store, reduce, extent = s.body, s.body.reduce, k.loop.extent
    fits = lane.kind is LoopKind.SIMD and k.kind is LoopKind.PLAIN and len(outer) + 2 == len(s.heads)
    if not fits or store.buffer.space is not Space.LOCAL or any(k.loop in loops_in(p) for p in store.index):
        return None
    if weigh(store.value) > _WRITTEN_OUT or (extent.constant is not None and extent.constant < _TERMS):
        return None
    terms = peel(context.fresh, extent, _TERMS)
    value: Expr = Load(store.buffer, store.index)
    for term in range(_TERMS):
        at = Renaming(Substitution({k.loop: terms.block * _TERMS + term}), {})
        value = apply(reduce.value, value, at.value(store.value))
    parts: list[Stmt] = [nest((*terms.heads, lane), Store(store.buffer, store.index, value))]
    if terms.rest is not ZERO:
        rest, position = context.fresh.loop(terms.rest)
        parts.append(nest((*rest, lane), renamed(store, {k.loop: terms.whole + position})))
    return nest(outer, sequence(parts))


# The elements that one search covers: several vectors, which end when the slowest does.
FEW = 64


class _Search(NamedTuple):
    """The loop over positions, the loop over elements, and the store."""

    position: For
    lane: For
    store: Store


def _match(s: Stmt) -> _Search | None:
    """The search that the two inner loops of a nest make; None if they make none."""
    if not isinstance(s, Nest) or len(s.heads) < 2 or not isinstance(s.body, Store):
        return None
    position, lane = s.heads[-2:]
    store, value = s.body, s.body.value
    if not isinstance(position, For) or not isinstance(lane, For) or lane.kind is not LoopKind.SIMD:
        return None
    if position.kind is not LoopKind.PLAIN or store.buffer.space is not Space.LOCAL or len(store.index) != 1:
        return None
    if store.reduce is not Reduce.MIN or not isinstance(value, Apply) or value.op is not Op.SELECT:
        return None
    _, found, last = value.operands
    if not isinstance(found, Position) or found.index is not of(position.loop) or not isinstance(last, Const):
        return None
    count = position.loop.extent.constant
    fits = count is not None and int(last.value) >= count - 1
    moves = any(position.loop in loops_in(p) for p in store.index)
    return _Search(position, lane, store) if fits and not moves else None


def early_exits(context: Context, s: Stmt) -> Stmt | None:
    """Early exits: a search for the first matching position may stop when it is found.

        for k { for simd l: first[l] min= select(fits, k, last) }
            ->  for b { for search k { for simd l < FEW: first[FEW*b + l] min= ... } }

    Later iterations could only store k or more, so when no element is above k they change nothing. A backend may then
    leave the loop or go on, with the same result. Few elements are searched for at a time, so that the loop ends when
    these are found.
    """
    search = _match(s)
    if search is None or not isinstance(s, Nest):
        return None
    blocks = split(context.fresh, search.lane.loop.extent, FEW)
    lane, place = context.fresh.loop(blocks.length, LoopKind.SIMD)
    heads = (*s.heads[:-2], *blocks.heads, For(search.position.loop, LoopKind.SEARCH), *lane)
    return nest(heads, renamed(search.store, {search.lane.loop: blocks.start + place}))
