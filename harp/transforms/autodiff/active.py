"""Through which nodes of a graph a derivative flows: what both directions of differentiation ask first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harp.errors import IntegerGradientError
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Input, Iteration, MapReduce, Node, Part, Several
from harp.trace.source_locations import Site
from harp.transforms.autodiff.scalar_rules import depends

Active = set[Node]
# The active inputs and nodes of the body of a loop, by the inputs that are active since their operands are.
Known = dict[tuple[Iteration, frozenset[Input]], tuple[list[Input], Active]]


def between(order: Sequence[Node], wrt: Sequence[Input], known: Known | None = None) -> Active:
    """The floating-point nodes through which a derivative flows from `wrt`.

    `known` keeps what was found for bodies: else each loop round a loop would double the work on the inner body.
    """
    known = {} if known is None else known
    active: Active = set(wrt)
    results: dict[Node, set[int]] = {}
    for node in order:
        if isinstance(node, Several):
            results[node] = _active_results(node, active, known) if any(i in active for i in node.inputs) else set()
            if results[node]:
                active.add(node)
        elif isinstance(node, Part):
            if node.number in results[node.whole]:
                active.add(node)
        elif not node.dtype.is_inexact or not any(i in active for i in node.inputs):
            continue
        elif not isinstance(node, MapReduce) or depends(node.expr, active_slots(node, active)):
            active.add(node)
    return active


def active_inputs(node: Iteration, active: Callable[[Node], bool]) -> list[Input]:
    """The inputs of the body through which a derivative flows: of active operands, and carried values made of them."""
    return _active_in_body(node, active, {})[0]


def _active_in_body(node: Iteration, active: Callable[[Node], bool], known: Known) -> tuple[list[Input], Active]:
    """The active inputs of the body, and its active nodes."""
    body = node.body
    operands = zip(body.inputs[1:], node.operands, strict=True)
    reached = {i for i, operand in operands if i.dtype.is_inexact and active(operand)}
    key = node, frozenset(reached)
    if key in known:
        return known[key]
    carried = body.place()[0]
    order = graph_of(body).nodes()
    while True:
        inside = between(order, [i for i in body.inputs if i in reached], known)
        more = {body.inputs[k] for k in carried if body.outputs[k - 1] in inside} - reached
        if not more:
            return known.setdefault(key, ([i for i in body.inputs if i in reached], inside))
        reached |= more


def _active_results(node: Several, active: Active, known: Known) -> set[int]:
    if not isinstance(node, Iteration):
        return {part.number for part in node.parts if part.dtype.is_inexact}
    body, (inputs, inside) = node.body, _active_in_body(node, active.__contains__, known)
    carried = {k - 1 for k in body.place()[0] if body.inputs[k] in inputs}
    return carried | {k for k, o in enumerate(body.outputs) if k >= body.carried and o in inside}


def active_slots(node: MapReduce, active: Active) -> set[int]:
    """The operands of a node through which a derivative flows."""
    return {slot for slot, operand in enumerate(node.operands) if operand in active}


def require_inexact(wrt: Sequence[Input]) -> None:
    """Raise IntegerGradientError for an input that has no derivative."""
    for i in wrt:
        if not i.dtype.is_inexact:
            raise IntegerGradientError(f"input {i.name!r} has dtype {i.dtype}, which has no derivative")


class Sites:
    """Records, for the nodes that a rule makes, the source line of the node that they are made for."""

    def __init__(self, graph: Graph, known: Sequence[Node]) -> None:
        self.sites: dict[Node, Site] = dict(graph.sites)
        self._known: set[Node] = {*graph.inputs, *graph.nodes(), *known}

    def name(self, nodes: Iterable[Node], primal: Node) -> None:
        """Give `made`, and the new nodes below it, the source line of `primal`."""
        site = self.sites.get(primal)
        stack = list(nodes)
        while stack:
            node = stack.pop()
            if node not in self._known:
                self._known.add(node)
                stack.extend(node.inputs)
                if site is not None:
                    self.sites.setdefault(node, site)
