"""Sums of products by blocks: the one schedule for matmul, its layouts and batches, outer products and einsum.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }
        ->  sums[ROWS, W];
            for ib, jb { sums = 0;
                     for k, i, l: sums[i, l] = fma(a[ib*ROWS + i, k], b[k, jb*W + l], sums[i, l])
                     for i, l: out[ib*ROWS + i, jb*W + l] = f(sums[i, l]) }

The nest over k, i, l computes a block of the result; the library has code for it, which packs panels of b. If an
operand is not a plain load, its values are computed into a panel in memory:

                     for kb { panel = DEPTH rows of W columns of b;
                              for k, i, l: sums[i, l] = fma(a[ib*ROWS + i, k], panel[k, l], sums[i, l]) };

and rows of `a` likewise, once for all columns. So a convolution copies some rows of windows, with their padding.

An operand is any value a(i, k) or b(k, j) that does not depend on the other operand's own loop. Every element is one
chain of fused multiply-adds in the order of k, so no block size and no size of the arrays changes its bits. Method:
Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, but the left factor is not packed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import attrs

from harp.lower.cost_model import weigh
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, Head, If, Load, LoopKind, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, Tile, nest, privatise, renamed, sequence
from harp.lower.loopir.products import Match, Product, is_direct, match, moves_by_one, moving, panel_vectors
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.digits import over_digits
from harp.lower.rewrite.loop_primitives import Context, flat, specialise, split, strips
from harp.trace.index.division import Substitution, floordiv, maximum
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, as_index, loops_in, of, split_linear
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.dtypes import f32, f64, i32
from harp.trace.scalar.expr import Expr, apply, const, rewrite
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

# With fewer rows than this, or elements in all, packing costs more than it saves if memory is read in order anyway.
_FEW_ROWS, _FEW_ELEMENTS = 3, 32
# Dtypes for which backends pack panels themselves, if an operand is contiguous.
_PACKED = (f32, f64, i32)
# The most expensive use of the sums that is printed a second time, for blocks without a remainder.
_REPEATED = 16


def contraction(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    found = match(s)
    if found is None or (context.target.grid and found.products[0].acc.dtype is i32):
        return None
    assert isinstance(s, Nest)
    # Rows of a batch with the same right factor are rows of one matrix.
    merged = nest(*coalesced(context.fresh, [h for h in s.heads if isinstance(h, For)], s.body))
    once = match(merged)
    if once is not None and isinstance(merged, Nest):
        found, s = once, merged
    panels = _panels(context, attrs.evolve(found, products=tuple(_along_one(context, p) for p in found.products)))
    rows, columns = found.row.extent, found.column.extent
    one_column = _FEW_ELEMENTS * maximum(2 - columns, 0)
    if not all(moves_by_one(p.b, found.column) for p in found.products):
        return panels
    heads = [h for h in s.heads if isinstance(h, For)]
    few = _shared(context, heads[:-1], strips(context, s.body, found.column))
    return specialise((rows - _FEW_ROWS, rows * columns + one_column - _FEW_ELEMENTS), panels, few)


def _along_one(context: Context, product: Product) -> Product:
    """The product with one loop in place of its last ones, such as those over a window, where `a` lies along it: a
    panel has rows of all of them.

    for c, i, j: acc = fma(a[r, c, i, j], b[c, y + i, x + j], acc)
        ->  for k: acc = fma(a.flat[n*r + k], b[c, y + i, x + j] for the digits c, i, j of k, acc)
    """
    for first in range(len(product.loops) - 1):
        outer, window = product.loops[:first], product.loops[first:]
        (head,), k = context.fresh.loop(product_of(loop.extent for loop in window))
        digits: dict[Atom, Index] = {}
        for loop in reversed(window):
            rest = floordiv(k, loop.extent)
            digits[loop], k = k - rest * loop.extent, rest
        a, b = _at(product.a, digits), _at(product.b, digits)
        loops = (*outer, head.loop)
        if is_direct(a) and is_direct(b):
            return Product(product.acc, loops, a, b)
        if is_direct(a) and product.acc.dtype.is_float:  # integers are packed by the library, which knows no windows
            return attrs.evolve(product, loops=loops, a=a, window=window)
        if is_direct(b) and not first and not is_direct(product.a):
            return attrs.evolve(product, loops=loops, b=b, window=window)
    return product


def _shared(context: Context, heads: list[For], rows: Stmt) -> Stmt:
    """The rows of strips in one merged loop, since there may be few rows."""
    if isinstance(rows, Nest) and isinstance(rows.heads[0], For) and rows.heads[0].kind is LoopKind.PLAIN:
        return nest(flat(context, (*heads, rows.heads[0])), nest(rows.heads[1:], rows.body))
    return nest(heads, rows)


@attrs.frozen(repr=False)
class OutputBlock:
    """A block of the result: `height` rows and `width` columns from `top` and `start` on, of which `rows` and `columns`
    are inside. `packed` is memory for a part of `b`, unless backends read that in place. The row goes through the
    iterations of the loops in `merged`, if there are any."""

    product: Product
    row: Loop
    column: Loop
    sums: Buffer
    packed: Buffer | None
    top: Index
    start: Index
    rows: Index
    columns: Index
    merged: tuple[Loop, ...] = ()

    def at_row(self, context: Context, i: Index) -> tuple[tuple[Digits, ...], dict[Atom, Index]]:
        """The heads and the positions of the row that is `i` rows from the top."""
        if not self.merged:
            return (), {self.row: self.top + i}
        digits = tuple(context.fresh.loop(loop.extent)[0][0].loop for loop in self.merged)
        return (Digits(digits, self.top + i),), dict(zip(self.merged, map(of, digits), strict=True))


def _panels(context: Context, found: Match) -> Stmt:
    dtype = found.products[0].acc.dtype
    target = context.target
    width, most = panel_vectors(dtype) * target.lanes(dtype.itemsize), target.panel_height
    merged, row, outer = _merged_rows(context, found)
    count = row.extent.constant
    height = most if count is None else min(count, most)
    rows_head, _, top, rows = split(context.fresh, row.extent, max(height, 1))
    columns_head, _, start, columns = split(context.fresh, found.column.extent, width)
    copies: list[tuple[Buffer, Stmt]] = []
    inside: list[Stmt] = []
    buffers: list[Buffer] = []
    sums: dict[Buffer, Buffer] = {}
    for product in found.products:
        name = product.acc.name
        total = Buffer(f"{name}_sums", product.acc.dtype, (as_index(height), as_index(width)), Space.THREAD)
        room = Buffer(f"{name}_panel", product.b.dtype, (as_index(target.panel_depth), as_index(width)), Space.THREAD)
        in_place = dtype in _PACKED and is_direct(product.b) and not (product.window and is_direct(product.a))
        packed = None if in_place else room
        block = OutputBlock(product, row, found.column, total, packed, top, start, rows, columns, merged)
        buffers += [total] if packed is None else [total, packed]
        a = product.a
        if not is_direct(a):
            copies.append(_rows(context, block))
            a = Load(copies[-1][0], (of(row) - top, of(product.loops[0])))
        inside += [_zero(context, total, rows), _sum(context, block, a)]
        sums[product.acc] = total
    results = partial(_results, context, block, found.body, sums)
    values = [s.value for s in walk(found.body) if isinstance(s, Store)]
    inside.append(_whole(block, values, results(columns), results))
    result = sequence(inside)
    for buffer in reversed(buffers):
        result = Alloc(buffer, result)
    if not copies:
        return nest(flat(context, (*outer, *rows_head, *columns_head)), result)
    result = sequence([*(fill for _, fill in copies), nest(columns_head, result)])
    for buffer, _ in reversed(copies):
        result = Alloc(buffer, result)
    return nest(flat(context, (*outer, *rows_head)), result)


def _merged_rows(context: Context, found: Match) -> tuple[tuple[Loop, ...], Loop, tuple[For, ...]]:
    """Loops that are one row loop, this loop, and the other outer loops: all rows for which `b` is the same, where rows
    of windows are copied anyway. So panels of `b` serve the rows of many small images."""
    loops = [*(h.loop for h in found.outer), found.row]
    moved = set[Loop]().union(*(moving(p.b) for p in found.products))
    copied = all(p.window and not is_direct(p.a) for p in found.products)
    if not copied or len(loops) < 2 or moved & {*loops} or any(loops_in(loop.extent) for loop in loops):
        return (), found.row, found.outer
    (head,), _ = context.fresh.loop(product_of(loop.extent for loop in loops))
    return tuple(loops), head.loop, ()


def _whole(block: OutputBlock, values: Iterable[Expr], ragged: Stmt, whole: Callable[[Index], Stmt]) -> Stmt:
    """If all columns are inside, loops of constant length; not if the code is too long to print twice."""
    if sum(map(weigh, values)) > _REPEATED:
        return ragged
    width = block.sums.shape[1]
    return If((block.columns - width,), whole(width), ragged)


def _results(context: Context, block: OutputBlock, body: Stmt, sums: Mapping[Buffer, Buffer], columns: Index) -> Stmt:
    """The statements that use the sums."""
    i_head, i = context.fresh.loop(block.rows)
    l_head, lane = context.fresh.loop(columns, LoopKind.SIMD)
    places = {acc: (total, (i, lane)) for acc, total in sums.items()}
    digits, at = block.at_row(context, i)
    inner = Renaming(Substitution({**at, block.column: block.start + lane}), places).statement(body)
    width = block.sums.shape[1].constant or 1
    return nest((*i_head, *digits), privatise(inner, Tile(l_head, (width,))) if l_head else inner)


def _rows(context: Context, block: OutputBlock) -> tuple[Buffer, Stmt]:
    """An operand `a` that cannot be read in place, copied to memory of its own."""
    (k,) = block.product.loops
    height = block.sums.shape[0]
    copy = Buffer(f"{block.product.acc.name}_rows", block.product.a.dtype, (height, k.extent), Space.THREAD)
    i_head, i = context.fresh.loop(block.rows)
    if not block.product.window:
        k_head, at = context.fresh.loop(k.extent)
        value = _at(block.product.a, {block.row: block.top + i, k: at})
        return copy, over_digits(context.fresh, nest(i_head + k_head, Store(copy, (i, at), value)))
    digits, places = block.at_row(context, i)
    outer: tuple[Head, ...] = (*i_head, *digits)
    head: tuple[For, ...] = ()
    at = ZERO
    for loop in block.product.window:
        outer += head
        head, places[loop] = context.fresh.loop(loop.extent)
        at = at * loop.extent + places[loop]
    return copy, nest(outer, _in_one_piece(context, head, Store(copy, (i, at), _at(block.product.a, places))))


def _zero(context: Context, buffer: Buffer, rows: Index) -> Stmt:
    i_head, i = context.fresh.loop(rows)
    l_head, lane = context.fresh.loop(buffer.shape[1], LoopKind.SIMD)
    return nest(i_head + l_head, Store(buffer, (i, lane), const(0, buffer.dtype)))


def _sum(context: Context, block: OutputBlock, a: Expr) -> Stmt:
    """The update over all rows of `b`; if a backend cannot read these in place, a panel of rows at a time."""
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
    chunk, _, first, depth = split(context.fresh, last.extent, context.target.panel_depth)
    step = update(first, depth, lambda k, j: Load(packed, (k, j)))
    return nest((*map(For, outer), *chunk), sequence([_pack(context, block, packed, first, depth), step]))


def _pack(context: Context, block: OutputBlock, packed: Buffer, first: Index, depth: Index) -> Stmt:
    """Rows of `b` from `first` on; columns outside become zero, since updates run over whole vectors."""
    product, width = block.product, block.sums.shape[1]
    last = product.loops[-1]

    def copied(columns: Index) -> Stmt:
        k_head, k = context.fresh.loop(depth)
        l_head, lane = context.fresh.loop(columns)
        digits = tuple(Loop(context.fresh.loop(loop.extent)[0][0].loop.axis, loop.extent) for loop in product.window)
        places: dict[Atom, Index] = {block.column: block.start + lane, last: first + k}
        places |= {loop: of(digit) for loop, digit in zip(product.window, digits, strict=True)}
        store = Store(packed, (k, lane), _at(product.b, places))
        if product.window:
            rows = (*k_head, Digits(digits, first + k))
            return nest(rows, _in_one_piece(context, l_head, store))
        heads = k_head + l_head if moves_by_one(product.b, block.column) else l_head + k_head
        return over_digits(context.fresh, nest(heads, store))

    zero = If((width - block.columns - 1,), _zero(context, packed, depth))
    return _whole(block, (product.b,), sequence([zero, copied(block.columns)]), copied)


def _in_one_piece(context: Context, heads: tuple[For, ...], store: Store) -> Stmt:
    """Without tests of each element where the first and the last one are there.

    for j: panel[j] = x[j] if tests(j) else 0
        ->  if tests(0) and tests(n - 1) { for j: panel[j] = x[j] } else { as it was }
    """
    tests = tuple(c for e in walk_expr((store.value,)) if isinstance(e, Load) for c in e.conditions)
    if not heads or not tests or any(split_linear(c, heads[0].loop) is None for c in tests):
        return nest(heads, store)
    (lane,) = heads
    ends = [Substitution({lane.loop: end}).each(tests) for end in (ZERO, lane.loop.extent - 1)]
    (value,) = rewrite((store.value,), lambda e: Load(e.buffer, e.index) if isinstance(e, Load) else e)
    whole, j = context.fresh.loop(lane.loop.extent)
    plain = renamed(Store(store.buffer, store.index, value), {lane.loop: j})
    return If(tuple(dict.fromkeys(c for end in ends for c in end)), nest(whole, plain), nest(heads, store))


def _at(e: Expr, places: Mapping[Atom, Index]) -> Expr:
    return Renaming(Substitution(places), {}).value(e)
