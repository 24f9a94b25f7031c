"""Matrix products and transposes on groups of work-items. In a product each group computes a square tile of the result
from strips of the operands that it shares; for transposes see `transposed`.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }
        ->  for grid ib < ceil(m/SIDE), jb < ceil(n/SIDE) {
                group as[DEPTH, SIDE], bs[DEPTH, SIDE]; private acc[ITEMS, EACH, EACH]
                for kb { for item t: as = a's part; for item t: bs = b's part;
                         for item t, k < DEPTH, u, v: acc[t, u, v] = fma(as[k, ...], bs[k, ...], acc[t, u, v]) }
                for item t, u, v: out[...] = f(acc[t, u, v]) }

Sums of many terms are split into chunks, which are added in order. If the result is small, and has few groups, each
chunk has groups of its own:

    for i, j { acc = 0; for k: ...; out[i, j] = f(acc) }
        ->  if there are several chunks, and m*n <= SMALL:
                for c, i, j { part = 0; for k of chunk c: ...; parts[c, i, j] = part }
                for i, j { acc = 0; for c: acc += parts[c, i, j]; out[i, j] = f(acc) }
            else:
                for i, j { acc = 0; for c { part = 0; for k of chunk c: ...; acc += part }; out[i, j] = f(acc) }

Neighbours read the strips side by side, and each of their elements is used SIDE times. Every element of the result, or
of a chunk, is one chain of fused multiply-adds in the order of k: only the size of k affects the bits. Source: V.
Volkov, J. Demmel: "Benchmarking GPUs to tune dense linear algebra", 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harp.lower.device.groups import ITEMS, items, scratch_array
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, If, Load, LoopKind, Nest, Space, Stmt, Store
from harp.lower.loopir.nests import (
    FreshLoops,
    Renaming,
    is_straight,
    loads,
    makes_index_arrays,
    nest,
    renamed,
    score,
    sequence,
    start,
)
from harp.lower.loopir.products import Match, Product, match
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise, stage
from harp.lower.rewrite.transpose_tiling import transposed_loads
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv, minimum
from harp.trace.index.polynomial import ZERO, Atom, Index, Loop, as_index, indirect_in, loops_in, of
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.ops import Op, Reduce

# Work-items along a side of a tile, elements of each work-item along it, and terms that are shared at a time.
_ROW, EACH, DEPTH = 16, 4, 16
SIDE = _ROW * EACH
# Terms of a chunk, and the most elements of a small result.
_CHUNK, _SMALL = 256, 1 << 16
# Rows and columns of the smallest result that is computed by tiles.
_FEW = 16
assert ITEMS == _ROW * _ROW


class _Square(NamedTuple):
    """The tile of a group: rows from `top` and columns from `start` on, some of which may be outside of the result."""

    found: Match
    top: Index
    start: Index


def product_sums(fresh: FreshLoops, s: Nest, scratch: list[Buffer], squares: bool) -> Stmt:
    """The rules for nests that are matrix products of independent loops."""
    heads = tuple(h for h in s.heads if isinstance(h, For))
    shape, at = tuple(h.loop.extent for h in heads), tuple(of(h.loop) for h in heads)
    found = match(s)
    product = None if found is None or len(found.products) > 1 else found.products[0]
    depths = [loop.extent for loop in product.loops] if product is not None else []
    unknown = any(loops_in(p) or indirect_in(p) for p in (*depths, *shape))
    if found is None or product is None or len(depths) > 1 or unknown or nonnegative(_CHUNK - depths[0]):
        return (tiled(fresh, s, s) if squares else None) or s
    (k,), acc = product.loops, product.acc
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)

    def chunk(c: Index, last: Store) -> Stmt:
        """part = 0; for k of chunk c: part += ...; then `last`"""
        along, j = fresh.loop(minimum(_CHUNK, k.extent - c * _CHUNK))
        step = renamed(Store(part, (), apply(Op.FMA, product.a, product.b, Load(part, ()))), {k: c * _CHUNK + j})
        return Alloc(part, sequence((start(part, Reduce.SUM), nest(along, step), last)))

    def added(chunks: Index, step: Callable[[Index], Stmt]) -> Stmt:
        """for i, j { acc = 0; a step for each chunk; out[i, j] = f(acc) }"""
        each, c = fresh.loop(chunks, LoopKind.SEQUENTIAL)
        return nest(heads, Alloc(acc, sequence((start(acc, Reduce.SUM), nest(each, step(c)), found.body))))

    chunks, outputs = ceildiv(k.extent, _CHUNK), product_of(shape)
    parts = scratch_array(scratch, "parts", acc.dtype, (minimum(chunks, floordiv(_SMALL, outputs) * chunks), *shape))
    each, c = fresh.loop(parts.shape[0])
    made = Nest((*each, *heads), chunk(c, Store(parts, (c, *at), Load(part, ()))))
    total = added(parts.shape[0], lambda c: Store(acc, (), Load(parts, (c, *at)), Reduce.SUM))
    small = sequence(((tiled(fresh, made, made) if squares else None) or made, total))
    whole = added(chunks, lambda c: chunk(c, Store(acc, (), Load(part, ()), Reduce.SUM)))
    large = (tiled(fresh, s, whole, chunked=True) if squares else None) or whole
    return specialise((k.extent - _CHUNK - 1, _SMALL - outputs), small, large)


def tiled(fresh: FreshLoops, s: Nest, otherwise: Stmt, *, chunked: bool = False) -> Stmt | None:
    """The nest by tiles, if there are enough rows and columns; None if it does not fit."""
    merged = nest(*coalesced(fresh, [h for h in s.heads if isinstance(h, For)], s.body))
    found = match(merged) or match(s)
    if found is None or any(len(p.loops) > 1 for p in found.products):
        return None
    rows, columns = found.row.extent, found.column.extent
    ib, i = fresh.loop(ceildiv(rows, SIDE), LoopKind.GRID)
    jb, j = fresh.loop(ceildiv(columns, SIDE), LoopKind.GRID)
    square = _Square(found, i * SIDE, j * SIDE)
    sums = {p.acc: _private(p.acc) for p in found.products}
    sum_of = _sum_of_chunks if chunked else _sum
    body = sequence((*(sum_of(fresh, square, p, sums[p.acc]) for p in found.products), _results(fresh, square, sums)))
    for array in sums.values():
        body = Alloc(array, body)
    grid = (*(For(h.loop, LoopKind.GRID) for h in found.outer), *ib, *jb)
    return specialise((rows - _FEW, columns - _FEW), nest(grid, body), otherwise)


def _private(acc: Buffer) -> Buffer:
    return Buffer(acc.name, acc.dtype, (as_index(ITEMS), as_index(EACH), as_index(EACH)), Space.PRIVATE)


def _digits(fresh: FreshLoops, flat: Index, low: int) -> tuple[Digits, Index, Index]:
    """The number of a work-item as two digits; the second is below `low`."""
    (high_head,), high = fresh.loop(ITEMS // low)
    (low_head,), last = fresh.loop(low)
    return Digits((high_head.loop, low_head.loop), flat), high, last


def _sum_of_chunks(fresh: FreshLoops, square: _Square, product: Product, acc: Buffer) -> Stmt:
    """acc = 0; for chunks { part = their sum; acc += part }"""
    (k,), part = product.loops, _private(Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG))
    chunk, c = fresh.loop(ceildiv(k.extent, _CHUNK), LoopKind.SEQUENTIAL)
    head, t = items(fresh)
    each, u, v = _each(fresh)
    added = nest((*head, *each), Store(acc, (t, u, v), Load(part, (t, u, v)), Reduce.SUM))
    first = c * _CHUNK
    made = _sum(fresh, square, product, part, first, minimum(_CHUNK, k.extent - first))
    return sequence((_zero(fresh, acc), nest(chunk, Alloc(part, sequence((made, added))))))


def _sum(
    fresh: FreshLoops,
    square: _Square,
    product: Product,
    acc: Buffer,
    first: Index = ZERO,
    length: Index | None = None,
) -> Stmt:
    """acc = 0; for whole strips of the terms, then for the remainder: as, bs = strips; acc += as*bs."""
    length = product.loops[0].extent if length is None else length
    whole = floordiv(length, DEPTH)
    blocks, kb = fresh.loop(whole, LoopKind.SEQUENTIAL)
    strips = [
        Buffer(f"{acc.name}_{name}", e.dtype, (as_index(DEPTH), as_index(SIDE)), Space.GROUP)
        for name, e in (("a", product.a), ("b", product.b))
    ]
    many = _part(fresh, square, product, acc, strips, first + kb * DEPTH, as_index(DEPTH))
    rest = _part(fresh, square, product, acc, strips, first + whole * DEPTH, length - whole * DEPTH)
    parts = [_zero(fresh, acc)]
    if whole is not ZERO:
        parts.append(nest(blocks, many))
    parts.append(rest)
    return Alloc(strips[0], Alloc(strips[1], sequence(parts)))


def _each(fresh: FreshLoops) -> tuple[tuple[For, ...], Index, Index]:
    """The loops over the elements of a work-item in a tile."""
    (first,), u = fresh.loop(EACH, LoopKind.UNROLL)
    (second,), v = fresh.loop(EACH, LoopKind.UNROLL)
    return (first, second), u, v


def _zero(fresh: FreshLoops, acc: Buffer) -> Stmt:
    head, t = items(fresh)
    each, u, v = _each(fresh)
    return nest((*head, *each), Store(acc, (t, u, v), const(0, acc.dtype)))


def _part(
    fresh: FreshLoops,
    square: _Square,
    product: Product,
    acc: Buffer,
    strips: list[Buffer],
    first: Index,
    length: Index,
) -> Stmt:
    """as, bs = strips of this many terms; acc += as*bs."""
    (k,) = product.loops
    row, column = square.found.row, square.found.column
    staged = (
        _staged(fresh, product.a, strips[0], (row, square.top), (k, first), length),
        _staged(fresh, product.b, strips[1], (column, square.start), (k, first), length),
    )
    head, t = items(fresh)
    digits, y, x = _digits(fresh, t, _ROW)
    terms, kk = fresh.loop(length, LoopKind.SEQUENTIAL)
    each, u, v = _each(fresh)
    a, b = Load(strips[0], (kk, y * EACH + u)), Load(strips[1], (kk, x * EACH + v))
    place = (t, u, v)
    added = Store(acc, place, apply(Op.FMA, a, b, Load(acc, place)))
    return sequence((*staged, nest((*head, digits, *terms, *each), added)))


def _staged(
    fresh: FreshLoops, e: Expr, strip: Buffer, side: tuple[Loop, Index], depth: tuple[Loop, Index], length: Index
) -> Stmt:
    """strip[k, i] = e(i, k), read side by side along memory; 0 outside of the matrix."""
    (row, top), (k, first) = side, depth
    head, t = items(fresh)
    repeat, r = fresh.loop(DEPTH * SIDE // ITEMS, LoopKind.UNROLL)
    accesses = loads(e)
    if score(accesses, k) > score(accesses, row):
        digits, high, low = _digits(fresh, t, DEPTH)
        at, i = low, high * (DEPTH * SIDE // ITEMS) + r
    else:
        digits, high, low = _digits(fresh, t, SIDE)
        at, i = high * (DEPTH * SIDE // ITEMS) + r, low
    value = Renaming(Substitution({row: top + i, k: first + at}), {}).value(e)
    zero = Store(strip, (at, i), const(0, strip.dtype))
    conditions = (row.extent - 1 - (top + i), length - 1 - at)
    return nest((*head, digits, *repeat), specialise(conditions, Store(strip, (at, i), value), zero))


def _results(fresh: FreshLoops, square: _Square, sums: dict[Buffer, Buffer]) -> Stmt:
    """The statements that use the sums, for elements inside of the result."""
    row, column = square.found.row, square.found.column
    head, t = items(fresh)
    digits, y, x = _digits(fresh, t, _ROW)
    each, u, v = _each(fresh)
    i, j = square.top + y * EACH + u, square.start + x * EACH + v
    places = {acc: (array, (t, u, v)) for acc, array in sums.items()}
    body = Renaming(Substitution({row: i, column: j}), places).statement(square.found.body)
    return nest((*head, digits, *each), If((row.extent - 1 - i, column.extent - 1 - j), body))


# The side of a tile, and the most transposed operands.
_SIDE, _TILES = 32, 4
_EACH = _SIDE * _SIDE // ITEMS


def transposed(fresh: FreshLoops, s: Nest) -> Stmt | None:
    """Operands that are read across the columns of a result are transposed in memory of the group.

        for i, j: out[i, j] = f(x[j, i], y[i, j])
            ->  for grid ib < ceil(m/SIDE), jb < ceil(n/SIDE) {
                    group tile[SIDE, SIDE + 1]
                    for item t: tile[j, i] = x[jb*SIDE + j, ib*SIDE + i]
                    for item t: out[ib*SIDE + i, jb*SIDE + j] = f(tile[j, i], y[...]) }

    Neighbours read and store side by side, both times. A row of the tile is longer by one, so that neighbours use
    different banks of the shared memory. Source: G. Ruetsch, P. Micikevicius: "Optimizing matrix transpose in CUDA",
    2009.
    """
    heads = [h for h in s.heads if isinstance(h, For) and not loops_in(h.loop.extent)]
    if len(heads) < max(len(s.heads), 2) or not is_straight(s.body) or makes_index_arrays(s.body):
        return None
    *outer, column = heads
    for row in reversed(outer):
        across = transposed_loads(s.body, row.loop, column.loop)
        if 0 < len(across) <= _TILES:
            tiles = {load: _tile(load, number) for number, load in enumerate(across)}
            others = [h for h in outer if h is not row]
            made = _by_tiles(fresh, others, row, column, s.body, tiles)
            return specialise((row.loop.extent - _SIDE, column.loop.extent - _SIDE), made, s)
    return None


def _tile(load: Load, number: int) -> Buffer:
    return Buffer(f"tile{number}", load.dtype, (as_index(_SIDE), as_index(_SIDE + 1)), Space.GROUP)


def _by_tiles(
    fresh: FreshLoops, outer: list[For], row: For, column: For, body: Stmt, tiles: dict[Load, Buffer]
) -> Stmt:
    ib, rows = fresh.loop(ceildiv(row.loop.extent, _SIDE), LoopKind.GRID)
    jb, columns = fresh.loop(ceildiv(column.loop.extent, _SIDE), LoopKind.GRID)
    top, start = rows * _SIDE, columns * _SIDE

    def shared(along_rows: bool) -> Stmt:
        """A loop over the tile, in which neighbours are in one row of `x` or of the result, if they are inside."""
        head, t = items(fresh)
        (high_head,), high = fresh.loop(ITEMS // _SIDE)
        (low_head,), low = fresh.loop(_SIDE)
        repeat, r = fresh.loop(_EACH, LoopKind.UNROLL)
        far = high * _EACH + r
        i, j = (low, far) if along_rows else (far, low)
        places: dict[Atom, Index] = {row.loop: top + i, column.loop: start + j}
        if along_rows:
            made: Stmt = sequence(Store(tile, (j, i), load) for load, tile in tiles.items())
        else:
            made = stage(body, {load: Load(tile, (j, i)) for load, tile in tiles.items()})
        conditions = (row.loop.extent - 1 - (top + i), column.loop.extent - 1 - (start + j))
        digits = Digits((high_head.loop, low_head.loop), t)
        return nest((*head, digits, *repeat), If(conditions, renamed(made, places)))

    whole = sequence((shared(True), shared(False)))
    for tile in tiles.values():
        whole = Alloc(tile, whole)
    return nest((*(For(h.loop, LoopKind.GRID) for h in outer), *ib, *jb), whole)
