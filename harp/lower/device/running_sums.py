"""Running sums on groups of work-items: in blocks, of which each work-item does a part.

    for i < n { acc += v(i); out[i] = f(acc) }
        ->  for block of ITEMS*EACH elements {
                for item t: totals[t] = the sum of its EACH elements
                before[t] = the sum of totals of the work-items of its branch before t
                starts[h] = the sum of totals of all branches before h
                for item t { part = 0; for its elements { part += v; out = f(acc + (starts[h] + (before[t] + part))) } }
                acc += the sum of the block }

Branches are those of the tree in `groups.py`; here h is the branch of work-item t.

Sums are nested in the order in which parts are made, so that the last value of one is the first of the next: running
sums of positive numbers never decrease. The order depends on a row's length only. Products of floats are not split: a
part may overflow where the whole is 0. Source: G. E. Blelloch: "Prefix sums and their applications", 1990.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs

from harp.lower.device.groups import (
    BRANCHES,
    ITEMS,
    Unsuited,
    branches,
    in_lanes,
    items,
    kept,
    scratch_array,
    shared,
)
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
    Seq,
    Space,
    Stmt,
    Store,
    parts,
    walk,
)
from harp.lower.loopir.nests import FreshLoops, Renaming, begin, nest, rebuilt, renamed, sequence
from harp.lower.reductions.scan import Scan
from harp.trace.index.division import Substitution, ceildiv, minimum
from harp.trace.index.polynomial import Atom, Index, as_index, loops_in, of
from harp.trace.scalar.expr import Expr, apply
from harp.trace.scalar.ops import Reduce

# Elements of a work-item in a block, and of a block.
_EACH = 4
BLOCK = ITEMS * _EACH
# Elements of a part of a row that one group does, if there are few rows.
CHUNK = 4 * BLOCK


class _Shared(NamedTuple):
    """The shared values of a running sum: the sum of each work-item's elements, the sum before it in its branch, the
    sums of branches, and the sum before each branch and after the last one. With sub-groups the first two are variables
    of the work-items."""

    totals: Buffer
    before: Buffer
    sums: Buffer
    starts: Buffer

    @property
    def in_lanes(self) -> bool:
        return self.totals.space is Space.LANES


def running_sum(fresh: FreshLoops, scan: Scan, lanes: int) -> Stmt:
    """The rule for running sums; see the top of the file. `lanes` are those of sub-groups, or 0."""
    acc, reduce = scan.acc, scan.reduce
    if reduce is Reduce.PROD and not acc.dtype.is_integer:
        raise Unsuited
    if any(buffer.space not in MEMORY for buffer in effects(scan.body).writes - {acc}):
        raise Unsuited  # each work-item would have its own variable, with a part of the sum
    room = _Shared(
        in_lanes(acc, "totals", lanes),
        attrs.evolve(shared(acc, "before", ITEMS), space=Space.PRIVATE if lanes else Space.GROUP),
        shared(acc, "sums", BRANCHES),
        shared(acc, "starts", BRANCHES + 1),
    )
    blocks, block = fresh.loop(ceildiv(scan.loop.extent, BLOCK), LoopKind.SEQUENTIAL)
    first = block * BLOCK
    along, h = fresh.loop(BRANCHES, LoopKind.SEQUENTIAL)
    branch = BRANCHES - 1 - h if room.in_lanes and scan.backward else h
    following = apply(reduce.value, Load(room.starts, (h,)), Load(room.sums, (branch,)))
    stays = _is_same(scan)
    steps = (
        _totals(fresh, scan, room, first),
        branches(fresh, room.totals, room.sums, reduce, room.before, scan.backward),
        Store(room.starts, (as_index(0),), begin(acc, reduce).value),
        nest(along, Store(room.starts, (h + 1,), following)),
        *(() if stays else (_results(fresh, scan, room, first),)),
        Store(acc, (), Load(room.starts, (as_index(BRANCHES),)), reduce),
    )
    body = sequence((scan.first, nest(blocks, sequence(steps))))
    if stays:
        body = sequence((body, _last(scan)))
    for buffer in room:
        body = Alloc(buffer, body)
    return Alloc(acc, body)


def blocked_running_sum(fresh: FreshLoops, scan: Scan, scratch: list[Buffer], lanes: int) -> Stmt:
    """The rule for running sums in few long rows: a group for each block, with the same bits as if one group does all
    blocks of a row.

    for grid i, b { total = the sum of block b; totals[i, b] = total }
    for i { acc = first; for b { starts[i, b] = acc; acc += totals[i, b] } }
    for grid i, b { acc = starts[i, b]; the running sum of block b }
    """
    acc, reduce, count = scan.acc, scan.reduce, ceildiv(scan.loop.extent, BLOCK)
    shape = (*(h.loop.extent for h in scan.heads), count)
    totals, starts = (scratch_array(scratch, name, acc.dtype, shape) for name in ("totals", "starts"))

    def place(at: Index) -> tuple[Index, ...]:
        return (*(of(h.loop) for h in scan.heads), at)

    def for_blocks(body: Stmt, first: Callable[[Index], Store], last: Callable[[Index], Sequence[Stmt]]) -> Stmt:
        """A group for each block, with its first value, and statements after the block. Blocks are numbered in the
        order of the memory that they store to, so that they are proved to be independent."""
        head, number = fresh.loop(count, LoopKind.GRID)
        b = count - 1 - number if scan.backward and body is scan.body else number
        (along,), e = fresh.loop(minimum(BLOCK, scan.loop.extent - b * BLOCK), LoopKind.SEQUENTIAL)
        inside = sequence((Renaming(Substitution({scan.loop: b * BLOCK + e}), {}).statement(body), *last(b)))
        step = next(part for part in walk(inside) if isinstance(part, Store) and part.buffer is acc)
        block = Scan((), along.loop, inside, step, reduce, first(b))
        return nest((*(For(h.loop, LoopKind.GRID) for h in scan.heads), *head), running_sum(fresh, block, lanes))

    added = for_blocks(
        attrs.evolve(scan.step, value=scan.added),
        lambda b: begin(acc, reduce),
        lambda b: (Store(totals, place(b), Load(acc, ())),),
    )
    row, at = fresh.loop(count, LoopKind.SEQUENTIAL)
    step = (Store(starts, place(at), Load(acc, ())), Store(acc, (), Load(totals, place(at)), reduce))
    stays = _is_same(scan)
    steps = (scan.first, nest(row, sequence(step)), *((_last(scan),) if stays else ()))
    found = (added, nest(scan.heads, Alloc(acc, sequence(steps))))
    shown = () if stays else (for_blocks(scan.body, lambda b: Store(acc, (), Load(starts, place(b))), lambda b: ()),)
    return sequence((*found, *shown))


def _last(scan: Scan) -> Stmt:
    """The stores of the last step, when the sum is complete."""
    last: dict[Atom, Index] = {scan.loop: scan.loop.extent - 1}
    return If((scan.loop.extent - 1,), renamed(_without(scan.body, scan.step), last))


def _is_same(scan: Scan) -> bool:
    """Whether each step stores to the same elements: then only the last one counts."""
    stores = [part for part in walk(scan.body) if isinstance(part, Store) and part is not scan.step]
    return not any(scan.loop in loops_in(p) for part in stores for p in part.index)


def _totals(fresh: FreshLoops, scan: Scan, room: _Shared, first: Index) -> Stmt:
    """for item t { part = id; for e < EACH: part += v; totals[t] = part }"""
    part = Buffer(f"{scan.acc.name}_part", scan.acc.dtype, (), Space.REG)
    head, t = items(fresh)
    along, e = fresh.loop(_EACH, LoopKind.SEQUENTIAL)
    at = first + (_place(scan, t) if room.in_lanes else t) * _EACH + e
    step = Renaming(Substitution({scan.loop: at}), {scan.acc: (part, ())}).statement(
        Store(scan.acc, (), scan.added, scan.reduce)
    )
    added = nest(along, If((scan.loop.extent - 1 - at,), step))
    last = kept(fresh, room.totals, t, Load(part, ()))
    return nest(head, Alloc(part, sequence((begin(part, scan.reduce), added, last))))


def _place(scan: Scan, t: Index) -> Index:
    """The place of a work-item in the sum. They are numbered along memory, even if the sum runs backward."""
    return ITEMS - 1 - t if scan.backward else t


def _results(fresh: FreshLoops, scan: Scan, room: _Shared, first: Index) -> Stmt:
    """for item t { part = id; for e < EACH { part += v; now = acc + (starts[...] + (before[t] + part)); s(now) } }"""
    acc, value = scan.acc, scan.reduce.value
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    now = Buffer(f"{acc.name}_now", acc.dtype, (), Space.REG)
    head, t = items(fresh)
    place = _place(scan, t)
    (high,), branch = fresh.loop(BRANCHES)
    (low,), _ = fresh.loop(ITEMS // BRANCHES)
    along: tuple[Head, ...]
    along, e = fresh.loop(_EACH, LoopKind.SEQUENTIAL)
    if scan.backward:  # elements are numbered along memory, like work-items, so that they are proved to be independent
        (up,), number = fresh.loop(_EACH)
        along, e = (*along, Digits((up.loop,), _EACH - 1 - e)), _EACH - 1 - number
    at = first + place * _EACH + e

    def nested(own: Expr | None) -> Expr:
        before = Load(room.before, (t if room.in_lanes else place,))
        inside = before if own is None else apply(value, before, own)
        return apply(value, Load(acc, ()), apply(value, Load(room.starts, (branch,)), inside))

    def statement(s: Stmt) -> Stmt:
        if s is scan.step:
            return sequence((Store(part, (), scan.step.value, scan.reduce), Store(now, (), nested(Load(part, ())))))
        return Renaming(Substitution({}), {acc: (now, ())}).statement(s) if not parts(s) else rebuilt(s, statement)

    moved = Renaming(Substitution({scan.loop: at}), {}).statement(statement(scan.body))
    steps = nest(along, If((scan.loop.extent - 1 - at,), moved))
    body = sequence((begin(part, scan.reduce), Store(now, (), nested(None)), steps))
    return nest((*head, Digits((high.loop, low.loop), place)), Alloc(part, Alloc(now, body)))


def _without(s: Stmt, step: Store) -> Stmt:
    """The statement without the step of a running sum."""
    return Seq(()) if s is step else rebuilt(s, lambda part: _without(part, step))
