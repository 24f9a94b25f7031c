"""The calls of Python in a graph: whether there are any, the graph without them, and their functions by number."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harp.trace.graph.body import graph_of, sites_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Body, Custom, HostCall, HostFunction, Iteration, MapReduce, Node, Several, rebuild
from harp.trace.index.division import Substitution
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Operand, const

_SAME_SIZES = Substitution({})
_NOTHING = HostFunction(lambda *arrays: None)


def calls_python(graph: Graph) -> bool:
    """Whether there is a call in the graph, or in a body of it."""
    return any(
        isinstance(node, HostCall) or (isinstance(node, Several) and calls_python(graph_of(node.body)))
        for node in graph.nodes()
    )


def silenced(graph: Graph) -> Graph:
    """The same graph, which calls nothing and has no token: where it is computed again, all has been called before."""
    return attrs.evolve(_with_calls(graph, _silent), token=None) if calls_python(graph) else graph


def muted(graph: Graph) -> Graph:
    """The same graph, whose calls compute what they are given, and do nothing."""
    return _with_calls(graph, _mute) if calls_python(graph) else graph


def _mute(node: HostCall) -> Node:
    return HostCall(node.token, node.active, node.operands, _NOTHING)


def _silent(node: HostCall) -> Node:
    return MapReduce(node.shape, (node.token,), Operand(i64, 0) + const(1, i64))


def numbered(graph: Graph) -> tuple[Graph, tuple[Callable[..., object], ...]]:
    """The graph, in which functions are numbers, and the functions in the order of these."""
    if not calls_python(graph):
        return graph, ()
    numbers: dict[HostFunction, int] = {}

    def number(node: HostCall) -> Node:
        assert isinstance(node.function, HostFunction), "functions are numbered once"
        found = numbers.setdefault(node.function, len(numbers))
        return HostCall(node.token, node.active, node.operands, found)

    result = _with_calls(graph, number)
    return result, tuple(function.call for function in numbers)


def _with_calls(graph: Graph, rule: Callable[[HostCall], Node]) -> Graph:
    """The graph with something in place of each call, also of those in bodies."""

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            node = rebuild(node, inputs, _SAME_SIZES)
        if isinstance(node, HostCall):
            return rule(node)
        if isinstance(node, Iteration):
            return Iteration(node.length, node.operands, _in_body(node.body, rule), node.tested, node.reverse)
        if isinstance(node, Custom):
            return Custom(node.operands, _in_body(node.body, rule), node.derivative)
        return node

    return transform(graph, change)


def _in_body(body: Body, rule: Callable[[HostCall], Node]) -> Body:
    made = _with_calls(graph_of(body), rule)
    return body if made.outputs == body.outputs else attrs.evolve(body, outputs=made.outputs, sites=sites_of(made))
