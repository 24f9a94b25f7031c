"""Sums of products by panels: the one schedule of matmul, its layouts and batches, outer products and einsum.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }
        ->  sums[ROWS, W], panel[DEPTH, W];
            for ib, jb { sums = 0;
                     for kb { panel = DEPTH rows of W columns of b;
                              for k, i, l: sums[i, l] = fma(a[ib*ROWS + i, k], panel[k, l], sums[i, l]) };
                     for i, l: out[ib*ROWS + i, jb*W + l] = f(sums[i, l]) }

The nest over k, i, l is an update of rank k; backends have the fastest code of their machine for it. Every element is
one chain of fused multiply-adds in the order of k, so no block size and no size of the arrays changes its bits.

An operand is any value without the other operand's loops: what stands round its loads is computed while the panel is
packed. Method: Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008, without its blocks
of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import attrs

from harp.lower.cost import mentioned
from harp.lower.loops import Alloc, Buffer, Digits, For, Head, If, Load, LoopKind, Nest, Seq, Space, Stmt, Store
from harp.lower.rewrite import (
    Renaming,
    Tile,
    accumulation,
    accumulations,
    distribute,
    nest,
    rebuilt,
    renamed,
    sequence,
    stride,
)
from harp.lower.strips import Context, strips, vectors
from harp.trace.bounds import nonnegative
from harp.trace.division import Substitution, ceildiv, minimum
from harp.trace.expr import Apply, Const, Expr, Position, apply, const
from harp.trace.expr import walk as walk_expr
from harp.trace.index import ZERO, Atom, Index, Loop, as_index, of, split_linear
from harp.trace.index import product as product_of
from harp.trace.ops import Op

# Rows of a panel: with its width of two vectors, a panel stays in the first cache.
_DEPTH = 256
# Rows of `a` that are multiplied by one panel: enough to make light of packing it, few enough to deal out to threads.
_ROWS = 512
# With fewer rows than this, or elements in all, packing costs more than it saves where memory is read in order anyway.
_FEW_ROWS, _FEW_ELEMENTS = 3, 32
# Up to so many rows read a whole panel where it is.
_FEW_REUSES = 16
_MEMORY = (Space.INPUT, Space.OUTPUT, Space.SCRATCH)


@attrs.frozen
class Product:
    """One accumulation: acc = fma(a, b, acc) over `loops`, where only `b` moves with the columns."""

    acc: Buffer
    loops: tuple[Loop, ...]
    a: Expr
    b: Expr


@attrs.frozen
class Match:
    """Products over the same rows and columns; `body` is what is computed of their sums."""

    outer: tuple[For, ...]
    row: Loop
    column: Loop
    products: tuple[Product, ...]
    body: Stmt


def contraction(context: Context, s: Stmt) -> Stmt | None:
    """The rule; see the top of the file."""
    found = _match(s)
    if found is None:
        return None
    assert isinstance(s, Nest)
    result = _general(context, found, s)
    for one, many in ((found.row, found.column), (found.column, found.row)):
        if one.extent.constant is None and all(_is_matrix_times_vector(p, many) for p in found.products):
            heads = [h for h in s.heads if isinstance(h, For) and h.loop not in (one, many)]
            lanes = max(context.target.vector_bytes // found.products[0].acc.dtype.itemsize, 1)
            thin = vectors(context, renamed(s.body, {one: ZERO}), many, lanes)
            result = If((1 - one.extent, one.extent - 1), _shared(context, heads, thin), result)
    return result


def _general(context: Context, match: Match, s: Nest) -> Stmt:
    """By panels, or by strips where there are few rows."""
    panels = _panels(context, match)
    rows, columns = match.row.extent, match.column.extent
    conditions = tuple(c for c in (rows - _FEW_ROWS, rows * columns - _FEW_ELEMENTS) if not nonnegative(c))
    if not conditions or not all(_moves_by_one(p.b, match.column) for p in match.products):
        return panels
    heads = [h for h in s.heads if isinstance(h, For)]
    return If(conditions, panels, _shared(context, heads[:-1], strips(context, s.body, match.column)))


def _is_matrix_times_vector(product: Product, many: Loop) -> bool:
    """Whether, with one row or one column, both operands can be read as they lie there: packing would read the matrix
    twice, and most of a panel would be empty."""
    if len(product.loops) > 1 or not (_is_direct(product.a) and _is_direct(product.b)):
        return False
    matrix = product.a if many in _moving(product.a) else product.b
    return _along(matrix, product.loops[0]) or (_along(matrix, many) and matrix is product.a)


def _shared(context: Context, heads: list[For], rows: Stmt) -> Stmt:
    """Rows of strips in one loop, for there may be few rows."""
    if isinstance(rows, Nest) and isinstance(rows.heads[0], For) and rows.heads[0].kind is LoopKind.SERIAL:
        return nest(_flat(context, (*heads, rows.heads[0])), nest(rows.heads[1:], rows.body))
    return nest(heads, rows)


# --- the pattern


def is_contraction(s: Stmt) -> bool:
    """Whether the rule fits the statement."""
    return _match(s) is not None


def _match(s: Stmt) -> Match | None:
    if not isinstance(s, Nest) or isinstance(s.body, Nest):
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    column = heads[-1].loop
    products = [_product(loops, store, column) for loops, store in accumulations(s.body)]
    known = tuple(p for p in products if p is not None)
    if not known or len(known) < len(products) or not all(_starts_at_zero(s.body, p.acc) for p in known):
        return None
    rows = [h.loop for h in heads[:-1] if all(_is_row(h.loop, p) for p in known)]
    if not rows or any(_reaches(p, (rows[-1], column)) for p in known):
        return None
    outer = tuple(h for h in heads[:-1] if h.loop is not rows[-1])
    return Match(outer, rows[-1], column, known, _without(s.body, {p.acc for p in known}))


def _product(loops: Sequence[For], store: Store, column: Loop) -> Product | None:
    value = store.value
    if not isinstance(value, Apply) or value.op is not Op.FMA or store.reduce is not None:
        return None
    a, b, _ = value.args
    if column in _moving(a):
        a, b = b, a
    inner = tuple(h.loop for h in loops)
    fits = column in _moving(b) and column not in _moving(a) and {*inner} & _moving(a) and {*inner} & _moving(b)
    if not fits or not (_reads_memory_only(a) and _reads_memory_only(b)):
        return None
    if not _is_direct(a) and (len(inner) > 1 or inner[0].extent.constant == 0):
        return None
    return Product(store.buffer, inner, a, b)


def _moving(e: Expr) -> set[Loop]:
    """The loops that a value depends on."""
    found: set[Loop] = set()
    for part in walk_expr((e,)):
        indices: tuple[Index, ...] = ()
        if isinstance(part, Load):
            indices = (*part.index, *part.conditions)
        elif isinstance(part, Position):
            indices = (part.index,)
        found.update(loop for p in indices for loop in mentioned(p))
    return found


def _is_row(loop: Loop, product: Product) -> bool:
    return loop in _moving(product.a) and loop not in _moving(product.b)


def _reaches(product: Product, loops: tuple[Loop, Loop]) -> bool:
    """Whether how far the product's loops run depends on the row or the column."""
    return any(loop in mentioned(k.extent) for k in product.loops for loop in loops)


def _reads_memory_only(e: Expr) -> bool:
    return all(part.buffer.space in _MEMORY for part in walk_expr((e,)) if isinstance(part, Load))


def _is_direct(a: Expr) -> bool:
    """Whether a backend can read the operand where it is, by strides."""
    if not isinstance(a, Load) or a.conditions:
        return False
    return all(split_linear(p, loop) is not None for p in a.index for loop in mentioned(p))


def _moves_by_one(e: Expr, loop: Loop) -> bool:
    return all(stride(x, loop) in (0, 1) for x in walk_expr((e,)) if isinstance(x, Load))


def _starts_at_zero(body: Stmt, acc: Buffer) -> bool:
    """Whether the only other store to the variable sets it to zero."""
    stores = [s for s in _stores(body) if s.buffer is acc]
    first = stores[0].value if stores else None
    return len(stores) == 2 and isinstance(first, Const) and not first.value and stores[0].reduce is None


def _stores(s: Stmt) -> Iterator[Store]:
    if isinstance(s, Store):
        yield s
    elif isinstance(s, Seq):
        for part in s.parts:
            yield from _stores(part)
    elif isinstance(s, If):
        yield from _stores(s.yes)
        if s.no is not None:
            yield from _stores(s.no)
    elif isinstance(s, (Alloc, Nest)):
        yield from _stores(s.body)


def _without(s: Stmt, accs: set[Buffer]) -> Stmt:
    """The statement without these variables, and without what computes them."""
    if isinstance(s, Alloc) and s.buffer in accs:
        return _without(s.body, accs)
    if isinstance(s, Seq):
        return sequence(_without(part, accs) for part in s.parts if not _computes(part, accs))
    return rebuilt(s, lambda part: _without(part, accs))


def _computes(s: Stmt, accs: set[Buffer]) -> bool:
    found = accumulation(s)
    store = found[1] if found else s
    return isinstance(store, Store) and store.buffer in accs


# --- the schedule


@attrs.frozen
class Panel:
    """Where a product is summed: `height` rows and `width` columns from `top` and `start` on, of which `rows` and
    `columns` are there."""

    product: Product
    row: Loop
    column: Loop
    sums: Buffer
    packed: Buffer
    top: Index
    start: Index
    rows: Index
    columns: Index


def _panels(context: Context, match: Match) -> Stmt:
    dtype = match.products[0].acc.dtype
    width = max(2 * context.target.vector_bytes // dtype.itemsize, 2)
    count = match.row.extent.constant
    height = _ROWS if count is None else min(count, _ROWS)
    rows_head, ib = context.numbers.loop(ceildiv(match.row.extent, max(height, 1)))
    columns_head, jb = context.numbers.loop(ceildiv(match.column.extent, width))
    top, start = ib * height, jb * width
    rows, columns = minimum(height, match.row.extent - top), minimum(width, match.column.extent - start)
    copies: list[tuple[Buffer, Stmt]] = []
    inside: list[Stmt] = []
    buffers: list[Buffer] = []
    sums: dict[Buffer, tuple[Buffer, tuple[Index, ...]]] = {}
    i_head, i = context.numbers.loop(rows)
    l_head, lane = context.numbers.loop(columns, LoopKind.SIMD)
    for product in match.products:
        name = product.acc.name
        total = Buffer(f"{name}_sums", product.acc.dtype, (as_index(height), as_index(width)), Space.THREAD)
        packed = Buffer(f"{name}_panel", product.b.dtype, (as_index(_DEPTH), as_index(width)), Space.THREAD)
        panel = Panel(product, match.row, match.column, total, packed, top, start, rows, columns)
        buffers += [total, packed]
        a = product.a
        if not _is_direct(a):
            copies.append(_rows(context, panel))
            a = Load(copies[-1][0], (of(match.row) - top, of(product.loops[0])))
        inside += [_zero(context, total, rows), _sum(context, panel, a)]
        sums[product.acc] = total, (i, lane)
    renaming = Renaming(Substitution({match.row: top + i, match.column: start + lane}), sums)
    body = renaming.statement(match.body)
    inside.append(nest(i_head, distribute(body, Tile(l_head, (width,))) if l_head else body))
    result = sequence(inside)
    for buffer in reversed(buffers):
        result = Alloc(buffer, result)
    if not copies:
        return nest(_flat(context, (*match.outer, *rows_head, *columns_head)), result)
    result = sequence([*(fill for _, fill in copies), nest(columns_head, result)])
    for buffer, _ in reversed(copies):
        result = Alloc(buffer, result)
    return nest(_flat(context, (*match.outer, *rows_head)), result)


def _flat(context: Context, heads: tuple[For, ...]) -> tuple[Head, ...]:
    """One loop in place of several, so that threads can share the iterations of all of them."""
    if len(heads) < 2:
        return heads
    head, flat = context.numbers.loop(product_of(h.loop.extent for h in heads))
    return (*head, Digits(tuple(h.loop for h in heads), flat))


def _rows(context: Context, panel: Panel) -> tuple[Buffer, Stmt]:
    """An operand `a` that cannot be read where it is, in memory of its own."""
    (k,) = panel.product.loops
    height = panel.sums.shape[0]
    copy = Buffer(f"{panel.product.acc.name}_rows", panel.product.a.dtype, (height, k.extent), Space.THREAD)
    i_head, i = context.numbers.loop(panel.rows)
    k_head, at = context.numbers.loop(k.extent)
    value = _at(panel.product.a, {panel.row: panel.top + i, k: at})
    return copy, nest(i_head + k_head, Store(copy, (i, at), value))


def _zero(context: Context, buffer: Buffer, rows: Index) -> Stmt:
    i_head, i = context.numbers.loop(rows)
    l_head, lane = context.numbers.loop(buffer.shape[1], LoopKind.SIMD)
    return nest(i_head + l_head, Store(buffer, (i, lane), const(0, buffer.dtype)))


def _sum(context: Context, panel: Panel, a: Expr) -> Stmt:
    """Over the rows of `b`, as many as a packed panel has at a time."""
    *outer, last = panel.product.loops
    b, width = panel.product.b, panel.sums.shape[1]
    chunk, kb = context.numbers.loop(ceildiv(last.extent, _DEPTH))
    first = kb * _DEPTH
    depth = minimum(_DEPTH, last.extent - first)

    def update(columns: Index, right: Callable[[Index, Index], Expr]) -> Stmt:
        k_head, k = context.numbers.loop(depth)
        i_head, i = context.numbers.loop(panel.rows)
        l_head, lane = context.numbers.loop(columns, LoopKind.SIMD)
        left = _at(a, {panel.row: panel.top + i, last: first + k})
        value = apply(Op.FMA, left, right(k, lane), Load(panel.sums, (i, lane)))
        return nest((*k_head, *i_head, *l_head), Store(panel.sums, (i, lane), value))

    packed = [*_pack(context, panel, first, depth), update(panel.columns, lambda k, j: Load(panel.packed, (k, j)))]
    step: Stmt = sequence(packed)
    if _is_direct(b) and _moves_by_one(b, panel.column):
        here = update(width, lambda k, j: _at(b, {panel.column: panel.start + j, last: first + k}))
        few = _FEW_REUSES - panel.row.extent, panel.column.extent - panel.start - width
        step = If(few, here, step)
    result = nest((*map(For, outer), *chunk), step)
    return result


def _along(e: Expr, loop: Loop) -> bool:
    return isinstance(e, Load) and stride(e, loop) == 1


def _pack(context: Context, panel: Panel, first: Index, depth: Index) -> Iterator[Stmt]:
    """Rows of `b` from `first` on; columns that are not there become zero, for updates go over whole vectors."""
    last = panel.product.loops[-1]
    k_head, k = context.numbers.loop(depth)
    l_head, lane = context.numbers.loop(panel.columns)
    value = _at(panel.product.b, {panel.column: panel.start + lane, last: first + k})
    heads = k_head + l_head if _moves_by_one(panel.product.b, panel.column) else l_head + k_head
    yield If((panel.sums.shape[1] - panel.columns - 1,), _zero(context, panel.packed, depth))
    yield nest(heads, Store(panel.packed, (k, lane), value))


def _at(e: Expr, places: Mapping[Atom, Index]) -> Expr:
    return Renaming(Substitution(places), {}).value(e)
