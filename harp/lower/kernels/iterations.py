"""Iterations become one kernel each: what one iteration does, again and again.

    c = x0; for t: c, y[t] = step(c, x[t])    ->    for i: c[i] = x0[i]
                                                    repeat t < n { (the kernels of the step on c, x[t, :] and y[t, :]) }

The step is lowered like a graph of its own. What is carried has one place in memory: a step stores the new value there
where it has read the old one before (`donate.py`), and else beside it, to be copied in the end of the iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harp.lower.kernels.donate import in_memory_of
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    Head,
    If,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Space,
    Stmt,
    Store,
)
from harp.lower.loopir.nests import Renaming, rebuilt, sequence
from harp.lower.schedule.build import Built, copy
from harp.lower.schedule.row_kernels import rows_in
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Contiguous, Input, Iteration, Node, Scatter, rebuild, walk
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Loop, Shape, as_index, of
from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.expr import Position

# Iterations of a loop that data ends.
_WITHOUT_END = 2**62
Place = tuple[Buffer, tuple[Index, ...]]


def iteration_kernels(
    lower: Callable[[Graph], Built], node: Iteration, memory: Mapping[Node, Buffer], scratch: list[Buffer]
) -> list[Kernel]:
    """The kernels of an iteration, whose step `lower` makes; the last one is the loop."""
    return _Iteration(lower(_changing_in_place(graph_of(node.body))), node, memory, scratch).kernels()


def _changing_in_place(graph: Graph) -> Graph:
    """The step, in which an update of what is carried is computed before it is put there: what it is computed of may be
    what it replaces."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Scatter) and isinstance(node.base, Input) and node.base in set(walk((node.updates,))):
            inputs = (*inputs[:-1], Contiguous(inputs[-1]))
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return rebuild(node, inputs, Substitution({}))

    return transform(graph, rule)


class _Iteration:
    """Where everything of one iteration is."""

    def __init__(self, step: Built, node: Iteration, memory: Mapping[Node, Buffer], scratch: list[Buffer]) -> None:
        self.step, self.node, self.memory, self.scratch = step, node, memory, scratch
        extent = as_index(_WITHOUT_END) if node.length is None else node.length
        self.loop = Loop(0, extent)
        self.time = extent - 1 - of(self.loop) if node.reverse else of(self.loop)
        self.places: dict[Buffer, Place] = {}
        self.before: list[Stmt] = []
        self.after: list[Stmt] = []
        self.by_rows = {b for k in step.kernels for row in rows_in(k.body) for b in (row.target, *row.sources)}

    def kernels(self) -> list[Kernel]:
        body = self.node.body
        carried, elements, same = body.place()
        step, operands = self.step, self.node.operands
        kernels = list(step.kernels)
        first: list[Kernel] = []
        number = self.own(step.inputs[0])
        home: Buffer | None = None
        for k in carried:
            given, made = step.inputs[k], step.outputs[k - 1]
            place = self.result(k - 1)
            home = home or place
            first.append(copy(place, self.memory[operands[k - 1]]))
            in_place = in_memory_of(kernels, given, made)
            if in_place is not None:
                kernels = list(in_place)
                self.places[made] = place, ()
            else:
                self.places[given] = place, ()
                self.after.append(copy(place, self.own(made)).body)
        for k in elements:
            self.slice(step.inputs[k], self.memory[operands[k - 1]], self.before, reads=True)
        for k in range(body.carried, len(body.outputs)):
            self.slice(step.outputs[k], self.result(k), self.after, reads=False)
        for k in same:
            self.places[step.inputs[k]] = self.memory[operands[k - 1]], ()
        for buffer in step.scratch:
            self.own(buffer)
        relabel = _Relabel(self.places, {}, 1)
        inside = [relabel.statement(s) for s in (*self.before, *(k.body for k in kernels), *self.after)]
        if any(number in effects(s).touched for s in inside):
            inside.insert(0, Store(number, (), Position(self.time)))
        test = Load(home, ()) if self.node.tested and home is not None else None
        return [*first, Kernel("repeat", Repeat(self.loop, test, sequence(inside)))]

    def new(self, dtype: DType, shape: Shape) -> Buffer:
        buffer = Buffer(f"mem{len(self.scratch)}", dtype, shape, Space.SCRATCH)
        self.scratch.append(buffer)
        return buffer

    def own(self, buffer: Buffer) -> Buffer:
        """Memory of the program for what the step has for itself."""
        mine = self.new(buffer.dtype, buffer.shape)
        self.places[buffer] = mine, ()
        return mine

    def result(self, number: int) -> Buffer:
        """Where a result of the iteration is; nobody may want it."""
        part = self.node.parts[number]
        return self.memory.get(part) or self.new(part.dtype, part.shape)

    def slice(self, buffer: Buffer, whole: Buffer, copies: list[Stmt], reads: bool) -> None:
        """What the step reads or makes is an element of an array; a copy of it where functions of rows work on it."""
        if buffer not in self.by_rows:
            self.places[buffer] = whole, (self.time,)
            return
        mine = self.own(buffer)
        element = Buffer(f"{buffer.name}_element", buffer.dtype, buffer.shape, whole.space)
        self.places[element] = whole, (self.time,)
        copies.append((copy(mine, element) if reads else copy(element, mine)).body)


@attrs.define
class _Relabel:
    """Statements with other buffers, and loops that are numbered on."""

    places: Mapping[Buffer, Place]
    loops: dict[Atom, Index]
    next: int

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Nest):
            return Nest(tuple(map(self.head, s.heads)), self.statement(s.body))
        if isinstance(s, Repeat):
            loop = self.loop(s.loop)
            test = None if s.test is None else self.renaming.value(s.test)
            assert test is None or isinstance(test, Load)
            return Repeat(loop, test, self.statement(s.body))
        if isinstance(s, Row):
            row = self.renaming.statement(s)
            assert isinstance(row, Row)
            lane = self.loop(s.lane)
            return attrs.evolve(row, index=(*row.at, row.start + of(lane)), lane=lane)
        if isinstance(s, Store):
            return self.renaming.statement(s)
        if isinstance(s, If):
            no = None if s.no is None else self.statement(s.no)
            return If(self.renaming.indices.each(s.conditions), self.statement(s.yes), no)
        if isinstance(s, Alloc):
            return Alloc(s.buffer, self.statement(s.body))
        return rebuilt(s, self.statement)

    @property
    def renaming(self) -> Renaming:
        return Renaming(Substitution(dict(self.loops)), dict(self.places))

    def head(self, head: Head) -> Head:
        if isinstance(head, For):
            return For(self.loop(head.loop), head.kind)
        assert isinstance(head, Digits), "passes make other heads later"
        return Digits(tuple(map(self.loop, head.loops)), self.renaming.indices(head.flat))

    def loop(self, old: Loop) -> Loop:
        new = Loop(self.next, self.renaming.indices(old.extent))
        self.next += 1
        self.loops[old] = of(new)
        return new
