"""The links between the user's lines, nodes, kernels of the schedule, loop nests and calls of one program.

    line of the user  <-  node  <-  kernel of the schedule  <-  call  ->  distinct kernel, its loops, its C

A call computes the nodes that its loop nests store, as they were before kernels were outlined (`Lowered.algorithm`).
Most nodes are not stored: they are parts of the values of one or several stored nodes.

Lines are linked by keys: n5 is node 5, u2 a line of the user, k4l2 a loop of kernel 4. A line that stores node 5 has
the key r5, and lines of its parts, in the graph and the user's code, have the key p5.
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
    """The links of one program. Calls, kernels, and kernels of the schedule are identified by numbers."""

    def __init__(self, schedule: Schedule, algorithm: Built, program: Program) -> None:
        self.graph = schedule.graph
        self.nodes: Mapping[Node, int] = {node: k for k, node in enumerate(node_names(self.graph))}
        self.site_of = _sites(self.graph, self.nodes)
        # The source line of each line of a body's text.
        self.inner: Mapping[Node, list[Site | None]] = {
            node: list(_inner_sites(node.body)) for node in self.nodes if isinstance(node, WithBody)
        }
        sites = {*self.site_of.values(), *(site for lines in self.inner.values() for site in lines if site)}
        self.lines: Mapping[Site, int] = {site: k for k, site in enumerate(sorted(sites))}
        self.program = program
        self._algorithm = algorithm
        # A checked program begins with a call that clears its fault.
        self.before = len(program.calls) - len(algorithm.kernels)
        self._outputs = dict(zip(algorithm.outputs, self.graph.outputs, strict=False))
        self.calls_of_kernel = _numbers_by_key((call.kernel, k) for k, call in enumerate(program.calls))
        self._groups = {group.root: k for k, group in enumerate(schedule.groups)}
        computed = ((k, group) for k in range(len(program.calls)) for group in self._groups_of_call(k))
        self.calls_of_group = _numbers_by_key((group, call) for call, group in computed)
        self.calls_of_node = _numbers_by_key(self._uses(schedule))
        self._held = [self._variables(number) for number in range(len(program.kernels))]
        self.parts = [_wholes_of_nodes(group, self._stored_in(k)) for k, group in enumerate(schedule.groups)]
        self.wholes: dict[Node, dict[Node, None]] = {}
        for of_group in self.parts:
            for node, wholes in of_group.items():
                self.wholes.setdefault(node, {}).update(dict.fromkeys(wholes))
        for node in self.graph.outputs:  # an argument that is a result is copied
            self.wholes.setdefault(node, {})[node] = None

    def stored(self, kernel: int, buffer: Buffer) -> tuple[Node, ...]:
        """The nodes whose elements a kernel stores to a parameter or variable.

        Buffers that passes make for the variable `v3` have names such as `v3_sums`.
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
        """The nodes in a buffer; an output may be a copy of an argument, and a result of a loop includes the loop."""
        nodes = self._algorithm.origins.nodes_in(buffer)
        nodes = nodes or ((self._outputs[buffer],) if buffer in self._outputs else ())
        return tuple(dict.fromkeys(n for node in nodes for n in (node, *_owner(node))))

    def _groups_of_call(self, call: int) -> list[int]:
        """The kernels of the schedule that a call computes."""
        kernel = self._algorithm_of(call)
        groups: dict[int, None] = {}
        for s in walk(kernel.body) if kernel is not None else ():
            if not isinstance(s, (Store, Row)):
                continue
            for node in self._nodes_in(s.buffer if isinstance(s, Store) else s.target):
                groups |= {self._groups[node]: None} if node in self._groups else {}
        return sorted(groups)

    def _stored_in(self, group: int) -> set[Node]:
        """The nodes that the calls of a kernel of the schedule store to memory or variables."""
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
        """The nodes in the parameters and variables of a kernel, in all of its calls."""
        held: dict[str, dict[Node, None]] = {}
        for k in self.calls_of_kernel.get(number, ()):
            call, kernel = self.program.calls[k], self._algorithm_of(k)
            pairs = [
                (formal.name, b) for formal, b in zip(self.program.kernels[number].buffers, call.buffers, strict=False)
            ]
            if kernel is not None:
                # Outlining numbers the variables of a kernel in order; a checked program keeps their names.
                variables = [s.buffer for s in walk(kernel.body) if isinstance(s, Alloc)]
                pairs += [(b.name if self.before else f"v{at}", b) for at, b in enumerate(variables)]
            for name, buffer in pairs:
                if buffer.space is not Space.INPUT:
                    held.setdefault(name, {}).update(dict.fromkeys(self._nodes_in(buffer)))
        return {name: tuple(nodes) for name, nodes in held.items()}


def _inner_sites(body: Body) -> Iterable[Site | None]:
    """The source line of each line of a body's text."""
    graph = graph_of(body)
    for node in node_names(graph):
        yield graph.sites.get(node)
        if isinstance(node, WithBody):
            yield from _inner_sites(node.body)
    yield None  # the results


def _owner(node: Node) -> tuple[Node, ...]:
    return (node.whole,) if isinstance(node, Part) else ()


def _wholes_of_nodes(group: Group, stored: Set[Node]) -> dict[Node, list[Node]]:
    """For each node of a kernel of the schedule, the stored nodes of whose value it is a part."""
    inside = {step.node for step in group.steps}
    wholes: dict[Node, list[Node]] = {node: [] for node in inside}
    for whole in [step.node for step in group.steps if step.node in stored or step.node is group.root]:
        stack, seen = [whole], {whole}
        while stack:
            node = stack.pop()
            wholes[node].append(whole)
            more = {n for n in node.inputs if n in inside and n not in stored} - seen
            seen |= more
            stack += more
    return wholes


def _sites(graph: Graph, nodes: Iterable[Node]) -> dict[Node, Site]:
    """The lines of nodes. A node without one, such as a view that broadcasts, has the line of its user."""
    sites: dict[Node, Site] = {}
    for node in reversed(list(nodes)):
        site = graph.sites.get(node) or sites.get(node)
        if site is not None:
            sites[node] = site
            for operand in node.inputs:
                sites.setdefault(operand, site)
    named = [i for i in graph.inputs if i not in graph.sites]
    return {node: site for node, site in sites.items() if node not in named}


def _numbers_by_key(pairs: Iterable[tuple[_K, int]]) -> dict[_K, tuple[int, ...]]:
    """The numbers of each key, in order and each once."""
    by_key: dict[_K, dict[int, None]] = {}
    for key, number in pairs:
        by_key.setdefault(key, {})[number] = None
    return {key: tuple(sorted(numbers)) for key, numbers in by_key.items()}
