"""Long sums on a wide device are split into parts; one launch computes the parts of all sums.

    for i { acc = 0; for k < n: acc += v(i, k); out[i] = f(acc) }       terms are neighbours in memory, or one sum only
        ->  if n > CHUNK:
                for grid i, c { part = 0; for k of chunk c: part += v(i, k), as a group adds up; parts[i, c] = part }
                for i { acc = 0; acc += parts[i, :]; out[i] = f(acc) }

    for i { acc = 0; for k < n: acc += v(k, i); out[i] = f(acc) }       a term's neighbours are terms of other sums
        ->  if n >= LONG, or there are few columns, of more than TERMS:
                for p < P, i { part = 0; for every P-th k from p on: part += v(k, i); parts[p, i] = part }
                for i { acc = 0; acc += parts[:, i]; out[i] = f(acc) }
            else:
                for i { acc = 0; for p < P { part = 0; for every P-th k from p on: part += v(k, i); acc += part };
                        out[i] = f(acc) }

The first form reads rows with neighbours side by side, the second columns. Many parts are added by a group, few by one
work-item. Where a sum is split depends on its length only: the number of rows or columns changes no bit.

If several sums follow each other, the values that later ones need are in memory, and loops over elements and running
sums are launches of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import attrs

from harp.lower.device.groups import FEW, Sum, Unsuited, scratch_array, sum_of, tree_sum
from harp.lower.device.running_sums import CHUNK, blocked_running_sum
from harp.lower.loopir.effects import effects, value_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    Load,
    LoopKind,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
)
from harp.lower.loopir.nests import (
    FreshLoops,
    Places,
    Renaming,
    accumulation,
    begin,
    is_plain,
    loads,
    nest,
    rebuilt,
    score,
    sequence,
)
from harp.lower.loopir.products import is_contraction
from harp.lower.reductions.scan import match_scan
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv, maximum, minimum
from harp.trace.index.polynomial import ONE, ZERO, Index, as_index, indirect_in, loops_in, of
from harp.trace.index.polynomial import product as product_of

# The number of rows that occupies all groups, and of columns that occupies all work-items.
_MANY_ROWS, _MANY_COLUMNS = 256, 4096
# Terms of a part of a column; those of very long columns have more, so that their parts are no long column. And the
# length from which on a column is very long.
_TERMS, _VERY_LONG = 16, 1 << 16
LONG = FEW * _TERMS


@attrs.frozen(repr=False)
class _Step:
    """The work for each row or column between two launches: a sum, if any, with the statements before and after it; or
    `whole`, a loop over elements or a running sum that is launched on its own."""

    before: tuple[Stmt, ...] = ()
    terms: Sum | None = None
    after: tuple[Stmt, ...] = ()
    whole: Stmt | None = None

    @property
    def statement(self) -> Stmt:
        """All of its statements, for the buffers that it uses."""
        return self.whole or Seq((*self.before, *((self.terms.store,) if self.terms else ()), *self.after))


def long_sums(fresh: FreshLoops, s: Stmt, short: Stmt, scratch: list[Buffer], lanes: int) -> Stmt:
    """The rule for nests of independent loops, and for sums and running sums outside of loops; `short` is the statement
    for short sums."""
    inside = isinstance(s, Nest) and accumulation(s) is None
    heads = tuple(h for h in s.heads if isinstance(h, For)) if inside and isinstance(s, Nest) else ()
    body = s.body if inside and isinstance(s, Nest) else s
    if not is_plain(s) or is_contraction(s) or not all(_is_known(h.loop.extent) for h in heads):
        return short
    own: list[Buffer] = []
    steps = _steps(fresh, list(_flat(body, own)), own)
    if steps is None or not all(_is_known(extent) for buffer in own for extent in buffer.shape):
        return short
    sums = [step.terms for step in steps if step.terms is not None]
    length = sums[0].length if sums else ZERO
    columns = all(_is_across(heads, terms) and terms.length is length for terms in sums)
    if short is s and sums and columns and not any(step.whole is not None and _is_scan(step.whole) for step in steps):
        few = _MANY_COLUMNS - 1 - product_of(h.loop.extent for h in heads)
        conditions: tuple[Index, ...] = (length - _TERMS - 1, maximum(length - LONG, few))
        short = nest(heads, _in_order(fresh, body))
    else:
        conditions = _conditions(heads, steps, short is not s)
    if any(nonnegative(-p - 1) for p in conditions):
        return short
    more = list(scratch)
    try:
        launches = _Launches(fresh, heads, more, lanes).all(steps, own, conditions)
    except Unsuited:
        return short
    scratch[:] = more
    return specialise(conditions, launches, short)


def _in_order(fresh: FreshLoops, s: Stmt) -> Stmt:
    """The statement, in which sums of columns are split into parts that one work-item adds."""
    if isinstance(s, (Alloc, Seq)):
        return rebuilt(s, lambda part: _in_order(fresh, part))
    terms = sum_of(fresh, s)
    if terms is None or _is_short(terms):
        return s
    acc = terms.store.buffer
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    each, p = fresh.loop(_parts_of(terms.length), LoopKind.SEQUENTIAL)
    along, j = fresh.loop(ceildiv(terms.length - p, _parts_of(terms.length)), LoopKind.SEQUENTIAL)
    added = nest(along, terms.step(j * _parts_of(terms.length) + p, {acc: (part, ())}))
    steps = (begin(part, terms.reduce), added, Store(acc, (), Load(part, ()), terms.reduce))
    return nest(each, Alloc(part, sequence(steps)))


def _parts_of(length: Index) -> Index:
    """The number of parts of a column."""
    return ceildiv(length, _TERMS + floordiv(length, _VERY_LONG))


def _flat(s: Stmt, own: list[Buffer]) -> Iterable[Stmt]:
    """The statements that run once for each row or column; their private buffers are added to `own`."""
    if isinstance(s, Alloc) and match_scan(s) is None:
        own.append(s.buffer)
        yield from _flat(s.body, own)
    elif isinstance(s, Seq):
        for part in s.parts:
            yield from _flat(part, own)
    else:
        yield s


def _steps(fresh: FreshLoops, statements: Sequence[Stmt], own: Sequence[Buffer]) -> list[_Step] | None:
    """The statements, split before each sum that needs a variable, and around loops over elements and running sums."""
    steps = [_Step()]
    for s in statements:
        terms = sum_of(fresh, s)
        if isinstance(s, Store) or (terms is not None and _is_short(terms)):
            last = steps[-1]
            steps[-1] = attrs.evolve(last, after=(*last.after, s)) if last.terms else _Step((*last.before, s))
        elif terms is not None:
            if terms.outer or not _is_known(terms.length):
                return None
            needed = {load.buffer for load in value_loads(terms.store.value)} - {terms.store.buffer}
            if steps[-1].terms or any(b.space is Space.REG and b in own for b in needed):
                steps[-1], begun = _without_start(steps[-1], terms.store.buffer)
                steps.append(begun)
            steps[-1] = attrs.evolve(steps[-1], terms=terms)
        elif _is_scan(s) or (isinstance(s, Nest) and _is_elementwise(s)):
            steps += [_Step(whole=s), _Step()]
        else:
            return None
    return [step for step in steps if step.before or step.terms or step.whole]


def _is_known(extent: Index) -> bool:
    """Whether sizes determine the extent, so that scratch memory can have it."""
    return not loops_in(extent) and not indirect_in(extent)


def _is_scan(s: Stmt) -> bool:
    """Whether it is a running sum that stores to memory only."""
    scan = match_scan(s)
    if scan is None or not _is_known(scan.loop.extent):
        return False
    return all(buffer.space in MEMORY for buffer in effects(scan.body).writes - {scan.acc})


def _is_short(terms: Sum) -> bool:
    """Whether a sum is too short for a group, for all sizes."""
    return nonnegative(FEW - 1 - terms.length)


def _is_elementwise(s: Nest) -> bool:
    return all(buffer.space in (*MEMORY, Space.THREAD) for buffer in effects(s).writes)


def _without_start(step: _Step, acc: Buffer) -> tuple[_Step, _Step]:
    """The step without the start of a sum, and a next step with that start."""
    starts = [s for s in (*step.before, *step.after) if isinstance(s, Store) and s.buffer is acc]
    before, after = (tuple(s for s in part if s not in starts) for part in (step.before, step.after))
    return _Step(before, step.terms, after), _Step(tuple(starts))


def _is_across(heads: Sequence[For], terms: Sum) -> bool:
    """Whether neighbours in memory belong to different columns, not to the terms of one sum."""
    accesses = loads(terms.store.value)
    return score(accesses, terms.loops[-1]) <= 0 and any(score(accesses, h.loop) > 0 for h in heads)


def _conditions(heads: Sequence[For], steps: Sequence[_Step], by_groups: bool) -> tuple[Index, ...]:
    """The conditions under which the rule pays: a long first sum, or any sum outside of loops. Running sums of groups
    have the same bits with and without parts, which many rows do not need; other running sums, such as those down
    columns, are left to one work-item each, whose neighbours read side by side."""
    for step in steps:
        scan = None if step.whole is None else match_scan(step.whole)
        if step.terms is not None:
            length = step.terms.length
            if not heads:
                return ()
            return (length - LONG,) if _is_across(heads, step.terms) else (length - CHUNK - 1,)
        if scan is not None:
            if not by_groups:
                break
            few = _MANY_ROWS - 1 - product_of(h.loop.extent for h in heads)
            return (scan.loop.extent - CHUNK - 1, *((few,) if len(steps) == 1 else ()))
    return (as_index(-1),)


@attrs.frozen(repr=False)
class _Launches:
    """Makes the launches of steps for all rows or columns."""

    fresh: FreshLoops
    heads: tuple[For, ...]
    scratch: list[Buffer]
    lanes: int

    def all(self, steps: Sequence[_Step], own: Sequence[Buffer], conditions: Sequence[Index]) -> Stmt:
        """All steps, with variables that several steps use, and arrays of rows, in memory. These arrays are empty if a
        condition says that the rule does not pay."""
        variables = {b for b in own if b.space is Space.REG}
        used = [[b for b in effects(step.statement).touched if b in variables] for step in steps]
        several = [b for b in dict.fromkeys(b for here in used for b in here) if sum(b in here for here in used) > 1]
        at, extents = tuple(of(h.loop) for h in self.heads), tuple(h.loop.extent for h in self.heads)
        taken = minimum(1, maximum(conditions[0] + 1, 0)) if conditions else ONE
        whole = (extents[0] * taken, *extents[1:]) if extents else ()
        rows: Places = {
            b: (scratch_array(self.scratch, "rows", b.dtype, (*whole, *b.shape)), at) for b in own if b not in variables
        }
        kept: Places = {b: (scratch_array(self.scratch, "columns", b.dtype, extents), at) for b in several}
        found: list[Stmt] = []
        for number, step in enumerate(steps):
            if step.whole is not None:
                found.append(self.whole(Renaming(Substitution({}), {**rows, **kept}).statement(step.whole)))
                continue
            earlier = {b for here in used[:number] for b in here}
            later = {b for here in used[number + 1 :] for b in here}
            given = [Store(b, (), Load(*kept[b])) for b in used[number] if b in earlier]
            left = [Store(*kept[b], Load(b, ())) for b in used[number] if b in later & effects(step.statement).writes]
            moved = Renaming(Substitution({}), rows).statement
            before, after = [*given, *map(moved, step.before)], [*map(moved, step.after), *left]
            inside = partial(_inside, used[number], before, after)
            if step.terms is None:
                found.append(nest(self.heads, inside(Seq(()))))
            else:
                parts = by_parts(self.fresh, self.heads, step.terms, self.scratch, {**rows, **kept}, self.lanes)
                found.append(parts.added(self.heads, inside))
        return sequence(found)

    def whole(self, s: Stmt) -> Stmt:
        """The launch of a loop over elements, or the launches of a running sum."""
        scan = match_scan(nest(self.heads, s))
        if scan is None:
            return nest(self.heads, s)
        return blocked_running_sum(self.fresh, scan, self.scratch, self.lanes)


def _inside(variables: Sequence[Buffer], before: Sequence[Stmt], after: Sequence[Stmt], total: Stmt) -> Stmt:
    body = sequence((*before, total, *after))
    for variable in variables:
        body = Alloc(variable, body)
    return body


class Parts(NamedTuple):
    """The nest that makes the parts of all sums; the statements that add the parts of one sum, by a group and by one
    work-item; and the number of parts."""

    made: Stmt
    by_group: Stmt
    by_one: Stmt
    length: Index

    def added(self, heads: Sequence[For], body: Callable[[Stmt], Stmt]) -> Stmt:
        """The parts, and then the other statements of each row or column round the sum of the parts."""
        many = nest((For(h.loop, LoopKind.GRID) for h in heads), body(self.by_group))
        few = nest(heads, body(self.by_one))
        return sequence((self.made, specialise((self.length - FEW - 1,), many, few) if heads else many))


def by_parts(
    fresh: FreshLoops, heads: Sequence[For], terms: Sum, scratch: list[Buffer], places: Places, lanes: int
) -> Parts:
    """A sum by parts; `places` has the buffers that are in memory."""
    acc = terms.store.buffer
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    moved = Renaming(Substitution({}), {**places, acc: (part, ())}).statement(terms.store)
    assert isinstance(moved, Store)
    terms = attrs.evolve(terms, store=moved)
    across = _is_across(heads, terms)
    count = _parts_of(terms.length) if across else ceildiv(terms.length, CHUNK)
    outer, inner = _round(heads, terms) if across else (list(heads), [])
    shape = (*(h.loop.extent for h in outer), count, *(h.loop.extent for h in inner))
    parts = scratch_array(scratch, "parts", acc.dtype, shape)

    def place(at: Index) -> tuple[Index, ...]:
        return (*(of(h.loop) for h in outer), at, *(of(h.loop) for h in inner))

    number, c = fresh.loop(count, LoopKind.PLAIN if across else LoopKind.GRID)
    if across:
        grid = (*outer, *_side_by_side(fresh, (*number, *inner)))
        along, j = fresh.loop(ceildiv(terms.length - c, count), LoopKind.SEQUENTIAL)
        added = nest(along, terms.step(j * count + c, {}))
    else:
        grid = (*(For(h.loop, LoopKind.GRID) for h in outer), *number)
        first = c * CHUNK
        added = tree_sum(fresh, attrs.evolve(terms, first=first, length=minimum(CHUNK, terms.length - first)), lanes)
    made = sequence((begin(part, terms.reduce), added, Store(parts, place(c), Load(part, ()))))
    row, at = fresh.loop(count)
    total = nest(row, Store(acc, (), Load(parts, place(at)), terms.reduce))
    shared = sum_of(fresh, total)
    return Parts(
        nest(grid, Alloc(part, made)), total if shared is None else tree_sum(fresh, shared, lanes), total, count
    )


def _side_by_side(fresh: FreshLoops, heads: tuple[For, ...]) -> tuple[Head, ...]:
    """One merged loop, so that neighbours read side by side even if there are few columns."""
    flat, at = fresh.loop(product_of(h.loop.extent for h in heads))
    return (*flat, Digits(tuple(h.loop for h in heads), at))


def _round(heads: Sequence[For], terms: Sum) -> tuple[list[For], list[For]]:
    """The heads along which memory is read with larger strides than along the column, and the others."""
    along = {*terms.loops}
    before = {
        loop
        for load in loads(terms.store.value)
        for axis, p in enumerate(load.index)
        if along & {*loops_in(p)}
        for q in load.index[:axis]
        for loop in loops_in(q)
    }
    return [h for h in heads if h.loop in before], [h for h in heads if h.loop not in before]
