"""The rules of gathers and scatters: what a gather reads is added up by a scatter, what a scatter puts is gathered.

Sums of cotangents go in the order of the indices, so gradients are deterministic, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harp.trace.graph.node import Body, Gather, Iteration, MapReduce, Node, Put, Scatter, body_input, positions
from harp.trace.graph.view import flatten_index, reshape, view
from harp.trace.index.polynomial import ONE, Shape, product
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import (
    Expr,
    Operand,
    Position,
    apply,
    cast,
    const,
    operands_in,
    select,
    substitute,
)
from harp.trace.scalar.ops import Op, Reduce


def constant(value: float, like: Node) -> Node:
    """An array of one number with the shape and dtype of another."""
    return MapReduce(like.shape, (), const(value, like.dtype))


def is_zero(node: Node) -> bool:
    """Whether an array is known to be zeros, as `constant` makes them."""
    return node is constant(0, node)


def elementwise(domain: Shape, operands: Sequence[Node], expr: Expr, summed: Sequence[int] = ()) -> Node:
    """A map over those operands that `expr` uses, each once, and its sum over some axes; an operand itself where no
    more is needed."""
    if isinstance(expr, Operand) and not summed:
        return operands[expr.slot]
    used = operands_in(expr)
    kept = list(dict.fromkeys(operands[x.slot] for x in used))
    slots: dict[int, Expr] = {x.slot: Operand(x.dtype, kept.index(operands[x.slot])) for x in used}
    return MapReduce(domain, tuple(kept), substitute(expr, slots), Reduce.SUM if summed else None, tuple(summed))


def binary(op: Op, a: Node, b: Node) -> Node:
    """A map over two arrays."""
    return elementwise(a.shape, (a, b), apply(op, Operand(a.dtype, 0), Operand(b.dtype, 1)))


# -- adjoints of gathers and scatters -------------------------------------------------------------------------------


def gather_adjoint(node: Gather, ct: Node) -> Node:
    """The cotangent of `node.src`: each element gets the sum of the cotangents of the positions that read it."""
    return Scatter(constant(0, node.src), node.indices, ct, Put.ADD, node.fill is None, False, node.strict)


def scatter_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """The tangent of the result, given those of `node.base` and of `node.updates`; None is 0."""
    return _TANGENTS[node.kind](node, base, updates)


def scatter_adjoints(node: Scatter, ct: Node) -> tuple[Callable[[], Node], Callable[[], Node]]:
    """Functions that make the cotangent of `node.base`, and that of `node.updates`."""
    base, updates = _ADJOINTS[node.kind]
    return (lambda: base(node, ct)), (lambda: updates(node, ct))


def _at_updates(node: Scatter, array: Node) -> Node:
    """The elements of `array` at the positions of the updates; 0 for updates that are dropped."""
    return Gather(array, node.indices, None if node.clips else const(0, array.dtype), node.strict)


def put(node: Scatter, base: Node, updates: Node, kind: Put) -> Node:
    """A scatter like `node`, at the same indices, with another base, updates and kind."""
    return Scatter(base, node.indices, updates, kind, node.clips, node.unique, node.strict)


def _same(node: Scatter, ct: Node) -> Node:
    return ct


def _read_cotangent(node: Scatter, ct: Node) -> Node:
    return _at_updates(node, ct)


# --- set: the last update of an element is the result


def _not_written(node: Scatter, ct: Node) -> Node:
    return put(node, ct, constant(0, node.updates), Put.SET)


def _where_last(node: Scatter, ct: Node) -> Node:
    read, shape = _at_updates(node, ct), node.indices[0].shape
    if _are_distinct(node):
        return read
    number = MapReduce(shape, (), Position(flatten_index(positions(shape), shape)))
    nobody = MapReduce(node.base.shape[: len(node.indices)], (), const(-1, i64))
    last = _at_updates(node, put(node, nobody, number, Put.SET))
    mine = binary(Op.EQ, last, number)
    spread = view(mine, read.shape, positions(read.shape)[: len(shape)])
    chosen = select(Operand(bool_, 0), Operand(read.dtype, 1), const(0, read.dtype))
    return elementwise(read.shape, (spread, read), chosen)


# --- multiply


def _are_distinct(node: Scatter) -> bool:
    """Whether no element is known to have two updates: for each axis of the updates, there is an axis of the base of
    that size along which the index is the position, as in x.at[:, i]."""
    shape = node.indices[0].shape
    if node.unique or product(shape) is ONE:
        return True
    places = list(zip(node.indices, node.base.shape, strict=False))
    numbers = [(MapReduce(shape, (), Position(p)), size) for p, size in zip(positions(shape), shape, strict=True)]
    return all(number in places for number in numbers)


def _times_updates(node: Scatter, ct: Node) -> Node:
    factors = put(node, constant(1, node.base), node.updates, Put.MULTIPLY)
    return binary(Op.MUL, ct, factors)


def _times_base(node: Scatter, ct: Node) -> Node:
    return _times_others(node, _at_updates(node, binary(Op.MUL, ct, node.base)))


def _times_others(node: Scatter, values: Node) -> Node:
    """The values times the other updates of the same element: the product of those before and that of those after each.
    There is no division, so derivatives are exact beside zeros, to any order."""
    if _are_distinct(node):
        return values
    before, behind = (_running_products(node, backward) for backward in (False, True))
    return binary(Op.MUL, values, binary(Op.MUL, before, behind))


def _running_products(node: Scatter, backward: bool) -> Node:
    """For each update, the product of the updates of the same element before it, or after it: a loop over the updates
    that reads the product so far and then multiplies it."""
    shape, row = node.indices[0].shape, node.updates.shape[len(node.indices[0].shape) :]
    count = product(shape)
    elements = [*(reshape(index, (count,)) for index in node.indices), reshape(node.updates, (count, *row))]
    products = constant(1, node.base)
    kinds = [((), i64), (products.shape, products.dtype), *((e.shape[1:], e.dtype) for e in elements)]
    inputs = tuple(body_input(place, *kind) for place, kind in enumerate(kinds))
    _, now, *places, update = inputs
    fill = None if node.clips else const(0, now.dtype)
    outputs = Scatter(now, tuple(places), update, Put.MULTIPLY, node.clips, True), Gather(now, tuple(places), fill)
    loop = Iteration(count, (products, *elements), Body(inputs, outputs, 1, len(elements)), False, backward)
    return reshape(loop.parts[1], node.updates.shape)


# --- minimum, maximum: equal shares for all that equal the result


def _is_chosen(value: Node, result: Node) -> Node:
    """Where a value equals the result; where the result is NaN, where the value is NaN."""
    a, b = Operand(value.dtype, 0), Operand(value.dtype, 1)
    nan = ~apply(Op.EQ, a, a)
    return elementwise(value.shape, (value, result), apply(Op.EQ, a, b) | nan)


def _share(node: Scatter, ct: Node) -> Node:
    """The cotangent, divided by the number of ties: elements and updates that equal the extremum."""
    count = put(
        node,
        _as_number(_is_chosen(node.base, node), ct),
        _as_number(_is_chosen(node.updates, _at_updates(node, node)), ct),
        Put.ADD,
    )
    return binary(Op.DIV, ct, count)


def _as_number(mask: Node, like: Node) -> Node:
    return elementwise(mask.shape, (mask,), cast(Operand(bool_, 0), like.dtype))


def _if_chosen(value: Node, result: Node, share: Node) -> Node:
    chosen = select(Operand(bool_, 0), Operand(share.dtype, 1), const(0, share.dtype))
    return elementwise(value.shape, (_is_chosen(value, result), share), chosen)


def _base_share(node: Scatter, ct: Node) -> Node:
    return _if_chosen(node.base, node, _share(node, ct))


def _updates_share(node: Scatter, ct: Node) -> Node:
    return _if_chosen(node.updates, _at_updates(node, node), _at_updates(node, _share(node, ct)))


_Adjoint = Callable[[Scatter, Node], Node]
_ADJOINTS: Mapping[Put, tuple[_Adjoint, _Adjoint]] = {
    Put.SET: (_not_written, _where_last),
    Put.ADD: (_same, _read_cotangent),
    Put.MULTIPLY: (_times_updates, _times_base),
    Put.MIN: (_base_share, _updates_share),
    Put.MAX: (_base_share, _updates_share),
}


# -- forward ------------------------------------------------------------------------------------------------------


def _put_tangents(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    return put(node, base or constant(0, node.base), updates or constant(0, node.updates), node.kind)


def _product_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """tb*u + b*tu*(all other u)"""
    by_base = constant(0, node) if base is None else _times_updates(node, base)
    if updates is None:
        return by_base
    by_updates = _times_others(node, binary(Op.MUL, updates, _at_updates(node, node.base)))
    return put(node, by_base, by_updates, Put.ADD)


def _mean_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """The mean of the tangents over all ties."""
    by_base = _if_chosen(node.base, node, base or constant(0, node.base))
    by_updates = _if_chosen(node.updates, _at_updates(node, node), updates or constant(0, node.updates))
    return _share(node, put(node, by_base, by_updates, Put.ADD))


_TANGENTS: Mapping[Put, Callable[[Scatter, Node | None, Node | None], Node]] = {
    Put.SET: _put_tangents,
    Put.ADD: _put_tangents,
    Put.MULTIPLY: _product_tangent,
    Put.MIN: _mean_tangent,
    Put.MAX: _mean_tangent,
}
