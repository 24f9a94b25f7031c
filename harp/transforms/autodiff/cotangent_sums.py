"""Sums of cotangents. What a scatter adds to zeros is added to the other summand: an element of an array costs what it
changes, and no array of zeros is made for it.

    a + (zeros with u added at [i])  ->  a with u added at [i]
"""

from __future__ import annotations

from harp.trace.graph.node import MapReduce, Node, Put, Scatter, View, positions
from harp.trace.graph.view import view
from harp.trace.index.polynomial import loops_in, of
from harp.trace.scalar.dtypes import DType, i64
from harp.trace.scalar.expr import Expr, Operand, Position
from harp.transforms.autodiff.gather_rules import constant, is_zero

# The most scatters in a row that are looked through.
_MOST = 64


def added(a: Node, b: Node) -> Node:
    """The sum of two cotangents of one node."""
    for total, part in ((a, b), (b, a)):
        found = _put_to(total, part)
        if found is not None:
            return found
    return MapReduce(a.shape, (a, b), sum_of(a.dtype))


def sum_of(dtype: DType) -> Expr:
    """The expression of a sum of two arrays."""
    return Operand(dtype, 0) + Operand(dtype, 1)


def _put_to(total: Node, part: Node) -> Node | None:
    """`total` with what `part` has, if that is zeros to which scatters have added."""
    puts = added_to_zeros(_transposed(part))
    for put in puts:
        total = Scatter(total, put.indices, put.updates, put.kind, put.clips, put.unique)
    return total if puts else None


def added_to_zeros(node: Node) -> tuple[Scatter, ...]:
    """The scatters that have added to zeros, the first one first, if a node is that."""
    puts: list[Scatter] = []
    while isinstance(node, Scatter) and node.kind is Put.ADD and len(puts) < _MOST:
        puts.append(node)
        node = node.base
    return tuple(reversed(puts)) if is_zero(node) else ()


def _transposed(node: Node) -> Node:
    """A transposed array of zeros of which one row was changed, as an array of zeros of which one column was."""
    if not isinstance(node, View) or not isinstance(node.src, Scatter) or node.conditions:
        return node
    put = node.src
    is_row = len(put.indices) == 1 and not put.indices[0].shape and put.kind is Put.ADD and is_zero(put.base)
    places = [loop.axis for p in node.index for loop in loops_in(p) if p is of(loop)]
    if not is_row or sorted(places) != list(range(len(node.shape))) or len(node.index) != len(places):
        return node
    column, *others = places
    before = node.shape[:column]
    indices = [MapReduce(before, (), Position(p)) for p in positions(before)]
    assert all(index.dtype is i64 for index in indices)
    left = node.shape[:column] + node.shape[column + 1 :]
    along = positions(left)
    updates = view(put.updates, left, tuple(along[axis - (axis > column)] for axis in others))
    where = (*indices, view(put.indices[0], before, ()))
    return Scatter(constant(0, node), where, updates, Put.ADD, put.clips, True)
