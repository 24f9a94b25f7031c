"""The calls of Python in a graph: whether there are any, the graph without them, and their functions by number."""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from harp.trace.graph.body import graph_of, sites_of
from harp.trace.graph.graph import Graph, inline, transform
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction, in_python
from harp.trace.graph.node import Body, Custom, Foreign, HostCall, Input, Iteration, MapReduce, Node, WithBody
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.routines import HostFunction, PureFunction, StandIn
from harp.trace.graph.view import view
from harp.trace.scalar.dtypes import NDArray, i64
from harp.trace.scalar.expr import Operand, apply, const, select
from harp.trace.scalar.ops import Op

_NOTHING = HostFunction(lambda *arrays: None)
Functions = tuple[HostFunction | PureFunction, ...]


def calls_python(graph: Graph) -> bool:
    """Whether there is a call for what it does in the graph, or in a body of it."""
    return has_node(graph, (HostCall,))


def has_node(graph: Graph, kinds: tuple[type[Node], ...]) -> bool:
    """Whether there is a node of these kinds in the graph, or in a body of it."""
    return any(
        isinstance(node, kinds) or (isinstance(node, WithBody) and has_node(graph_of(node.body), kinds))
        for node in graph.nodes()
    )


def silenced(graph: Graph) -> Graph:
    """The same graph, which calls nothing and has no token: where it is computed again, all has been called before.
    What it calls for the values is called."""
    return attrs.evolve(with_calls(graph, _silent), token=None) if calls_python(graph) else graph


def without_calls_about(graph: Graph, inputs: Collection[Input]) -> Graph:
    """The graph without those calls whose arguments depend on some inputs, for whom these have no numbers."""
    unknown: set[Node] = set(inputs)

    def rule(node: Node, given: tuple[Node, ...]) -> Node:
        if isinstance(node, HostCall) and any(i in unknown for i in given[1:]):
            return given[0]
        made = with_inputs(node, given)
        if any(i in unknown for i in given):
            if isinstance(made, (Iteration, Custom)):
                made = silent(made)
            unknown.add(made)
        return made

    return transform(graph, rule)


def calling_for_values(graph: Graph, before: Input | None) -> Graph:
    """The graph without a token, whose outputs are only there when the calls have been made: so these are made where,
    and as often as, an output is computed. `before` is the token that it was given."""
    if graph.token is None or before is None:
        return graph
    functions: dict[HostFunction | int, PureFunction] = {}

    def value(node: HostCall | Foreign) -> Node:
        if isinstance(node, Foreign):
            return node
        assert isinstance(node.function, HostFunction), "not the graph of a program"
        pure = functions.setdefault(node.function, PureFunction(_counting(node.function), "a call in a rule"))
        return Foreign(pure, node.token.shape, node.inputs, (((), i64),)).parts[0]

    called = with_calls(inline(graph, {before: MapReduce((), (), const(0, i64))}), value)
    assert called.token is not None
    outputs = tuple(_after(called.token, o) for o in called.outputs)
    return Graph(graph.inputs, outputs, called.sites)


def _counting(function: HostFunction) -> Callable[..., list[object]]:
    def call(token: NDArray, active: NDArray, *arrays: NDArray) -> list[object]:
        if active:
            function.call(*arrays)
        return [token + 1]

    return call


def _after(token: Node, node: Node) -> Node:
    """The same value, for which the token, which is never negative, must be known."""
    never = apply(Op.LT, Operand(i64, 0), const(0, i64))
    chosen = select(never, const(0, node.dtype), Operand(node.dtype, 1))
    return MapReduce(node.shape, (view(token, node.shape, ()), node), chosen)


def silent(node: Iteration | Custom) -> Node:
    """The node, whose body calls nothing."""
    return _with_body(node, _in_body(node.body, _silent))


def muted(graph: Graph) -> Graph:
    """A graph of the same form without the user's code: calls compute what they are given and do nothing, or return
    what their stand-ins compute."""
    return with_calls(graph, _mute)


def _mute(node: HostCall | Foreign) -> Node:
    if isinstance(node, HostCall):
        return HostCall(node.token, node.active, node.operands, _NOTHING)
    assert isinstance(node.routine, (int, KernelSource, MatrixFunction)), "the graph of a program"
    number = node.routine if isinstance(node.routine, int) else node.routine.number
    return Foreign(StandIn(number), node.calls, node.operands, node.results, node.sizes)


def _silent(node: HostCall | Foreign) -> Node:
    if isinstance(node, Foreign):
        return node
    return MapReduce(node.shape, (node.token,), Operand(i64, 0) + const(1, i64))


def numbered(graph: Graph, has_lapack: Callable[[], bool]) -> tuple[Graph, Functions]:
    """The graph, in which functions are numbers, and the functions in the order of these. Without LAPACK functions of
    matrices are functions of Python, too."""
    if not has_node(graph, (HostCall, Foreign)):
        return graph, ()
    numbers: dict[HostFunction | PureFunction, int] = {}

    def number(node: HostCall | Foreign) -> Node:
        if isinstance(node, Foreign):
            if isinstance(node.routine, KernelSource):
                return node
            routine = node.routine
            if isinstance(routine, MatrixFunction):
                if has_lapack():
                    return node
                routine = in_python(routine)
            assert isinstance(routine, PureFunction), "functions are numbered once"
            found = numbers.setdefault(routine, len(numbers))
            return Foreign(found, node.calls, node.operands, node.results, node.sizes)
        assert isinstance(node.function, HostFunction), "functions are numbered once"
        found = numbers.setdefault(node.function, len(numbers))
        return HostCall(node.token, node.active, node.operands, found)

    return with_calls(graph, number), tuple(numbers)


def with_calls(graph: Graph, rule: Callable[[HostCall | Foreign], Node]) -> Graph:
    """The graph with something in place of each call, also of those in bodies."""
    if not has_node(graph, (HostCall, Foreign)):
        return graph

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        node = with_inputs(node, inputs)
        if isinstance(node, (HostCall, Foreign)):
            return rule(node)
        if isinstance(node, (Iteration, Custom)):
            return _with_body(node, _in_body(node.body, rule))
        return node

    return transform(graph, change)


def _with_body(node: Iteration | Custom, body: Body) -> Node:
    if isinstance(node, Custom):
        return Custom(node.operands, body, node.derivative)
    return Iteration(node.length, node.operands, body, node.tested, node.reverse)


def _in_body(body: Body, rule: Callable[[HostCall | Foreign], Node]) -> Body:
    made = with_calls(graph_of(body), rule)
    return body if made.outputs == body.outputs else attrs.evolve(body, outputs=made.outputs, sites=sites_of(made))
