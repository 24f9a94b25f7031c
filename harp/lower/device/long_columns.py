"""Sums of long columns on a wide device: work-items side by side read rows side by side, and groups add their parts up.

    for i { acc = 0; for k < n: acc += v(k, i); out[i] = f(acc) }
        ->  if n >= LONG:
                for p < P, i { part = 0; for every P-th k from p on: part += v(k, i); parts[p, i] = part }
                for grid i { acc = 0; acc += parts[:, i] as a group adds up a row; out[i] = f(acc) }
            else: as it was

P grows with the length of a column, and says in which order terms are added: how many columns there are changes no bit.
Where several sums follow each other, what the later ones need of the earlier ones is in memory, and loops over elements
are launches of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

import attrs

from harp.lower.device.rows import tree_sum
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
    score,
    sequence,
)
from harp.lower.loopir.products import is_contraction
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import specialise
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv
from harp.trace.index.polynomial import Index, Loop, loops_in, of
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.ops import Reduce

# Parts of a column grow in number by so many at a time, with so many terms of each: enough to make light of its store.
_PARTS, _TERMS = 32, 64
# The shortest column that is cut.
LONG = _PARTS * _TERMS


@attrs.frozen
class Column:
    """A sum along one loop, for k: acc += v(k)."""

    loop: Loop
    store: Store
    reduce: Reduce


@attrs.frozen
class _Step:
    """What is done for each column at a time: a sum, if any, with what stands before and behind it."""

    before: tuple[Stmt, ...]
    column: Column | None = None
    after: tuple[Stmt, ...] = ()

    @property
    def whole(self) -> Stmt:
        return Seq((*self.before, *((self.column.store,) if self.column else ()), *self.after))


def shared_columns(fresh: FreshLoops, s: Nest, scratch: list[Buffer], lanes: int) -> Stmt | None:
    """The rule for loop nests, whose loops are independent of each other; None if it does not fit."""
    heads = tuple(h for h in s.heads if isinstance(h, For))
    if not is_plain(s) or is_contraction(s) or any(loops_in(h.loop.extent) for h in heads):
        return None
    steps = _steps(fresh, heads, list(_flat(s.body)))
    columns = [step.column for step in steps or () if step.column is not None]
    if steps is None or not columns or nonnegative(LONG - 1 - columns[0].loop.extent):
        return None
    return specialise((columns[0].loop.extent - LONG,), _launches(fresh, heads, steps, scratch, lanes), s)


def _flat(s: Stmt) -> Iterable[Stmt]:
    """The statements that run once for each column."""
    if isinstance(s, Alloc) and s.buffer.space is Space.REG:
        yield from _flat(s.body)
    elif isinstance(s, Seq):
        for part in s.parts:
            yield from _flat(part)
    else:
        yield s


def _steps(fresh: FreshLoops, heads: tuple[For, ...], statements: Sequence[Stmt]) -> list[_Step] | None:
    """The statements, cut before each sum that needs a variable, and round loops over elements."""
    steps = [_Step(())]
    for s in statements:
        column = _column(fresh, heads, s)
        if isinstance(s, Store):
            last = steps[-1]
            steps[-1] = attrs.evolve(last, after=(*last.after, s)) if last.column else _Step((*last.before, s))
        elif column is not None:
            needed = {load.buffer for load in value_loads(column.store.value)} - {column.store.buffer}
            if steps[-1].column or not all(buffer.space in MEMORY for buffer in needed):
                steps[-1], begun = _without_start(steps[-1], column.store.buffer)
                steps.append(begun)
            steps[-1] = attrs.evolve(steps[-1], column=column)
        elif isinstance(s, Nest) and all(buffer.space in MEMORY for buffer in effects(s).writes):
            steps += [_Step((s,)), _Step(())]
        else:
            return None
    return [step for step in steps if step.before or step.column]


def _without_start(step: _Step, acc: Buffer) -> tuple[_Step, _Step]:
    """The step, and the next one, which begins a sum."""
    starts = [s for s in (*step.before, *step.after) if isinstance(s, Store) and s.buffer is acc]
    before, after = (tuple(s for s in part if s not in starts) for part in (step.before, step.after))
    return _Step(before, step.column, after), _Step(tuple(starts))


def _column(fresh: FreshLoops, heads: tuple[For, ...], s: Stmt) -> Column | None:
    """The sum that a statement is, if neighbours in memory are columns side by side, and not its terms."""
    found = accumulation(s)
    if found is None or not all(h.kind is LoopKind.PLAIN for h in found[0]):
        return None
    (first, *more), store = coalesced(fresh, *found)
    if more or loops_in(first.loop.extent) or not isinstance(store, Store):
        return None
    accesses = loads(store.value)
    across = score(accesses, first.loop) <= 0 and any(score(accesses, h.loop) > 0 for h in heads)
    return Column(first.loop, store, store.reduce or Reduce.SUM) if across else None


def _launches(
    fresh: FreshLoops, heads: tuple[For, ...], steps: Sequence[_Step], scratch: list[Buffer], lanes: int
) -> Stmt:
    """Each step for all columns, with the variables that several of them use in memory."""
    used = [[b for b in effects(step.whole).touched if b.space is Space.REG] for step in steps]
    at = tuple(of(h.loop) for h in heads)
    kept: dict[Buffer, tuple[Buffer, tuple[Index, ...]]] = {}
    for variable in dict.fromkeys(b for here in used for b in here):
        if sum(variable in here for here in used) > 1:
            shape = tuple(h.loop.extent for h in heads)
            scratch.append(Buffer(f"columns{len(scratch)}", variable.dtype, shape, Space.SCRATCH))
            kept[variable] = scratch[-1], at
    found: list[Stmt] = []
    for number, step in enumerate(steps):
        if step.column is None and isinstance(step.before[0], Nest):
            found.append(nest(heads, Renaming(Substitution({}), kept).statement(step.before[0])))
            continue
        earlier = {b for here in used[:number] for b in here}
        later = {b for here in used[number + 1 :] for b in here}
        given = [Store(b, (), Load(*kept[b])) for b in used[number] if b in earlier]
        left = [Store(*kept[b], Load(b, ())) for b in used[number] if b in later & effects(step.whole).writes]
        body = partial(_with_variables, used[number])
        if step.column is None:
            found.append(nest(heads, body((*given, *step.before, *left))))
        else:
            parts, total = by_parts(fresh, heads, step.column, scratch, kept, lanes)
            grid = tuple(For(h.loop, LoopKind.GRID) for h in heads)
            found += [parts, nest(grid, body((*given, *step.before, total, *step.after, *left)))]
    return sequence(found)


def _with_variables(variables: Iterable[Buffer], statements: Iterable[Stmt]) -> Stmt:
    body = sequence(statements)
    for variable in variables:
        body = Alloc(variable, body)
    return body


def by_parts(
    fresh: FreshLoops, heads: tuple[For, ...], column: Column, scratch: list[Buffer], kept: Places, lanes: int
) -> tuple[Stmt, Stmt]:
    """The nest that makes the parts of all columns, and what adds up those of one, as a group does; `kept` are the
    variables that are in memory."""
    acc, reduce = column.store.buffer, column.reduce
    count = floordiv(column.loop.extent, LONG) * _PARTS
    head, p = fresh.loop(count)
    outer, inner = _round(heads, column)
    shape = (*(h.loop.extent for h in outer), count, *(h.loop.extent for h in inner))
    parts = Buffer(f"parts{len(scratch)}", acc.dtype, shape, Space.SCRATCH)
    scratch.append(parts)

    def place(at: Index) -> tuple[Index, ...]:
        return (*(of(h.loop) for h in outer), at, *(of(h.loop) for h in inner))

    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    along, j = fresh.loop(ceildiv(column.loop.extent - p, count), LoopKind.SEQUENTIAL)
    variables: Mapping[Buffer, tuple[Buffer, tuple[Index, ...]]] = {**kept, acc: (part, ())}
    moved = Renaming(Substitution({column.loop: j * count + p}), variables).statement(column.store)
    made = (begin(part, reduce), nest(along, moved), Store(parts, place(p), Load(part, ())))
    row, at = fresh.loop(count)
    total = tree_sum(fresh, row, Store(acc, (), Load(parts, place(at)), reduce), lanes)
    return nest((*outer, *_side_by_side(fresh, (*head, *inner))), Alloc(part, sequence(made))), total


def _side_by_side(fresh: FreshLoops, heads: tuple[For, ...]) -> tuple[Head, ...]:
    """One loop for all of them, so that neighbours read side by side also where columns are few."""
    flat, at = fresh.loop(product_of(h.loop.extent for h in heads))
    return (*flat, Digits(tuple(h.loop for h in heads), at))


def _round(heads: tuple[For, ...], column: Column) -> tuple[list[For], list[For]]:
    """The heads along which memory is read in larger steps than along the column, and the others."""
    before = {
        loop
        for load in loads(column.store.value)
        for axis, p in enumerate(load.index)
        if column.loop in loops_in(p)
        for q in load.index[:axis]
        for loop in loops_in(q)
    }
    return [h for h in heads if h.loop in before], [h for h in heads if h.loop not in before]
