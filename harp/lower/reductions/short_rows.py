"""Reductions of few terms: a constant number of terms is unrolled; if rows turn out to be short at run time, each lane
of the vector takes a row.

Products of very small matrices, one for each element of a batch, have a version for each size, without inner loops:

    for b, i < n, j < n { acc = 0; for k < n: acc += x[b, i, k]*y[b, k, j]; out[b, i, j] = acc }
        ->  if n == 2 { for b { for unroll i < 2, j < 2 { ...; for unroll k < 2 } } } else if n == 3 ... else as it was

The sizes are known only at run time, and loops of two iterations cost more than their bodies. In all versions a sum is
one chain of multiply-adds in the order of k, so they have the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from harp.lower.cost_model import weigh
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Seq, Space, Stmt, Store, parts, walk
from harp.lower.loopir.nests import (
    Renaming,
    Tile,
    accumulation,
    accumulations,
    is_sequential,
    is_straight,
    loads,
    nest,
    privatise,
    rebuilt,
    renamed,
    score,
    sequence,
    stride,
)
from harp.lower.loopir.products import moving
from harp.lower.rewrite.loop_primitives import Context, specialise, split, stage, strips
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Loop, as_index, loops_in, of
from harp.trace.scalar.expr import Apply, Expr, apply, rewrite
from harp.trace.scalar.ops import Op

# The most terms that are unrolled, and the most scalar operations in all of them.
_TERMS, _OPERATIONS = 16, 64


def few_terms(context: Context, s: Stmt) -> Stmt | None:
    """Reductions of a small constant number of terms are unrolled: elementwise work remains.

        for i { acc = 0; for k < 3: acc += x[k, i]; out[i] = acc }
            ->  for i { acc = ((0 + x[0, i]) + x[1, i]) + x[2, i]; out[i] = acc }

    The terms are added in the order of the loop, so the bits are the same. This is done if the enclosing loop runs
    along memory; along short rows the vectors run across them (`outer_vectorised`).
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    found = list(accumulations(s.body))
    accesses = [load for _, store in found for load in loads(store.value)]
    if not found or heads[-1].kind is not LoopKind.PLAIN or score(accesses, heads[-1].loop) <= 0:
        return None
    if not all(_are_few(inner, store) for inner, store in found):
        return None
    body = _written_out(s.body, {})
    return Nest(s.heads, body) if is_straight(body) else None


def _are_few(heads: tuple[For, ...], store: Store) -> bool:
    extents = [h.loop.extent.constant for h in heads]
    counts = [n for n in extents if n is not None]
    terms = prod(counts)
    return len(counts) == len(extents) and 1 <= terms <= _TERMS and terms * (1 + weigh(store.value)) <= _OPERATIONS


def _written_out(s: Stmt, totals: dict[Buffer, Expr]) -> Stmt:
    """The statement with each reduction as one store; `totals` are their initial values."""
    if isinstance(s, Alloc):
        return Alloc(s.buffer, _written_out(s.body, totals))
    if not isinstance(s, Seq):
        return s
    reduced = {found[1].buffer for part in s.parts if (found := accumulation(part)) is not None}
    parts: list[Stmt] = []
    for part in s.parts:
        found = accumulation(part)
        if found is not None and found[1].buffer in totals:
            store = found[1]
            parts.append(Store(store.buffer, (), _total(found[0], store, totals.pop(store.buffer))))
        elif isinstance(part, Store) and part.buffer in reduced and part.reduce is None:
            totals[part.buffer] = part.value
        else:
            parts.append(_written_out(part, totals))
    return sequence(parts)


def _total(heads: tuple[For, ...], store: Store, total: Expr) -> Expr:
    """All terms, in the order of the loops, added to the initial value."""
    for at in _positions(heads):
        value = at.value(store.value)
        total = (
            _with_total(value, store.buffer, total) if store.reduce is None else apply(store.reduce.value, total, value)
        )
    return total


def _positions(heads: tuple[For, ...]) -> Iterator[Renaming]:
    extents = [range(h.loop.extent.constant or 0) for h in heads]
    for numbers in product(*extents):
        loops: dict[Atom, Index] = {h.loop: as_index(n) for h, n in zip(heads, numbers, strict=True)}
        yield Renaming(Substitution(loops), {})


def _with_total(value: Expr, acc: Buffer, total: Expr) -> Expr:
    """A multiply-add on the sum so far."""
    return rewrite((value,), lambda e: total if isinstance(e, Load) and e.buffer is acc else e)[0]


# The most elements of a short row.
SHORT = 32


def outer_vectorised(context: Context, s: Stmt) -> Stmt | None:
    """Outer vectorisation of reductions over short rows: each lane of the vector takes a row.

        for i { acc = 0; for k < m: acc += x[i, k]; out[i] = acc }
            ->  if m <= SHORT:
                    for ib { acc[R] = 0; for k { for simd l: acc[l] += x[ib*R + l, k] }; for l: out[ib*R + l] = acc[l] }
                else: as it was

    Which version runs depends on the length of the rows only, so a row has the same bits at every batch size.
    """
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or not any(True for _ in accumulations(s.body)):
        return None
    *outer, row = [h for h in s.heads if isinstance(h, For)]
    accesses = [load for _, store in accumulations(s.body) for load in loads(store.value)]
    if score(accesses, row.loop) > 0:
        return None
    inside = [h for part in walk(s.body) if isinstance(part, Nest) for h in part.heads if isinstance(h, For)]
    if any(h.kind is not LoopKind.PLAIN or loops_in(h.loop.extent) for h in inside):
        return None
    room = dict.fromkeys(SHORT - h.loop.extent for h in inside)
    if any(r.constant is not None and r.constant < 0 for r in room):
        return None
    by_panels = _by_panels(context, outer, row, s.body) if outer else None
    return specialise(room, by_panels or nest(outer, strips(context, s.body, row.loop)), s)


# The iterations that share a panel, and its lanes: a panel of 32 rows of doubles is half of the first cache.
_SHARED, _LANES = 32, 64


def _by_panels(context: Context, outer: list[For], column: For, body: Stmt) -> Stmt | None:
    """Operands whose elements lie apart along the lanes are copied to panels, which several iterations of the innermost
    loop round the lanes share, as in a matrix product. None if there are no such operands.

    for i, jb { for k { for simd l: acc[l] += f(x[i, k], y[jb*LANES + l, k]) } }
        ->  for ib, jb { panel[k, l] = y[jb*LANES + l, k];
                         for i { for k { for simd l: acc[l] += f(x[ib*SHARED + i, k], panel[k, l]) } } }
    """
    around, row, stored = outer[-1].loop, column.loop, {part.buffer for part in walk(body) if isinstance(part, Store)}
    inside = {h.loop for part in walk(body) if isinstance(part, Nest) for h in part.heads if isinstance(h, For)}
    operands = {
        load: heads[0].loop
        for heads, store in accumulations(body)
        for load in loads(store.value)
        if len(heads) == 1 and stride(load, row) not in (0, 1)
        # A panel has an element for each iteration of `row` and of the sum, and is filled before other loops begin.
        if moving(load).isdisjoint({around} | inside - {heads[0].loop})
    }
    if not operands or not stored.isdisjoint(load.buffer for load in operands):
        return None
    report = check_parallel(For(row, LoopKind.PARALLEL), outer[-1:], body, {})
    if report.errors or report.unproven:
        return None
    fresh = context.fresh
    rows, columns = split(fresh, around.extent, _SHARED), split(fresh, row.extent, _LANES)
    copies: dict[Load, Load] = {}
    filled: list[Stmt] = []
    for number, (load, k) in enumerate(operands.items()):
        panel = Buffer(f"panel{number}", load.dtype, (as_index(SHORT), as_index(_LANES)), Space.THREAD)
        copies[load] = Load(panel, (of(k), of(row) - columns.start))
        (l_head, lane), (k_head, at) = fresh.loop(columns.length), fresh.loop(k.extent)
        element = Renaming(Substitution({row: columns.start + lane, k: at}), {}).value(load)
        filled.append(nest((*l_head, *k_head), Store(panel, (at, lane), element)))
    (i_head, i), (head, lane) = fresh.loop(rows.length), fresh.loop(columns.length, LoopKind.SIMD)
    inner = renamed(stage(body, copies), {row: columns.start + lane, around: rows.start + i})
    result = sequence((*filled, nest(i_head, privatise(inner, Tile(head, (_LANES,))) if head else inner)))
    for copy in copies.values():
        result = Alloc(copy.buffer, result)
    return nest((*outer[:-1], *rows.heads, *columns.heads), result)


# The sizes that have versions; the most statements and loops that are unrolled in them, and operations in all.
_SIZES, _STATEMENTS, _LOOPS, _WRITTEN = (1, 2, 3, 4, 8), 8, 4, 2048
# The same for elementwise work.
_MATRICES, _PRODUCT_OPERATIONS = (2, 3, 4), 8
# The size from which on a row of a matrix is a vector.
_VECTOR = 4


def small_products(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or len(s.heads) < 2:
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    found = list(accumulations(s.body))
    inside = (h for part in walk(s.body) if isinstance(part, Nest) for h in part.heads if isinstance(h, For))
    loops = [*(h.loop for h in heads[1:]), *(h.loop for h in inside)]  # a version writes out all of them
    batch = heads[0].loop
    statements = sum(isinstance(part, Store) for part in walk(s.body))
    fits = statements <= _STATEMENTS and _depth(s) - 1 <= _LOOPS
    if not found or not fits or not all(_is_of_batch(store, batch) for _, store in found):
        return None
    if any(loops_in(loop.extent) for loop in loops) or any(map(is_sequential, walk(s.body))):
        return None
    sizes = [size for size in _SIZES if _written(s, size) <= _WRITTEN * size]
    return _versions(heads, s, [loop.extent for loop in loops], sizes)


def _written(s: Stmt, size: int) -> int:
    """The operations of the unrolled loops, those of `batch` included, if all have this size."""
    own = size ** len(s.heads) if isinstance(s, Nest) else 1
    return own * (_weight(s) if isinstance(s, Store) else sum(_written(part, size) for part in parts(s)))


def _depth(s: Stmt) -> int:
    """The number of nested loops."""
    own = len(s.heads) if isinstance(s, Nest) else 0
    return own + max(map(_depth, parts(s)), default=0)


def _versions(heads: Sequence[For], s: Nest, extents: Sequence[Index], sizes: Sequence[int]) -> Stmt | None:
    """The nest with versions for these sizes; None if none of them is possible."""
    extents = list(dict.fromkeys(extents))
    result: Stmt = s
    for size in reversed(sizes):
        conditions = _equal(extents, size)
        if conditions is not None:
            version = nest(heads[:1], _version(heads[1:], s.body, size))
            result = specialise(conditions, version, result)
    return None if result is s else result


def small_matrices(context: Context, s: Stmt) -> Stmt | None:
    """Elementwise work on a batch of very small matrices, whose loops cannot be merged: the same versions.

    for b, i < n, j < n: out[b, i, j] = x[b, i, j]*w[b, j]  ->  if n == 2 { for b, unroll i < 2, j < 2: ... } ...
    """
    if not isinstance(s, Nest) or len(s.heads) != 3 or not is_straight(s.body):
        return None
    heads = [h for h in s.heads if isinstance(h, For) and h.kind is LoopKind.PLAIN]
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    if len(heads) < 3 or any(loops_in(h.loop.extent) for h in heads) or sum(map(_weight, stores)) > _PRODUCT_OPERATIONS:
        return None
    return _versions(heads, s, [h.loop.extent for h in heads[1:]], _MATRICES)


def _weight(store: Store) -> int:
    return 1 + weigh(store.value)


def _is_of_batch(store: Store, batch: Loop) -> bool:
    """Whether each element of the batch has its own factors."""
    value = store.value
    product = isinstance(value, Apply) and value.op is Op.FMA and store.reduce is None
    return product and all(batch in moving(factor) for factor in value.args[:2])


def _equal(extents: Sequence[Index], size: int) -> tuple[Index, ...] | None:
    """Indices that are >= 0 if all extents have this size; None if one of them certainly has another."""
    if any(e.constant not in (None, size) for e in extents):
        return None
    return tuple(p for e in extents if e.constant is None for p in (e - size, size - e))


def _version(heads: Sequence[For], body: Stmt, size: int) -> Stmt:
    """The loops of one element of the batch, unrolled; from a vector's length on with a vector along the columns."""
    if size < _VECTOR:
        return _unrolled(nest(heads, body), size)
    *outer, last = (_fixed(head, size) for head in heads)
    tile = Tile((*outer[-1:], For(last.loop, LoopKind.SIMD)), (size,) * len((*outer[-1:], last)), unroll=True)
    places: dict[Atom, Index] = {head.loop: of(new.loop) for head, new in zip(heads, (*outer, last), strict=True)}
    return nest(outer[:-1], privatise(_unrolled(renamed(body, places), size), tile))


def _fixed(head: For, size: int) -> For:
    return For(Loop(head.loop.axis, as_index(size)), LoopKind.UNROLL)


def _unrolled(s: Stmt, size: int) -> Stmt:
    """The statement with loops of this size, unrolled."""
    if not isinstance(s, Nest):
        return rebuilt(s, lambda part: _unrolled(part, size))
    heads = [_fixed(head, size) for head in s.heads if isinstance(head, For)]
    places: dict[Atom, Index] = {
        head.loop: of(new.loop) for head, new in zip(s.heads, heads, strict=True) if isinstance(head, For)
    }
    return nest(heads, _unrolled(renamed(s.body, places), size))
