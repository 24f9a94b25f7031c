"""Groups of work-items: what the loop nests of a launch are made of where many share the work of each iteration.

    for grid i {                        a group for each iteration
        group parts[256]                memory that they share
        for item t < 256 { ... }        the iterations, shared by the work-items of the group
        for item t < 16 { ... }         begins when all of them are done: between the two there is a barrier
        acc = 0; acc += parts[0]        what is outside of such loops each of them does, so that all know `acc`;
        out[i] = acc                    but a store to memory is done by one of them
    }

A barrier is no statement, which could stand where not all work-items come by: it follows from the loops. Read from top
to bottom, one iteration after the other, they say what is computed, and how many work-items a group has changes
nothing: if there are fewer than iterations, each does several. Only where there is a private array, or one in lanes,
they are exactly ITEMS.

Arrays of a group that are small have their place on the chip. A row that is kept is in the group's workspace, which is
memory of the device; so that it is there once for each group at work, and not for each row, a launch has then no more
groups than the device has at work, and each does rows in turns.

Where a device has sub-groups, whose work-items read each other's variables, the parts of a branch stay in these:

    lanes parts[ITEMS/N, N]                             a variable of each; N are those of a sub-group
    for item t < ITEMS { digits (s, k, u) = t           sub-group, branch in it, place in the branch
        part = id; for v < 16: part += parts[s, 16*k + v]
        if -u >= 0: sums[N/16*s + k] = part }           all know the sum, and one stores it

The terms of a branch are added in the same order in both, so that bits are the same. The parts take no memory of the
group, and what stores them is followed by no barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import attrs

from harp.errors import VerificationError
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    If,
    Load,
    LoopKind,
    Nest,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    parts,
    walk,
)
from harp.lower.loopir.nests import FreshLoops, Places, Renaming, accumulation, begin, nest, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import Substitution, ceildiv, floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, as_index, loops_in
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.expr import Expr
from harp.trace.scalar.ops import Reduce

# Work-items that share a sum, as far as its order goes: that is the same on all devices.
ITEMS = 256
# Arrays that all work-items of a group see.
ARRAYS = (*MEMORY, Space.WORKSPACE)
# Parts that are added up first, and how many of each.
BRANCHES = 16
EACH = ITEMS // BRANCHES


class Unsuited(Exception):
    """A group cannot share the statement."""


def items(fresh: FreshLoops, extent: Index | int = ITEMS) -> tuple[tuple[For, ...], Index]:
    """The head of a loop that work-items share, and the position in it."""
    return fresh.loop(extent, LoopKind.ITEM)


def is_item(head: Head) -> bool:
    """Whether the work-items of a group share the loop."""
    return isinstance(head, For) and head.kind is LoopKind.ITEM


def is_shared(s: Stmt) -> bool:
    """Whether the work-items of a group share a part of the statement."""
    return any(isinstance(part, Nest) and any(map(is_item, part.heads)) for part in walk(s))


def suits(s: Stmt) -> bool:
    """Whether a group can do what one work-item would do: no loop of each stores to memory and to variables."""
    if isinstance(s, (Alloc, Seq, If)):
        return all(map(suits, parts(s)))
    if isinstance(s, Nest) and any(isinstance(h, For) and h.kind is LoopKind.GRID for h in s.heads):
        return True
    spaces = {buffer.space for buffer in effects(s).writes}
    return is_shared(s) or Space.REG not in spaces or len(spaces) == 1


def sorted_by_many(s: Stmt) -> Row | None:
    """The function of a statement that sorts all rows of its arrays at once: its loops are those of a grid, and it has
    no memory for a row of its own."""
    row = s.body if isinstance(s, Nest) else s
    return row if isinstance(row, Row) and row.work is None and row.function is not RowOp.SEARCH else None


def private_arrays(s: Stmt) -> Iterator[Buffer]:
    """The arrays of which each work-item has a part."""
    return (part.buffer for part in walk(s) if isinstance(part, Alloc) and part.buffer.space is Space.PRIVATE)


def has_workspace(s: Stmt) -> bool:
    """Whether a group needs memory besides what is on the chip."""
    return any(isinstance(part, Alloc) and part.buffer.space is Space.WORKSPACE for part in walk(s))


def sub_group(s: Stmt) -> int:
    """How many work-items a sub-group has to have for the statement; 0 if that is all the same to it."""
    sizes = {part.buffer.shape for part in walk(s) if isinstance(part, Alloc) and part.buffer.space is Space.LANES}
    if not sizes:
        return 0
    groups, lanes = (extent.constant or 0 for extent in sizes.pop())
    if sizes or groups * lanes != ITEMS:
        raise VerificationError("arrays in the lanes of sub-groups have different numbers of them")
    return lanes


def scratch_array(scratch: list[Buffer], name: str, dtype: DType, shape: tuple[Index, ...]) -> Buffer:
    """Another array of the kernel's scratch memory."""
    scratch.append(Buffer(f"{name}{len(scratch)}", dtype, shape, Space.SCRATCH))
    return scratch[-1]


def shared(acc: Buffer, name: str, count: int) -> Buffer:
    """Memory of a group for values such as an accumulator has."""
    return Buffer(f"{acc.name}_{name}", acc.dtype, (as_index(count),), Space.GROUP)


def in_lanes(acc: Buffer, name: str, lanes: int) -> Buffer:
    """A value of each work-item: in a variable, for sub-groups of so many lanes, or without them in shared memory."""
    if not lanes:
        return shared(acc, name, ITEMS)
    return Buffer(f"{acc.name}_{name}", acc.dtype, (as_index(ITEMS // lanes), as_index(lanes)), Space.LANES)


class Lane(NamedTuple):
    """Where the value of a work-item is, with what names that: a branch of how many its sub-group has, and the place in
    it."""

    heads: tuple[Digits, ...]
    sub_group: Index
    branch: Index
    place: Index


def lane(fresh: FreshLoops, values: Buffer, t: Index) -> Lane:
    """That of work-item t."""
    (first,), s = fresh.loop(values.shape[0])
    second, k = fresh.loop(floordiv(values.shape[1], EACH))
    (last,), u = fresh.loop(EACH)
    return Lane((Digits(tuple(head.loop for head in (first, *second, last)), t),), s, k, u)


def kept(fresh: FreshLoops, values: Buffer, t: Index, value: Expr) -> Stmt:
    """values[t] = value, where the values of all work-items are in their lanes, or in memory of the group."""
    if values.space is not Space.LANES:
        return Store(values, (t,), value)
    own = lane(fresh, values, t)
    return nest(own.heads, Store(values, (own.sub_group, own.branch * EACH + own.place), value))


def branches(
    fresh: FreshLoops,
    given: Buffer,
    sums: Buffer,
    reduce: Reduce,
    before: Buffer | None = None,
    backward: bool = False,
) -> Stmt:
    """The sums of branches of parts, and what stands before each part in its branch. In lanes each branch may go
    `backward`: the part of its last work-item is the first one.

    for item h { part = id; for u { before[h, u] = part; part += parts[h, u] }; sums[h] = part }
    """
    if given.space is Space.LANES:
        return _branches_of_lanes(fresh, given, sums, reduce, before, backward)
    head, h = items(fresh, BRANCHES)
    along, u = fresh.loop(EACH, LoopKind.PLAIN if before is None else LoopKind.SEQUENTIAL)
    part = Buffer(f"{given.name}_part", given.dtype, (), Space.REG)
    step: Stmt = Store(part, (), Load(given, (h * EACH + u,)), reduce)
    if before is not None:
        step = sequence((Store(before, (h * EACH + u,), Load(part, ())), step))
    last = Store(sums, (h,), Load(part, ()))
    return nest(head, Alloc(part, sequence((begin(part, reduce), nest(along, step), last))))


def _branches_of_lanes(
    fresh: FreshLoops, given: Buffer, sums: Buffer, reduce: Reduce, before: Buffer | None, backward: bool
) -> Stmt:
    """for item t { part = id; for v { if v == u: before[t] = part; part += what the v-th of its branch has }
    if u == 0: sums[h] = part }"""
    head, t = items(fresh)
    own = lane(fresh, given, t)
    along, v = fresh.loop(EACH, LoopKind.UNROLL)
    number = own.sub_group * floordiv(given.shape[1], EACH) + own.branch
    place = EACH - 1 - v if backward else v
    part = Buffer(f"{given.name}_part", given.dtype, (), Space.REG)
    step: Stmt = Store(part, (), Load(given, (own.sub_group, own.branch * EACH + place)), reduce)
    if before is not None:
        mine = If((own.place - place, place - own.place), Store(before, (t,), Load(part, ())))
        step = sequence((mine, step))
    first = If((-own.place,), Store(sums, (number,), Load(part, ())))
    return nest((*head, *own.heads), Alloc(part, sequence((begin(part, reduce), nest(along, step), first))))


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
    """Sums that the work-items of a group share: a fixed tree, whatever the device.

        for k < n: acc += v(k)
            ->  group parts[ITEMS], sums[BRANCHES]
                for item t < ITEMS { part = 0; for every ITEMS-th k from t on: part += v(k); parts[t] = part }
                for item h < BRANCHES { part = 0; for u: part += parts[h*... + u]; sums[h] = part }
                for h < BRANCHES: acc += sums[h]

    Several loops are one: work-items count the terms of all of them, and take positions along each loop from the digits
    of a term's number. So they have equal shares also where the innermost loop is short.
    """
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
