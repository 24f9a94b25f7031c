"""Bounds, as formulas of sizes, on the number of steps of loops that end by a test, such as an inner loop from k to n.

    for k < n: for i from k + 1 to n: ...       the inner loop has n - k - 1 steps: n - 1 at most

Values kept for each step then fit an array of that length, and the loop need not be recomputed in windows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from harp.trace.graph.body import trip_count, with_body
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Body, Iteration, MapReduce, Node
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.division import maximum
from harp.trace.index.polynomial import ZERO, Index, as_index, loops_in
from harp.trace.scalar.dtypes import i64, u64
from harp.trace.scalar.expr import Apply, Const, Expr, Operand, Position, apply
from harp.trace.scalar.ops import Op


class Range(NamedTuple):
    """The least and the greatest value of an integer; None if unknown."""

    least: Index | None
    most: Index | None


_UNKNOWN = Range(None, None)
Ranges = Mapping[Node, Range]


def with_bounds(graph: Graph, ranges: Ranges, wanted: Callable[[Body], object]) -> Graph:
    """The graph with a length for each loop that is `wanted` and has a known bound; `ranges` are those of its
    inputs."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = with_inputs(node, inputs)
        if not isinstance(new, Iteration):
            return new
        new = _with_bound(new, ranges, wanted)
        inside: dict[Node, Range] = {
            new.body.inputs[place]: range_of(new.operands[place - 1], ranges) for place in new.body.place()[2]
        }
        inside[new.body.inputs[0]] = numbers(new.length)
        return with_body(new, lambda body: with_bounds(body, inside, wanted))

    return transform(graph, rule)


def numbers(length: Index | None) -> Range:
    """The range of the numbers of a loop's steps."""
    return Range(ZERO, None if length is None else length - 1)


def _with_bound(node: Iteration, ranges: Ranges, wanted: Callable[[Body], object]) -> Iteration:
    count = trip_count(node) if node.tested and node.length is None and wanted(node.body) else None
    most = None if count is None else range_of(count, ranges).most
    if most is None or most.constant is not None:
        return node
    return Iteration(maximum(most, ZERO), node.operands, node.body, node.tested, node.reverse)


def range_of(node: Node, ranges: Ranges) -> Range:
    """The range of an integer that is computed of sizes and of the numbers of loops."""
    if node in ranges:
        return ranges[node]
    if not isinstance(node, MapReduce) or node.domain or node.dtype is not i64:
        return _UNKNOWN
    return _range_of_expr(node.expr, [range_of(operand, ranges) for operand in node.operands], None)


def _range_of_expr(e: Expr, operands: list[Range], positive: Expr | None) -> Range:
    """The range of an expression, under the condition that `positive`, if given, is > 0."""
    if isinstance(e, Operand):
        return operands[e.slot]
    if isinstance(e, Position):
        return _UNKNOWN if loops_in(e.index) else Range(e.index, e.index)
    if isinstance(e, Const):
        return Range(as_index(int(e.value)), as_index(int(e.value)))
    if not isinstance(e, Apply) or e.dtype not in (i64, u64):
        return _UNKNOWN
    if e.op is Op.SELECT:
        return _range_of_select(e, operands)
    if e.op is Op.CAST:
        is_same = e.args[0].dtype is u64 or e.args[0] is positive
        return _range_of_expr(e.args[0], operands, positive) if is_same else _UNKNOWN
    rule = _RULES.get(e.op)
    return _UNKNOWN if rule is None else rule(*(_range_of_expr(a, operands, positive) for a in e.args))


def _range_of_select(e: Apply, operands: list[Range]) -> Range:
    """a < b ? f(b - a) : g, as the number of steps from a to b is computed"""
    test, *others = e.args
    positive = None
    if isinstance(test, Apply) and test.op is Op.LT and test.args[0].dtype is i64:
        positive = apply(Op.ADD, test.args[1], apply(Op.NEG, test.args[0]))
    yes, no = _range_of_expr(others[0], operands, positive), _range_of_expr(others[1], operands, None)
    return Range(_lesser(yes, no).least, _greater(yes, no).most)


def _sum(a: Range, b: Range) -> Range:
    least = None if a.least is None or b.least is None else a.least + b.least
    return Range(least, None if a.most is None or b.most is None else a.most + b.most)


def _negative(a: Range) -> Range:
    return Range(None if a.most is None else -a.most, None if a.least is None else -a.least)


def _greater(a: Range, b: Range) -> Range:
    least = a.least if b.least is None else b.least if a.least is None else maximum(a.least, b.least)
    return Range(least, None if a.most is None or b.most is None else maximum(a.most, b.most))


def _lesser(a: Range, b: Range) -> Range:
    return _negative(_greater(_negative(a), _negative(b)))


_RULES: Mapping[Op, Callable[..., Range]] = {
    Op.ADD: _sum,
    Op.NEG: _negative,
    Op.MAX: _greater,
    Op.MIN: _lesser,
}
