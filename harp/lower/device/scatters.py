"""Scatters on a wide device: each element of the result gathers its own updates. With n for the number of updates, and
m for the number of rows of the result, numbered by r:

    for k < n, j: out[idx[k], j] = u(out[idx[k], j], v(k, j))
        ->  if n >= LONG and m <= FEW:
                for r < m, j { acc = out[r, j]; for k: acc = idx[k] == r ? u(acc, v(k, j)) : acc; out[r, j] = acc }
        ->  if n >= MANY, where m > FEW or is not known before run time:
                order = argsort(idx)
                first[r], last[r] = where the updates of row r begin and end in this order
                for r, j { acc = out[r, j]; for first[r] <= q < last[r]: acc = u(acc, v(order[q], j)); out[r, j] = acc }

The first form makes n*m comparisons in parallel, without synchronisation. If the order of updates changes only the last
digits, the updates of an element are a long sum, split into parts (`long_sums`); for updates that set elements, the
maximum of the numbers of the updates says which came last, and is computed in the same way.

The second form sorts, and keeps the order of the updates of each row. If their order may change, blocks of them are
added, and then blocks of blocks, counted from the row's first update: so a row has the same bits whatever the other
rows have, and the work of a row with all updates is shared. Of updates that set an element, the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harp.lower.device.grid import through_branches
from harp.lower.device.groups import Sum, scratch_array
from harp.lower.device.long_sums import LONG, by_parts
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, LoopKind, Nest, Row, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, Renaming, begin, is_plain, nest, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, mod
from harp.trace.index.polynomial import ZERO, Index, Indirect, Loop, loops_in, of
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Apply, Expr, Position, apply, const, rewrite, select
from harp.trace.scalar.ops import Op, Reduce

# The most rows of the first form; the fewest updates that are sorted; the size of blocks, and the levels of blocks, so
# that at most one sum remains for up to 262,144 updates.
FEW, _MANY, _BLOCK, _LEVELS = 64, 256, 64, 3

_SUMS = {Op.ADD: Reduce.SUM, Op.FMA: Reduce.SUM, Op.MAX: Reduce.MAX, Op.MIN: Reduce.MIN, Op.MUL: Reduce.PROD}


@attrs.frozen(repr=False)
class _Scatter:
    """The loop over updates, the loops over an update's elements, the store, the conditions under which it is inside;
    the loops over rows, and the element of the result for a row."""

    updates: Loop
    elements: tuple[For, ...]
    store: Store
    conditions: tuple[Index, ...]
    rows: tuple[For, ...]
    place: tuple[Index, ...]

    @property
    def batch(self) -> tuple[For, ...]:
        """The loops over elements with indices of their own."""
        moving = {loop for p in self.store.index if isinstance(p.atom, Indirect) for loop in loops_in(p)}
        return tuple(h for h in self.elements if h.loop in moving)

    @property
    def hit(self) -> Expr:
        """Whether an update belongs to this row."""
        found: Expr | None = None
        for p, r in zip(self.store.index, self.place, strict=True):
            if p is not r:
                same = apply(Op.EQ, Position(p), Position(r))
                found = same if found is None else apply(Op.AND, found, same)
        assert found is not None
        return found

    def is_old(self, e: Expr) -> bool:
        """Whether an expression is the element before the update."""
        return isinstance(e, Load) and e.buffer is self.store.buffer and e.index == self.store.index

    def updated(self, old: Expr) -> Expr:
        """u(old, v(k, j))"""
        return rewrite((self.store.value,), lambda e: old if self.is_old(e) else e)[0]

    @property
    def is_set(self) -> bool:
        return not any(map(self.is_old, value_loads(self.store.value)))

    @property
    def reduce(self) -> Reduce | None:
        """The reduction of an element's updates, if their order may change."""
        value = self.store.value
        reduce = _SUMS.get(value.op) if isinstance(value, Apply) else None
        if reduce is None or (reduce is Reduce.PROD and not value.dtype.is_integer):
            return None  # a part may overflow where the product of all is 0
        assert isinstance(value, Apply)
        others = [e for e in value.args if not self.is_old(e)]
        once = len(others) == len(value.args) - 1 and (value.op is not Op.FMA or self.is_old(value.args[-1]))
        return reduce if once and not any(self.is_old(load) for e in others for load in value_loads(e)) else None


def scattered(fresh: FreshLoops, s: Nest, scratch: list[Buffer], lanes: int) -> Stmt | None:
    """The rule for loop nests; None if it does not fit."""
    found = _match(fresh, s)
    if found is None:
        return None
    few = product_of(h.loop.extent for h in found.rows).constant
    if few is None or few > FEW:
        if nonnegative(_MANY - 1 - found.updates.extent):
            return None
        return specialise((found.updates.extent - _MANY,), _Sorted(fresh, found, scratch).all(), s)
    if nonnegative(LONG - 1 - found.updates.extent):
        return None
    if found.is_set:
        whole = _last(fresh, found, scratch, lanes)
    else:
        whole = _in_order(found) if found.reduce is None else _reduced(fresh, found, found.reduce, scratch, lanes)
    return specialise((found.updates.extent - LONG,), whole, s)


def _match(fresh: FreshLoops, s: Nest) -> _Scatter | None:
    """The scatter that a nest computes, if indices are elements of arrays, and it does nothing else."""
    s = through_branches(s)
    heads = [h for h in s.heads if isinstance(h, For)]
    inner = s.body.yes if isinstance(s.body, If) else s.body
    if not is_plain(s) or not isinstance(inner, Store) or any(loops_in(h.loop.extent) for h in heads):
        return None
    elements = {p.atom for p in inner.index if isinstance(p.atom, Loop)}
    updates, body = coalesced(fresh, [h for h in heads if h.loop not in elements], s.body)
    store = body.yes if isinstance(body, If) and body.no is None else body
    if len(updates) != 1 or not isinstance(store, Store) or store.reduce is not None:
        return None
    at, shape = store.index, store.buffer.shape
    if not all(isinstance(p.atom, (Indirect, Loop)) for p in at) or not any(isinstance(p.atom, Indirect) for p in at):
        return None
    bounds = {extent - 1 - p for p, extent in zip(at, shape, strict=True) if isinstance(p.atom, Indirect)}
    conditions = body.conditions if isinstance(body, If) else ()
    if not bounds.issuperset(conditions):  # as one on elements, under which an update has not all of them
        return None
    if any(load.buffer is store.buffer and load.index != at for load in value_loads(store.value)):
        return None
    rows, place = list[For](), list[Index]()
    for p, extent in zip(at, shape, strict=True):
        head, r = fresh.loop(extent) if isinstance(p.atom, Indirect) else ((), p)
        rows += head
        place.append(r)
    whole = tuple(h for h in heads if h.loop in elements)
    return _Scatter(updates[0].loop, whole, store, conditions, tuple(rows), tuple(place))


def _step(found: _Scatter, acc: Buffer) -> Store:
    """acc = idx[k] == r ? u(acc, v(k, j)) : acc"""
    old = Load(acc, ())
    return Store(acc, (), select(found.hit, found.updated(old), old))


def _element(found: _Scatter, changes: Stmt, acc: Buffer) -> Stmt:
    """acc = out[r, j]; its changes; out[r, j] = acc"""
    target = found.store.buffer
    first, last = Store(acc, (), Load(target, found.place)), Store(target, found.place, Load(acc, ()))
    return Alloc(acc, sequence((first, changes, last)))


def _accumulator(found: _Scatter) -> Buffer:
    return Buffer(f"{found.store.buffer.name}_acc", found.store.buffer.dtype, (), Space.REG)


def _in_order(found: _Scatter) -> Stmt:
    acc = _accumulator(found)
    updates = nest((For(found.updates, LoopKind.SEQUENTIAL),), _step(found, acc))
    return nest((*found.rows, *found.elements), _element(found, updates, acc))


def _reduced(fresh: FreshLoops, found: _Scatter, reduce: Reduce, scratch: list[Buffer], lanes: int) -> Stmt:
    acc, heads = _accumulator(found), (*found.rows, *found.elements)
    terms = Sum((), (found.updates,), _step(found, acc), reduce, found.updates.extent)
    return by_parts(fresh, heads, terms, scratch, {}, lanes).added(heads, lambda total: _element(found, total, acc))


def _last(fresh: FreshLoops, found: _Scatter, scratch: list[Buffer], lanes: int) -> Stmt:
    """for r: last[r] = 1 + the number of the last update; for r, j: if last[r] > 0: out[r, j] = v(last[r] - 1, j)"""
    heads = (*found.rows, *found.batch)
    at = tuple(of(h.loop) for h in heads)
    numbers = scratch_array(scratch, "last", i64, tuple(h.loop.extent for h in heads))
    last = Buffer(f"{numbers.name}_acc", i64, (), Space.REG)
    step = Store(last, (), select(found.hit, Position(of(found.updates) + 1), Load(last, ())))
    terms = Sum((), (found.updates,), step, Reduce.MAX, found.updates.extent)
    made = by_parts(fresh, heads, terms, scratch, {}, lanes).added(
        heads,
        lambda total: Alloc(
            last, sequence((Store(last, (), const(0, i64)), total, Store(numbers, at, Load(last, ()))))
        ),
    )
    number = of(Indirect(numbers, at, found.updates.extent + 1))
    value = Renaming(Substitution({found.updates: number - 1}), {}).value(found.store.value)
    taken = If((number - 1,), Store(found.store.buffer, found.place, value))
    return sequence((made, nest((*found.rows, *found.elements), taken)))


class _Sorted:
    """Makes the launches of a scatter whose updates are sorted by row, separately for each element of `batch`, along
    which indices differ."""

    def __init__(self, fresh: FreshLoops, found: _Scatter, scratch: list[Buffer]) -> None:
        self.fresh, self.found, self.scratch = fresh, found, scratch
        self.length, self.rows = found.updates.extent, product_of(h.loop.extent for h in found.rows)
        self.batch = tuple(of(h.loop) for h in found.batch)
        sizes = tuple(h.loop.extent for h in found.batch)
        # The row of each update, or the number of rows if it has none; their order; and the rows in this order.
        self.keys, self.order, self.ranks = (
            scratch_array(scratch, name, i64, (*sizes, self.length)) for name in ("keys", "order", "ranks")
        )
        self.first, self.last = (scratch_array(scratch, name, i64, (*sizes, self.rows)) for name in ("first", "last"))

    def all(self) -> Stmt:
        found, heads = self.found, (*self.found.rows, *self.found.elements)
        if found.is_set:
            changed: Stmt = nest(heads, self.latest())
        elif found.reduce is None:
            changed = nest(heads, self.in_order())
        else:
            inner = tuple(h for h in found.elements if h not in found.batch)
            sums = scratch_array(
                self.scratch,
                "sums",
                found.store.buffer.dtype,
                (*self.keys.shape, *(h.loop.extent for h in inner)),
            )
            blocks = [self.added(sums, inner, found.reduce, level) for level in range(_LEVELS)]
            changed = sequence(
                (self.terms(sums, inner, found.reduce), *blocks, nest(heads, self.total(sums, inner, found.reduce)))
            )
        return sequence((*self.sorted(), changed))

    def indirect(self, array: Buffer, p: Index, size: Index, misses: bool = False) -> Index:
        return of(Indirect(array, (*self.batch, p), size, misses))

    def rank(self, q: Index) -> Index:
        """The row of update q in sorted order; the number of rows if it has none."""
        return self.indirect(self.ranks, q, self.rows, misses=True)

    def begin(self, row: Index) -> Index:
        return self.indirect(self.first, row, self.length)

    def end(self, row: Index) -> Index:
        return self.indirect(self.last, row, self.length + 1)

    def row(self) -> Index:
        """The number of the row of an element of the result."""
        places = [(of(h.loop), h.loop.extent) for h in self.found.rows]
        return _flat(places)

    def moved(self, e: Expr, q: Index) -> Expr:
        """The value of an update in sorted order."""
        number = self.indirect(self.order, q, self.length)
        return Renaming(Substitution({self.found.updates: number}), {}).value(e)

    def over(self, *heads: For) -> tuple[For, ...]:
        """A grid of these loops, for each element of the batch."""
        return tuple(For(h.loop, LoopKind.GRID) for h in (*self.found.batch, *heads))

    def sorted(self) -> tuple[Stmt, ...]:
        """The order of the updates, and where the updates of each row begin and end in it."""
        found, batch = self.found, self.batch
        target, k = found.store.buffer, of(found.updates)
        places = [(p, n) for p, n in zip(found.store.index, target.shape, strict=True) if isinstance(p.atom, Indirect)]
        inside: Stmt = Store(self.keys, (*batch, k), Position(_flat(places)))
        if found.conditions:
            inside = If(found.conditions, inside, Store(self.keys, (*batch, k), Position(self.rows)))
        lane = Loop(self.fresh.loop(self.length)[0][0].loop.axis, self.length)
        ordered = Row(RowOp.ORDER, False, self.order, (*batch, of(lane)), lane, (self.keys,))
        each, q = self.fresh.loop(self.length)
        ranked = Store(self.ranks, (*batch, q), Load(self.keys, (*batch, self.indirect(self.order, q, self.length))))
        empty, r = self.fresh.loop(self.rows)
        zero = [Store(array, (*batch, r), const(0, i64)) for array in (self.first, self.last)]
        edge, e = self.fresh.loop(self.length)
        rank = self.rank(e)
        begins = Store(self.first, (*batch, rank), Position(e))
        ends = Store(self.last, (*batch, rank), Position(e + 1))
        known = sequence(
            (
                If((e - 1,), If((rank - self.rank(e - 1) - 1,), begins)),
                If((self.length - 2 - e,), If((self.rank(e + 1) - rank - 1,), ends), ends),
            )
        )
        return (
            nest(self.over(For(found.updates)), inside),
            nest(self.over(), ordered),
            nest(self.over(*each), ranked),
            nest(self.over(*empty), sequence(zero)),
            nest(self.over(*edge), If((self.rows - 1 - rank,), known)),
        )

    def latest(self) -> Stmt:
        """if a row has updates: out[r, j] = v(the last one, j)"""
        end = self.end(self.row())
        return If(
            (end - 1,), Store(self.found.store.buffer, self.found.place, self.moved(self.found.store.value, end - 1))
        )

    def in_order(self) -> Stmt:
        """acc = out[r, j]; for the updates of the row: acc = u(acc, v); out[r, j] = acc"""
        acc, row = _accumulator(self.found), self.row()
        along, k = self.fresh.loop(self.end(row) - self.begin(row), LoopKind.SEQUENTIAL)
        step = Store(acc, (), self.moved(self.found.updated(Load(acc, ())), self.begin(row) + k))
        return _element(self.found, nest(along, step), acc)

    def terms(self, sums: Buffer, inner: tuple[For, ...], reduce: Reduce) -> Stmt:
        """for all q, j: sums[q, j] = v(order[q], j)"""
        head, q = self.fresh.loop(self.length)
        nothing = begin(_accumulator(self.found), reduce).value
        value = self.moved(self.found.updated(nothing), q)
        return nest(self.over(*head, *inner), Store(sums, (*self.batch, q, *_places(inner)), value))

    def added(self, sums: Buffer, inner: tuple[For, ...], reduce: Reduce, level: int) -> Stmt:
        """Where a block of blocks begins in its row, the sums of its blocks are added to that of the first one."""
        step = _BLOCK**level
        head, q = self.fresh.loop(self.length)
        along, u = self.fresh.loop(_BLOCK - 1, LoopKind.SEQUENTIAL)
        acc, rank, at = _accumulator(self.found), self.rank(q), _places(inner)
        other = q + (u + 1) * step
        more = If((self.end(rank) - 1 - other,), Store(acc, (), Load(sums, (*self.batch, other, *at)), reduce))
        here = (*self.batch, q, *at)
        block = Alloc(
            acc, sequence((Store(acc, (), Load(sums, here)), nest(along, more), Store(sums, here, Load(acc, ()))))
        )
        begins = If((-mod(q - self.begin(rank), step * _BLOCK),), block)
        whole = nest(self.over(*head, *inner), If((self.rows - 1 - rank,), begins))
        return whole if level == 0 else If((self.length - 1 - step,), whole)

    def total(self, sums: Buffer, inner: tuple[For, ...], reduce: Reduce) -> Stmt:
        """acc = out[r, j]; for the blocks of the row: acc += sums[...]; out[r, j] = acc"""
        acc, row, step = _accumulator(self.found), self.row(), _BLOCK**_LEVELS
        along, b = self.fresh.loop(ceildiv(self.end(row) - self.begin(row), step), LoopKind.SEQUENTIAL)
        place = (*self.batch, self.begin(row) + b * step, *_places(inner))
        return _element(self.found, nest(along, Store(acc, (), Load(sums, place), reduce)), acc)


def _places(heads: Sequence[For]) -> tuple[Index, ...]:
    return tuple(of(h.loop) for h in heads)


def _flat(places: Sequence[tuple[Index, Index]]) -> Index:
    """The flat number of a place, given indices with their extents."""
    whole = ZERO
    for p, extent in places:
        whole = whole * extent + p
    return whole
