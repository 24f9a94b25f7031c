"""Products on groups of work-items: each group computes a square of the result from strips that it shares.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }
        ->  for grid ib < ceil(m/SIDE), jb < ceil(n/SIDE) {
                group as[DEPTH, SIDE], bs[DEPTH, SIDE]; private acc[ITEMS, EACH, EACH]
                for kb { for item t: as = a's part; for item t: bs = b's part;
                         for item t, k < DEPTH, u, v: acc[t, u, v] = fma(as[k, ...], bs[k, ...], acc[t, u, v]) }
                for item t, u, v: out[...] = f(acc[t, u, v]) }

Neighbours read the parts from memory at the same time, and each element of them is used SIDE times. Every element of
the result is one chain of fused multiply-adds in the order of k, as everywhere, so that no size changes a bit.
Source: V. Volkov, J. Demmel: "Benchmarking GPUs to tune dense linear algebra", 2008.
"""

from __future__ import annotations

from typing import NamedTuple

from harp.lower.device.groups import ITEMS, items
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, If, Load, LoopKind, Nest, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, Renaming, loads, nest, score, sequence
from harp.lower.loopir.products import Match, Product, match
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.index.division import Substitution, ceildiv, floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, as_index
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.ops import Op

# Work-items of a side of the square, elements of each along it, and terms that are shared at a time.
_ROW, EACH, DEPTH = 16, 4, 16
SIDE = _ROW * EACH
# Rows and columns of the smallest result that is worth a square.
_FEW = 16
assert ITEMS == _ROW * _ROW


class _Square(NamedTuple):
    """What a group computes: rows from `top` and columns from `start` on, of which the last ones may not be there."""

    found: Match
    top: Index
    start: Index


def tiled(fresh: FreshLoops, s: Nest) -> Stmt | None:
    """The rule for loop nests, whose loops are independent of each other; None if it does not fit."""
    merged = nest(*coalesced(fresh, [h for h in s.heads if isinstance(h, For)], s.body))
    found = match(merged) or match(s)
    if found is None or any(len(p.loops) > 1 for p in found.products):
        return None
    rows, columns = found.row.extent, found.column.extent
    ib, i = fresh.loop(ceildiv(rows, SIDE), LoopKind.GRID)
    jb, j = fresh.loop(ceildiv(columns, SIDE), LoopKind.GRID)
    square = _Square(found, i * SIDE, j * SIDE)
    sums = {p.acc: _private(p.acc) for p in found.products}
    body = sequence((*(_sum(fresh, square, p, sums[p.acc]) for p in found.products), _results(fresh, square, sums)))
    for array in sums.values():
        body = Alloc(array, body)
    grid = (*(For(h.loop, LoopKind.GRID) for h in found.outer), *ib, *jb)
    return specialise((rows - _FEW, columns - _FEW), nest(grid, body), s)


def _private(acc: Buffer) -> Buffer:
    return Buffer(acc.name, acc.dtype, (as_index(ITEMS), as_index(EACH), as_index(EACH)), Space.PRIVATE)


def _digits(fresh: FreshLoops, flat: Index, low: int) -> tuple[Digits, Index, Index]:
    """The number of a work-item as two digits, the second of which is below `low`."""
    (high_head,), high = fresh.loop(ITEMS // low)
    (low_head,), last = fresh.loop(low)
    return Digits((high_head.loop, low_head.loop), flat), high, last


def _sum(fresh: FreshLoops, square: _Square, product: Product, acc: Buffer) -> Stmt:
    """acc = 0; for whole parts of the sum, then for what is left: as, bs = parts; acc += as*bs."""
    (k,) = product.loops
    whole = floordiv(k.extent, DEPTH)
    blocks, kb = fresh.loop(whole, LoopKind.SEQUENTIAL)
    strips = [
        Buffer(f"{acc.name}_{name}", e.dtype, (as_index(DEPTH), as_index(SIDE)), Space.GROUP)
        for name, e in (("a", product.a), ("b", product.b))
    ]
    many = _part(fresh, square, product, acc, strips, kb * DEPTH, as_index(DEPTH))
    rest = _part(fresh, square, product, acc, strips, whole * DEPTH, k.extent - whole * DEPTH)
    parts = [_zero(fresh, acc)]
    if whole is not ZERO:
        parts.append(nest(blocks, many))
    parts.append(rest)
    return Alloc(strips[0], Alloc(strips[1], sequence(parts)))


def _each(fresh: FreshLoops) -> tuple[tuple[For, ...], Index, Index]:
    """The loops over the elements of a work-item."""
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
    """as, bs = parts of this many terms; acc += as*bs."""
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
    """strip[k, i] = e(i, k), read by neighbours along memory; 0 where the row is not there."""
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
    """What is computed of the sums, for the elements that are there."""
    row, column = square.found.row, square.found.column
    head, t = items(fresh)
    digits, y, x = _digits(fresh, t, _ROW)
    each, u, v = _each(fresh)
    i, j = square.top + y * EACH + u, square.start + x * EACH + v
    places = {acc: (array, (t, u, v)) for acc, array in sums.items()}
    body = Renaming(Substitution({row: i, column: j}), places).statement(square.found.body)
    return nest((*head, digits, *each), If((row.extent - 1 - i, column.extent - 1 - j), body))
