"""Nested sums: where each step adds the sum of an inner loop to a total, the inner loop begins with the total.

    for i: { s = 0; for j: s = s + f(i, j); total = total + s }  ->  for i: { for j: total = total + f(i, j) }

Of several inner loops that add to one total, each goes on with the result of the one before.

The same holds for a sum that is added to a value from outside of loops, as with the cotangent of a carried value:

    c = g(c); s = 0; for j: s = s + f(j); return c + s     ->  c = g(c); for j: c = c + f(j); return c

The cotangent of an array that nested loops read is such a sum. As an array of its own it would be added to the total,
whole, in each step of the outer loop, although the inner loop changes only a few of its elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Body, Input, Iteration, MapReduce, Node, Part, Put, Scatter, Several, walk
from harp.trace.graph.rebuild import with_inputs
from harp.transforms.autodiff.cotangents import added, put_to, sum_of, without_puts
from harp.transforms.autodiff.gather_rules import is_zero

Users = Mapping[Node, list[Node | None]]


def with_totals(graph: Graph, totals: Mapping[int, Input]) -> Graph:
    """The graph in which some outputs, by number, are added to inputs that nothing reads yet."""
    added_graph = _added_to(*_split_totals(graph, totals))
    return Graph((*added_graph.inputs, *totals.values()), added_graph.outputs, added_graph.sites)


def _split_totals(graph: Graph, totals: Mapping[int, Node]) -> tuple[Graph, dict[int, Node]]:
    """The graph in which outputs without a total are only sums made by loops, and the other terms of these outputs."""
    sums, first, outputs = set(_sums_of_loops(graph)), dict(totals), list(graph.outputs)
    for number, output in enumerate(graph.outputs):
        base, puts = without_puts(output)
        terms = _terms(base) if number not in totals else []
        rest = [term for term in terms if term not in sums]
        if 0 < len(rest) < len(terms) and not any(isinstance(node, Iteration) for node in walk(rest)):
            first[number] = reduce(added, rest)
            summed: list[Node] = [term for term in terms if term in sums]
            outputs[number] = put_to(reduce(added, summed), puts)
    return Graph(graph.inputs, tuple(outputs), graph.sites), first


def _terms(node: Node) -> list[Node]:
    """The terms of a nested sum, in order."""
    stack, terms = [node], []
    while stack:
        term = stack.pop()
        if _is_sum(term):
            stack += reversed(term.inputs)
        else:
            terms.append(term)
    return terms


def _added_to(graph: Graph, totals: Mapping[int, Node]) -> Graph:
    """The graph in which some outputs, by number, are added to nodes that are made by no loop."""
    users = _users(graph)
    roots = {graph.outputs[number]: number for number in totals if users[graph.outputs[number]] == [None]}
    starts: dict[Iteration, dict[int, Node]] = {}
    last: dict[int, Part] = {}  # the latest loop that adds to each total
    gone: set[Node] = set()  # sums that later loops begin with
    for part in _sums_of_loops(graph):
        number = roots.get(_only_output(part, users) or part)
        if number is None:
            continue
        before = last.get(number)
        if before is not None and (before.whole is part.whole or not _is_only_added(before, users)):
            continue
        starts.setdefault(_loop(part), {})[part.number] = totals[number] if before is None else before
        gone |= set() if before is None else {before}
        last[number] = part
    started = _started(graph, starts, gone) if starts else graph
    outputs = tuple(
        added(totals[number], output) if number in totals and number not in last else output
        for number, output in enumerate(started.outputs)
    )
    return Graph(started.inputs, outputs, started.sites)


def _started(graph: Graph, starts: Mapping[Iteration, Mapping[int, Node]], gone: set[Node]) -> Graph:
    """The graph in which loops begin their sums with `starts` instead of 0. Sums of earlier loops among these are no
    longer added behind the loops."""
    new: dict[Node, Node] = {}

    def start(first: Node) -> Node:
        is_earlier = isinstance(first, Part) and first.whole in new
        return Part(_several(new[first.whole]), first.number) if isinstance(first, Part) and is_earlier else first

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        remaining = [i for i, old in zip(inputs, node.inputs, strict=True) if old not in gone]
        if _is_sum(node) and len(remaining) < len(inputs):
            if not remaining:
                gone.add(node)
            return (remaining or inputs)[0]
        if isinstance(node, Iteration) and node in starts:
            firsts = {place: start(first) for place, first in starts[node].items()}
            inputs = tuple(firsts.get(place, operand) for place, operand in enumerate(inputs))
        new[node] = with_inputs(node, inputs)
        return new[node]

    return transform(graph, rule)


def _sums_of_loops(graph: Graph) -> list[Part]:
    """The results of loops that are sums from 0 on, in the order of the loops."""
    order = graph.nodes()
    loops = {node: place for place, node in enumerate(order) if isinstance(node, Iteration)}
    parts = [node for node in order if isinstance(node, Part) and node.whole in loops]
    sums = [part for part in parts if _is_loop_sum(_loop(part), part.number)]
    return sorted(sums, key=lambda part: loops[_loop(part)])


def _loop(part: Part) -> Iteration:
    assert isinstance(part.whole, Iteration)
    return part.whole


def _several(node: Node) -> Several:
    assert isinstance(node, Several)
    return node


def _is_sum(node: Node | None) -> bool:
    plain = isinstance(node, MapReduce) and node.reduce is None and node.dtype.is_inexact
    return plain and isinstance(node, MapReduce) and node.expr is sum_of(node.dtype)


def _is_only_added(node: Node, users: Users) -> bool:
    """Whether a node is a term of an output: it reaches it through sums, and scatters that add to them, only."""
    is_added = False
    while users[node] != [None]:
        if len(users[node]) != 1:
            return False
        (user,) = users[node]
        puts = is_added and isinstance(user, Scatter) and user.base is node and user.kind is Put.ADD
        if user is None or not (puts or _is_sum(user)):
            return False
        is_added |= _is_sum(user)
        node = user
    return True


def _users(graph: Graph) -> Users:
    """The nodes that read each node, once for each use; None stands for an output."""
    users: dict[Node, list[Node | None]] = {node: [] for node in graph.nodes()}
    for node in graph.nodes():
        for operand in node.inputs:
            users[operand].append(node)
    for output in graph.outputs:
        users[output].append(None)
    return users


def _is_loop_sum(node: Iteration, number: int) -> bool:
    """Whether a result is a sum over the steps that begins at 0."""
    return number < node.body.carried and is_zero(node.operands[number]) and _accumulates(node.body, number)


def _accumulates(body: Body, number: int) -> bool:
    """Whether a step only adds to this carried value."""
    graph = graph_of(body)
    carried, users = body.inputs[1 + number], _users(graph)
    return carried in users and _only_output(carried, users) is graph.outputs[number]


def _only_output(node: Node, users: Users) -> Node | None:
    """The output to which a node is added, if it is used for nothing else."""
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
        elif not _is_sum(user):
            return None
        node = user
