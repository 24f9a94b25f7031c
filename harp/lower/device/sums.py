"""Sums that the work-items of a group share: a fixed tree, whatever the device.

    for k < n: acc += v(k)
        ->  group parts[ITEMS], sums[BRANCHES]
            for item t < ITEMS { part = 0; for every ITEMS-th k from t on: part += v(k); parts[t] = part }
            for item h < BRANCHES { part = 0; for u: part += parts[h*... + u]; sums[h] = part }
            for h < BRANCHES: acc += sums[h]

Several loops are one: work-items count the terms of all of them, and take positions along each loop from the digits of
a term's number. So they have equal shares also where the innermost loop is short.
"""

from __future__ import annotations

import attrs

from harp.lower.device.groups import BRANCHES, ITEMS, branches, in_lanes, items, kept, shared
from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, Load, LoopKind, Space, Stmt, Store
from harp.lower.loopir.nests import FreshLoops, Places, Renaming, accumulation, begin, nest, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.trace.index.division import Substitution, ceildiv
from harp.trace.index.polynomial import ZERO, Index, Loop, loops_in
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.ops import Reduce

# Terms of the shortest sum for a group.
FEW = 128


@attrs.frozen
class Sum:
    """for loops: acc += v. Loops are `outer` where the extents of the others depend on them; of the others, `length`
    terms are added from the number `first` on."""

    outer: tuple[For, ...]
    loops: tuple[Loop, ...]
    store: Store
    reduce: Reduce
    length: Index
    first: Index = ZERO

    def step(self, number: Index, places: Places) -> Stmt:
        """acc += the term with a number, where buffers are at other places."""
        at = self.first + number
        if len(self.loops) == 1:
            return Renaming(Substitution({self.loops[0]: at}), places).statement(self.store)
        return nest((Digits(self.loops, at),), Renaming(Substitution({}), places).statement(self.store))


def sum_of(fresh: FreshLoops, s: Stmt) -> Sum | None:
    """The sum that a statement is."""
    found = accumulation(s)
    if found is None or not all(h.kind is LoopKind.PLAIN for h in found[0]):
        return None
    heads, store = coalesced(fresh, *found)
    assert isinstance(store, Store)
    own = {h.loop for h in heads}
    outer = heads[:-1] if any(own & {*loops_in(h.loop.extent)} for h in heads) else []
    loops = tuple(h.loop for h in heads[len(outer) :])
    return Sum(tuple(outer), loops, store, store.reduce or Reduce.SUM, product_of(loop.extent for loop in loops))


def tree_sum(fresh: FreshLoops, terms: Sum, lanes: int) -> Stmt:
    """The rule at the top of the file; `lanes` are those of sub-groups, or 0."""
    acc, reduce = terms.store.buffer, terms.reduce
    parts, sums = in_lanes(acc, "parts", lanes), shared(acc, "sums", BRANCHES)
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    head, t = items(fresh)
    along, j = fresh.loop(ceildiv(terms.length - t, ITEMS))
    added = nest((*terms.outer, *along), terms.step(j * ITEMS + t, {acc: (part, ())}))
    first = nest(head, Alloc(part, sequence((begin(part, reduce), added, kept(fresh, parts, t, Load(part, ()))))))
    rest, h = fresh.loop(BRANCHES)
    total = nest(rest, Store(acc, (), Load(sums, (h,)), reduce))
    return Alloc(parts, Alloc(sums, sequence((first, branches(fresh, parts, sums, reduce), total))))
