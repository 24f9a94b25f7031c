"""The same node over other inputs: one row for each kind, the one place that knows the fields of all."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harp.trace.graph.node import (
    Body,
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
    positions,
    walk,
)
from harp.trace.index.division import Substitution
from harp.trace.scalar.expr import substitute

_SAME_SIZES = Substitution({})


def rebuild(node: Node, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    """The same node over other inputs, with sizes substituted: the one place that knows every kind's fields."""
    return _REBUILD[type(node)](node, inputs, sizes)


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs; the same object if they are the same."""
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return rebuild(node, inputs, _SAME_SIZES)


def _rebuild_input(node: Input, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Input(node.uid, node.name, sizes.each(node.shape), node.dtype)


def _rebuild_constant(node: Constant, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return node


def _rebuild_map_reduce(node: MapReduce, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    expr = substitute(node.expr, {}, sizes)
    return MapReduce(sizes.each(node.domain), inputs, expr, node.reduce, node.axes)


def _rebuild_view(node: View, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    shape, index, conditions = sizes.each(node.shape), sizes.each(node.index), sizes.each(node.conditions)
    if not conditions and shape == inputs[0].shape and index == positions(shape):
        return inputs[0]  # sizes that turned out equal can make it the view of all, as it is
    return View(inputs[0], shape, index, conditions, node.fill)


def _rebuild_gather(node: Gather, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Gather(inputs[0], inputs[1:], node.fill, node.strict)


def _rebuild_scatter(node: Scatter, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Scatter(inputs[0], inputs[1:-1], inputs[-1], node.kind, node.clips, node.unique, node.strict)


def _rebuild_cumulative(node: Cumulative, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Cumulative(inputs, node.reduce, node.axis, node.backward)


def _rebuild_contiguous(node: Contiguous, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Contiguous(inputs[0])


def _rebuild_row_wise(node: RowWise, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return RowWise(node.function, inputs, node.reverse)


def _rebuild_examples(node: Examples, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Examples(inputs[0], inputs[1], sizes(node.size))


def _rebuild_host_call(node: HostCall, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return HostCall(inputs[0], inputs[1], inputs[2:], node.function)


def _rebuild_iteration(node: Iteration, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    length = None if node.length is None else sizes(node.length)
    return Iteration(length, inputs, rebuilt_body(node.body, sizes), node.tested, node.reverse)


def rebuilt_body(body: Body, sizes: Substitution) -> Body:
    """The body with sizes substituted."""
    new: dict[Node, Node] = {}
    for node in walk((*body.inputs, *body.outputs)):
        new[node] = rebuild(node, tuple(new[i] for i in node.inputs), sizes)
    inputs = tuple(i for i in (new[i] for i in body.inputs) if isinstance(i, Input))
    sites = tuple((new[node], site) for node, site in body.sites if node in new)
    return attrs.evolve(body, inputs=inputs, outputs=tuple(new[o] for o in body.outputs), sites=sites)


def _rebuild_custom(node: Custom, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    return Custom(inputs, rebuilt_body(node.body, sizes), node.derivative)


def _rebuild_foreign(node: Foreign, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    results = tuple((sizes.each(own), dtype) for own, dtype in node.results)
    return Foreign(node.routine, sizes.each(node.calls), inputs, results, sizes.each(node.sizes))


def _rebuild_part(node: Part, inputs: tuple[Node, ...], sizes: Substitution) -> Node:
    (whole,) = inputs
    assert isinstance(whole, Several)
    return Part(whole, node.number)


_REBUILD: dict[type[Node], Callable[..., Node]] = {
    Input: _rebuild_input,
    Constant: _rebuild_constant,
    MapReduce: _rebuild_map_reduce,
    View: _rebuild_view,
    Gather: _rebuild_gather,
    Scatter: _rebuild_scatter,
    Cumulative: _rebuild_cumulative,
    Contiguous: _rebuild_contiguous,
    RowWise: _rebuild_row_wise,
    Examples: _rebuild_examples,
    HostCall: _rebuild_host_call,
    Iteration: _rebuild_iteration,
    Custom: _rebuild_custom,
    Foreign: _rebuild_foreign,
    Part: _rebuild_part,
}
