"""Schedule to loop nests: a naive form of every kernel, which the rewrites of `harp.lower.pipeline` optimise.

A kernel with root loops i, j is

    (loop-invariant part) for i { (part that depends on i) for j { (part that depends on i and j) store root } }

where each part holds the reductions at that depth, `acc = identity; for k: acc reduce= value`, and scalars that are
worth computing once. Everything else is one expression over loads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from harp.lower.cost_model import Frame, Nesting, Use, weigh
from harp.lower.graph.complex import split
from harp.lower.graph.in_place import changed_in_place
from harp.lower.loopir.loops import Alloc, Buffer, For, If, Kernel, Load, LoopKind, Space, Stmt, Store
from harp.lower.loopir.nests import begin, nest, renamed, sequence, start
from harp.lower.loopir.origin import Origins, Storage
from harp.lower.loopir.products import fused_sums
from harp.lower.loopir.program import Call
from harp.lower.schedule.indirect import Binding
from harp.lower.schedule.row_kernels import call_kernels, callback_kernels, row_kernel
from harp.lower.schedule.schedule import Group, Schedule, Step, runs_backward
from harp.lower.target import Target
from harp.trace.eval.inside import Access
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Cumulative,
    Foreign,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    RowWise,
    Scatter,
    View,
    at,
    positions,
)
from harp.trace.index.polynomial import Index, Loop, of
from harp.trace.scalar.dtypes import DType, bool_
from harp.trace.scalar.expr import Const, Expr, Position, apply, const, select, substitute
from harp.trace.scalar.ops import Op, Reduce

# A scalar at an outer depth gets a variable from this weight on; the C compiler hoists cheaper ones.
_WORTH_KEEPING = 4
# Variables nest, and nesting is bounded.
_MOST_SCALARS = 32


@attrs.frozen(repr=False)
class Built:
    """Kernels in order, and the buffers that they use. `inputs` are the parameters, then the captured arrays.

    After kernels are outlined, `calls` has the calls of kernels in order; before, it is empty. `donated` are pairs of
    an input and the output that lives in its memory, by number. `origins` has the lines of loads and stores, `accesses`
    the accesses that a checked program can report; see `harp.lower.kernels.bounds_checks`. `constants` are the numbers
    that calls pass.
    """

    kernels: tuple[Kernel, ...]
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    calls: tuple[Call, ...] = ()
    donated: tuple[tuple[int, int], ...] = ()
    origins: Origins = attrs.field(factory=lambda: Origins({}))
    accesses: tuple[Access, ...] = ()
    constants: Mapping[Buffer, Const] = attrs.field(factory=dict)


# Makes the kernels of an iteration, given the memory of its operands and results; extends scratch memory and lines.
Iterate = Callable[[Iteration, Mapping[Node, Buffer], list[Buffer], Origins], list[Kernel]]


def build(schedule: Schedule, captured: Sequence[Constant], target: Target, iterate: Iterate | None = None) -> Built:
    """The loop nests of a schedule. `captured` has the captured arrays in order; `iterate` makes the kernels of
    iterations, if there are any."""
    graph = schedule.graph
    memory = {node: _buffer(f"in{k}", node, Space.INPUT) for k, node in enumerate((*graph.inputs, *captured))}
    inputs = tuple(memory.values())
    outputs = tuple(_buffer(f"out{k}", node, Space.OUTPUT) for k, node in enumerate(graph.outputs))
    # A node that is several outputs is stored to the first one and copied to the others; parameters are copied, too.
    copies: list[tuple[Buffer, Node]] = []
    for buffer, node in zip(outputs, graph.outputs, strict=True):
        if node in memory:
            copies.append((buffer, node))
        else:
            memory[node] = buffer
    scratch: list[Buffer] = []
    origins = Origins(graph.sites)
    roots = {group.root for group in schedule.groups}
    changed = changed_in_place(graph.nodes(), graph.outputs)
    taken = {base: scatter for base, scatter in changed.items() if base in roots}
    for group in schedule.groups:
        owner = group.root
        if isinstance(owner, (Iteration, Foreign)):
            continue
        while owner in taken:
            owner = taken[owner]
        if owner not in memory:
            memory[owner] = _buffer(f"mem{len(scratch)}", owner, Space.SCRATCH)
            scratch.append(memory[owner])
        memory[group.root] = memory[owner]
        if owner is not group.root:
            origins.note_storage(memory[owner], Storage.UPDATED)
    binding = Binding({stand_in: memory[node] for node, stand_in in schedule.arrays.items()})
    kernels: list[Kernel] = []
    for group in schedule.groups:
        root = group.root
        if isinstance(root, Iteration):
            assert iterate is not None
            kernels += iterate(root, memory, scratch, origins)
            continue
        if isinstance(root, Foreign):
            _make_room(root, memory, scratch)
        else:
            origins.note_store(memory[root], root)
        if isinstance(root, Part):
            continue
        if isinstance(root, (RowWise, HostCall, Foreign)):
            raw = dict.fromkeys(o for o in root.inputs if o.dtype is bool_ and memory[o].space is Space.INPUT)
            own = {o: _buffer(f"mem{len(scratch) + k}", o, Space.SCRATCH) for k, o in enumerate(raw)}
            scratch += own.values()
            kernels += [copy(own[o], memory[o]) for o in own]  # this makes bools of any byte 0 or 1
            kernels += _OF_WHOLE[type(root)](root, {**memory, **own})
            continue
        if isinstance(root, Scatter) and memory[root.base] is not memory[root]:
            kernels.append(copy(memory[root], memory[root.base]))
            origins.note_storage(memory[root], _why_copied(root.base, graph.inputs, graph.outputs))
        kernels.append(_Builder(group, memory, binding, target, origins).kernel())
    for buffer, node in copies:
        kernels.append(copy(buffer, memory[node]))
        origins.note_storage(buffer, Storage.COPY)
    return Built(tuple(kernels), inputs, outputs, tuple(scratch), origins=origins)


# Functions that make the kernels of nodes on whole arrays.
_OF_WHOLE: Mapping[type[Node], Callable[..., list[Kernel]]] = {
    RowWise: lambda node, memory: [row_kernel(node, memory)],
    HostCall: callback_kernels,
    Foreign: call_kernels,
}


def _why_copied(base: Node, inputs: Sequence[Node], outputs: Sequence[Node]) -> Storage:
    """Why an update changes a copy of its base."""
    if isinstance(base, (Input, Constant)):
        return Storage.OF_ARGUMENT if base in inputs else Storage.OF_CAPTURED
    return Storage.OF_RESULT if base in outputs else Storage.OF_READ


def _make_room(node: Foreign, memory: dict[Node, Buffer], scratch: list[Buffer]) -> None:
    """Memory for the unused results of a call."""
    for part in node.parts:
        if part not in memory:
            memory[part] = _buffer(f"mem{len(scratch)}", part, Space.SCRATCH)
            scratch.append(memory[part])


def _buffer(name: str, node: Node, space: Space) -> Buffer:
    return Buffer(name, node.dtype, node.shape, space)


def copy(target: Buffer, source: Buffer) -> Kernel:
    index = positions(target.shape)
    loops = [a for p in index if isinstance(a := p.atom, Loop)]
    return Kernel("copy", nest(map(For, loops), Store(target, index, Load(source, index))))


class _Builder:
    """Builds one kernel: the values of its steps, and the statements at each depth of the root's loops."""

    def __init__(
        self, group: Group, memory: Mapping[Node, Buffer], binding: Binding, target: Target, origins: Origins
    ) -> None:
        self.group = group
        self.origins = origins
        self.memory = memory
        self.binding = binding
        self.target = target
        self.nesting = Nesting(group.loops)
        for step in (s for s in group.steps if s.loops):
            self.nesting.add(Frame(self.depth(step), step.loops))
        self.values: dict[tuple[Node, Use], Expr] = {}
        self.scalars = 0
        # By depth: a variable with the statements that fill it, or None with a step of a variable from an outer depth.
        self.items: list[list[tuple[Buffer | None, Stmt]]] = [[] for _ in range(len(group.loops) + 1)]
        self.backward = False  # the innermost loop

    def kernel(self) -> Kernel:
        for step in self.group.steps:
            self.values[step.node, step.use] = _VALUE[type(step.node)](self, step)
        last = self.group.steps[-1]
        out = self.memory[self.group.root]
        into = last.reads[0] if isinstance(last.node, Scatter) else Use(last.use.at)
        body: Stmt = Store(out, self.binding.each(into.at), self.values[last.node, last.use])
        inside = self.nesting.frame(into.conditions).depth
        for depth in range(len(self.group.loops), -1, -1):
            if into.conditions and depth == inside:
                body = If(self.binding.each(into.conditions), body)
            for buffer, fill in reversed(self.items[depth]):
                body = sequence((fill, body)) if buffer is None else Alloc(buffer, sequence((fill, body)))
            if depth:
                body = nest((self.head(depth),), self.turned(body) if depth == len(self.group.loops) else body)
        return Kernel(_name(self.group), body)

    def head(self, depth: int) -> For:
        steps = any(buffer is None for buffer, _ in self.items[depth])
        return For(self.group.loops[depth - 1], LoopKind.SEQUENTIAL if steps else LoopKind.PLAIN)

    def turned(self, body: Stmt) -> Stmt:
        """The body of the innermost loop, which may run backward."""
        loop = self.group.loops[-1]
        return renamed(body, {loop: loop.extent - 1 - of(loop)}) if self.backward else body

    # --- values

    def read(self, step: Step, slot: int) -> Expr:
        """The value of an input of the step, which may be a variable at an outer depth."""
        node, use = step.node.inputs[slot], step.reads[slot]
        if node in self.memory:
            return self.load(step, node, use, const(0, node.dtype))
        value = self.values[node, use]
        outer = self.nesting.frame((*use.at, *use.conditions))
        if outer.loops or outer == self.inside(step) or self.scalars >= _MOST_SCALARS or weigh(value) < _WORTH_KEEPING:
            return value
        self.scalars += 1
        held = self.variable(outer.depth, value.dtype, lambda v: Store(v, (), value))
        self.origins.note_variable(held.buffer, node)
        found = self.values[node, use] = held
        return found

    def load(self, step: Step, node: Node, use: Use, fill: Const) -> Load:
        """The load of an element for the step; `fill` outside of the conditions."""
        conditions = self.binding.each(use.conditions)
        found = Load(self.memory[node], self.binding.each(use.at), conditions, fill if conditions else None)
        self.origins.note_load(found, step.node, node, self.group.root)
        return found

    def inside(self, step: Step) -> Frame:
        """The frame in which the step's expression is evaluated; for a root, all of its loops."""
        if step.loops:
            return Frame(self.depth(step), step.loops)
        return self.nesting.frame((*step.use.at, *step.use.conditions))

    def depth(self, step: Step) -> int:
        """The number of the root's loops round a reduction."""
        return len(self.nesting.place(step.use).loops)

    def variable(self, depth: int, dtype: DType, fill: Callable[[Buffer], Stmt]) -> Load:
        """A scalar at this depth, with the statements that fill it."""
        buffer = Buffer(f"v{sum(map(len, self.items))}", dtype, (), Space.REG)
        self.items[depth].append((buffer, fill(buffer)))
        return Load(buffer, ())

    def view(self, step: Step) -> Expr:
        """select(the view's conditions, source, fill); a load gets the conditions and the fill itself."""
        node = step.node
        assert isinstance(node, (View, Gather))
        own = step.reads[0].conditions[len(step.use.conditions) :]
        if not own or node.fill is None:
            return self.read(step, 0)
        if node.src in self.memory:
            return self.load(step, node.src, step.reads[0], node.fill)
        return select(holds(self.binding.each(own)), self.read(step, 0), node.fill)

    def scatter(self, step: Step) -> Expr:
        """The new value of an element that is updated."""
        node = step.node
        assert isinstance(node, Scatter)
        update = self.read(step, len(node.inputs) - 1)
        if node.kind.value is None:
            return update
        before = Load(self.memory[node], self.binding.each(step.reads[0].at))
        return split(apply(node.kind.value, before, update))

    def same(self, step: Step) -> Expr:
        return self.read(step, 0)

    def map_reduce(self, step: Step) -> Expr:
        node = step.node
        assert isinstance(node, MapReduce)
        operands = {slot: self.read(step, slot) for slot in range(len(node.operands))}
        if node.reduce is None:
            return substitute(node.expr, operands, at(node.domain, step.use.at))
        value = substitute(node.expr, operands, at(node.domain, step.read.at))
        return self.reduction(step, node.reduce, value)

    def reduction(self, step: Step, reduce: Reduce, value: Expr) -> Expr:
        """acc = identity; for the step's loops: acc reduce= value."""

        def fill(acc: Buffer) -> Stmt:
            return sequence((start(acc, reduce), nest(map(For, step.loops), self.accumulate(acc, reduce, value))))

        result = self.variable(self.depth(step), value.dtype, fill)
        self.origins.note_variable(result.buffer, step.node)
        return result

    def cumulative(self, step: Step) -> Expr:
        """acc = identity outside the innermost loop, acc reduce= value in it."""
        node, loops = step.node, self.group.loops
        assert isinstance(node, Cumulative)
        values = [self.read(step, slot) for slot in range(len(node.operands))]
        backward = runs_backward(node, step.use, loops)
        acc = Buffer(f"v{sum(map(len, self.items))}", node.dtype, (), Space.REG)
        self.origins.note_variable(acc, node)
        if node.reduce is not None:
            fill, next_one = begin(acc, node.reduce), Store(acc, (), values[0], node.reduce)
        else:
            fill, next_one = Store(acc, (), const(0, node.dtype)), Store(acc, (), self.recurrence(acc, *values))
        if backward is None:  # an axis of one element
            self.items[len(loops)].append((acc, sequence((fill, next_one))))
        else:
            self.backward = backward
            self.items[len(loops) - 1].append((acc, fill))
            self.items[len(loops)].append((None, next_one))
        return Load(acc, ())

    def recurrence(self, acc: Buffer, a: Expr, b: Expr) -> Expr:
        """a*acc + b"""
        if self.target.fma and a.dtype.is_float:
            return apply(Op.FMA, a, Load(acc, ()), b)
        return split(a * Load(acc, ()) + b)

    def accumulate(self, acc: Buffer, reduce: Reduce, value: Expr) -> Stmt:
        store = Store(acc, (), value, reduce)
        return fused_sums(store) if self.target.fma else store


def holds(conditions: Sequence[Index]) -> Expr:
    """The conjunction of the conditions >= 0, as a value."""
    zero = const(0, Position(conditions[0]).dtype)
    tests = [~(Position(c) < zero) for c in conditions]
    result = tests[0]
    for test in tests[1:]:
        result = result & test
    return result


def _name(group: Group) -> str:
    root = group.root
    if isinstance(root, MapReduce) and root.reduce is not None:
        return root.reduce.name.lower()
    if isinstance(root, Scatter):
        return "scatter"
    if isinstance(root, Cumulative):
        return "running_" + ("recurrence" if root.reduce is None else root.reduce.name.lower())
    reductions = [s.node.reduce for s in group.steps if isinstance(s.node, MapReduce) and s.node.reduce is not None]
    names = dict.fromkeys(r.name.lower() for r in reductions)
    return "_".join((*names, "map" if isinstance(root, MapReduce) else "copy"))


_VALUE: Mapping[type[Node], Callable[[_Builder, Step], Expr]] = {
    View: _Builder.view,
    Gather: _Builder.view,
    Scatter: _Builder.scatter,
    MapReduce: _Builder.map_reduce,
    Cumulative: _Builder.cumulative,
    Contiguous: _Builder.same,
}
