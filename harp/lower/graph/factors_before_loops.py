"""Loop-invariant factors of matrix products are transposed before the loop.

    for t: c = f(c @ w.T)     ->   v = contiguous(w.T); for t: c = f(c @ v)

A product reads rows of its right factor, so a factor that lies the other way is transposed by tiles, again in each
step. Therefore it is transposed once, before the outermost loop in which it is invariant. The gradient of a recurrent
cell has such a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from harp.trace.graph.body import close, graph_of, with_body
from harp.trace.graph.graph import Graph, replaced, transform
from harp.trace.graph.node import Contiguous, Input, Iteration, MapReduce, Node, View, fresh_input, positions
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.polynomial import Index, Loop
from harp.trace.scalar.ops import Reduce


def factors_before_loops(graph: Graph) -> Graph:
    """The graph, with such factors transposed before its loops."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = with_inputs(node, inputs)
        if not isinstance(new, Iteration):
            return new
        new = with_body(new, factors_before_loops)
        is_repeated = new.length is None or new.length.constant not in (0, 1)
        return _moved(new) if is_repeated else new

    return transform(graph, rule)


def _moved(node: Iteration) -> Iteration:
    """The iteration, with transposed factors as further operands."""
    body = node.body
    fixed: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    factors: dict[Contiguous, Input] = {}  # the transposed factors, in terms of the inputs of the body

    def input_for(made: Contiguous) -> Input:
        return factors.setdefault(made, fresh_input("factor", made.shape, made.dtype))

    def along_rows(view: View, axis: int) -> View:
        shape = _exchanged(view.src.shape, axis)
        copy = Contiguous(View(view.src, shape, _exchanged(positions(shape), axis)))
        return View(input_for(copy), view.shape, _exchanged(view.index, axis))

    def rule(inner: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(inner, inputs)
        if isinstance(made, Contiguous) and isinstance(made.src, View) and made.src.src in fixed:
            return input_for(made)  # as the factors of an inner loop
        if isinstance(made, MapReduce):
            across: dict[Node, Node] = {
                view: along_rows(view, axis) for view, axis in _lying_across(made) if view.src in fixed
            }
            return _with_operands(made, across) if across else made
        return made

    steps = transform(graph_of(body), rule)
    if not factors:
        return node
    whole = Graph((*steps.inputs, *factors.values()), steps.outputs, steps.sites)
    closed, outside = close(whole, body.carried, body.sliced, hoists=False, recomputes=body.recomputes)
    assert not outside, "a body reads nothing but its inputs"
    before = replaced(Graph((), tuple(factors)), fixed).outputs
    return Iteration(node.length, (*node.operands, *before), closed, node.tested, node.reverse)


def _lying_across(node: MapReduce) -> Iterator[tuple[View, int]]:
    """The right factors of a matrix product whose last axis is summed, while another axis is that of the result's rows;
    and this axis."""
    rows = [axis for axis in range(len(node.domain)) if axis not in node.axes]
    if node.reduce is not Reduce.SUM or len(rows) < 2:
        return
    loops = positions(node.domain)
    summed = [loops[axis] for axis in node.axes]
    terms = [o for o in node.operands if isinstance(o, MapReduce) and o.reduce is None]
    for view in dict.fromkeys(o for part in (node, *terms) for o in part.operands):
        if not isinstance(view, View) or not view.index or view.conditions or not isinstance(view.src, Input):
            continue
        others = view.index[:-1]
        is_whole = len(set(view.index)) == len(view.index) and all(map(_is_along, view.index, view.src.shape))
        if is_whole and view.index[-1] in summed and loops[rows[-1]] in others:
            if any(loops[row] not in others for row in rows[:-1]):
                yield view, others.index(loops[rows[-1]])


def _is_along(p: Index, size: Index) -> bool:
    """Whether an index runs along a whole axis."""
    return isinstance(p.atom, Loop) and p.atom.extent is size


def _with_operands(node: MapReduce, views: Mapping[Node, Node]) -> Node:
    """The sum with other operands in place of views, in it and in its terms; other users of the terms keep theirs."""

    def term(operand: Node) -> Node:
        if not isinstance(operand, MapReduce) or operand.reduce is not None:
            return views.get(operand, operand)
        return with_inputs(operand, tuple(views.get(o, o) for o in operand.operands))

    return with_inputs(node, tuple(map(term, node.operands)))


def _exchanged(values: tuple[Index, ...], axis: int) -> tuple[Index, ...]:
    """The values with those of this axis and of the last one exchanged."""
    result = list(values)
    result[axis], result[-1] = result[-1], result[axis]
    return tuple(result)
