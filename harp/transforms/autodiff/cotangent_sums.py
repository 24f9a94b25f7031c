"""Sums of cotangents. What a scatter adds to zeros is added to the other summand: an element of an array costs what it
changes, and no array of zeros is made for it. What it adds to something else is added behind the sum, so that whole
arrays are summands of one sum.

    a + (zeros with u added at [i])  ->  a with u added at [i]
    a + (b with u added at [i])      ->  (a + b) with u added at [i]
"""

from __future__ import annotations

from collections.abc import Sequence

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
        puts = added_to_zeros(_transposed(part))
        if puts:
            return put_to(total, puts)
    (first, more), (second, others) = without_puts(a), without_puts(b)
    return put_to(MapReduce(a.shape, (first, second), sum_of(a.dtype)), (*more, *others))


def sum_of(dtype: DType) -> Expr:
    """The expression of a sum of two arrays."""
    return Operand(dtype, 0) + Operand(dtype, 1)


def put_to(total: Node, puts: Sequence[Scatter]) -> Node:
    """`total` with what scatters have added to something else."""
    for put in puts:
        total = Scatter(total, put.indices, put.updates, put.kind, put.clips, put.unique, put.strict)
    return total


def without_puts(node: Node) -> tuple[Node, tuple[Scatter, ...]]:
    """What scatters have added to, and these, the first one first."""
    puts: list[Scatter] = []
    while isinstance(node, Scatter) and node.kind is Put.ADD and len(puts) < _MOST:
        puts.append(node)
        node = node.base
    return node, tuple(reversed(puts))


def added_to_zeros(node: Node) -> tuple[Scatter, ...]:
    """The scatters that have added to zeros, the first one first, if a node is that."""
    base, puts = without_puts(node)
    return puts if is_zero(base) else ()


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
