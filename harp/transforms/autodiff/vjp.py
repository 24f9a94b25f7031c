"""Reverse-mode differentiation of graphs: one rule for each kind of node.

The cotangent of a node is the sum of what its users send back. A rule receives a node and its cotangent and gives
the cotangents of the inputs that lie between `wrt` and the outputs. Its results are nodes of the same few kinds, so
that the result can be differentiated again; the forward's own nodes are used as they are, by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce

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
    at,
    fresh_input,
    positions,
)
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.graph.view import multiplies_matrices, view
from harp.trace.index.polynomial import ZERO, Shape, loops_in
from harp.trace.scalar.expr import Apply, Expr, Operand, apply, cast, const, overwriting, select
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.autodiff.active import Active, Sites, active_slots, between, require_inexact
from harp.transforms.autodiff.cotangents import added, known_zeros, summands
from harp.transforms.autodiff.cumulative_rules import cumulative_adjoint, product_of_others
from harp.transforms.autodiff.custom_rules import pull_custom
from harp.transforms.autodiff.gather_rules import constant, elementwise, gather_adjoint, scatter_adjoints
from harp.transforms.autodiff.loops.parts import put_back
from harp.transforms.autodiff.loops.rules import pull, saving
from harp.transforms.autodiff.scalar_rules import pullback
from harp.transforms.autodiff.view_rules import sum_over, view_adjoint
from harp.transforms.rules import apply_rule, without_derivative

Cotangents = list[tuple[Node, Node]]  # an input of the node, and what the node sends back to it


def vjp(graph: Graph, wrt: Sequence[Input]) -> Graph:
    """The graph from the inputs, and a cotangent for each floating-point output, to the cotangents of `wrt`.

    It has no token: calls of Python are those of the function, which has run before, or runs beside it.

    Raises MissingRuleError, with the user's line, for a node that has no rule, and IntegerGradientError if `wrt` names
    an input that is not of floating point.
    """
    require_inexact(wrt)
    graph = prepared(graph, wrt)
    seeds: list[tuple[Node, Input]] = []
    for output in graph.outputs:
        if output.dtype.is_inexact:
            seeds.append((output, fresh_input(f"cotangent{len(seeds)}", output.shape, output.dtype)))
    order = graph.nodes()
    active = between(order, wrt)
    sites = Sites(graph, [seed for _, seed in seeds])
    cotangents: dict[Node, Node] = {}
    for output, seed in seeds:
        _accumulate(cotangents, output, seed)
    for node in reversed(order):
        ct = _result_cotangents(node, cotangents) if isinstance(node, Several) else cotangents.get(node)
        if not ct or node not in active:
            continue
        parts = apply_rule(RULES, "the gradient", graph, node, ct, active)
        for child, part in parts:
            _accumulate(cotangents, child, part)
        sites.name((cotangents[child] for child, _ in parts), node)
    outputs = tuple(cotangents.get(i) or constant(0, i) for i in wrt)
    return Graph((*graph.inputs, *(seed for _, seed in seeds)), outputs, sites.sites)


def prepared(graph: Graph, wrt: Sequence[Input]) -> Graph:
    """The graph as `vjp` needs it: the same values, with iterations that keep what their reverse pass reads."""
    active = between(graph.nodes(), wrt)
    return saving(graph, active.__contains__) if any(isinstance(node, Iteration) for node in active) else graph


def _result_cotangents(node: Several, cotangents: Mapping[Node, Node]) -> Mapping[int, Node]:
    """The cotangents of the results of a node that has several, by number."""
    return {part.number: cotangents[part] for part in node.parts if part in cotangents}


def _accumulate(cotangents: dict[Node, Node], node: Node, part: Node) -> None:
    known = cotangents.get(node)
    cotangents[node] = part if known is None else added(known, part)


# -- helpers ------------------------------------------------------------------------------------------------------


def _spread(node: Node, domain: Shape, axes: Sequence[int]) -> Node:
    """A reduced array, broadcast to `domain` along the axes of the reduction."""
    return view(node, domain, tuple(p for axis, p in enumerate(positions(domain)) if axis not in axes))


def _send_back(node: MapReduce, active: Active, extra: Sequence[Node], seed: Expr) -> Cotangents:
    """Pull `seed`, an expression over the node's operands and the extra ones behind them, back through its `expr`.

    A derivative that contains the node's value, as that of exp does, reads it instead of computing it again. Not so
    that of hypot: its second derivatives have terms that cancel, which must stay within one expression.
    """
    operands = (*node.operands, *extra)
    alone = isinstance(node.expr, Apply) and node.expr.op is Op.HYPOT
    value = Operand(node.dtype, len(operands)) if node.reduce is None and not alone else None
    parts = pullback(node.expr, seed, active_slots(node, active), value)
    return [(node.operands[slot], elementwise(node.domain, (*operands, node), e)) for slot, e in parts.items()]


# -- reductions ---------------------------------------------------------------------------------------------------


def _sum(node: MapReduce, ct: Node, active: Active) -> Cotangents:
    """Also of no reduction, which is a sum over no axes."""
    spread = _spread(ct, node.domain, node.axes)
    return _send_back(node, active, [spread], Operand(ct.dtype, len(node.operands)))


def _extreme(node: MapReduce, ct: Node, active: Active) -> Cotangents:
    """Equal shares for all elements that equal the result; where that is NaN, for all NaN."""
    first = len(node.operands)
    chosen = _spread(node, node.domain, node.axes)
    equal = apply(Op.EQ, node.expr, Operand(node.dtype, first))
    mask = equal | ~apply(Op.EQ, node.expr, node.expr)
    counted = elementwise(node.domain, (*node.operands, chosen), cast(mask, ct.dtype))
    count = sum_over(counted, node.axes)
    share = elementwise(ct.shape, (ct, count), Operand(ct.dtype, 0) / Operand(ct.dtype, 1))
    spread = _spread(share, node.domain, node.axes)
    seed = select(mask, Operand(ct.dtype, first + 1), const(0, ct.dtype))
    return _send_back(node, active, [chosen, spread], seed)


def _prod(node: MapReduce, ct: Node, active: Active) -> Cotangents:
    """The product of all others: exact with zeros, at every order."""
    others = product_of_others(elementwise(node.domain, node.operands, node.expr), node.axes)
    seed = Operand(ct.dtype, len(node.operands)) * Operand(ct.dtype, len(node.operands) + 1)
    return _send_back(node, active, [_spread(ct, node.domain, node.axes), others], seed)


_REDUCTIONS: Mapping[Reduce | None, Callable[[MapReduce, Node, Active], Cotangents]] = {
    None: _sum,
    Reduce.SUM: _sum,
    Reduce.PROD: _prod,
    Reduce.MAX: _extreme,
    Reduce.MIN: _extreme,
}


# -- one rule for each kind of node -------------------------------------------------------------------------------


def _leaf(node: Node, ct: Node, active: Active) -> Cotangents:
    return []


def _map_reduce(node: MapReduce, ct: Node, active: Active) -> Cotangents:
    """Known zeros of the cotangent are put in after the derivative, which may be infinite. Updates pass them on."""
    multiplies = node.reduce is None and isinstance(node.expr, Apply) and not overwriting(node.expr)
    zeros = known_zeros(ct) if multiplies else None
    if zeros is None:
        return _REDUCTIONS[node.reduce](node, ct, active)
    parts = _REDUCTIONS[None](node, zeros.values, active)
    return [(operand, ct if part is zeros.values else zeros.again(part)) for operand, part in parts]


def _view(node: View, ct: Node, active: Active) -> Cotangents:
    """Summands of the cotangent that become matrix products by the adjoint's sum are added after it, not before: an
    attention layer with three products of one array has three matrix products in its gradient, too."""
    in_place = put_back(node, ct)
    if in_place is not None:
        return [(node.src, in_place)]
    used = {loop.axis for p in node.index for loop in loops_in(p)}
    unused = [axis for axis in range(len(node.shape)) if axis not in used]
    apart: list[Node] = []
    others: list[Node] = []
    for part in summands(ct) if unused else ():
        multiplies = isinstance(part, MapReduce) and multiplies_matrices(part, unused)
        (apart if multiplies else others).append(part)
    if not apart:
        return [(node.src, view_adjoint(node, ct))]
    parts = [*apart, reduce(added, others)] if others else apart
    return [(node.src, view_adjoint(node, part)) for part in parts]


def _gather(node: Gather, ct: Node, active: Active) -> Cotangents:
    return [(node.src, gather_adjoint(node, ct))]


def _scatter(node: Scatter, ct: Node, active: Active) -> Cotangents:
    ends = zip((node.base, node.updates), scatter_adjoints(node, ct), strict=True)
    return [(end, cotangent()) for end, cotangent in ends if end in active]


def _cumulative(node: Cumulative, ct: Node, active: Active) -> Cotangents:
    return [(operand, part) for operand, part in cumulative_adjoint(node, ct) if operand in active]


def _contiguous(node: Contiguous, ct: Node, active: Active) -> Cotangents:
    """The cotangent is made contiguous, too, since it is read in the same order as the array."""
    return [(node.src, Contiguous(ct))]


def _row_wise(node: RowWise, ct: Node, active: Active) -> Cotangents:
    """Element i came from place order[i], so the cotangents go back in the order of these places."""
    assert not ROWS[node.function].positions
    values = node.operands[-1]
    if values not in active:  # the keys have no derivative
        return []
    order = RowWise(RowOp.ORDER, (node.operands[0],), node.reverse)
    return [(values, RowWise(RowOp.SORT_BY, (order, ct)))]


def _examples(node: Examples, ct: Node, active: Active) -> Cotangents:
    """The sum of the cotangents that all examples have for this one. Cotangents that do not depend on the example that
    asks, as behind a sum, are summed once: n additions instead of n*n."""
    if isinstance(ct, View) and not ct.conditions and not any(p.axis == 0 for i in ct.index for p in loops_in(i)):
        shape = node.operand.shape
        same = view(ct.src, shape, at(ct.shape, (ZERO, *positions(shape))).each(ct.index))
        return [(node.operand, sum_over(Examples(same, node.number, node.size), (0,)))]
    added_up = sum_over(Examples(ct, node.number, node.size), (0,))
    return [(node.operand, Gather(added_up, (node.number,), None))]


def _iteration(node: Iteration, cts: Mapping[int, Node], active: Active) -> Cotangents:
    return pull(node, cts, active.__contains__, vjp)


def _custom(node: Custom, cts: Mapping[int, Node], active: Active) -> Cotangents:
    return pull_custom(node, cts, active.__contains__)


def _foreign(node: Foreign, cts: Mapping[int, Node], active: Active) -> Cotangents:
    raise without_derivative(node)


RULES: dict[type[Node], Callable[..., Cotangents]] = {
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
    Part: _leaf,  # its cotangent is collected with those of the other results
}
