"""Loops that data ends and that only count: how many steps they have is known before they run.

    while 0 < n: ...; n > t + 1        for step t, where n is the same in all steps

Such a loop is tested like others that data ends, so all transforms know it. Where n is a formula of sizes and of the
numbers of the loops round it, as in a triangular loop, lowering makes it a loop of that length.
"""

from __future__ import annotations

from harp.trace.graph.body import BEGINS, graph_of, selected
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Iteration, MapReduce, Node, WithBody, body_input, walk
from harp.trace.index.division import relu
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Const, Expr, Operand, Position, apply, const, substitute
from harp.trace.scalar.ops import Op

# Whether there is a step behind one, of its number and the number of steps.
_NEXT = apply(Op.LT, Operand(i64, 0) + const(1, i64), Operand(i64, 1))


def first_test(count: Node) -> Node:
    """Whether a loop of so many steps begins."""
    return MapReduce((), (count,), BEGINS)


def next_test(number: Node, count: Node) -> Node:
    """Whether it goes on behind the step of this number."""
    return MapReduce((), (number, count), _NEXT)


def trip_count(node: Iteration) -> Node | None:
    """How many steps a loop has that data ends, or less than 0 for none; None if it does not say so before it runs."""
    body = node.body
    test = body.outputs[0] if node.tested else None
    if not isinstance(test, MapReduce) or test.expr is not _NEXT or test.operands[0] is not body.inputs[0]:
        return None
    same: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    count = same.get(test.operands[1])
    return count if count is not None and node.operands[0] is first_test(count) else None


def known_length(node: Iteration) -> Index | None:
    """How many steps such a loop has, if that is a formula, as simplifying leaves it."""
    if not node.tested or node.length is not None:  # it may have no operands
        return None
    test, begins = node.body.outputs[0], node.operands[0]
    if not isinstance(test, MapReduce) or not isinstance(begins, MapReduce) or begins.operands:
        return None
    if test.operands != node.body.inputs[:1]:
        return None
    for e in _leaves(test.expr):
        if test.expr is substitute(_NEXT, {1: e}) and begins.expr is substitute(BEGINS, {0: e}):
            return relu(e.index if isinstance(e, Position) else as_index(int(e.value)))
    return None


def _leaves(e: Expr) -> list[Position | Const]:
    """What a comparison compares its first operand with."""
    return [a for a in e.args[1:] if isinstance(a, (Position, Const))]


def with_length(node: Iteration, length: Index) -> Iteration:
    """The loop as one of this length, without its test: its results are those behind the first one."""
    body = node.body
    known: dict[Node, Node] = {body.inputs[1]: MapReduce((), (), const(True, bool_))}
    places = range(2, len(body.inputs))
    untested = selected(node, places, range(1, len(body.outputs)), known)
    return Iteration(length, untested.operands, untested.body, False, node.reverse)


def may_not_end(graph: Graph) -> bool:
    """Whether data says how long some iteration runs: perhaps for ever."""
    bodies = [node for node in graph.nodes() if isinstance(node, WithBody)]
    endless = any(isinstance(node, Iteration) and node.length is None and not _is_bounded(node) for node in bodies)
    return endless or any(may_not_end(graph_of(node.body)) for node in bodies)


def _is_bounded(node: Iteration) -> bool:
    """Whether its steps are counted by a formula of sizes and of the number of the loop round it."""
    count = trip_count(node)
    if count is None:
        return known_length(node) is not None
    return all(i is body_input(0, (), i64) or (isinstance(i, MapReduce) and i.reduce is None) for i in walk((count,)))
