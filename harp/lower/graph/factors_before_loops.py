"""What the steps of a loop multiply matrices by lies in memory as the products read it.

    for t: c = f(c @ w.T)     ->   v = contiguous(w.T); for t: c = f(c @ v)

A product goes along rows of its right factor. Of one that lies the other way round it transposes pieces, in each step
the same ones again: so it is transposed once, before the loop, and before the loops round that if it stays the same in
them, too. The gradient of a recurrent cell has such a product.
"""

from __future__ import annotations

from collections.abc import Iterator

from harp.trace.graph.body import close, graph_of, with_body
from harp.trace.graph.graph import Graph, replaced, transform
from harp.trace.graph.node import Contiguous, Input, Iteration, MapReduce, Node, View, fresh_input, positions
from harp.trace.graph.rebuild import rebuild
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index
from harp.trace.scalar.ops import Reduce

_SAME_SIZES = Substitution({})


def factors_before_loops(graph: Graph) -> Graph:
    """The graph, with such factors before its loops."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        made = node if same else rebuild(node, inputs, _SAME_SIZES)
        return _moved(with_body(made, factors_before_loops)) if isinstance(made, Iteration) else made

    return transform(graph, rule)


def _moved(node: Iteration) -> Iteration:
    """The iteration, which gets such factors as further operands."""
    body = node.body
    graph = graph_of(body)
    fixed: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    given: dict[Contiguous, Input] = {}  # what goes before the loop, in terms of the inputs of the body

    def input_for(made: Contiguous) -> Input:
        return given.setdefault(made, fresh_input("factor", made.shape, made.dtype))

    values: dict[Node, Node] = {}
    for inner in graph.nodes():
        if isinstance(inner, Contiguous) and isinstance(inner.src, View) and inner.src.src in fixed:
            values[inner] = input_for(inner)  # of a loop in this one
        elif isinstance(inner, MapReduce):
            for view, axis in _lying_across(inner):
                if view.src in fixed:
                    shape = _exchanged(view.src.shape, axis)
                    copy = Contiguous(View(view.src, shape, _exchanged(positions(shape), axis)))
                    values[view] = View(input_for(copy), view.shape, _exchanged(view.index, axis))
    if not values:
        return node
    made = replaced(graph, values)
    whole = Graph((*made.inputs, *given.values()), made.outputs, made.sites)
    closed, outside = close(whole, body.carried, body.sliced, hoists=False, recomputes=body.recomputes)
    assert not outside, "a body reads nothing but its inputs"
    before = replaced(Graph((), tuple(given)), fixed).outputs
    return Iteration(node.length, (*node.operands, *before), closed, node.tested, node.reverse)


def _lying_across(node: MapReduce) -> Iterator[tuple[View, int]]:
    """The factors of a product of matrices of which another axis than the last one goes along the rows of the result,
    and the last one along the sum; and this axis."""
    rows = [axis for axis in range(len(node.domain)) if axis not in node.axes]
    if node.reduce is not Reduce.SUM or len(rows) < 2:
        return
    loops = positions(node.domain)
    summed = [loops[axis] for axis in node.axes]
    for view in _factors(node):
        others = view.index[:-1]
        is_matrix = len(set(view.index)) == len(view.index) and all(p.atom is not None for p in view.index)
        if is_matrix and view.index[-1] in summed and loops[rows[-1]] in others:
            if any(loops[row] not in others for row in rows[:-1]):
                yield view, others.index(loops[rows[-1]])


def _factors(node: MapReduce) -> Iterator[View]:
    """Views of whole arrays that a sum is made of."""
    left, seen = [*node.operands], set[Node]()
    while left:
        operand = left.pop()
        if operand in seen:
            continue
        seen.add(operand)
        if isinstance(operand, View) and not operand.conditions and isinstance(operand.src, Input):
            yield operand
        elif isinstance(operand, MapReduce) and operand.reduce is None:
            left += operand.operands


def _exchanged(values: tuple[Index, ...], axis: int) -> tuple[Index, ...]:
    """With that axis last, and the last one in its place."""
    found = list(values)
    found[axis], found[-1] = found[-1], found[axis]
    return tuple(found)
