"""Rewrites of loop nests for speed. Each rule checks its side condition, then rewrites; the first that fits a statement
is taken, from the outside in.

Which rule fits is decided from strides and constants, never from sizes at run time, and the order in which an element
is accumulated is the same in all versions of a loop: a row of a batch has the same bits at every batch size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import gcd

from harp.lower.cost_model import count_operations, mentioned, weigh
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Kernel, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import (
    Numbers,
    Renaming,
    Tile,
    accumulation,
    accumulations,
    distribute,
    is_even,
    is_ordered,
    is_plain,
    is_straight,
    is_unrolled,
    loads,
    nest,
    rebuilt,
    renamed,
    score,
    sequence,
)
from harp.lower.reductions.contraction import contraction
from harp.lower.reductions.early_exit import early_exits
from harp.lower.reductions.interleave import interleaved
from harp.lower.reductions.outer_vectorisation import outer_vectorised
from harp.lower.reductions.small_matrices import small_matrices, small_products
from harp.lower.rewrite.coalesce import coalesce, without_indirect
from harp.lower.rewrite.loop_fission import fissioned
from harp.lower.rewrite.loop_primitives import peel
from harp.lower.rewrite.packed_rows import packed_rows
from harp.lower.rewrite.strip_mining import Context, strips
from harp.lower.rewrite.transpose_tiling import transpose_tiles
from harp.lower.target import Target
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, as_index, indirect_in, split_linear
from harp.trace.scalar.dtypes import real_of
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.ops import Op, Reduce

# The accumulators of a reduction along memory: element j goes to number j mod LANES, on every machine.
LANES = 32
# Lanes that are left when vectors have been added to vectors.
_VECTOR = 8
# The width of the tiles that take the remainder beside the widest ones.
_NARROW = 8
# Scalar operations in a body that is unrolled, and in one that is printed in several versions.
_UNROLLED, _REPEATED = 6, 64
# Columns of a wide strip, whose accumulators fill a part of the first cache.
_WIDE = 2048
# Columns that are stored side by side by shuffles; more of them compilers scatter, which is slower than one by one.
_COLUMNS = 8
# Terms that are added to a sum each time it is read from memory.
_TERMS = 4


Rule = Callable[[Context, Stmt], Stmt | None]


def tile(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with the rules applied."""
    context = Context(target, Numbers(kernel))
    body = kernel.body
    for rule in RULES:
        body = _everywhere(context, rule, body)
    return kernel.with_body(body)


def _everywhere(context: Context, rule: Rule, s: Stmt) -> Stmt:
    if is_plain(s):
        return _in_plain(context, rule, s)
    return rebuilt(s, lambda part: _everywhere(context, rule, part))


def _in_plain(context: Context, rule: Rule, s: Stmt) -> Stmt:
    """The same in a plain statement, all of whose parts are plain."""
    found = None if is_ordered(s) or is_unrolled(s) else rule(context, s)
    return found if found is not None else rebuilt(s, lambda part: _in_plain(context, rule, part))


def inner_unit(context: Context, s: Stmt) -> Stmt | None:
    """The loop that runs along memory goes innermost.

    for k, l: acc += x[l, k]  ->  for l, k: acc += x[l, k]; the same for the loops round reduce nests
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    found = accumulation(s)
    stores = [found[1]] if found else [store for _, store in accumulations(s.body)]
    accesses = [load for store in stores for load in loads(store.value)]
    heads = [h for h in s.heads if isinstance(h, For)]
    scores = [score(accesses, h.loop) for h in heads]
    if scores[-1] > 0 or max(scores) <= 0:
        return None
    best = heads.pop(scores.index(max(scores)))
    return _everywhere_inside(context, inner_unit, nest((*heads, best), s.body))


def _everywhere_inside(context: Context, rule: Rule, s: Stmt) -> Stmt:
    return rebuilt(s, lambda part: _everywhere(context, rule, part))


def columns(context: Context, s: Stmt) -> Stmt | None:
    """Interchange, so that the innermost loop runs along memory and carries nothing.

    for i, j { acc = 0; for k: acc += a[i, k]*b[k, j]; out[i, j] = acc }
        ->  for jb, ib { acc[R, W]; ...; for k { for r, l: acc[r, l] += a[ib*R + r, k]*b[k, jb*W + l] }; ... }
    for full tiles, narrower ones, and single rows; without reuse along i, in strips of single rows only, which are
    wider where there are enough for all threads: memory is read faster in long pieces.
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    found = list(accumulations(s.body))
    accesses = [load for _, store in found for load in loads(store.value)]
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    if not found or score(accesses, last.loop) <= 0 or _has_memory(s.body) or not is_even(s.body, last.loop):
        return None
    if (
        outer
        and is_even(s.body, outer[-1].loop)
        and _reused(accesses, last.loop, outer[-1].loop)
        and _small(s.body, [store for _, store in found])
    ):
        return nest(outer[:-1], _blocks(context, s.body, outer[-1].loop, last.loop, found[0][1], len(found)))
    narrow, many = strips(context, s.body, last.loop), last.loop.extent - _WIDE * context.target.cores
    if outer or nonnegative(-many - 1) or not _small(s.body, []):
        return nest(outer, narrow)
    return If((many,), strips(context, s.body, last.loop, _WIDE), narrow)


def _has_memory(s: Stmt) -> bool:
    """Whether each iteration has memory of its own, which would be there for each element of a strip."""
    return any(isinstance(part, Alloc) and part.buffer.space is Space.THREAD for part in walk(s))


def _reused(accesses: Iterable[Load], along: Loop, across: Loop) -> bool:
    """Whether some load along one loop is the same for all positions of the other."""
    for load in accesses:
        moving = {loop for p in load.index for loop in mentioned(p)}
        if along in moving and across not in moving:
            return True
    return False


def _small(body: Stmt, unrolled: Iterable[Store]) -> bool:
    total = sum(count_operations(part.value) for part in walk(body) if isinstance(part, Store))
    return total <= _REPEATED and sum(count_operations(store.value) for store in unrolled) <= _UNROLLED


def _blocks(context: Context, body: Stmt, row: Loop, column: Loop, store: Store, chains: int) -> Stmt:
    """Tiles of rows and columns that fill the registers, then the rows that are left."""
    width = 2 * context.target.lanes(store.buffer.dtype.itemsize)
    height = max(context.target.tile_rows // chains, 2)
    extent, done = column.extent, ZERO
    whole_rows = floordiv(row.extent, height)
    parts: list[Stmt] = []
    for size in sorted({width, min(width, _NARROW), 1}, reverse=True):
        end = floordiv(extent, size) * size
        count = floordiv(end - done, size)
        if count is not ZERO and whole_rows is not ZERO:
            parts.append(_tiles(context, body, (row, whole_rows, height), (column, count, size), done))
        done = end
    left = row.extent - whole_rows * height
    if left is not ZERO:
        head, position = context.numbers.loop(left)
        parts.append(nest(head, strips(context, renamed(body, {row: whole_rows * height + position}), column)))
    return sequence(parts)


def _tiles(
    context: Context, body: Stmt, rows: tuple[Loop, Index, int], columns: tuple[Loop, Index, int], start: Index
) -> Stmt:
    """Tiles of constant size, columns from `start` on. Columns are the outer loop: what they read stays in cache."""
    (row, row_count, height), (column, column_count, width) = rows, columns
    column_block, jb = context.numbers.loop(column_count)
    row_block, ib = context.numbers.loop(row_count)
    row_head, r = context.numbers.loop(height)
    column_head, lane = context.numbers.loop(width, LoopKind.SIMD)
    inner = renamed(body, {row: ib * height + r, column: start + jb * width + lane})
    heads = row_head + column_head
    room = (height, width)[: len(heads)]
    return nest(column_block + row_block, distribute(inner, Tile(heads, room, unroll=True)))


def lanes(context: Context, s: Stmt) -> Stmt | None:
    """A fixed number of accumulators along memory, and a fixed tree.

    for k: acc += x[k]  ->  lane[32] = 0; for kb { for l < 32: lane[l] += x[32*kb + l] };
                            for l < (the remainder): lane[l] += x[...]; lane[:8] = tree of 4; acc += tree of lane[:8]
    """
    found = accumulation(s)
    if found is None:
        return None
    (*outer, last), store = found
    extent = last.loop.extent
    if score(loads(store.value), last.loop) <= 0 or _is_short(extent):
        return None
    reduce = store.reduce or Reduce.SUM
    dtype = store.buffer.dtype
    # A complex sum has its real and imaginary parts in lanes of their own, which registers hold.
    parts = (Op.REAL, Op.IMAG) if dtype.is_complex and reduce is Reduce.SUM else (None,)
    inner = real_of(dtype) if len(parts) > 1 else dtype
    names, count = ("lanes", "imag"), 2 * _VECTOR * 4 // inner.itemsize if len(parts) > 1 else LANES
    made = [Buffer(f"{store.buffer.name}_{names[k]}", inner, (as_index(count),), Space.TILE) for k in range(len(parts))]
    whole = peel(context.numbers, extent, count)

    def to_lanes(room: Index | int, start: Index) -> Stmt:
        head, position = context.numbers.loop(room, LoopKind.SIMD)
        along = Substitution({last.loop: start + position})
        stores = []
        for lane, part in zip(made, parts, strict=True):
            value = store.value if part is None else apply(part, store.value)
            renaming = Renaming(along, {store.buffer: (lane, (position,))})
            stores.append(renaming.statement(Store(store.buffer, (), value, store.reduce)))
        return nest(head, sequence(stores))

    fill, j = context.numbers.loop(count, LoopKind.SIMD)
    zero = const(reduce.identity(inner), inner)
    statements: list[Stmt] = [nest(fill, sequence([Store(lane, (j,), zero) for lane in made]))]
    strips = [nest(whole.heads, to_lanes(count, whole.block * count))]
    if whole.rest is not ZERO:
        strips.append(_where(whole.rest - 1, to_lanes(whole.rest, whole.whole)))
    statements.append(nest(outer, sequence(strips)))
    for lane in made:
        head, j = context.numbers.loop(_VECTOR, LoopKind.SIMD)
        statements.append(nest(head, Store(lane, (j,), _tree(reduce, lane, j, count, _VECTOR))))
    total = [_tree(reduce, lane, ZERO, _VECTOR, 1) for lane in made]
    value = total[0] if len(total) == 1 else apply(Op.COMPLEX, *total)
    statements.append(Store(store.buffer, (), value, reduce))
    body = sequence(statements)
    for lane in reversed(made):
        body = Alloc(lane, body)
    return body


def _is_short(extent: Index) -> bool:
    """Whether lanes have nothing to share, for all sizes."""
    return nonnegative(LANES - extent - (0 if extent.constant is None else 1))


def _tree(reduce: Reduce, lane: Buffer, first: Index, count: int, step: int) -> Expr:
    """Elements first, first + step, ... below first + count, where each half is reduced on its own and then both."""
    level: list[Expr] = [Load(lane, (first + at,)) for at in range(0, count, step)]
    while len(level) > 1:
        half = len(level) // 2
        level = [apply(reduce.value, a, b) for a, b in zip(level[:half], level[half:], strict=True)]
    return level[0]


def _where(condition: Index, s: Stmt) -> Stmt:
    return s if nonnegative(condition) else If((condition,), s)


def several(context: Context, s: Stmt) -> Stmt | None:
    """What is reduced in memory takes several terms each time it is read and written, in the same order.

    for k { for simd l: acc[l] += v(k) }
        ->  for kb { for simd l: acc[l] = acc[l] + v(4*kb) + ... + v(4*kb + 3) }; for k (the remainder) { ... }
    """
    if not isinstance(s, Nest) or not isinstance(s.body, Store) or len(s.heads) < 2:
        return None
    if s.body.reduce is None:
        return None
    *outer, k, lane = [h for h in s.heads if isinstance(h, For)]
    if lane.loop.extent.constant is not None and lane.loop.extent.constant <= LANES:  # they stay in registers
        return None
    store, reduce, extent = s.body, s.body.reduce, k.loop.extent
    fits = lane.kind is LoopKind.SIMD and k.kind is LoopKind.SERIAL and len(outer) + 2 == len(s.heads)
    if not fits or store.buffer.space is not Space.TILE or any(k.loop in mentioned(p) for p in store.index):
        return None
    if weigh(store.value) > _UNROLLED or (extent.constant is not None and extent.constant < _TERMS):
        return None
    terms = peel(context.numbers, extent, _TERMS)
    value: Expr = Load(store.buffer, store.index)
    for term in range(_TERMS):
        at = Renaming(Substitution({k.loop: terms.block * _TERMS + term}), {})
        value = apply(reduce.value, value, at.value(store.value))
    parts: list[Stmt] = [nest((*terms.heads, lane), Store(store.buffer, store.index, value))]
    if terms.rest is not ZERO:
        rest, position = context.numbers.loop(terms.rest)
        parts.append(nest((*rest, lane), renamed(store, {k.loop: terms.whole + position})))
    return nest(outer, sequence(parts))


def independent(context: Context, s: Stmt) -> Stmt | None:
    """for i { out[i] = v; ... }  ->  for simd i { out[i] = v; ... }, or in segments if the chain is long"""
    if not isinstance(s, Nest):
        return None
    *outer, last = [h for h in s.heads if isinstance(h, For)]
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    if not is_straight(s.body):
        columns = last.kind is LoopKind.SERIAL and _are_columns(s.body, stores, last.loop)
        return nest((*outer, For(last.loop, LoopKind.SIMD)), s.body) if columns else None
    if last.kind is not LoopKind.SERIAL or not all(_moves(store, last.loop) for store in stores):
        return None
    stored = {store.buffer: store.index for store in stores}
    accesses = [load for store in stores for load in loads(store.value)]
    if any(load.index != stored.get(load.buffer, load.index) for load in accesses):
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
    """Whether two columns differ, whatever the rows: out[i, 0] and out[i, 1], or out[2*i] and out[2*i + 1]."""
    return any(_never_meet(p, q) for p, q in zip(a, b, strict=True))


def _never_meet(p: Index, q: Index) -> bool:
    """Whether p and q, of which each has loops of its own, differ by what is no multiple of the steps of any loop."""
    distance, slopes = (p - q).constant, [split_linear(p, loop) for loop in mentioned(p)]
    steps = [0 if slope is None else slope[0].constant or 0 for slope in slopes]
    step = gcd(*steps) if all(steps) else 1
    return bool(distance) if not steps else distance is not None and distance % step != 0


def _moves(store: Store, loop: Loop) -> bool:
    """An element of an index array may be the same in two iterations."""
    return store.buffer.space is Space.REG or any(loop in mentioned(p) for p in without_indirect(store.index))


RULES: tuple[Rule, ...] = (
    small_products,
    interleaved,
    contraction,
    transpose_tiles,
    coalesce,
    small_matrices,
    packed_rows,
    inner_unit,
    columns,
    outer_vectorised,
    lanes,
    several,
    early_exits,
    independent,
)
