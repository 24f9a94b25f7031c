"""The rules of running sums, products, extrema and of linear recurrences: each is linear in time, to any order.

The cotangents of r[i] = a[i]*r[i-1] + b[i] run the other way. With ct[i] that of the result r[i], the total cotangent
of r[i], through later results too, is g[i] = ct[i] + a[i+1]*g[i+1]; so b[i] gets g[i], and a[i] gets g[i]*r[i-1]. A
running product is such a recurrence in which b is 0, so nothing is divided by, and its derivatives are exact beside
zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harp.trace.graph.node import Cumulative, Gather, MapReduce, Node, Put, Scatter, positions
from harp.trace.graph.view import pad, permute, reshape
from harp.trace.index.polynomial import product
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Operand, Position, apply, const, select
from harp.trace.scalar.ops import Op, Reduce

Cotangents = list[tuple[Node, Node]]


def cumulative_adjoint(node: Cumulative, ct: Node) -> Cotangents:
    """Each operand with its cotangent."""
    return _RULES[node.reduce](node, ct)


def _sum(node: Cumulative, ct: Node) -> Cotangents:
    return [(node.operands[0], Cumulative((ct,), Reduce.SUM, node.axis, not node.backward))]


def _product(node: Cumulative, ct: Node) -> Cotangents:
    (x,) = node.operands
    return [(x, _multiply(_shifted(node, node, 1, 1), _whole_cotangent(node, x, ct)))]


def _recurrence(node: Cumulative, ct: Node) -> Cotangents:
    a, b = node.operands
    whole = _whole_cotangent(node, a, ct)
    return [(b, whole), (a, _multiply(_shifted(node, node, 1, 0), whole))]


def _whole_cotangent(node: Cumulative, factors: Node, ct: Node) -> Node:
    """g[i] = ct[i] + factors[i+1]*g[i+1]"""
    return Cumulative((_shifted(node, factors, -1, 0), ct), None, node.axis, not node.backward)


def _extreme(node: Cumulative, ct: Node) -> Cotangents:
    """At k, the sum of ct[i] over all i at which the extremum r[i] is element k."""
    (x,) = node.operands
    zeros = MapReduce(node.shape, (), const(0, ct.dtype))
    return [(x, Scatter(zeros, origins(node), ct, Put.ADD, True))]


def origins(node: Cumulative) -> tuple[Node, ...]:
    """For each result of a running extremum, the index of the element that it is: the first that is as large, or NaN.
    An element that exceeds the extremum before it is a new extremum; a running maximum of the indices of these gives
    the latest one at each index.
    """
    (x,) = node.operands
    assert node.reduce is not None
    before = _shifted(node, node, 1, node.reduce.identity(node.dtype))
    here, axis = positions(node.shape), node.axis
    number = here[axis] if not node.backward else node.shape[axis] - 1 - here[axis]
    now, was = Operand(node.dtype, 0), Operand(node.dtype, 1)
    beyond = was < now if node.reduce is Reduce.MAX else now < was
    is_nan, was_nan = (~apply(Op.EQ, e, e) for e in (now, was))
    begins = beyond | is_nan & ~was_nan
    begun = MapReduce(node.shape, (x, before), select(begins, Position(number), const(0, i64)))
    origin: Node = Cumulative((begun,), Reduce.MAX, axis, node.backward)
    if node.backward:
        place = Position(node.shape[axis] - 1) - Operand(i64, 0)
        origin = MapReduce(node.shape, (origin,), place)
    return tuple(origin if a == axis else MapReduce(node.shape, (), Position(p)) for a, p in enumerate(here))


def product_of_others(values: Node, axes: tuple[int, ...]) -> Node:
    """For each value the product of all others along the axes: of those before it and of those after it."""
    kept = tuple(axis for axis in range(len(values.shape)) if axis not in axes)
    order = (*kept, *axes)
    last = permute(values, order)
    rows = reshape(last, (*last.shape[: len(kept)], product(values.shape[axis] for axis in axes)))
    running = [Cumulative((rows,), Reduce.PROD, len(kept), backward) for backward in (False, True)]
    others = _multiply(*(_shifted(r, r, 1, 1) for r in running))
    return permute(reshape(others, last.shape), [order.index(axis) for axis in range(len(order))])


def _multiply(a: Node, b: Node) -> Node:
    return MapReduce(a.shape, (a, b), Operand(a.dtype, 0) * Operand(b.dtype, 1))


def _add(a: Node, b: Node) -> Node:
    return MapReduce(a.shape, (a, b), Operand(a.dtype, 0) + Operand(b.dtype, 1))


def _shifted(node: Cumulative, values: Node, by: int, fill: object) -> Node:
    """The values moved `by` positions in the direction in which the node runs; `fill` comes in."""
    steps = [0] * len(values.shape)
    steps[node.axis] = -by if node.backward else by
    return pad(values, steps, [-step for step in steps], const(fill, values.dtype))


_RULES: Mapping[Reduce | None, Callable[[Cumulative, Node], Cotangents]] = {
    None: _recurrence,
    Reduce.SUM: _sum,
    Reduce.PROD: _product,
    Reduce.MAX: _extreme,
    Reduce.MIN: _extreme,
}


# -- forward ------------------------------------------------------------------------------------------------------


def cumulative_tangent(node: Cumulative, tangents: Sequence[Node | None]) -> Node:
    """The tangent of the results, given those of the operands; None is 0."""
    return _TANGENTS[node.reduce](node, tangents)


def _sum_tangent(node: Cumulative, tangents: Sequence[Node | None]) -> Node:
    (t,) = tangents
    assert t is not None
    return Cumulative((t,), Reduce.SUM, node.axis, node.backward)


def _product_tangent(node: Cumulative, tangents: Sequence[Node | None]) -> Node:
    """t[i] = x[i]*t[i-1] + tx[i]*r[i-1]"""
    ((x,), (t,)) = node.operands, tangents
    assert t is not None
    return Cumulative((x, _multiply(t, _shifted(node, node, 1, 1))), None, node.axis, node.backward)


def _recurrence_tangent(node: Cumulative, tangents: Sequence[Node | None]) -> Node:
    """t[i] = a[i]*t[i-1] + (ta[i]*r[i-1] + tb[i])"""
    ta, tb = tangents
    part = None if ta is None else _multiply(ta, _shifted(node, node, 1, 0))
    change = tb if part is None else part if tb is None else _add(part, tb)
    assert change is not None
    return Cumulative((node.operands[0], change), None, node.axis, node.backward)


def _extreme_tangent(node: Cumulative, tangents: Sequence[Node | None]) -> Node:
    (t,) = tangents
    assert t is not None
    return Gather(t, origins(node))


_TANGENTS: Mapping[Reduce | None, Callable[[Cumulative, Sequence[Node | None]], Node]] = {
    None: _recurrence_tangent,
    Reduce.SUM: _sum_tangent,
    Reduce.PROD: _product_tangent,
    Reduce.MAX: _extreme_tangent,
    Reduce.MIN: _extreme_tangent,
}
