"""What belongs to what: the lines of the user, nodes, kernels of the schedule, loop nests and calls of one program.

    line of the user  <-  node  <-  kernel of the schedule  <-  call  ->  distinct kernel, its loops, its C

A call computes the nodes that the loop nests store which it was before kernels were outlined (`Lowered.algorithm`).
Most nodes are stored nowhere: they are parts of the value of one that is, or of several.

Lines find each other by keys: n5 is node 5, u2 a line of the user, k4l2 a loop of kernel 4. What stores node 5 has the
key r5, and each part of it, with its line of the user, p5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import TypeVar

from harp.lower.loopir.loops import Alloc, Buffer, Kernel, Row, Space, Store, walk
from harp.lower.loopir.program import Program
from harp.lower.schedule.build import Built
from harp.lower.schedule.schedule import Group, Schedule
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph, node_names
from harp.trace.graph.node import Body, Node, Part, WithBody
from harp.trace.source_locations import Site

_K = TypeVar("_K", int, Node)


class Links:
    """The links of one program. Calls, kernels and kernels of the schedule are known by their numbers."""

    def __init__(self, schedule: Schedule, algorithm: Built, program: Program) -> None:
        self.graph = schedule.graph
        self.nodes: Mapping[Node, int] = {node: k for k, node in enumerate(node_names(self.graph))}
        self.site_of = _sites(self.graph, self.nodes)
        # For each line of the text of a body.
        self.inner: Mapping[Node, list[Site | None]] = {
            node: list(_inner_sites(node.body)) for node in self.nodes if isinstance(node, WithBody)
        }
        sites = {*self.site_of.values(), *(site for found in self.inner.values() for site in found if site)}
        self.lines: Mapping[Site, int] = {site: k for k, site in enumerate(sorted(sites))}
        self.program = program
        self._algorithm = algorithm
        # A checked program begins with a call of its own.
        self.before = len(program.calls) - len(algorithm.kernels)
        self._outputs = dict(zip(algorithm.outputs, self.graph.outputs, strict=False))
        self.calls_of_kernel = _numbers((call.kernel, k) for k, call in enumerate(program.calls))
        self._groups = {group.root: k for k, group in enumerate(schedule.groups)}
        made = ((k, group) for k in range(len(program.calls)) for group in self._groups_of_call(k))
        self.calls_of_group = _numbers((group, call) for call, group in made)
        self.calls_of_node = _numbers(self._uses(schedule))
        self._held = [self._variables(number) for number in range(len(program.kernels))]
        self.parts = [_parts(group, self._stored_in(k)) for k, group in enumerate(schedule.groups)]
        self.wholes: dict[Node, dict[Node, None]] = {}
        for own in self.parts:
            for node, wholes in own.items():
                self.wholes.setdefault(node, {}).update(dict.fromkeys(wholes))
        for node in self.graph.outputs:  # an argument that is a result is copied
            self.wholes.setdefault(node, {})[node] = None

    def stored(self, kernel: int, buffer: Buffer) -> tuple[Node, ...]:
        """The nodes whose elements a kernel stores to one of its parameters or variables.

        What a pass makes for the variable `v3` is called `v3_sums` and the like.
        """
        held = self._held[kernel]
        return held.get(buffer.name) or held.get(buffer.name.split("_")[0]) or ()

    def named(self, letter: str, nodes: Iterable[Node]) -> list[str]:
        """Keys of nodes."""
        return [f"{letter}{self.nodes[node]}" for node in nodes if node in self.nodes]

    def calls_of(self, nodes: Sequence[Node]) -> tuple[int, ...]:
        """The calls that compute or read any of these nodes."""
        return tuple(sorted({call for node in nodes for call in self.calls_of_node.get(node, ())}))

    def kernel_of_call(self, call: int) -> int:
        """The number of the kernel that a call runs."""
        return self.program.calls[call].kernel

    def _algorithm_of(self, call: int) -> Kernel | None:
        return self._algorithm.kernels[call - self.before] if call >= self.before else None

    def _nodes_in(self, buffer: Buffer) -> tuple[Node, ...]:
        """A copy of an argument to an output is no node of its own; who stores a result of a loop runs the loop."""
        found = self._algorithm.origins.nodes_in(buffer)
        found = found or ((self._outputs[buffer],) if buffer in self._outputs else ())
        return tuple(dict.fromkeys(n for node in found for n in (node, *_whole(node))))

    def _groups_of_call(self, call: int) -> list[int]:
        """The kernels of the schedule that a call is made of."""
        kernel = self._algorithm_of(call)
        found: dict[int, None] = {}
        for s in walk(kernel.body) if kernel is not None else ():
            if not isinstance(s, (Store, Row)):
                continue
            for node in self._nodes_in(s.buffer if isinstance(s, Store) else s.target):
                found |= {self._groups[node]: None} if node in self._groups else {}
        return sorted(found)

    def _stored_in(self, group: int) -> set[Node]:
        """The nodes that stand in memory or in variables in the calls of a kernel of the schedule."""
        kernels = (self._algorithm_of(call) for call in self.calls_of_group.get(group, ()))
        buffers = (
            s.buffer for kernel in kernels if kernel is not None for s in walk(kernel.body) if isinstance(s, Store)
        )
        return {node for buffer in buffers for node in self._nodes_in(buffer)}

    def _uses(self, schedule: Schedule) -> Iterable[tuple[Node, int]]:
        """Nodes, and calls that compute or read them."""
        for number, group in enumerate(schedule.groups):
            for call in self.calls_of_group.get(number, ()):
                for step in group.steps:
                    yield step.node, call
                    yield from ((node, call) for node in step.node.inputs if node not in self._groups)

    def _variables(self, number: int) -> dict[str, tuple[Node, ...]]:
        """What the parameters and the variables of a kernel hold, in all of its calls."""
        held: dict[str, dict[Node, None]] = {}
        for k in self.calls_of_kernel.get(number, ()):
            call, kernel = self.program.calls[k], self._algorithm_of(k)
            pairs = [
                (formal.name, b) for formal, b in zip(self.program.kernels[number].buffers, call.buffers, strict=False)
            ]
            if kernel is not None:
                # Outlining numbers the variables of a kernel in order; a checked program leaves their names alone.
                own = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)]
                pairs += [(b.name if self.before else f"v{at}", b) for at, b in enumerate(own)]
            for name, buffer in pairs:
                if buffer.space is not Space.INPUT:
                    held.setdefault(name, {}).update(dict.fromkeys(self._nodes_in(buffer)))
        return {name: tuple(nodes) for name, nodes in held.items()}


def _inner_sites(body: Body) -> Iterable[Site | None]:
    """The line of the user for each line of the text of a body."""
    graph = graph_of(body)
    for node in node_names(graph):
        yield graph.sites.get(node)
        if isinstance(node, WithBody):
            yield from _inner_sites(node.body)
    yield None  # what is returned


def _whole(node: Node) -> tuple[Node, ...]:
    return (node.whole,) if isinstance(node, Part) else ()


def _parts(group: Group, stored: Set[Node]) -> dict[Node, list[Node]]:
    """For each node of a kernel of the schedule, those that are stored of which it is a part."""
    inside = {step.node for step in group.steps}
    found: dict[Node, list[Node]] = {node: [] for node in inside}
    for whole in [step.node for step in group.steps if step.node in stored or step.node is group.root]:
        stack, seen = [whole], {whole}
        while stack:
            node = stack.pop()
            found[node].append(whole)
            more = {n for n in node.inputs if n in inside and n not in stored} - seen
            seen |= more
            stack += more
    return found


def _sites(graph: Graph, nodes: Iterable[Node]) -> dict[Node, Site]:
    """The lines of nodes; one that has none, such as a view that broadcasts, has that of what reads it."""
    found: dict[Node, Site] = {}
    for node in reversed(list(nodes)):
        site = graph.sites.get(node) or found.get(node)
        if site is not None:
            found[node] = site
            for operand in node.inputs:
                found.setdefault(operand, site)
    named = [i for i in graph.inputs if i not in graph.sites]
    return {node: site for node, site in found.items() if node not in named}


def _numbers(pairs: Iterable[tuple[_K, int]]) -> dict[_K, tuple[int, ...]]:
    """The numbers of each key, in order and each once."""
    found: dict[_K, dict[int, None]] = {}
    for key, number in pairs:
        found.setdefault(key, {})[number] = None
    return {key: tuple(sorted(numbers)) for key, numbers in found.items()}
