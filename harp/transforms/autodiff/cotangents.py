"""How cotangents of one array are added up, and which of their elements are known to be 0.

A scatter that adds to zeros adds to the other summand instead: so a cotangent of a few elements costs only these, and
no array of zeros is made for it. A scatter that adds to another array is moved behind the sum, so that whole arrays are
summands of one sum.

    a + (zeros with u added at [i])  ->  a with u added at [i]
    a + (b with u added at [i])      ->  (a + b) with u added at [i]

Elements are known to be 0 where the primal was overwritten. The derivative of the overwritten value may be infinite, so
it is not multiplied by these zeros: they are put in after the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

from harp.trace.graph.node import MapReduce, Node, Put, Scatter, View, positions
from harp.trace.graph.view import view
from harp.trace.index.polynomial import loops_in, of
from harp.trace.scalar.dtypes import DType, bool_, i64
from harp.trace.scalar.expr import Expr, Operand, Position, const, overwriting, overwritten
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.autodiff.gather_rules import binary, constant, elementwise, is_zero, put

# The most scatters in a row, and the most summands, that are searched.
_MOST = 64


def added(a: Node, b: Node) -> Node:
    """The sum of two cotangents of one node."""
    for total, part in ((a, b), (b, a)):
        puts = added_to_zeros(_transposed(part))
        if puts:
            return put_to(total, puts)
    (first, more), (second, others) = without_puts(a), without_puts(b)
    return put_to(MapReduce(a.shape, (first, second), sum_of(a.dtype)), (*more, *others))


def sum_of(dtype: DType) -> Expr:
    """The expression of a sum of two arrays."""
    return Operand(dtype, 0) + Operand(dtype, 1)


def put_to(total: Node, puts: Sequence[Scatter]) -> Node:
    """`total` with the updates of scatters that add, put in one after the other."""
    for scatter in puts:
        total = put(scatter, total, scatter.updates, scatter.kind)
    return total


def without_puts(node: Node) -> tuple[Node, tuple[Scatter, ...]]:
    """The array below a chain of scatters that add, and these scatters, the innermost first."""
    puts: list[Scatter] = []
    while isinstance(node, Scatter) and node.kind is Put.ADD and len(puts) < _MOST:
        puts.append(node)
        node = node.base
    return node, tuple(reversed(puts))


def added_to_zeros(node: Node) -> tuple[Scatter, ...]:
    """The scatters, innermost first, of a node that is zeros with updates added; else none."""
    base, puts = without_puts(node)
    return puts if is_zero(base) else ()


def _transposed(node: Node) -> Node:
    """The transpose of zeros with one row added, as zeros with one column added."""
    if not isinstance(node, View) or not isinstance(node.src, Scatter) or node.conditions:
        return node
    row = node.src
    is_row = len(row.indices) == 1 and not row.indices[0].shape and row.kind is Put.ADD and is_zero(row.base)
    places = [loop.axis for p in node.index for loop in loops_in(p) if p is of(loop)]
    if not is_row or sorted(places) != list(range(len(node.shape))) or len(node.index) != len(places):
        return node
    column, *others = places
    before = node.shape[:column]
    indices = [MapReduce(before, (), Position(p)) for p in positions(before)]
    assert all(index.dtype is i64 for index in indices)
    shape = node.shape[:column] + node.shape[column + 1 :]
    along = positions(shape)
    updates = view(row.updates, shape, tuple(along[axis - (axis > column)] for axis in others))
    where = (*indices, view(row.indices[0], before, ()))
    return Scatter(constant(0, node), where, updates, Put.ADD, row.clips, True)


def summands(node: Node) -> list[Node]:
    """The terms of a sum of cotangents. Beyond `_MOST` terms, sums stay as they are: a graph may hold exponentially
    many terms, since one array may be used on thousands of lines."""
    parts: list[Node] = []
    stack = [node]
    while stack:
        part = stack.pop()
        if _is_sum(part) and len(parts) + len(stack) < _MOST:
            stack += reversed(part.inputs)
        else:
            parts.append(part)
    return parts


def _is_sum(node: Node) -> bool:
    return isinstance(node, MapReduce) and node.reduce is None and node.expr is sum_of(node.dtype)


# -- known zeros --------------------------------------------------------------------------------------------------


class KnownZeros(NamedTuple):
    """A cotangent, some elements of which are certain to be 0. `values` may have other numbers there; `again` sets
    these elements of any array of that shape to 0."""

    values: Node
    again: Callable[[Node], Node]


def known_zeros(ct: Node) -> KnownZeros | None:
    """The elements of a cotangent that are 0 since the primal's were overwritten; None if none are known."""
    if isinstance(ct, Scatter) and _sets_zeros(ct) and _with_zeros(ct.base) is None:
        return KnownZeros(ct.base, lambda node: put(ct, node, _filled(ct.updates, 0, node.dtype), Put.SET))
    zeros = _with_zeros(ct)
    if zeros is None:
        return None
    values, mask = zeros
    return KnownZeros(values, lambda node: _zeros_at(mask, node))


def _with_zeros(ct: Node, depth: int = 0) -> tuple[Node, Node] | None:
    """A cotangent as values, and a mask of the elements that are 0 whatever the values are there. Writes one after the
    other share one mask."""
    mask: Node | None = None
    while True:
        if isinstance(ct, Scatter) and _sets_zeros(ct):
            before = _filled(ct, False, bool_) if mask is None else mask
            mask = put(ct, before, _filled(ct.updates, True, bool_), Put.SET)
            ct = ct.base
            continue
        zeros = _selected(ct) or _viewed(ct, depth)
        more = _zeros_of_sum(ct, depth) if zeros is None else zeros[1]
        if more is not None:
            mask = more if mask is None else binary(Op.OR, mask, more)
        if zeros is None:
            return None if mask is None else (ct, mask)
        ct = zeros[0]


def _selected(ct: Node) -> tuple[Node, Node] | None:
    """Values and mask of a select that overwrites elements by 0."""
    parts = overwriting(ct.expr) if isinstance(ct, MapReduce) and ct.reduce is None else None
    if not isinstance(ct, MapReduce) or parts is None or parts[1] is not const(0, ct.dtype):
        return None
    return elementwise(ct.domain, ct.operands, parts[2]), elementwise(ct.domain, ct.operands, parts[0])


def _viewed(ct: Node, depth: int) -> tuple[Node, Node] | None:
    """Values and mask of a view of an array with known zeros."""
    zeros = _with_zeros(ct.src, depth) if isinstance(ct, View) else None
    if not isinstance(ct, View) or zeros is None:
        return None
    no = None if ct.fill is None else const(False, bool_)
    values = view(zeros[0], ct.shape, ct.index, ct.conditions, ct.fill)
    return values, view(zeros[1], ct.shape, ct.index, ct.conditions, no)


def _zeros_of_sum(ct: Node, depth: int) -> Node | None:
    """A mask of the elements of a sum whose terms are all known zeros. Sums within sums are searched to depth 1 only:
    there may be exponentially many."""
    if depth > 1:
        return None
    if isinstance(ct, MapReduce) and ct.reduce is Reduce.SUM:
        zeros = _with_zeros(elementwise(ct.domain, ct.operands, ct.expr), depth + 1)
        return zeros and MapReduce(ct.domain, (zeros[1],), Operand(bool_, 0), Reduce.MIN, ct.axes)
    masks: list[Node] = []
    for part in summands(ct) if _is_sum(ct) else ():
        zeros = None if _is_sum(part) else _with_zeros(part, depth + 1)
        if zeros is None:
            return None
        masks.append(zeros[1])
    return reduce(lambda a, b: binary(Op.AND, a, b), masks) if masks else None


def _sets_zeros(node: Scatter) -> bool:
    return node.kind is Put.SET and is_zero(node.updates)


def _filled(shaped: Node, value: float, dtype: DType) -> Node:
    return MapReduce(shaped.shape, (), const(value, dtype))


def _zeros_at(mask: Node, node: Node) -> Node:
    expr = overwritten(Operand(bool_, 0), const(0, node.dtype), Operand(node.dtype, 1))
    return elementwise(node.shape, (mask, node), expr)
