"""Forward-mode differentiation of graphs: one rule for each kind of node.

A rule receives a node and the tangents of its inputs, and gives the tangent of the node. Its results are nodes of the
same few kinds, so that the result can be differentiated again; the forward's own nodes are used as they are, by
identity. Most nodes are linear in what they read, and their tangents are the same nodes over tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from harp.trace.graph.graph import Graph
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Cumulative,
    Custom,
    Examples,
    Foreign,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    RowWise,
    Scatter,
    Several,
    View,
    fresh_input,
    positions,
    walk,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.graph.view import multiplies_matrices, view
from harp.trace.scalar.expr import Apply, Expr, Operand, apply, cast, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.autodiff.active import Sites, between, require_inexact
from harp.transforms.autodiff.cumulative_rules import cumulative_tangent, product_of_others
from harp.transforms.autodiff.custom_rules import push_custom
from harp.transforms.autodiff.gather_rules import constant, elementwise, scatter_tangent
from harp.transforms.autodiff.loops.rules import Pushed, push
from harp.transforms.autodiff.scalar_rules import pushforward
from harp.transforms.autodiff.view_rules import sum_over
from harp.transforms.rules import apply_rule, without_derivative

Tangents = Mapping[Node, Node]  # of those inputs through which a derivative flows


def jvp(graph: Graph, wrt: Sequence[Input]) -> Graph:
    """The graph from the inputs, and a tangent for each of `wrt`, to the outputs, and the tangent of each
    floating-point output.

    Raises MissingRuleError, with the user's line, for a node that has no rule, and IntegerGradientError if `wrt` names
    an input that is not of floating point.
    """
    require_inexact(wrt)
    seeds = [fresh_input(f"tangent{k}", i.shape, i.dtype) for k, i in enumerate(wrt)]
    order = graph.nodes()
    active = between(order, wrt)
    sites = Sites(graph, seeds)
    tangents: dict[Node, Node] = dict(zip(wrt, seeds, strict=True))
    # An iteration through which a derivative flows is replaced by one that carries tangents, and so are its results.
    values: dict[Node, Node] = {}
    pushed: dict[Node, Sequence[Pushed]] = {}
    for node in walk((*graph.inputs, *order)):
        if isinstance(node, Part) and node.whole in pushed:
            values[node], tangent = pushed[node.whole][node.number]
            if tangent is not None:
                tangents[node] = tangents[values[node]] = tangent
            continue
        inputs = tuple(values[i] for i in node.inputs)
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        value = values[node] = node if same else with_inputs(node, inputs)
        if node in active and not isinstance(node, Input):
            moving = {i: tangents[i] for i in inputs if i in tangents}
            made = apply_rule(RULES, "the forward derivative", graph, node, moving, now=value)
            if isinstance(node, Several):
                pushed[node] = made
                continue
            tangents[node] = tangents[value] = made
            sites.name((made,), node)
    outputs = [tangents.get(o) or constant(0, o) for o in graph.outputs if o.dtype.is_inexact]
    token = None if graph.token is None else values[graph.token]
    return Graph((*graph.inputs, *seeds), (*(values[o] for o in graph.outputs), *outputs), sites.sites, token)


# -- maps and reductions ------------------------------------------------------------------------------------------


def _pushed(node: MapReduce, tangents: Tangents, slots: Sequence[int]) -> tuple[tuple[Node, ...], Expr]:
    """The tangent of the reduction's argument by way of some operands: the operands of a map, and its expression."""
    moved = [tangents[node.operands[slot]] for slot in slots]
    operands = (*node.operands, *moved)
    tangent_of: dict[int, Expr] = {
        slot: Operand(t.dtype, len(node.operands) + k) for k, (slot, t) in enumerate(zip(slots, moved, strict=True))
    }
    # As in reverse mode: a derivative that contains the node's value reads that value.
    alone = isinstance(node.expr, Apply) and node.expr.op is Op.HYPOT
    value = Operand(node.dtype, len(operands)) if node.reduce is None and not alone else None
    pushed = pushforward(node.expr, tangent_of, value)
    return (*operands, node), const(0, node.dtype) if pushed is None else pushed


def _sum(node: MapReduce, tangents: Tangents) -> Node:
    """Also without a reduction, as a sum over no axes. A sum of products becomes one sum for each factor, so that
    matrix products stay matrix products."""
    slots = [slot for slot, operand in enumerate(node.operands) if operand in tangents]
    apart = len(slots) > 1 and bool(node.axes) and multiplies_matrices(node, node.axes)
    pushed = [_pushed(node, tangents, group) for group in ([[slot] for slot in slots] if apart else [slots])]
    return reduce(_added, [elementwise(node.domain, operands, expr, node.axes) for operands, expr in pushed])


def _added(a: Node, b: Node) -> Node:
    return MapReduce(a.shape, (a, b), Operand(a.dtype, 0) + Operand(b.dtype, 1))


def _spread(node: Node, whole: MapReduce) -> Node:
    """A reduced array, broadcast along the axes of the reduction."""
    loops = positions(whole.domain)
    return view(node, whole.domain, tuple(p for axis, p in enumerate(loops) if axis not in whole.axes))


def _extreme(node: MapReduce, tangents: Tangents) -> Node:
    """The mean of the tangents over all elements that equal the result; where that is NaN, over all NaN."""
    slots = [slot for slot, operand in enumerate(node.operands) if operand in tangents]
    operands, expr = _pushed(node, tangents, slots)
    first = len(operands) - 1  # the node itself, which no expression reads, for it is reduced
    operands = (*operands[:-1], _spread(node, node))
    equal = apply(Op.EQ, node.expr, Operand(node.dtype, first))
    mask = equal | ~apply(Op.EQ, node.expr, node.expr)
    chosen = elementwise(node.domain, operands, select(mask, expr, const(0, expr.dtype)))
    counted = elementwise(node.domain, operands, cast(mask, expr.dtype))
    total, count = (sum_over(part, node.axes) for part in (chosen, counted))
    return MapReduce(node.shape, (total, count), Operand(total.dtype, 0) / Operand(count.dtype, 1))


def _prod(node: MapReduce, tangents: Tangents) -> Node:
    """Each tangent times the product of all others."""
    slots = [slot for slot, operand in enumerate(node.operands) if operand in tangents]
    operands, expr = _pushed(node, tangents, slots)
    others = product_of_others(elementwise(node.domain, node.operands, node.expr), node.axes)
    part = expr * Operand(others.dtype, len(operands) - 1)
    return sum_over(elementwise(node.domain, (*operands[:-1], others), part), node.axes)


_REDUCTIONS: Mapping[Reduce | None, Callable[[MapReduce, Tangents], Node]] = {
    None: _sum,
    Reduce.SUM: _sum,
    Reduce.PROD: _prod,
    Reduce.MAX: _extreme,
    Reduce.MIN: _extreme,
}


# -- one rule for each kind of node -------------------------------------------------------------------------------


def _leaf(node: Node, tangents: Tangents) -> Node:
    raise AssertionError(f"{node!r} reads nothing, so no derivative flows to it")


def _map_reduce(node: MapReduce, tangents: Tangents) -> Node:
    return _REDUCTIONS[node.reduce](node, tangents)


def _view(node: View, tangents: Tangents) -> Node:
    return view(tangents[node.src], node.shape, node.index, node.conditions, const(0, node.dtype))


def _gather(node: Gather, tangents: Tangents) -> Node:
    return Gather(tangents[node.src], node.indices, None if node.fill is None else const(0, node.dtype), node.strict)


def _scatter(node: Scatter, tangents: Tangents) -> Node:
    return scatter_tangent(node, tangents.get(node.base), tangents.get(node.updates))


def _cumulative(node: Cumulative, tangents: Tangents) -> Node:
    return cumulative_tangent(node, [tangents.get(operand) for operand in node.operands])


def _contiguous(node: Contiguous, tangents: Tangents) -> Node:
    return Contiguous(tangents[node.src])


def _row_wise(node: RowWise, tangents: Tangents) -> Node:
    """The tangents in the order of the keys."""
    assert not ROWS[node.function].positions
    values = node.operands[-1]
    if values not in tangents:  # the keys have no derivative
        return constant(0, node)
    return RowWise(RowOp.SORT_BY, (node.operands[0], tangents[values]), node.reverse)


def _examples(node: Examples, tangents: Tangents) -> Node:
    return Examples(tangents[node.operand], node.number, node.size)


def _iteration(node: Iteration, tangents: Tangents) -> list[Pushed]:
    return push(node, tangents, jvp)


def _custom(node: Custom, tangents: Tangents) -> list[Pushed]:
    return push_custom(node, tangents)


def _foreign(node: Foreign, tangents: Tangents) -> list[Pushed]:
    raise without_derivative(node)


def _part(node: Part, tangents: Tangents) -> Node:
    raise AssertionError("the rule of its iteration gives its tangent, too")


RULES: dict[type[Node], Callable[..., Any]] = {
    Input: _leaf,
    Constant: _leaf,
    MapReduce: _map_reduce,
    View: _view,
    Gather: _gather,
    Scatter: _scatter,
    Cumulative: _cumulative,
    Contiguous: _contiguous,
    RowWise: _row_wise,
    Examples: _examples,
    HostCall: _leaf,
    Iteration: _iteration,
    Custom: _custom,
    Foreign: _foreign,
    Part: _part,
}
