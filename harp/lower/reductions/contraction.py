"""Sums of products by blocks: the one schedule of matmul, its layouts and batches, outer products and einsum.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }
        ->  sums[ROWS, W];
            for ib, jb { sums = 0;
                     for k, i, l: sums[i, l] = fma(a[ib*ROWS + i, k], b[k, jb*W + l], sums[i, l])
                     for i, l: out[ib*ROWS + i, jb*W + l] = f(sums[i, l]) }

The nest over k, i, l computes a block of the result; backends have the fastest code of their machine for it, which
packs panels of b. What stands round the loads of an operand is computed here, into memory of its own:

                     for kb { panel = DEPTH rows of W columns of b;
                              for k, i, l: sums[i, l] = fma(a[ib*ROWS + i, k], panel[k, l], sums[i, l]) };

An operand is any value without the other operand's loops. Every element is one chain of fused multiply-adds in the
order of k, so no block size and no size of the arrays changes its bits. Method: Goto and van de Geijn, "Anatomy of
high-performance matrix multiplication", 2008, without packing its left factor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import attrs

from harp.lower.cost_model import weigh
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, LoopKind, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, Tile, nest, privatise, sequence
from harp.lower.loopir.products import Match, Product, is_direct, match, moves_by_one, panel_vectors
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.digits import over_digits
from harp.lower.rewrite.loop_primitives import Context, flat, specialise, split, strips
from harp.trace.index.division import Substitution, maximum
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, as_index, of
from harp.trace.scalar.dtypes import f32, f64, i32
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.ops import Op

# Rows of a panel: with its width of two vectors, a panel stays in the L1 cache.
_DEPTH = 256
# Rows of `a` that are multiplied by one panel: enough to make light of packing it, few enough to distribute them to
# threads.
_ROWS = 512
# With fewer rows than this, or elements in all, packing costs more than it saves where memory is read in order anyway.
_FEW_ROWS, _FEW_ELEMENTS = 3, 32
# Dtypes of which backends pack panels themselves, where an operand lies in memory as it is.
_PACKED = (f32, f64, i32)
# The cost of what is computed of the sums up to which it is printed a second time, for panels without gaps.
_REPEATED = 16


def contraction(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    found = match(s)
    if found is None or (context.target.grid and found.products[0].acc.dtype is i32):
        return None
    assert isinstance(s, Nest)
    # Rows of a batch that all have the same factor are rows of one matrix.
    merged = nest(*coalesced(context.fresh, [h for h in s.heads if isinstance(h, For)], s.body))
    once = match(merged)
    if once is not None and isinstance(merged, Nest):
        found, s = once, merged
    panels = _panels(context, found)
    rows, columns = found.row.extent, found.column.extent
    one_column = _FEW_ELEMENTS * maximum(2 - columns, 0)
    if not all(moves_by_one(p.b, found.column) for p in found.products):
        return panels
    heads = [h for h in s.heads if isinstance(h, For)]
    few = _shared(context, heads[:-1], strips(context, s.body, found.column))
    return specialise((rows - _FEW_ROWS, rows * columns + one_column - _FEW_ELEMENTS), panels, few)


def _shared(context: Context, heads: list[For], rows: Stmt) -> Stmt:
    """Rows of strips in one loop, for there may be few rows."""
    if isinstance(rows, Nest) and isinstance(rows.heads[0], For) and rows.heads[0].kind is LoopKind.PLAIN:
        return nest(flat(context, (*heads, rows.heads[0])), nest(rows.heads[1:], rows.body))
    return nest(heads, rows)


@attrs.frozen
class OutputBlock:
    """Where a product is summed: `height` rows and `width` columns from `top` and `start` on, of which `rows` and
    `columns` are there. `packed` is memory for a part of `b`, unless backends read that where it is."""

    product: Product
    row: Loop
    column: Loop
    sums: Buffer
    packed: Buffer | None
    top: Index
    start: Index
    rows: Index
    columns: Index


def _panels(context: Context, found: Match) -> Stmt:
    dtype = found.products[0].acc.dtype
    width = panel_vectors(dtype) * context.target.lanes(dtype.itemsize)
    count = found.row.extent.constant
    height = _ROWS if count is None else min(count, _ROWS)
    rows_head, _, top, rows = split(context.fresh, found.row.extent, max(height, 1))
    columns_head, _, start, columns = split(context.fresh, found.column.extent, width)
    copies: list[tuple[Buffer, Stmt]] = []
    inside: list[Stmt] = []
    buffers: list[Buffer] = []
    sums: dict[Buffer, Buffer] = {}
    for product in found.products:
        name = product.acc.name
        total = Buffer(f"{name}_sums", product.acc.dtype, (as_index(height), as_index(width)), Space.THREAD)
        room = Buffer(f"{name}_panel", product.b.dtype, (as_index(_DEPTH), as_index(width)), Space.THREAD)
        packed = None if dtype in _PACKED and is_direct(product.b) else room
        block = OutputBlock(product, found.row, found.column, total, packed, top, start, rows, columns)
        buffers += [total] if packed is None else [total, packed]
        a = product.a
        if not is_direct(a):
            copies.append(_rows(context, block))
            a = Load(copies[-1][0], (of(found.row) - top, of(product.loops[0])))
        inside += [_zero(context, total, rows), _sum(context, block, a)]
        sums[product.acc] = total
    results = partial(_results, context, block, found.body, sums)
    values = [s.value for s in walk(found.body) if isinstance(s, Store)]
    inside.append(_whole(block, values, results(columns), results))
    result = sequence(inside)
    for buffer in reversed(buffers):
        result = Alloc(buffer, result)
    if not copies:
        return nest(flat(context, (*found.outer, *rows_head, *columns_head)), result)
    result = sequence([*(fill for _, fill in copies), nest(columns_head, result)])
    for buffer, _ in reversed(copies):
        result = Alloc(buffer, result)
    return nest(flat(context, (*found.outer, *rows_head)), result)


def _whole(block: OutputBlock, values: Iterable[Expr], ragged: Stmt, whole: Callable[[Index], Stmt]) -> Stmt:
    """Where all columns are there, loops of constant length, which have no rest; unless it is much to print twice."""
    if sum(map(weigh, values)) > _REPEATED:
        return ragged
    width = block.sums.shape[1]
    return If((block.columns - width,), whole(width), ragged)


def _results(context: Context, block: OutputBlock, body: Stmt, sums: Mapping[Buffer, Buffer], columns: Index) -> Stmt:
    """What is computed of the sums."""
    i_head, i = context.fresh.loop(block.rows)
    l_head, lane = context.fresh.loop(columns, LoopKind.SIMD)
    places = {acc: (total, (i, lane)) for acc, total in sums.items()}
    inner = Renaming(Substitution({block.row: block.top + i, block.column: block.start + lane}), places).statement(body)
    width = block.sums.shape[1].constant or 1
    return nest(i_head, privatise(inner, Tile(l_head, (width,))) if l_head else inner)


def _rows(context: Context, block: OutputBlock) -> tuple[Buffer, Stmt]:
    """An operand `a` that cannot be read where it is, in memory of its own."""
    (k,) = block.product.loops
    height = block.sums.shape[0]
    copy = Buffer(f"{block.product.acc.name}_rows", block.product.a.dtype, (height, k.extent), Space.THREAD)
    i_head, i = context.fresh.loop(block.rows)
    k_head, at = context.fresh.loop(k.extent)
    value = _at(block.product.a, {block.row: block.top + i, k: at})
    return copy, over_digits(context.fresh, nest(i_head + k_head, Store(copy, (i, at), value)))


def _zero(context: Context, buffer: Buffer, rows: Index) -> Stmt:
    i_head, i = context.fresh.loop(rows)
    l_head, lane = context.fresh.loop(buffer.shape[1], LoopKind.SIMD)
    return nest(i_head + l_head, Store(buffer, (i, lane), const(0, buffer.dtype)))


def _sum(context: Context, block: OutputBlock, a: Expr) -> Stmt:
    """Over all rows of `b`; where a backend cannot read it where it is, as many at a time as a packed panel has."""
    *outer, last = block.product.loops
    b = block.product.b

    def update(first: Index, depth: Index, right: Callable[[Index, Index], Expr]) -> Stmt:
        k_head, k = context.fresh.loop(depth)
        i_head, i = context.fresh.loop(block.rows)
        l_head, lane = context.fresh.loop(block.columns, LoopKind.SIMD)
        left = _at(a, {block.row: block.top + i, last: first + k})
        value = apply(Op.FMA, left, right(k, lane), Load(block.sums, (i, lane)))
        return nest((*k_head, *i_head, *l_head), Store(block.sums, (i, lane), value))

    if block.packed is None:
        whole = update(ZERO, last.extent, lambda k, j: _at(b, {block.column: block.start + j, last: k}))
        return nest(map(For, outer), whole)
    packed = block.packed
    chunk, _, first, depth = split(context.fresh, last.extent, _DEPTH)
    step = update(first, depth, lambda k, j: Load(packed, (k, j)))
    return nest((*map(For, outer), *chunk), sequence([_pack(context, block, packed, first, depth), step]))


def _pack(context: Context, block: OutputBlock, packed: Buffer, first: Index, depth: Index) -> Stmt:
    """Rows of `b` from `first` on; columns that are not there become zero, for updates go over whole vectors."""
    b, last, width = block.product.b, block.product.loops[-1], block.sums.shape[1]

    def copied(columns: Index) -> Stmt:
        k_head, k = context.fresh.loop(depth)
        l_head, lane = context.fresh.loop(columns)
        value = _at(b, {block.column: block.start + lane, last: first + k})
        heads = k_head + l_head if moves_by_one(b, block.column) else l_head + k_head
        return over_digits(context.fresh, nest(heads, Store(packed, (k, lane), value)))

    zero = If((width - block.columns - 1,), _zero(context, packed, depth))
    return _whole(block, (b,), sequence([zero, copied(block.columns)]), copied)


def _at(e: Expr, places: Mapping[Atom, Index]) -> Expr:
    return Renaming(Substitution(places), {}).value(e)
