"""Graph to schedule: which nodes are kept in memory, each by a kernel, and which are computed inside of their users.

Nodes are visited users first, so each has collected its uses: the kernels that need it, and the place in their loops.
The first rule of `KEEP` that holds makes it the root of a kernel; a node without such a rule is computed at each use,
and passes uses on to its inputs: views by substitution, reductions with loops of their own inside of those loops of the
root that they depend on (shared prefix, sibling nests).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import attrs

from harp.errors import VerificationError
from harp.lower.cost_model import (
    Frame,
    Nesting,
    Use,
    count_users,
    is_reduction,
    node_code,
    products,
    reduces_along_memory,
    repeats,
    tails,
    undecided_weight,
    weight,
)
from harp.lower.loopir.loops import Buffer
from harp.lower.schedule.indirect import IndirectIndices
from harp.trace.graph.graph import Graph, describe, node_names
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
from harp.trace.graph.view import quotients_fit
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import FloorDiv, Index, Loop, Shape, indirect_in, loop, loops_in, of, value_atoms

# The work that may be repeated to save a pass through memory; an addition is 1.
_DEBT = 8
# The cost of a repeated evaluation in a loop without influence, in evaluations.
_REPEATED = 4
# The most uses at which a node is computed.
_USES = 12
# The most code of a kernel, in operations, so that compile time is linear in the size of the graph.
_CODE = 400
# The most reductions and running sums inlined into a kernel: each has an accumulator.
_REDUCTIONS = 16


@attrs.frozen(eq=False, repr=False)
class Step:
    """The evaluation of `node` at `use` in a kernel: it reads its inputs at `read`, and reduces over `loops`.

    Inputs that are read at different indices, as those of a gather, have a use each in `apart`.
    """

    node: Node
    use: Use
    read: Use
    loops: tuple[Loop, ...] = ()
    apart: tuple[Use, ...] = ()

    @property
    def reads(self) -> tuple[Use, ...]:
        """The use of each input."""
        return self.apart or (self.read,) * len(self.node.inputs)


@attrs.frozen(eq=False, repr=False)
class Group:
    """One kernel: `steps` in order of evaluation; the last one is `root`, whose value is stored."""

    root: Node
    reason: str
    loops: tuple[Loop, ...]
    steps: tuple[Step, ...]


@attrs.frozen(eq=False, repr=False)
class Schedule:
    """Kernels in an order in which inputs come first. Outputs without a kernel are copied at the end.

    `arrays` are the index arrays, with their stand-ins in uses.
    """

    graph: Graph
    groups: tuple[Group, ...]
    arrays: Mapping[Node, Buffer] = attrs.field(factory=dict)

    def __repr__(self) -> str:
        return _text(self)


class _Kernel:
    """A kernel under construction."""

    def __init__(self, root: Node, reason: str) -> None:
        self.root = root
        self.reason = reason
        self.whole = Use(positions(root.updates.shape if isinstance(root, Scatter) else root.shape))
        loops = tuple(a for p in self.whole.at if isinstance(a := p.atom, Loop))
        last = root.axis if isinstance(root, Cumulative) else None  # the loop that carries its variable is innermost
        self.loops = tuple(sorted(loops, key=lambda loop: loop.axis == last))
        self.nesting = Nesting(self.loops)
        self.next_loop = len(self.whole.at)
        self.code = 0
        self.reductions = 0
        self.along_memory: bool | None = None  # whether the terms of its reductions are contiguous
        self.runs: set[bool] = set()  # whether running sums along the innermost loop go backward
        self.steps: list[Step] = []  # users first

    def group(self) -> Group:
        return Group(self.root, self.reason, self.loops, tuple(reversed(self.steps)))


Debts = dict[tuple[_Kernel, Use], int]  # for each use, the work that is repeated up to there


class _Scheduler:
    """Schedules a graph, node by node."""

    def __init__(self, graph: Graph, checks: bool) -> None:
        nodes = graph.nodes()
        self.order = nodes
        self.outputs = frozenset(graph.outputs)
        self.indirects = IndirectIndices(nodes, checks)
        self.bases = frozenset(node.base for node in nodes if isinstance(node, Scatter))
        whole = (node for node in nodes if isinstance(node, (RowWise, HostCall, Iteration, Foreign)))
        self.whole = {operand for node in whole for operand in node.inputs}
        users = count_users(nodes, graph.outputs)
        self.tails = tails(nodes, users)
        self.products = products(nodes, users)
        self.pending: dict[Node, Debts] = {node: {} for node in nodes}
        self.kernels: list[_Kernel] = []
        self._substitutions: dict[tuple[Shape, tuple[Index, ...]], Substitution] = {}

    def run(self) -> list[Group]:
        for node in reversed(self.order):
            uses = self.pending.pop(node)
            if isinstance(node, (Input, Constant)):
                continue
            reason = self.reason_to_keep(node, uses)
            if reason:
                kernel = _Kernel(node, reason)
                self.kernels.append(kernel)
                uses = {(kernel, kernel.whole): 0}
            debt = self.debt(node, uses)
            for kernel, use in uses:
                self.expand(kernel, node, use, debt)
        return [kernel.group() for kernel in reversed(self.kernels)]

    def reason_to_keep(self, node: Node, uses: Debts) -> str:
        return next((reason for reason, holds in KEEP.get(type(node), ()) if holds(self, node, uses)), "")

    # --- queries of the rules

    def fits_reduction(self, node: Node, uses: Debts) -> bool:
        """Whether a reduction of this shape can be computed at its uses: once, inside of the root's loops."""
        if len(uses) != 1:
            return False
        ((kernel, use),) = uses
        place = kernel.nesting.place(use)
        # Loops round a reduction may be interchanged; those round a scatter may not.
        full = kernel.reductions >= _REDUCTIONS or isinstance(kernel.root, Scatter)
        if use.conditions or place.reduces or full or repeats(node.shape, use.at, place.loops):
            return False
        if node in self.products and _interleaves(use.at):
            return False
        if len(place.loops) < len(kernel.loops):  # a matrix product interchanges loops: nothing is between them
            return kernel.root not in self.products
        # Sums of rows and sums of columns need their loops in different orders.
        along = reduces_along_memory(node) if isinstance(node, MapReduce) else None
        return along is None or kernel.along_memory in (None, along)

    def fits_run(self, node: Cumulative, uses: Debts) -> bool:
        """Whether it can run along the innermost loop of the kernel that uses it, in the direction of others there."""
        if not self.fits_reduction(node, uses):
            return False
        ((kernel, use),) = uses
        backward = runs_backward(node, use, kernel.loops)
        elsewhere = (p for axis, p in enumerate(use.at) if axis != node.axis)
        own = loops_in(use.at[node.axis])
        return backward is not None and not any(loops_in(p) & own for p in elsewhere) and kernel.runs <= {backward}

    def repeated(self, node: Node, uses: Debts, reduces: bool) -> bool:
        """Whether some use, in a reduction, computes elements several times."""
        places = [(use, kernel.nesting.place(use)) for kernel, use in uses]
        return any((place.reduces or not reduces) and repeats(node.shape, use.at, place.loops) for use, place in places)

    def debt(self, node: Node, uses: Debts) -> int:
        """The repeated work if the node is computed at its uses."""
        if not isinstance(node, MapReduce):
            return max(uses.values(), default=0)
        again = len(uses) - 1 + (_REPEATED if self.repeated(node, uses, reduces=False) else 0)
        return max(uses.values()) + undecided_weight(node.expr) * again

    def overfull(self, node: MapReduce, uses: Debts) -> bool:
        """Whether some kernel would become too large."""
        more: dict[_Kernel, int] = {}
        for kernel, _ in uses:
            more[kernel] = more.get(kernel, 0) + node_code(node.expr)
        return any(kernel.code + count > _CODE for kernel, count in more.items())

    # --- evaluation at a use

    def expand(self, kernel: _Kernel, node: Node, use: Use, debt: int) -> None:
        """Add the step, and pass uses on to its inputs."""
        read: Use = use
        loops: tuple[Loop, ...] = ()
        apart: tuple[Use, ...] = ()
        if isinstance(node, View):
            read = self.through(node, use)
        elif isinstance(node, Cumulative):
            backward = runs_backward(node, use, kernel.loops)
            if backward is not None:
                kernel.runs.add(backward)
                kernel.reductions += 1
        elif isinstance(node, (Gather, Scatter)):
            apart = self.by_data(node, use)
        elif isinstance(node, MapReduce):
            read, loops = self.over_domain(kernel, node, use)
            kernel.code += node_code(node.expr)
        step = Step(node, use, read, loops, apart)
        kernel.steps.append(step)
        for operand, place in zip(node.inputs, step.reads, strict=True):
            debts = self.pending[operand]
            debts[kernel, place] = max(debt, debts.get((kernel, place), 0))

    def by_data(self, node: Gather | Scatter, use: Use) -> tuple[Use, ...]:
        """The uses of the indexed array, the indices, and the updates."""
        rank = len(node.indices[0].shape)
        position, rest = use.at[:rank], use.at[rank:]
        places = self.indirects.places(node, position)
        conditions = tuple(dict.fromkeys((*use.conditions, *places.conditions)))
        array = Use((*places.at, *rest), conditions)
        indices = (Use(position, use.conditions),) * len(node.indices)
        return (array, *indices) if isinstance(node, Gather) else (array, *indices, use)

    def through(self, node: View, use: Use) -> Use:
        """The use of a view's source."""
        inner = self.substitution(node.shape, use.at)
        fresh = [c for c in inner.each(node.conditions) if not nonnegative(c)]
        return Use(inner.each(node.index), tuple(dict.fromkeys((*use.conditions, *fresh))))

    def over_domain(self, kernel: _Kernel, node: MapReduce, use: Use) -> tuple[Use, tuple[Loop, ...]]:
        """The use of a map's operands, and the loops of a reduction, numbered in the kernel."""
        if node.reduce is None:
            return use, ()
        index = list(use.at)
        loops: list[Loop] = []
        for axis in node.axes:
            position = loop(kernel.next_loop, node.domain[axis])
            kernel.next_loop += 1
            index.insert(axis, position)
            loops += [a for a in (position.atom,) if isinstance(a, Loop)]
        depth = len(kernel.nesting.place(use).loops)
        kernel.nesting.add(Frame(depth, tuple(loops)))
        kernel.reductions += 1
        along = reduces_along_memory(node) if depth == len(kernel.loops) else None
        kernel.along_memory = kernel.along_memory if along is None else along
        return Use(tuple(index), use.conditions), tuple(loops)

    def substitution(self, shape: Shape, index: tuple[Index, ...]) -> Substitution:
        found = self._substitutions.get((shape, index))
        if found is None:
            found = self._substitutions[shape, index] = at(shape, index)
        return found


def _interleaves(index: Sequence[Index]) -> bool:
    """Whether a remainder comes before its quotient, as where sums by phase of a stride are put together: such a loop
    is none of a matrix product."""
    quotients = {atom: axis for axis, p in enumerate(index) if isinstance(atom := p.atom, FloorDiv)}
    return any(
        isinstance(atom, FloorDiv) and axis < quotients.get(atom, 0)
        for axis, p in enumerate(index)
        for atom in value_atoms(p)
    )


def runs_backward(node: Cumulative, use: Use, loops: Sequence[Loop]) -> bool | None:
    """Whether the innermost loop must run backward for a node read at `use` to run along it; None if it cannot."""
    here, extent = use.at[node.axis], node.shape[node.axis]
    if not loops or loops[-1].extent is not extent:
        return None
    turned = {of(loops[-1]): node.backward, extent - 1 - of(loops[-1]): not node.backward}
    return turned.get(here)


# --- the rules that keep a node: the first that holds gives the reason


def _is_output(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return node in s.outputs


def _is_wanted(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return True


def _is_index(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return node in s.indirects.arrays


def _is_base(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return node in s.bases


def _is_gathered(s: _Scheduler, node: MapReduce, uses: Debts) -> bool:
    """Whether an operand of a gather must be stored, because inlining it would compute its elements again."""
    gathered = [(kernel, use) for kernel, use in uses if any(map(indirect_in, use.at))]
    fixed = node.reduce is not None or node.expr.positional
    return any(
        fixed or use.conditions or repeats(node.shape, use.at, kernel.nesting.place(use).loops)
        for kernel, use in gathered
    )


def _is_read_by_rows(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return node in s.whole


def _does_not_fit(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return is_reduction(node) and not s.fits_reduction(node, uses)


def _ends_reduction(s: _Scheduler, node: Node, uses: Debts) -> bool:
    return node in s.tails and not s.fits_reduction(node, uses)


def _runs_along_no_loop(s: _Scheduler, node: Cumulative, uses: Debts) -> bool:
    return not s.fits_run(node, uses)


def _repeats_in_reduction(s: _Scheduler, node: MapReduce, uses: Debts) -> bool:
    return bool(node.operands) and weight(node.expr) > 0 and s.repeated(node, uses, reduces=True)


def _is_read_again_in_reduction(s: _Scheduler, node: Gather, uses: Debts) -> bool:
    return s.repeated(node, uses, reduces=True)


def _asks_index_arrays(s: _Scheduler, node: View | Gather, uses: Debts) -> bool:
    """Whether its own conditions contain elements of index arrays that exist only under the conditions of a use. A load
    evaluates conditions one by one; a select of another view evaluates all of them."""
    reads = [(use, s.by_data(node, use)[0] if isinstance(node, Gather) else s.through(node, use)) for _, use in uses]
    own = [c for use, read in reads if use.conditions for c in read.conditions[len(use.conditions) :]]
    return isinstance(node.src, (View, Gather)) and any(map(indirect_in, own))


def _divides_large_numbers(s: _Scheduler, node: View, uses: Debts) -> bool:
    return not all(quotients_fit(s.through(node, use).at, node.shape, node.src.shape) for _, use in uses)


def _costs_too_much(s: _Scheduler, node: MapReduce, uses: Debts) -> bool:
    return s.debt(node, uses) > _DEBT and (bool(node.operands) or weight(node.expr) > _DEBT)


def _many_uses(s: _Scheduler, node: MapReduce, uses: Debts) -> bool:
    return bool(node.operands) and len(uses) > _USES


def _kernel_is_full(s: _Scheduler, node: MapReduce, uses: Debts) -> bool:
    return s.overfull(node, uses)


Keep = Callable[..., bool]
_COMMON: tuple[tuple[str, Keep], ...] = (
    ("output", _is_output),
    ("index", _is_index),
    ("base of a scatter", _is_base),
    ("read by rows", _is_read_by_rows),
)
_BY_DATA = ("chosen by data under conditions", _asks_index_arrays)
KEEP: Mapping[type[Node], tuple[tuple[str, Keep], ...]] = {
    View: (*_COMMON, _BY_DATA, ("quotients of large numbers", _divides_large_numbers)),
    RowWise: (*_COMMON, ("function of rows", _is_wanted)),
    HostCall: (*_COMMON, ("call of Python", _is_wanted)),
    Iteration: (("iteration", _is_wanted),),
    Foreign: (("call", _is_wanted),),
    Part: (("one of several results", _is_wanted),),
    Cumulative: (*_COMMON, ("runs along another loop", _runs_along_no_loop)),
    Contiguous: (*_COMMON, ("contiguous", _is_wanted)),
    Gather: (*_COMMON, ("read again in a reduction", _is_read_again_in_reduction), _BY_DATA),
    Scatter: (*_COMMON, ("scatter", _is_wanted)),
    MapReduce: (
        *_COMMON,
        ("gathered", _is_gathered),
        ("reduction read inside other loops", _does_not_fit),
        ("tail of a reduction", _ends_reduction),
        ("repeated in a reduction", _repeats_in_reduction),
        ("repeated work", _costs_too_much),
        ("many uses", _many_uses),
        ("full kernel", _kernel_is_full),
    ),
}


def schedule(graph: Graph, checks: bool = False) -> Schedule:
    """Decide for each node where it is computed. With `checks` strict indices are not clipped."""
    scheduler = _Scheduler(graph, checks)
    return Schedule(graph, tuple(scheduler.run()), scheduler.indirects.arrays)


class GroupText(NamedTuple):
    """A kernel as text: a line with the reason for it, and one for each of its steps."""

    head: str
    steps: tuple[str, ...]


def group_texts(s: Schedule) -> list[GroupText]:
    """The work of each kernel as text, and the number of evaluations. Nodes have their numbers in the graph."""
    names = node_names(s.graph)
    count: dict[Node, int] = {}
    for group in s.groups:
        for step in group.steps:
            count[step.node] = count.get(step.node, 0) + 1
    texts: list[GroupText] = []
    for number, group in enumerate(s.groups):
        loops = ", ".join(f"{loop} < {loop.extent}" for loop in group.loops)
        steps = []
        for step in group.steps:
            again = f"  ({count[step.node]} times in all)" if count[step.node] > 1 else ""
            own = f" reducing {list(step.loops)}" if step.loops else ""
            what = describe(step.node, names.__getitem__)
            steps.append(f"{names[step.node]} at {step.use}{own} = {what}{again}")
        head = f"kernel {number}: {names[group.root]} over ({loops}), kept: {group.reason}"
        texts.append(GroupText(head, tuple(steps)))
    return texts


def _text(s: Schedule) -> str:
    """One paragraph a kernel."""
    lines = [line for head, steps in group_texts(s) for line in (head, *(f"  {step}" for step in steps))]
    names = node_names(s.graph)
    return "\n".join([*lines, f"return {', '.join(names[o] for o in s.graph.outputs)}"])


def verify_schedule(s: Schedule) -> None:
    """Raise VerificationError unless every live node is computed, each before its users."""
    stored: set[Node] = {n for n in s.graph.nodes() if isinstance(n, (Input, Constant))}
    computed = set(stored)
    roots = {group.root for group in s.groups}
    if len(roots) != len(s.groups):
        raise VerificationError(f"a node is the root of two kernels\n{s}")
    for group in s.groups:
        known: set[tuple[Node, Use]] = set()
        for step in group.steps:
            for operand, place in zip(step.node.inputs, step.reads, strict=True):
                if operand not in stored and (operand, place) not in known:
                    raise VerificationError(f"{operand!r} at {place} is read before it is computed\n{s}")
            known.add((step.node, step.use))
            if step.node in roots and step.node is not group.root:
                raise VerificationError(f"{step.node!r} is kept, and computed again\n{s}")
        if not group.steps or group.steps[-1].node is not group.root:
            raise VerificationError(f"a kernel does not end with its root {group.root!r}\n{s}")
        computed |= {step.node for step in group.steps}
        stored.add(group.root)
    missing = [node for node in s.graph.nodes() if node not in computed]
    unstored = [node for node in s.graph.outputs if node not in stored]
    if missing or unstored:
        raise VerificationError(f"never computed: {missing}; outputs never stored: {unstored}\n{s}")
