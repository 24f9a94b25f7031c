"""Groups of work-items: the structure of the nests of a launch in which a group shares each iteration.

    for grid i {                        a group for each iteration
        group parts[256]                memory that they share
        for item t < 256 { ... }        the iterations, shared by the work-items of the group
        for item t < 16 { ... }         begins when all of them are done: between the two there is a barrier
        acc = 0; acc += parts[0]        statements outside of item loops are run by all, so that all know `acc`;
        out[i] = acc                    but a store to memory is done by one of them
    }

Barriers are not statements (a statement could be put where only some work-items arrive): they follow from the item
loops. Read in order, one iteration after the other, the statements say what is computed, and the number of work-items
does not matter: if there are fewer than iterations, each runs several. But each element of a private array, or of an
array in lanes, belongs to one work-item, so with them a group must have exactly ITEMS work-items.

Small arrays of a group are in on-chip memory. A row that is kept is in the group's workspace, in the device's memory;
to allocate it once for each running group, not for each row, such a launch has only as many groups as the device runs
at once, and each does several rows.

A sum that a group shares is a tree of two levels. Each of ITEMS work-items adds a part of the terms; a *branch* of the
tree (not an `if`) adds the parts of EACH consecutive work-items; then the sums of the BRANCHES branches are added. On a
device with sub-groups, whose work-items read each other's variables, the parts of a branch stay in variables:

    lanes parts[ITEMS/N, N]                             a variable of each work-item; N is the size of a sub-group
    for item t < ITEMS { digits (s, k, u) = t           sub-group, branch in it, position in the branch
        part = id; for v < 16: part += parts[s, 16*k + v]
        if -u >= 0: sums[N/16*s + k] = part }           all know the sum, and one stores it

The terms of a branch are added in the same order in both cases, so that bits are equal. Parts in lanes need no memory
of the group, and no barrier after they are stored.
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

# The work-items for which the order of a sum is defined; it is the same on all devices.
ITEMS = 256
# The spaces of arrays that all work-items of a group see.
ARRAYS = (*MEMORY, Space.WORKSPACE)
# The number of branches, each summed first, and the parts of a branch.
BRANCHES = 16
EACH = ITEMS // BRANCHES


class Unsuited(Exception):
    """A group cannot share the statement."""


def items(fresh: FreshLoops, extent: Index | int = ITEMS) -> tuple[tuple[For, ...], Index]:
    """The head of an item loop, and its position."""
    return fresh.loop(extent, LoopKind.ITEM)


def is_item(head: Head) -> bool:
    """Whether a head is an item loop, which work-items of a group share."""
    return isinstance(head, For) and head.kind is LoopKind.ITEM


def is_shared(s: Stmt) -> bool:
    """Whether a statement contains item loops."""
    return any(isinstance(part, Nest) and any(map(is_item, part.heads)) for part in walk(s))


def suits(s: Stmt) -> bool:
    """Whether a group can run what one work-item runs: no loop of each stores to both memory and variables."""
    if isinstance(s, (Alloc, Seq, If)):
        return all(map(suits, parts(s)))
    if isinstance(s, Nest) and any(isinstance(h, For) and h.kind is LoopKind.GRID for h in s.heads):
        return True
    spaces = {buffer.space for buffer in effects(s).writes}
    return is_shared(s) or Space.REG not in spaces or len(spaces) == 1


def sorted_by_many(s: Stmt) -> Row | None:
    """The function of a statement that sorts all rows at once, by many launches: its loops are a grid, and it has no
    work memory for a row."""
    row = s.body if isinstance(s, Nest) else s
    return row if isinstance(row, Row) and row.work is None and row.function is not RowOp.SEARCH else None


def private_arrays(s: Stmt) -> Iterator[Buffer]:
    """The private arrays, of which each work-item has a part."""
    return (part.buffer for part in walk(s) if isinstance(part, Alloc) and part.buffer.space is Space.PRIVATE)


def has_workspace(s: Stmt) -> bool:
    """Whether a group needs memory outside of the chip."""
    return any(isinstance(part, Alloc) and part.buffer.space is Space.WORKSPACE for part in walk(s))


def sub_group(s: Stmt) -> int:
    """The size of sub-groups that the statement requires; 0 if it does not use them."""
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
    """Memory of a group for values like an accumulator's."""
    return Buffer(f"{acc.name}_{name}", acc.dtype, (as_index(count),), Space.GROUP)


def in_lanes(acc: Buffer, name: str, lanes: int) -> Buffer:
    """A value of each work-item: in a variable for sub-groups of this size, or else in memory of the group."""
    if not lanes:
        return shared(acc, name, ITEMS)
    return Buffer(f"{acc.name}_{name}", acc.dtype, (as_index(ITEMS // lanes), as_index(lanes)), Space.LANES)


class Lane(NamedTuple):
    """The location of a work-item's partial result in the reduction tree: its sub-group, the branch in that, and the
    place in the branch; `heads` bind these digits."""

    heads: tuple[Digits, ...]
    sub_group: Index
    branch: Index
    place: Index


def lane(fresh: FreshLoops, values: Buffer, t: Index) -> Lane:
    """The location of work-item t."""
    (first,), s = fresh.loop(values.shape[0])
    second, k = fresh.loop(floordiv(values.shape[1], EACH))
    (last,), u = fresh.loop(EACH)
    return Lane((Digits(tuple(head.loop for head in (first, *second, last)), t),), s, k, u)


def kept(fresh: FreshLoops, values: Buffer, t: Index, value: Expr) -> Stmt:
    """values[t] = value, for values of all work-items in lanes or in memory of the group."""
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
    """The sums of branches of parts, and into `before` the sum before each part in its branch. With `backward` a branch
    in lanes runs from its last work-item to the first.

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
    """for item t { part = id; for v { if v == u: before[t] = part; part += part v of its branch } if u == 0: sums[h] =
    part }"""
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


# The number of terms of the shortest sum that a group shares.
FEW = 128


@attrs.frozen(repr=False)
class Sum:
    """for loops: acc += v. Extents of other loops depend on those in `outer`; of the others, `length` terms are added
    from number `first` on."""

    outer: tuple[For, ...]
    loops: tuple[Loop, ...]
    store: Store
    reduce: Reduce
    length: Index
    first: Index = ZERO

    def step(self, number: Index, places: Places) -> Stmt:
        """acc += the term of this number, with buffers at other places."""
        at = self.first + number
        if len(self.loops) == 1:
            return Renaming(Substitution({self.loops[0]: at}), places).statement(self.store)
        return nest((Digits(self.loops, at),), Renaming(Substitution({}), places).statement(self.store))


def sum_of(fresh: FreshLoops, s: Stmt) -> Sum | None:
    """The sum that a statement computes; None for other statements."""
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
    """A sum that the work-items of a group share, by a fixed tree that is the same on all devices.

        for k < n: acc += v(k)
            ->  group parts[ITEMS], sums[BRANCHES]
                for item t < ITEMS { part = 0; for every ITEMS-th k from t on: part += v(k); parts[t] = part }
                for item h < BRANCHES { part = 0; for u: part += parts[h*... + u]; sums[h] = part }
                for h < BRANCHES: acc += sums[h]

    Several loops are merged: work-items count the terms of all, and get the position in each loop from the digits of a
    term's number. So work is balanced also if the innermost loop is short.
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
