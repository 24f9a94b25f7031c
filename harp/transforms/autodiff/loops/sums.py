"""Sums over steps of which each has a loop that sums, too: the loop inside goes on with the sum so far.

    for i: { s = 0; for j: s = s + f(i, j); total = total + s }  ->  for i: { for j: total = total + f(i, j) }

The cotangent of an array that loops in loops read is such a sum. As an array of its own, it would be added to the total
in each step of the loop outside, whole, though the loop inside changes a few of its elements only.
"""

from __future__ import annotations

from collections.abc import Mapping

from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Body, Input, Iteration, MapReduce, Node, Part, Put, Scatter
from harp.trace.graph.rebuild import rebuild
from harp.trace.index.division import Substitution
from harp.transforms.autodiff.cotangent_sums import added, sum_of
from harp.transforms.autodiff.gather_rules import is_zero

_SAME_SIZES = Substitution({})
Users = Mapping[Node, list[Node | None]]


def with_totals(graph: Graph, totals: Mapping[int, Input]) -> Graph:
    """The graph in which some outputs, by number, are added to inputs that nothing reads yet."""
    users = _users(graph)
    roots = {graph.outputs[number]: number for number in totals if users[graph.outputs[number]] == [None]}
    starts: dict[Iteration, dict[int, Input]] = {}
    begun: set[int] = set()
    for part in graph.nodes():
        if not isinstance(part, Part) or not isinstance(part.whole, Iteration) or not _sums(part.whole, part.number):
            continue
        root = _end(part, users)
        if root in roots and roots[root] not in begun:
            begun.add(roots[root])
            starts.setdefault(part.whole, {})[part.number] = totals[roots[root]]

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Iteration) and node in starts:
            inputs = tuple(starts[node].get(place, operand) for place, operand in enumerate(inputs))
        return node if inputs == node.inputs else rebuild(node, inputs, _SAME_SIZES)

    made = transform(graph, rule) if starts else graph
    outputs = tuple(
        added(totals[number], output) if number in totals and number not in begun else output
        for number, output in enumerate(made.outputs)
    )
    return Graph((*made.inputs, *totals.values()), outputs, made.sites)


def _users(graph: Graph) -> Users:
    """Who reads a node, as often as it does; None stands for the outputs."""
    users: dict[Node, list[Node | None]] = {node: [] for node in graph.nodes()}
    for node in graph.nodes():
        for operand in node.inputs:
            users[operand].append(node)
    for output in graph.outputs:
        users[output].append(None)
    return users


def _sums(node: Iteration, number: int) -> bool:
    """Whether a result is a sum over the steps that begins at 0."""
    return number < node.body.carried and is_zero(node.operands[number]) and _accumulates(node.body, number)


def _accumulates(body: Body, number: int) -> bool:
    """Whether a step only adds to one of the things that it carries."""
    graph = graph_of(body)
    own, users = body.inputs[1 + number], _users(graph)
    return own in users and _end(own, users) is graph.outputs[number]


def _end(node: Node, users: Users) -> Node | None:
    """The output to which a node is added, and nothing else is made of it."""
    while True:
        if len(users[node]) != 1:
            return None
        (user,) = users[node]
        if user is None:
            return node
        if isinstance(user, Iteration):
            number = user.operands.index(node)
            if number >= user.body.carried or not _accumulates(user.body, number):
                return None
            user = user.parts[number]
            if user not in users:
                return None
        elif isinstance(user, Scatter):
            if user.base is not node or user.kind is not Put.ADD:
                return None
        elif not isinstance(user, MapReduce) or user.reduce is not None or user.expr is not sum_of(user.dtype):
            return None
        node = user
