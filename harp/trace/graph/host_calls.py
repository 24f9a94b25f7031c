"""The calls of Python in a graph: whether there are any, the graph without them, and their functions by number."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harp.trace.graph.body import graph_of, sites_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.node import Body, Custom, Foreign, HostCall, Iteration, MapReduce, Node, WithBody
from harp.trace.graph.rebuild import rebuild
from harp.trace.graph.routines import HostFunction, PureFunction, StandIn
from harp.trace.index.division import Substitution
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Operand, const

_SAME_SIZES = Substitution({})
_NOTHING = HostFunction(lambda *arrays: None)
Functions = tuple[HostFunction | PureFunction, ...]


def calls_python(graph: Graph) -> bool:
    """Whether there is a call for what it does in the graph, or in a body of it."""
    return _has(graph, (HostCall,))


def _has(graph: Graph, kinds: tuple[type[Node], ...]) -> bool:
    return any(
        isinstance(node, kinds) or (isinstance(node, WithBody) and _has(graph_of(node.body), kinds))
        for node in graph.nodes()
    )


def silenced(graph: Graph) -> Graph:
    """The same graph, which calls nothing and has no token: where it is computed again, all has been called before.
    What it calls for the values is called."""
    return attrs.evolve(_with_calls(graph, _silent), token=None) if calls_python(graph) else graph


def muted(graph: Graph) -> Graph:
    """A graph of the same form without the user's code: calls compute what they are given and do nothing, or return
    what their stand-ins compute."""
    return _with_calls(graph, _mute)


def _mute(node: HostCall | Foreign) -> Node:
    if isinstance(node, HostCall):
        return HostCall(node.token, node.active, node.operands, _NOTHING)
    assert isinstance(node.routine, (int, KernelSource)), "the graph of a program"
    number = node.routine if isinstance(node.routine, int) else node.routine.number
    return Foreign(StandIn(number), node.calls, node.operands, node.results, node.sizes)


def _silent(node: HostCall | Foreign) -> Node:
    if isinstance(node, Foreign):
        return node
    return MapReduce(node.shape, (node.token,), Operand(i64, 0) + const(1, i64))


def numbered(graph: Graph) -> tuple[Graph, Functions]:
    """The graph, in which functions are numbers, and the functions in the order of these."""
    if not _has(graph, (HostCall, Foreign)):
        return graph, ()
    numbers: dict[HostFunction | PureFunction, int] = {}

    def number(node: HostCall | Foreign) -> Node:
        if isinstance(node, Foreign):
            if isinstance(node.routine, KernelSource):
                return node
            assert isinstance(node.routine, PureFunction), "functions are numbered once"
            found = numbers.setdefault(node.routine, len(numbers))
            return Foreign(found, node.calls, node.operands, node.results, node.sizes)
        assert isinstance(node.function, HostFunction), "functions are numbered once"
        found = numbers.setdefault(node.function, len(numbers))
        return HostCall(node.token, node.active, node.operands, found)

    return _with_calls(graph, number), tuple(numbers)


def _with_calls(graph: Graph, rule: Callable[[HostCall | Foreign], Node]) -> Graph:
    """The graph with something in place of each call, also of those in bodies."""
    if not _has(graph, (HostCall, Foreign)):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            node = rebuild(node, inputs, _SAME_SIZES)
        if isinstance(node, (HostCall, Foreign)):
            return rule(node)
        if isinstance(node, Iteration):
            return Iteration(node.length, node.operands, _in_body(node.body, rule), node.tested, node.reverse)
        if isinstance(node, Custom):
            return Custom(node.operands, _in_body(node.body, rule), node.derivative)
        return node

    return transform(graph, change)


def _in_body(body: Body, rule: Callable[[HostCall | Foreign], Node]) -> Body:
    made = _with_calls(graph_of(body), rule)
    return body if made.outputs == body.outputs else attrs.evolve(body, outputs=made.outputs, sites=sites_of(made))
