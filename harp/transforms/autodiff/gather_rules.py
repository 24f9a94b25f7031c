"""The rules of gathers and scatters: what a gather reads is added up by a scatter, what a scatter puts is gathered.

Sums of cotangents go in the order of the indices, so gradients are deterministic, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from harp.trace.graph.node import Body, Gather, Iteration, MapReduce, Node, Put, Scatter, View, body_input, positions
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
    overwriting,
    overwritten,
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
    """A map over those operands that `expr` uses, each once, and its sum over some axes; an operand itself where that
    is all there is."""
    if isinstance(expr, Operand) and not summed:
        return operands[expr.slot]
    used = operands_in(expr)
    kept = list(dict.fromkeys(operands[x.slot] for x in used))
    slots: dict[int, Expr] = {x.slot: Operand(x.dtype, kept.index(operands[x.slot])) for x in used}
    return MapReduce(domain, tuple(kept), substitute(expr, slots), Reduce.SUM if summed else None, tuple(summed))


def _binary(op: Op, a: Node, b: Node) -> Node:
    return elementwise(a.shape, (a, b), apply(op, Operand(a.dtype, 0), Operand(b.dtype, 1)))


# -- known zeros: the cotangent of an array, some elements of which were overwritten


class KnownZeros(NamedTuple):
    """A cotangent, some elements of which are certain to be 0: `values` has other numbers there, and `again` makes
    these elements of an array of that shape 0."""

    values: Node
    again: Callable[[Node], Node]


def known_zeros(ct: Node) -> KnownZeros | None:
    """The elements of a cotangent that are 0 since the primal's were overwritten; None if none are known.

    A derivative of the primal may be infinite there, so these zeros are not multiplied by it but put in afterwards.
    """
    if isinstance(ct, Scatter) and _sets_zeros(ct) and _with_zeros(ct.base) is None:
        return KnownZeros(ct.base, lambda node: _put(ct, node, _zeros(ct.updates, node), Put.SET))
    found = _with_zeros(ct)
    if found is None:
        return None
    values, mask = found
    return KnownZeros(values, lambda node: _zeros_at(mask, node))


def _with_zeros(ct: Node) -> tuple[Node, Node] | None:
    """A cotangent as its values, and a mask of the elements that are 0 whatever these are. One mask for all that was
    overwritten, one after the other."""
    mask: Node | None = None
    while True:
        if isinstance(ct, Scatter) and _sets_zeros(ct):
            here = MapReduce(ct.updates.shape, (), const(True, bool_))
            before = MapReduce(ct.shape, (), const(False, bool_)) if mask is None else mask
            mask = _put(ct, before, here, Put.SET)
            ct = ct.base
            continue
        found = _selected(ct) or _viewed(ct)
        if found is None:
            return None if mask is None else (ct, mask)
        ct, more = found
        mask = more if mask is None else _binary(Op.OR, mask, more)


def _selected(ct: Node) -> tuple[Node, Node] | None:
    """Values and mask of what an overwriting select makes."""
    parts = overwriting(ct.expr) if isinstance(ct, MapReduce) and ct.reduce is None else None
    if not isinstance(ct, MapReduce) or parts is None or parts[1] is not const(0, ct.dtype):
        return None
    return elementwise(ct.domain, ct.operands, parts[2]), elementwise(ct.domain, ct.operands, parts[0])


def _viewed(ct: Node) -> tuple[Node, Node] | None:
    """Values and mask of a view of these."""
    found = _with_zeros(ct.src) if isinstance(ct, View) else None
    if not isinstance(ct, View) or found is None:
        return None
    no = None if ct.fill is None else const(False, bool_)
    made = view(found[0], ct.shape, ct.index, ct.conditions, ct.fill)
    return made, view(found[1], ct.shape, ct.index, ct.conditions, no)


def _sets_zeros(node: Scatter) -> bool:
    return node.kind is Put.SET and is_zero(node.updates)


def _zeros(shaped: Node, like: Node) -> Node:
    return MapReduce(shaped.shape, (), const(0, like.dtype))


def _zeros_at(mask: Node, node: Node) -> Node:
    expr = overwritten(Operand(bool_, 0), const(0, node.dtype), Operand(node.dtype, 1))
    return elementwise(node.shape, (mask, node), expr)


# -- adjoints of gathers and scatters -------------------------------------------------------------------------------


def gather_adjoint(node: Gather, ct: Node) -> Node:
    """The cotangent of `node.src`: each element takes the sum of what was read from it."""
    return Scatter(constant(0, node.src), node.indices, ct, Put.ADD, node.fill is None, False, node.strict)


def scatter_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """The tangent of the result, given those of `node.base` and of `node.updates`; None is 0."""
    return _TANGENTS[node.kind](node, base, updates)


def scatter_adjoints(node: Scatter, ct: Node) -> tuple[Callable[[], Node], Callable[[], Node]]:
    """What makes the cotangent of `node.base`, and what makes that of `node.updates`."""
    base, updates = _ADJOINTS[node.kind]
    return (lambda: base(node, ct)), (lambda: updates(node, ct))


def _read(node: Scatter, array: Node) -> Node:
    """`array` where the updates go; 0 for those that are dropped."""
    return Gather(array, node.indices, None if node.clips else const(0, array.dtype), node.strict)


def _put(node: Scatter, base: Node, updates: Node, kind: Put) -> Node:
    return Scatter(base, node.indices, updates, kind, node.clips, node.unique, node.strict)


def _same(node: Scatter, ct: Node) -> Node:
    return ct


def _read_cotangent(node: Scatter, ct: Node) -> Node:
    return _read(node, ct)


# --- set: the last update of a place is there


def _not_written(node: Scatter, ct: Node) -> Node:
    return _put(node, ct, constant(0, node.updates), Put.SET)


def _where_last(node: Scatter, ct: Node) -> Node:
    read, shape = _read(node, ct), node.indices[0].shape
    if _are_distinct(node):
        return read
    number = MapReduce(shape, (), Position(flatten_index(positions(shape), shape)))
    nobody = MapReduce(node.base.shape[: len(node.indices)], (), const(-1, i64))
    last = _read(node, _put(node, nobody, number, Put.SET))
    mine = _binary(Op.EQ, last, number)
    spread = view(mine, read.shape, positions(read.shape)[: len(shape)])
    chosen = select(Operand(bool_, 0), Operand(read.dtype, 1), const(0, read.dtype))
    return elementwise(read.shape, (spread, read), chosen)


# --- multiply


def _are_distinct(node: Scatter) -> bool:
    """Whether it is known that no place has two updates: for each axis of the updates, there is an axis of the base of
    that size along which the index is the position, as in x.at[:, i]."""
    shape = node.indices[0].shape
    if node.unique or product(shape) is ONE:
        return True
    places = list(zip(node.indices, node.base.shape, strict=False))
    numbers = [(MapReduce(shape, (), Position(p)), size) for p, size in zip(positions(shape), shape, strict=True)]
    return all(number in places for number in numbers)


def _times_updates(node: Scatter, ct: Node) -> Node:
    factors = _put(node, constant(1, node.base), node.updates, Put.MULTIPLY)
    return _binary(Op.MUL, ct, factors)


def _times_base(node: Scatter, ct: Node) -> Node:
    return _times_others(node, _read(node, _binary(Op.MUL, ct, node.base)))


def _times_others(node: Scatter, values: Node) -> Node:
    """The values times the other updates of the same place: those before each, and those behind it. So nothing is
    divided by, and derivatives are exact beside zeros, to any order."""
    if _are_distinct(node):
        return values
    before, behind = (_running_products(node, backward) for backward in (False, True))
    return _binary(Op.MUL, values, _binary(Op.MUL, before, behind))


def _running_products(node: Scatter, backward: bool) -> Node:
    """For each update the product of those of the same place before it, or behind it: a loop over the updates, which
    reads what the product of a place is so far and then multiplies it."""
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


# --- minimum, maximum: equal shares for all that are the result


def _is_chosen(value: Node, result: Node) -> Node:
    """Where a value is the result; where that is NaN, where it is NaN."""
    a, b = Operand(value.dtype, 0), Operand(value.dtype, 1)
    nan = ~apply(Op.EQ, a, a)
    return elementwise(value.shape, (value, result), apply(Op.EQ, a, b) | nan)


def _share(node: Scatter, ct: Node) -> Node:
    """The cotangent, divided by the number of elements and updates of the place that equal the extremum."""
    count = _put(
        node,
        _as_number(_is_chosen(node.base, node), ct),
        _as_number(_is_chosen(node.updates, _read(node, node)), ct),
        Put.ADD,
    )
    return _binary(Op.DIV, ct, count)


def _as_number(mask: Node, like: Node) -> Node:
    return elementwise(mask.shape, (mask,), cast(Operand(bool_, 0), like.dtype))


def _if_chosen(value: Node, result: Node, share: Node) -> Node:
    chosen = select(Operand(bool_, 0), Operand(share.dtype, 1), const(0, share.dtype))
    return elementwise(value.shape, (_is_chosen(value, result), share), chosen)


def _base_share(node: Scatter, ct: Node) -> Node:
    return _if_chosen(node.base, node, _share(node, ct))


def _updates_share(node: Scatter, ct: Node) -> Node:
    return _if_chosen(node.updates, _read(node, node), _read(node, _share(node, ct)))


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
    return _put(node, base or constant(0, node.base), updates or constant(0, node.updates), node.kind)


def _product_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """tb*u + b*tu*(all other u)"""
    by_base = constant(0, node) if base is None else _times_updates(node, base)
    if updates is None:
        return by_base
    by_updates = _times_others(node, _binary(Op.MUL, updates, _read(node, node.base)))
    return _put(node, by_base, by_updates, Put.ADD)


def _mean_tangent(node: Scatter, base: Node | None, updates: Node | None) -> Node:
    """The mean over those that are the result."""
    by_base = _if_chosen(node.base, node, base or constant(0, node.base))
    by_updates = _if_chosen(node.updates, _read(node, node), updates or constant(0, node.updates))
    return _share(node, _put(node, by_base, by_updates, Put.ADD))


_TANGENTS: Mapping[Put, Callable[[Scatter, Node | None, Node | None], Node]] = {
    Put.SET: _put_tangents,
    Put.ADD: _put_tangents,
    Put.MULTIPLY: _product_tangent,
    Put.MIN: _mean_tangent,
    Put.MAX: _mean_tangent,
}
