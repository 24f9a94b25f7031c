"""Reductions of a few terms: a known number of them is written out; along rows that turn out to be short the vector
runs across the rows, for there is too little to do along them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from harp.lower.cost_model import weigh
from harp.lower.loopir.loops import Alloc, Buffer, For, Load, LoopKind, Nest, Seq, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, accumulation, accumulations, is_straight, loads, nest, score, sequence
from harp.lower.rewrite.loop_primitives import Context, specialise, strips
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, as_index, loops_in
from harp.trace.scalar.expr import Expr, apply, rewrite

# The most terms that are written out, and scalar operations in all of them.
_TERMS, _OPERATIONS = 16, 64


def few_terms(context: Context, s: Stmt) -> Stmt | None:
    """Reductions of a few terms, whose number is a constant, are written out: what is left is elementwise work.

        for i { acc = 0; for k < 3: acc += x[k, i]; out[i] = acc }
            ->  for i { acc = ((0 + x[0, i]) + x[1, i]) + x[2, i]; out[i] = acc }

    The terms are added in the order of the loop, so the bits are the same. It is done where the loop round it runs
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
    """The statement with its reductions as one store each; `totals` are the values that they start from."""
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
    """All terms, in the order of the loops, added to what they start from."""
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


# The longest rows that are short, in elements.
SHORT = 32


def outer_vectorised(context: Context, s: Stmt) -> Stmt | None:
    """Outer vectorisation, for reductions over short rows: the vector runs across rows, for there is too little to do
    along them.

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
    return specialise(room, nest(outer, strips(context, s.body, row.loop)), s)
