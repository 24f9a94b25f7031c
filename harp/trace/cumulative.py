"""Running sums, products and extrema are no nodes of their own: they are masked reductions, which this file recognises.

    r[.., i, ..] = reduce over k of (v[.., k, ..] where k <= i, else the identity)       from the front
    r[.., i, ..] = reduce over k of (v[.., k, ..] where k >= i, else the identity)       from the back

The mask is a condition of a view, so that what it leaves out is never computed with, and the adjoint of one is the
other. Taken literally they take quadratic time; `harp.trace.interpret` and `harp.lower.prefix` run along i once.
"""

from __future__ import annotations

import attrs

from harp.trace.division import Substitution
from harp.trace.expr import Expr, Operand, Position, const, substitute, walk
from harp.trace.index import Index, Loop, loop, loops_in
from harp.trace.node import MapReduce, Node, View, positions
from harp.trace.ops import Reduce
from harp.trace.view import view


@attrs.frozen(eq=False)
class Running:
    """`values`, of the result's shape, are accumulated along `axis`: from the back, if `backward`."""

    values: Node
    reduce: Reduce
    axis: int
    backward: bool


def masked(values: Node, reduce: Reduce, axis: int, backward: bool = False) -> Node:
    """values[.., k, ..] at (.., i, .., k) where k <= i, else the identity: what a running reduction reduces over k."""
    domain = (*values.shape, values.shape[axis])
    *here, k = positions(domain)
    index = tuple(k if a == axis else p for a, p in enumerate(here))
    ahead = k - here[axis] if backward else here[axis] - k
    return view(values, domain, index, (ahead,), const(reduce.identity(values.dtype), values.dtype))


def running(node: Node) -> Running | None:
    """What a node accumulates, if it is a running reduction."""
    if not isinstance(node, MapReduce) or node.reduce is None or node.axes != (len(node.domain) - 1,):
        return None
    views = [operand for operand in node.operands if isinstance(operand, View)]
    k = loop(node.axes[0], node.domain[-1])
    for condition in dict.fromkeys(c for operand in views for c in operand.conditions):
        for axis, i in enumerate(positions(node.domain)[:-1]):
            backward = condition is k - i
            if i.atom is not None and node.domain[axis] is node.domain[-1] and (backward or condition is i - k):
                values = _values(node, condition, i, k)
                return None if values is None else Running(values, node.reduce, axis, backward)
    return None


def _values(node: MapReduce, condition: Index, i: Index, k: Index) -> Node | None:
    """What is reduced where the condition holds, at i in place of k; None if that depends on i as well as on k, or if
    the rest is not the identity."""
    assert node.reduce is not None and isinstance(i.atom, Loop) and isinstance(k.atom, Loop)
    fills: dict[int, Expr] = {}
    operands: list[Node] = []
    mentioned = [e.index for e in walk((node.expr,)) if isinstance(e, Position)]
    along = Substitution({k.atom: i})
    for slot, operand in enumerate(node.operands):
        if not isinstance(operand, View):
            return None
        if condition in operand.conditions and operand.fill is not None:
            fills[slot] = operand.fill
        left = tuple(c for c in operand.conditions if c is not condition)
        mentioned += [*operand.index, *left]
        operands.append(view(operand.src, node.shape, along.each(operand.index), along.each(left), operand.fill))
    identity = const(node.reduce.identity(node.dtype), node.dtype)
    if any(i.atom in loops_in(p) for p in mentioned) or substitute(node.expr, fills) is not identity:
        return None
    if isinstance(node.expr, Operand):
        return operands[node.expr.slot]
    return MapReduce(node.shape, tuple(operands), substitute(node.expr, {}, along))
