"""Factors of sums over windows lie along what is summed: a kernel of a convolution is copied to the order of its sum.

    sum over o, i, j of w[o, c, i, j]*g[n, o, y - i, x - j]
        ->  v = contiguous(w[o, c, i, j] at [c, o, i, j]); sum over o, i, j of v[c, o, i, j]*g[n, o, y - i, x - j]

The other factor is read through windows, and fills a panel with rows for all terms of the sum; where the first one
lies in their order, one panel takes hundreds of terms, and otherwise those of one window. The first one is small, for
it has no elements of its own along the axes of the image.
"""

from __future__ import annotations

from harp.trace.graph.body import with_body
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Contiguous, Iteration, MapReduce, Node, View, at, positions
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.view import flatten_index, view
from harp.trace.index.polynomial import ZERO, Index, loops_in
from harp.trace.scalar.expr import Apply, Operand
from harp.trace.scalar.ops import Op, Reduce

# Axes of a constant extent below this are phases of a stride.
_LONG = 8


def window_factors(graph: Graph) -> Graph:
    """The graph, with such factors copied."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = with_inputs(node, inputs)
        if isinstance(new, Iteration):
            return with_body(new, window_factors)
        return _along_sum(new) if isinstance(new, MapReduce) and _is_sum_of_products(new) else new

    return transform(graph, rule)


def _is_sum_of_products(node: MapReduce) -> bool:
    product = isinstance(node.expr, Apply) and node.expr.op is Op.MUL and node.dtype.is_float
    return product and node.reduce is Reduce.SUM and all(isinstance(factor, Operand) for factor in node.expr.args)


def _along_sum(node: MapReduce) -> Node:
    views = [operand for operand in node.operands if isinstance(operand, View)]
    if len(views) != 2 or len(node.axes) < 2:
        return node
    column = max((axis for axis in range(len(node.domain)) if axis not in node.axes), default=None)
    for factor, windows in (views, views[::-1]):
        kept = [axis for axis in sorted(_axes(factor)) if axis not in node.axes]
        order = (*(axis for axis in kept if axis != column), *node.axes, *(axis for axis in kept if axis == column))
        is_whole = bool(kept) and _axes(factor) == {*order}
        if is_whole and _shows_windows(windows, node) and not _shows_windows(factor, node):
            copied = _in_order(factor, order)
            changed = tuple(copied if copied is not None and o is factor else o for o in node.operands)
            return with_inputs(node, changed)
    return node


def _axes(factor: View) -> set[int]:
    """The axes along which it has elements of its own."""
    return {loop.axis for p in (*factor.index, *factor.conditions) for loop in loops_in(p)}


def _shows_windows(factor: View, node: MapReduce) -> bool:
    """Whether an index moves with a summed axis and with one of the result that is longer than phases of a stride."""
    return any(
        any(loop.axis in node.axes for loop in loops_in(p))
        and any(loop.axis not in node.axes and (loop.extent.constant or _LONG) >= _LONG for loop in loops_in(p))
        for p in factor.index
    )


def _in_order(factor: View, order: tuple[int, ...]) -> View | None:
    """The factor as an array with these axes in their order; None where it lies so."""
    loops = positions(factor.shape)
    shape = tuple(factor.shape[axis] for axis in order)
    whole = flatten_index(tuple(loops[axis] for axis in order), shape)
    if not factor.conditions and flatten_index(factor.index, factor.src.shape) is whole:
        return None
    inner = at(factor.shape, _placed(factor, order))
    copy = view(factor.src, shape, inner.each(factor.index), inner.each(factor.conditions), factor.fill)
    return View(Contiguous(copy), factor.shape, tuple(loops[axis] for axis in order))


def _placed(factor: View, order: tuple[int, ...]) -> tuple[Index, ...]:
    """For each axis, its position in the new order; axes without elements of their own are at 0."""
    moved = positions(tuple(factor.shape[axis] for axis in order))
    return tuple(moved[order.index(axis)] if axis in order else ZERO for axis in range(len(factor.shape)))
