"""Batching of graphs: one rule for each kind of node.

    y[i] = f(x[i + 1], w[i])  ->  y[b, i] = f(x[b, i + 1], w[i])

A rule receives a node, its inputs, of which some have a leading axis for the batch, and the size of that axis; it gives
the node with the same leading axis, or says that it has none. A node that reads nothing with such an axis is the same
for all examples, and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

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
    walk,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.row_functions import RowOp
from harp.trace.graph.view import permute, view
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Shape
from harp.trace.scalar.expr import Operand, Position, substitute
from harp.trace.scalar.ops import Reduce
from harp.trace.source_locations import Site
from harp.transforms.batching.iteration_rules import Given, batch_custom, batch_iteration, lifted
from harp.transforms.rules import apply_rule


def batch(graph: Graph, batched: Sequence[bool], size: Index) -> tuple[Graph, tuple[bool, ...]]:
    """The graph of a batch of `size` examples, and which of its outputs have the axis of the batch, in front.

    `batched` says which inputs have one. Raises MissingRuleError, with the user's line, for a node without a rule.
    """
    known: dict[Node, Given] = {}
    results: dict[Node, list[Given]] = {}  # of nodes with several results
    for i, has_axis in zip(graph.inputs, batched, strict=True):
        known[i] = Given(fresh_input(i.name, (size, *i.shape), i.dtype) if has_axis else i, has_axis)
    sites: dict[Node, Site] = {}
    for node in walk(graph.results):
        if node not in known:
            inputs = [known[i] for i in node.inputs]
            some = any(i.batched for i in inputs)
            made: Any = apply_rule(RULES, "vmap", graph, node, inputs, size) if some else _same(node, inputs)
            if isinstance(node, Several) and some:
                results[node], made = made, node
            known[node] = made if isinstance(made, Given) else Given(made, some)
            if isinstance(node, Part) and some:
                known[node] = results[node.whole][node.number]
        if node in graph.sites:
            sites.setdefault(known[node].node, graph.sites[node])
    inputs_now = tuple(i for i in (known[i].node for i in graph.inputs) if isinstance(i, Input))
    outputs = [known[o] for o in graph.outputs]
    token = None if graph.token is None else _of_all(known[graph.token])
    return Graph(inputs_now, tuple(o.node for o in outputs), sites, token), tuple(o.batched for o in outputs)


def _same(node: Node, inputs: Sequence[Given]) -> Node:
    """The node over its new inputs, which are the same for all examples; some may be results of a batched loop."""
    now = tuple(i.node for i in inputs)
    return with_inputs(node, now)


def _of_all(token: Given) -> Node:
    """A token that waits for the calls of all examples."""
    node = token.node
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0), Reduce.MAX, (0,)) if token.batched else node


# -- helpers ------------------------------------------------------------------------------------------------------


def _shifted(shape: Shape, size: Index) -> Substitution:
    """The substitution of the positions along `shape` by those along the same axes behind the axis of the batch."""
    return at(shape, positions((size, *shape))[1:])


def _example_numbers(shape: Shape) -> Node:
    """At every position, the number of its example."""
    return MapReduce(shape, (), Position(positions(shape)[0]))


def _batched_indices(indices: Sequence[Given], size: Index) -> tuple[Node, ...]:
    """The indices of a gather or scatter on a batched array: the number of the example, then the indices."""
    places = [lifted(i, size) for i in indices]
    return (_example_numbers(places[0].shape), *places)


# -- one rule for each kind of node -------------------------------------------------------------------------------


def _leaf(node: Node, inputs: Sequence[Given], size: Index) -> Node:
    raise AssertionError(f"{node!r} reads nothing that is batched")


def _map_reduce(node: MapReduce, inputs: Sequence[Given], size: Index) -> Node:
    operands = tuple(lifted(i, size) for i in inputs)
    expr = substitute(node.expr, {}, _shifted(node.domain, size))
    return MapReduce((size, *node.domain), operands, expr, node.reduce, tuple(axis + 1 for axis in node.axes))


def _view(node: View, inputs: Sequence[Given], size: Index) -> Node:
    (source,) = inputs
    shape, move = (size, *node.shape), _shifted(node.shape, size)
    index = (positions(shape)[0], *move.each(node.index))
    return view(source.node, shape, index, move.each(node.conditions), node.fill)


def _gather(node: Gather, inputs: Sequence[Given], size: Index) -> Node:
    source, *indices = inputs
    if source.batched:
        return Gather(source.node, _batched_indices(indices, size), node.fill, node.strict)
    return Gather(source.node, tuple(lifted(i, size) for i in indices), node.fill, node.strict)


def _scatter(node: Scatter, inputs: Sequence[Given], size: Index) -> Node:
    base, *indices, updates = inputs
    places = _batched_indices(indices, size)
    return Scatter(lifted(base, size), places, lifted(updates, size), node.kind, node.clips, node.unique, node.strict)


def _cumulative(node: Cumulative, inputs: Sequence[Given], size: Index) -> Node:
    return Cumulative(tuple(lifted(i, size) for i in inputs), node.reduce, node.axis + 1, node.backward)


def _contiguous(node: Contiguous, inputs: Sequence[Given], size: Index) -> Node:
    return Contiguous(inputs[0].node)


def _row_wise(node: RowWise, inputs: Sequence[Given], size: Index) -> Node:
    """A table that is the same for all rows is not repeated."""
    operands = [lifted(i, size) for i in inputs]
    if node.function is RowOp.SEARCH and len(node.operands[0].shape) == 1:
        table = inputs[0].node
        operands[0] = _for_each_row(table, operands[1].shape) if inputs[0].batched else table
    return RowWise(node.function, tuple(operands), node.reverse)


def _examples(node: Examples, inputs: Sequence[Given], size: Index) -> Given:
    """On the axis that the node names: the array of all examples, which is the same for each of them."""
    operand, number = inputs
    if number.batched:
        return Given(lifted(operand, size), False)
    gathered = Examples(operand.node, number.node, node.size)
    return Given(permute(gathered, (1, 0, *range(2, len(gathered.shape)))), True)


def _for_each_row(table: Node, shape: Shape) -> Node:
    """A table for each example, repeated for each of the example's rows."""
    whole = (*shape[:-1], table.shape[-1])
    loops = positions(whole)
    return view(table, whole, (loops[0], loops[-1]))


def _host_call(node: HostCall, inputs: Sequence[Given], size: Index) -> Node:
    """Each example calls, one after the other."""
    token, active, *operands = (lifted(i, size) for i in inputs)
    return HostCall(token, active, tuple(operands), node.function)


def _iteration(node: Iteration, inputs: Sequence[Given], size: Index) -> list[Given]:
    return batch_iteration(node, inputs, size, batch)


def _custom(node: Custom, inputs: Sequence[Given], size: Index) -> list[Given]:
    return batch_custom(node, inputs, size, batch)


def _foreign(node: Foreign, inputs: Sequence[Given], size: Index) -> list[Given]:
    """A call for each example."""
    operands = tuple(lifted(i, size) for i in inputs)
    foreign = Foreign(node.routine, (size, *node.calls), operands, node.results, node.sizes)
    return [Given(part, True) for part in foreign.parts]


def _part(node: Part, inputs: Sequence[Given], size: Index) -> Node:
    """The node itself: the rule of the node with several results has made its parts."""
    return node


RULES: dict[type[Node], Callable[..., Any]] = {
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
    HostCall: _host_call,
    Iteration: _iteration,
    Custom: _custom,
    Foreign: _foreign,
    Part: _part,
}
