"""Loop nests become launches: the iterations of a grid are the work-items of a device.

    for i, j: out[i, j] = v(i, j)         ->  for grid i, j: out[i, j] = v(i, j)
    for k { for j: out[idx[k], j] += v }  ->  for grid j { for k: out[idx[k], j] += v }
    reg v; for c: v += parts[c]; out = v  ->  one launch of one work-item
    repeat t < n { for i: c[i] = f }      ->  the host repeats it, with a launch for each step; or one launch of one
                                              work-item for all steps, if a step computes only a few scalars

A kernel becomes a tree of sequences, branches, repetitions and callbacks for the host; its leaves are launches, each a
nest that begins with the loops of its grid, or a statement without a grid, for one work-item. Values that pass from one
launch to the next are in memory: variables that span several launches become scratch memory of the kernel.

A loop is in a grid if its iterations are proved to touch different elements, so that results do not depend on how
work-items are grouped or ordered, and if the host knows its extent before the launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import attrs

from harp.lower.device.groups import is_shared, sorted_by_many, suits
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.effects import effects, head_names
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import FreshLoops, Renaming, is_plain, nest, rebuilt, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Loop, Symbol, indirect_in, value_atoms
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.expr import Const

# A step of at most this many work-items is done by one of them: a launch takes longer.
_FEW = 64


def to_grids(kernel: Kernel, kind: LoopKind = LoopKind.PLAIN) -> Kernel:
    """The kernel as launches; values that pass between them are in its scratch memory.

    Loops of this kind become grids: plain ones, in which each iteration is a work-item, or parallel loops of cores, in
    which a work-item runs many iterations.
    """
    mapping = _Mapping(FreshLoops(kernel), list(kernel.scratch), kind)
    body = mapping.statement(kernel.body, frozenset())
    return attrs.evolve(kernel, body=body, scratch=tuple(mapping.scratch))


def is_launch(s: Stmt) -> bool:
    """Whether a statement of the tree is a launch, without parts for the host."""
    return isinstance(s, (Nest, Row)) or not any(map(_is_for_the_host, walk(s)))


def _is_for_the_host(s: Stmt) -> bool:
    """Whether a statement cannot be part of a launch: a grid, a sort by many launches, a call of Python, a
    double-buffered loop, or a branch of which only one side is shared by work-items."""
    if sorted_by_many(s) is not None:
        return True
    if isinstance(s, If):
        return is_shared(s) and not suits(s)
    return isinstance(s, ForeignCall) or bool(grid_of(s)) or (isinstance(s, Repeat) and bool(s.moves))


def grid_of(s: Stmt) -> tuple[For, ...]:
    """The loops of the grid that a nest begins with."""
    heads = s.heads if isinstance(s, Nest) else ()
    return tuple(h for h in heads if isinstance(h, For) and h.kind is LoopKind.GRID)


def launches(s: Stmt) -> list[Stmt]:
    """The parts of a sequence for the host: consecutive statements for one work-item become one launch."""
    found: list[Stmt] = []
    tasks: list[Stmt] = []
    for part in s.parts if isinstance(s, Seq) and not is_launch(s) else (s,):
        if is_launch(part) and not grid_of(part) and sorted_by_many(part) is None:
            tasks.append(part)
            continue
        found += [sequence(tasks)] if tasks else []
        tasks = []
        found.append(part)
    return [*found, sequence(tasks)] if tasks else found


class _Mapping:
    """Maps statements to launches; `known` are the enclosing loops of the host."""

    def __init__(self, fresh: FreshLoops, scratch: list[Buffer], kind: LoopKind) -> None:
        self.fresh, self.scratch, self.kind = fresh, scratch, kind

    def statement(self, s: Stmt, known: frozenset[Loop]) -> Stmt:
        if isinstance(s, Nest):
            return self.nest(s, known)
        if isinstance(s, Alloc):
            return self.alloc(s, known)
        if isinstance(s, Repeat):
            return self.repeat(s, known)
        if isinstance(s, (Seq, If)):
            return rebuilt(s, lambda part: self.statement(part, known))
        return s

    def repeat(self, s: Repeat, known: frozenset[Loop]) -> Stmt:
        """A repetition on the host, unless all launches of a step have a few work-items."""
        body = self.statement(s.body, known | {s.loop})
        return s if not s.moves and _is_small(body) else attrs.evolve(s, body=body)

    def alloc(self, s: Alloc, known: frozenset[Loop]) -> Stmt:
        """A variable of one work-item, in the launches that compute it; other launches read it from memory."""
        body = self.statement(s.body, known)
        if is_launch(body):
            return Alloc(s.buffer, body)
        if any(isinstance(atom, Loop) for extent in s.buffer.shape for atom in value_atoms(extent)):
            return s  # how much memory that is depends on the step: all of it is done by one work-item
        memory = Buffer(f"between{len(self.scratch)}", s.buffer.dtype, s.buffer.shape, Space.SCRATCH)
        found = _made_by_one(s.buffer, memory, body)
        if memory in effects(found).touched:
            self.scratch.append(memory)
        return found

    def nest(self, s: Nest, known: frozenset[Loop]) -> Stmt:
        """The nest with a grid of its loops whose iterations are independent."""
        whole = s
        if grid_of(s) or is_shared(s):
            return s  # it is mapped to groups
        if self.kind is LoopKind.PLAIN:
            whole = through_branches(s)
        if self.kind is LoopKind.PLAIN and is_plain(whole):
            heads, body = coalesced(self.fresh, [h for h in whole.heads if isinstance(h, For)], whole.body)
            whole = Nest(tuple(heads), body)
        grid: list[Head] = []
        rest = list(whole.heads)
        for head in whole.heads:
            others = [h for h in rest if h is not head]
            if is_for_host(head, self.kind, whole, known) and is_independent(head, [*grid, *others], whole.body):
                grid.append(For(head.loop, LoopKind.GRID))
                rest = others
        return nest((*grid, *rest), whole.body) if grid else s


def _is_small(s: Stmt) -> bool:
    """Whether all launches have a small, constant number of work-items."""
    for part in walk(s):
        grid = grid_of(part)
        if isinstance(part, (ForeignCall, Repeat)) and not is_launch(part):
            return False
        if grid:
            count = product_of(h.loop.extent for h in grid).constant
            if count is None or count > _FEW:
                return False
    return True


def _made_by_one(variable: Buffer, memory: Buffer, s: Stmt) -> Stmt:
    """The statement with memory in place of a variable, which stays a variable in the launch that computes it.

    reg v; v = 0; for c: v += parts[c]; for grid i: out[i] = x[i]*v
        ->  reg v { v = 0; for c: v += parts[c]; memory = v }; for grid i: out[i] = x[i]*memory
    """
    everywhere = Renaming(Substitution({}), {variable: (memory, ())}).statement
    if not isinstance(s, Seq) or variable.shape:
        return everywhere(s)
    s = _begun_late(variable, s)
    uses = [effects(part) for part in s.parts]
    first = next(k for k, use in enumerate(uses) if variable in use.touched)
    last = first
    while last < len(s.parts) and is_launch(s.parts[last]) and not grid_of(s.parts[last]):
        last += 1
    if any(variable in use.writes for use in uses[last:]) or last == first:
        return everywhere(s)
    made = list(s.parts[first:last])
    if any(variable in use.touched for use in uses[last:]):
        made.append(Store(memory, (), Load(variable, ())))
    return sequence((*s.parts[:first], Alloc(variable, sequence(made)), *map(everywhere, s.parts[last:])))


def _begun_late(variable: Buffer, s: Seq) -> Seq:
    """The sequence with a constant initial value of a variable moved right before its first use."""
    begins = [k for k, part in enumerate(s.parts) if isinstance(part, Store) and part.buffer is variable]
    uses = [k for k, part in enumerate(s.parts) if variable in effects(part).touched]
    if not begins or begins[0] != uses[0] or len(uses) < 2:
        return s
    begin = s.parts[uses[0]]
    assert isinstance(begin, Store)
    if not isinstance(begin.value, Const):
        return s
    before, after = s.parts[: uses[0]] + s.parts[uses[0] + 1 : uses[1]], s.parts[uses[1] :]
    return Seq((*before, begin, *after))


def through_branches(s: Nest) -> Nest:
    """for i { if c { for j: s } }  ->  for i, j { if c: s }, where c does not depend on j."""
    inner = s.body
    if not isinstance(inner, If) or inner.no is not None or not isinstance(inner.yes, Nest):
        return s
    below = through_branches(inner.yes)
    bound = {name for head in s.heads for name in head_names(head)}
    free = [h for h in below.heads if isinstance(h, For) and not bound & {*value_atoms(h.loop.extent)}]
    if len(free) < len(below.heads) or any(indirect_in(h.loop.extent) for h in free):
        return s
    return Nest((*s.heads, *below.heads), If(inner.conditions, below.body))


def is_for_host(head: Head, kind: LoopKind, whole: Nest, known: frozenset[Loop]) -> TypeGuard[For]:
    """Whether it is a loop of this kind whose extent the host knows."""
    if not isinstance(head, For) or head.kind is not kind or indirect_in(head.loop.extent):
        return False
    bound = {name for h in whole.heads for name in head_names(h)}
    atoms = {a for a in value_atoms(head.loop.extent) if isinstance(a, (Loop, Symbol))}
    return not bound & atoms and all(a in known for a in atoms if isinstance(a, Loop))


def is_independent(head: For, others: Sequence[Head], body: Stmt) -> bool:
    """Whether iterations of the loop are proved to touch different elements, whatever the other loops do."""
    report = check_parallel(For(head.loop, LoopKind.PARALLEL), others, body, {})
    return not report.errors and not report.unproven
