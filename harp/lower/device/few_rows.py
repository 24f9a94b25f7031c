"""Scatters into few rows on a wide device: each element of the result looks for its own updates.

    for k < n, j: out[idx[k], j] = u(out[idx[k], j], v(k, j))
        ->  if n >= LONG and m <= FEW:
                for r < m, j { acc = out[r, j]; for k: acc = idx[k] == r ? u(acc, v(k, j)) : acc; out[r, j] = acc }

These are m times as many tests by m times as many work-items, none of which waits for what another one has stored.

Where m is a number, and no order of the updates changes more than the last digits, the updates of an element are a long
column, and go by its parts (`long_sums`); so do the numbers of those that are set, of which the last one counts.
Where m is a size, they stay in their order: an element has the same bits with few rows and with many.
"""

from __future__ import annotations

import attrs

from harp.lower.device.grid import through_branches
from harp.lower.device.groups import scratch_array
from harp.lower.device.long_sums import LONG, by_parts
from harp.lower.device.sums import Sum
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Load, LoopKind, Nest, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, Renaming, is_plain, nest, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Indirect, Loop, loops_in, of
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Apply, Expr, Position, apply, const, rewrite, select
from harp.trace.scalar.ops import Op, Reduce

# The most rows that are few.
FEW = 64

_SUMS = {Op.ADD: Reduce.SUM, Op.FMA: Reduce.SUM, Op.MAX: Reduce.MAX, Op.MIN: Reduce.MIN, Op.MUL: Reduce.PROD}


@attrs.frozen
class _Scatter:
    """The loop of the updates, those of the elements of an update, and the store; those of the rows that have updates,
    and the element that a row has."""

    updates: Loop
    elements: tuple[For, ...]
    store: Store
    rows: tuple[For, ...]
    place: tuple[Index, ...]

    @property
    def hit(self) -> Expr:
        """Whether an update is one of this row."""
        found: Expr | None = None
        for p, r in zip(self.store.index, self.place, strict=True):
            if p is not r:
                same = apply(Op.EQ, Position(p), Position(r))
                found = same if found is None else apply(Op.AND, found, same)
        assert found is not None
        return found

    def is_old(self, e: Expr) -> bool:
        """Whether it is the element before the update."""
        return isinstance(e, Load) and e.buffer is self.store.buffer and e.index == self.store.index

    @property
    def is_set(self) -> bool:
        return not any(map(self.is_old, value_loads(self.store.value)))

    @property
    def reduce(self) -> Reduce | None:
        """What the updates of an element are reduced by, if that may be done in another order."""
        value = self.store.value
        reduce = _SUMS.get(value.op) if isinstance(value, Apply) else None
        if reduce is None or (reduce is Reduce.PROD and not value.dtype.is_integer):
            return None  # a part may overflow where the product of all is 0
        assert isinstance(value, Apply)
        others = [e for e in value.args if not self.is_old(e)]
        once = len(others) == len(value.args) - 1 and (value.op is not Op.FMA or self.is_old(value.args[-1]))
        return reduce if once and not any(self.is_old(load) for e in others for load in value_loads(e)) else None


def few_rows(fresh: FreshLoops, s: Nest, scratch: list[Buffer], lanes: int) -> Stmt | None:
    """The rule for loop nests; None if it does not fit."""
    found = _match(fresh, s)
    if found is None:
        return None
    few = product_of(h.loop.extent for h in found.rows)
    if nonnegative(few - FEW - 1) or nonnegative(LONG - 1 - found.updates.extent):
        return None
    if few.constant is None:
        whole = _in_order(found)
    elif found.is_set:
        whole = _last(fresh, found, scratch, lanes)
    else:
        whole = _in_order(found) if found.reduce is None else _reduced(fresh, found, found.reduce, scratch, lanes)
    return specialise((found.updates.extent - LONG, FEW - few), whole, s)


def _match(fresh: FreshLoops, s: Nest) -> _Scatter | None:
    """The scatter that a nest is, if its places are elements of arrays, and nothing else is there."""
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
    bounds = {extent - 1 - p for p, extent in zip(at, shape, strict=True)}
    if isinstance(body, If) and not bounds.issuperset(body.conditions):
        return None
    if any(load.buffer is store.buffer and load.index != at for load in value_loads(store.value)):
        return None
    rows, place = list[For](), list[Index]()
    for p, extent in zip(at, shape, strict=True):
        head, r = fresh.loop(extent) if isinstance(p.atom, Indirect) else ((), p)
        rows += head
        place.append(r)
    whole = tuple(h for h in heads if h.loop in elements)
    return _Scatter(updates[0].loop, whole, store, tuple(rows), tuple(place))


def _step(found: _Scatter, acc: Buffer) -> Store:
    """acc = idx[k] == r ? u(acc, v(k, j)) : acc"""
    old = Load(acc, ())
    value = rewrite((found.store.value,), lambda e: old if found.is_old(e) else e)[0]
    return Store(acc, (), select(found.hit, value, old))


def _element(found: _Scatter, changes: Stmt, acc: Buffer) -> Stmt:
    """acc = out[r, j]; what changes it; out[r, j] = acc"""
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
    moving = {loop for p in found.store.index if isinstance(p.atom, Indirect) for loop in loops_in(p)}
    heads = (*found.rows, *(h for h in found.elements if h.loop in moving))
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
