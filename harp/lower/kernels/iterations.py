"""Each iteration becomes one kernel: a loop round the kernels of its step.

    c = x0; for t: c, y[t] = step(c, x[t])    ->    for i: c[i] = x0[i]
                                                    repeat t < n { (the kernels of the step on c, x[t, :] and y[t, :]) }

`repeat` is a loop whose steps depend on each other; a branch is a `repeat` of at most one step. The step is lowered
like a graph of its own. A carried value is stored in place of the old one if that was read before (`donate.py`), else
in a second buffer, and the two change places after each step (double buffering). A small number of scalars is in
variables while the loop runs.

    repeat t < n { (the step reads c, writes d); c, d = d, c }
    local a; a = c; repeat t < n { local b; (the step reads a, writes b); a = b }; c = a

Steps that carry nothing, or change an array in place where no other step reads it, become an ordinary loop, which may
run in parallel: for t < n { ... }.

In the graph of a step the step's number is a position, like those along axes, and so are formulas of it:

    x[t]                      ->  an element that is proved to be inside
    where(t < i, x, y)        ->  a select by position: the loops over i are split at t
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

import attrs

from harp.lower.graph.in_place import reads_before_updates, updated_in_place
from harp.lower.graph.simplify import simplify
from harp.lower.kernels.copies import with_copied_parts
from harp.lower.kernels.donate import copies, in_memory_of
from harp.lower.kernels.fuse import inlined
from harp.lower.kernels.needed_elements import only_needed
from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.effects import loads, used_whole
from harp.lower.loopir.loops import (
    MEMORY,
    WITHOUT_END,
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import Renaming, nest, rebuilt, sequence
from harp.lower.loopir.origin import Origins, Storage
from harp.lower.schedule.build import Built, copy
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Input, Iteration, MapReduce, Node, at, positions
from harp.trace.graph.node import walk as walk_nodes
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Counter, Index, Loop, Shape, as_index, of, product
from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.expr import Position, substitute

# The most scalars that are held in variables: more would be spilled to memory, one by one.
_FEW = 64


def step_of(node: Iteration, counter: Counter) -> Graph:
    """The graph of the step, in which `counter` is its number."""
    step = reads_before_updates(simplify(_with_number_formulas(node, counter)))
    return updated_in_place(step, [node.body.inputs[k] for k in node.body.place()[0]])


def _with_number_formulas(node: Iteration, counter: Counter) -> Graph:
    """The step with formulas for its number, and for elements of arrays that are formulas of positions."""
    body, number = node.body, of(counter)
    known: dict[Node, Node] = {body.inputs[0]: MapReduce((), (), Position(number))}
    for place in body.place()[1]:
        array = node.operands[place - 1]
        if isinstance(array, MapReduce) and not array.operands and array.reduce is None:
            element = at(array.domain, (number, *positions(array.shape[1:])))
            known[body.inputs[place]] = MapReduce(array.shape[1:], (), substitute(array.expr, {}, element))
    for inner in walk_nodes(body.outputs):
        if inner not in known:
            known[inner] = with_inputs(inner, tuple(known[i] for i in inner.inputs))
    sites = {known[node]: site for node, site in reversed(body.sites) if node in known}
    return Graph(body.inputs, tuple(known[o] for o in body.outputs), sites)


def is_few(shape: Shape) -> bool:
    """Whether a carried array is held in variables while a loop runs."""
    count = product(shape).constant
    return count is not None and count <= _FEW


def passed_on(step: Graph, body: Body) -> dict[int, int]:
    """The carried values that another carried value takes over, by number: (a, b) -> (b, f(a, b)) passes b on to a.

    A value is passed on once, not in a chain or a cycle, where it is copied instead: so at most three buffers rotate,
    one of which is free (`harp.backends.c_family.turns` relies on it).
    """
    numbers = {step.inputs[place]: number for number, place in enumerate(body.place()[0])}
    passed: dict[int, int] = {}
    for number, output in enumerate(step.outputs[: body.carried]):
        source = numbers.get(output) if isinstance(output, Input) and not is_few(output.shape) else None
        seen = {*passed, *passed.values()}
        if source is not None and source != number and not seen & {source, number}:
            passed[number] = source
    return passed


# The most variables that are private to a step: they nest, and nesting is bounded. Others are arrays of the program.
_VARIABLES = 64
# Counters of nested loops must differ.
_numbers = count()
Place = tuple[Buffer, tuple[Index, ...]]


def iteration_kernels(
    lower: Callable[[Graph], Built],
    fuse: Callable[[Built], Built],
    node: Iteration,
    memory: Mapping[Node, Buffer],
    scratch: list[Buffer],
    origins: Origins,
) -> list[Kernel]:
    """The kernels of an iteration, whose step `lower` lowers and `fuse` joins. The last one is the loop, unless it does
    nothing. `origins` are those of the enclosing graph, to which the lines of the step are added."""
    extent = as_index(WITHOUT_END) if node.length is None else node.length
    counter = Counter(next(_numbers), extent)
    graph = step_of(node, counter)
    passed = passed_on(graph, node.body)
    made = [number for number in range(len(graph.outputs)) if number not in passed]
    step = lower(attrs.evolve(graph, outputs=tuple(graph.outputs[number] for number in made)))
    outputs = dict(zip(made, step.outputs, strict=True))
    return _Iteration(step, fuse, outputs, passed, counter, node, memory, scratch, origins).kernels()


class _Iteration:
    """Assigns storage to the values of one iteration."""

    def __init__(
        self,
        step: Built,
        fuse: Callable[[Built], Built],
        outputs: Mapping[int, Buffer],
        passed: Mapping[int, int],
        counter: Counter,
        node: Iteration,
        memory: Mapping[Node, Buffer],
        scratch: list[Buffer],
        origins: Origins,
    ) -> None:
        self.step, self.node, self.memory, self.scratch = step, node, memory, scratch
        self.fuse, self.origins = fuse, origins
        self.outputs, self.passed = outputs, passed
        self.loop = Loop(0, counter.extent)
        self.time = counter.extent - 1 - of(self.loop) if node.reverse else of(self.loop)
        self.counter = counter
        self.places: dict[Buffer, Place] = {}  # of the step's buffers
        self.first: list[Kernel] = []  # kernels before the loop
        self.of_loop: list[Buffer] = []  # variables that live while the loop runs,
        self.load: list[Stmt] = []  # statements that fill them before it,
        self.save: list[Stmt] = []  # and statements that store them at the end
        self.of_step: list[Buffer] = []  # variables of one step
        self.before: list[Stmt] = []  # statements at the start and the end of a step
        self.after: list[Stmt] = []
        self.moves: list[tuple[Buffer, Buffer]] = []
        self.independent = _is_independent(node, step)
        self.whole = {b for k in step.kernels for b in used_whole(k.body).touched}

    def kernels(self) -> list[Kernel]:
        """The copies before the loop, and the loop."""
        step, body, operands = self.step, self.node.body, self.node.operands
        carried, elements, same = body.place()
        kernels = self.apart_or_joined()
        at = [self.enter(k - 1, step.inputs[k], self.memory[operands[k - 1]]) for k in carried]
        for k in carried:
            kernels = self.carry(k - 1, kernels, step.inputs[k])
        step = self.step
        step = inlined(self.fuse(attrs.evolve(step, kernels=tuple(only_needed(kernels, step.scratch)))))
        # Values that are passed on are moved before their successors take their place.
        moves = (*((at[number], at[source]) for number, source in self.passed.items()), *self.moves)
        for k in elements:
            self.slice(step.inputs[k], self.memory[operands[k - 1]], self.before, reads=True)
        for k in range(body.carried, len(body.outputs)):
            self.slice(self.outputs[k], self.result(k), self.after, reads=False)
        for k in same:
            self.places[step.inputs[k]] = self.memory[operands[k - 1]], ()
        for buffer in step.scratch:
            self.own(buffer)
        relabel = _Relabel(self.places, {self.counter: self.time}, 1, step.origins, self.origins)
        inside = [relabel.statement(s) for s in (*self.before, *(k.body for k in step.kernels), *self.after)]
        if self.independent:
            return [Kernel("map", nest((For(self.loop),), _allocated(self.of_step, sequence(inside))))]
        test = Load(at[0], ()) if self.node.tested else None
        repeat = _in_any_order(Repeat(self.loop, test, _allocated(self.of_step, sequence(inside)), moves))
        whole = sequence((*map(relabel.statement, self.load), repeat, *map(relabel.statement, self.save)))
        return [*self.first, *([] if whole == sequence(()) else [Kernel("repeat", _allocated(self.of_loop, whole))])]

    def apart_or_joined(self) -> Sequence[Kernel]:
        """The kernels of a step, joined. Not joined if a carried array can be updated in place only then; they are
        joined after that."""
        step, joined = self.step, self.fuse(self.step).kernels
        for k in self.node.body.place()[0]:
            made, given = self.outputs.get(k - 1), step.inputs[k]
            if made is None or is_few(given.shape) or in_memory_of(joined, given, made) is not None:
                continue
            if copies(step.kernels, given, made) and in_memory_of(step.kernels, given, made) is not None:
                return step.kernels
        return joined

    def enter(self, number: int, given: Buffer, operand: Buffer) -> Buffer:
        """The storage of a loop-carried value, variables or the result's buffer; the operand is copied to it first."""
        is_whole = self.outputs.get(number) in self.whole
        place = None if is_whole else self.variable(given, self.of_loop)
        if place is None:
            place = self.result(number)
            self.first.append(copy(place, operand))
            self.origins.note_storage(place, Storage.OF_LOOP)
        else:
            wanted = self.memory.get(self.node.parts[number])
            self.load.append(copy(place, operand).body)
            self.save += [] if wanted is None else [copy(wanted, place).body]
        self.places[given] = place, ()
        return place

    def carry(self, number: int, kernels: Sequence[Kernel], given: Buffer) -> Sequence[Kernel]:
        """The kernels of a step, after storage is chosen for a new carried value."""
        place, _ = self.places[given]
        if number in self.passed:
            self.origins.note_storage(place, Storage.HANDED_ON)
            return kernels
        made = self.outputs[number]
        storage = Storage.IN_PLACE
        in_place = None if number in self.passed.values() else in_memory_of(kernels, given, made)
        if in_place is None and number not in self.passed.values() and place.space in MEMORY:
            parts, behind = with_copied_parts(kernels, given, made)
            in_place = in_memory_of(behind, given, made) if parts else None
            storage = Storage.PARTS
            if in_place is not None:
                self.step = attrs.evolve(self.step, scratch=(*self.step.scratch, *parts))
        if in_place is not None:
            self.places[made] = place, ()
            self.origins.note_storage(place, storage)
            if not copies(kernels, given, made):
                self.note_storage(place, made)
            return in_place
        if place.space in MEMORY:
            other = self.new(made.dtype, made.shape)
            self.places[made] = other, ()
            handed_on = number in self.passed.values()
            self.origins.note_storage(place, Storage.HANDS_ON if handed_on else Storage.TURNS)
            self.moves.append((place, other))
        else:
            self.after.append(copy(place, self.own(made)).body)
        return kernels

    def variable(self, buffer: Buffer, variables: list[Buffer]) -> Buffer | None:
        """Variables for a few scalars; None for a buffer that is used as a whole, or if there are too many."""
        full = len(self.of_loop) + len(self.of_step) >= _VARIABLES and not self.independent
        if not is_few(buffer.shape) or buffer in self.whole or full:
            return None
        local = Buffer(buffer.name, buffer.dtype, buffer.shape, Space.LOCAL if buffer.shape else Space.REG)
        variables.append(local)
        return local

    def new(self, dtype: DType, shape: Shape) -> Buffer:
        buffer = Buffer(f"mem{len(self.scratch)}", dtype, shape, Space.SCRATCH)
        self.scratch.append(buffer)
        return buffer

    def own(self, buffer: Buffer) -> Buffer:
        """Storage for a private buffer of a step: variables, an array of the program, or memory of each thread."""
        mine = self.variable(buffer, self.of_step)
        if mine is None and self.independent:
            mine = Buffer(buffer.name, buffer.dtype, buffer.shape, Space.THREAD)
            self.of_step.append(mine)
        mine = mine or self.new(buffer.dtype, buffer.shape)
        self.note_storage(mine, buffer)
        self.places[buffer] = mine, ()
        return mine

    def note_storage(self, place: Buffer, buffer: Buffer) -> None:
        """Note what the step knows of one of its arrays; its arguments come from outside of the loop."""
        known = self.step.origins.storage_of(buffer)
        self.origins.note_storage(place, *(Storage.OF_OUTSIDE if s is Storage.OF_ARGUMENT else s for s in known))

    def result(self, number: int) -> Buffer:
        """The buffer of a result of the iteration, which may be unused."""
        part = self.node.parts[number]
        return self.memory.get(part) or self.new(part.dtype, part.shape)

    def slice(self, buffer: Buffer, whole: Buffer, copies: list[Stmt], reads: bool) -> None:
        """An element that the step reads or makes is one of an array, or a copy of it if it is used as a whole."""
        if buffer not in self.whole:
            self.places[buffer] = whole, (self.time,)
            return
        mine = self.own(buffer)
        element = Buffer(f"{buffer.name}_element", buffer.dtype, buffer.shape, whole.space)
        self.places[element] = whole, (self.time,)
        copies.append((copy(mine, element) if reads else copy(element, mine)).body)


def _is_independent(node: Iteration, step: Built) -> bool:
    """Whether the steps carry nothing: they become an ordinary loop, in any order. Steps with many private arrays run
    one after the other, and share the memory of these."""
    inside = [part for kernel in step.kernels for part in walk(kernel.body)]
    apart = not any(isinstance(part, ForeignCall) or (isinstance(part, Repeat) and part.moves) for part in inside)
    return not node.body.carried and not node.tested and apart and len(step.scratch) <= _VARIABLES


def _in_any_order(s: Repeat) -> Stmt:
    """An ordinary loop, if each step changes only elements that no other step reads or changes; an empty statement, if
    the steps change nothing.

    repeat i < n { a[k + 1 + i] = f(a[k], a[k + 1 + i]) }  ->  for i < n { a[k + 1 + i] = f(a[k], a[k + 1 + i]) }
    """
    inside = list(walk(s.body))
    if s.test is not None or s.moves or any(isinstance(part, (ForeignCall, Repeat)) for part in inside):
        return s
    if all(isinstance(part, (Alloc, Seq)) for part in inside):
        return sequence(())
    report = check_parallel(For(s.loop), (), s.body, {})
    return s if report.errors or report.unproven else nest((For(s.loop),), s.body)


def _allocated(variables: Sequence[Buffer], body: Stmt) -> Stmt:
    """The statement inside of the allocations of its variables."""
    for variable in reversed(variables):
        body = Alloc(variable, body)
    return body


@attrs.define
class _Relabel:
    """Statements with other buffers and renumbered loops."""

    places: Mapping[Buffer, Place]
    loops: dict[Atom, Index]
    next: int
    before: Origins
    origins: Origins

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Nest):
            return Nest(tuple(map(self.head, s.heads)), self.statement(s.body))
        if isinstance(s, Repeat):
            loop = self.loop(s.loop)
            test = None if s.test is None else self.renaming.value(s.test)
            assert test is None or isinstance(test, Load)
            moves = tuple((self.renaming.whole(target), self.renaming.whole(source)) for target, source in s.moves)
            return Repeat(loop, test, self.statement(s.body), moves)
        if isinstance(s, Row):
            row = self.renaming.statement(s)
            assert isinstance(row, Row)
            self.note(s)
            lane = self.loop(s.lane)
            return attrs.evolve(row, index=(*row.at, row.start + of(lane)), lane=lane)
        if isinstance(s, (Store, ForeignCall)):
            self.note(s)
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

    def note(self, s: Store | ForeignCall | Row) -> None:
        """Copy the source lines of a statement's loads and stores."""
        renaming = self.renaming
        for load in loads(s):
            moved = renaming.value(load)
            assert isinstance(moved, Load)
            self.origins.note_line(moved, self.before.of_load(load))
        targets = s.targets if isinstance(s, ForeignCall) else (s.target,) if isinstance(s, Row) else (s.buffer,)
        for stored in targets:
            place, _ = self.places.get(stored, (stored, ()))
            self.origins.note_line(place, self.before.of_store(stored))

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
