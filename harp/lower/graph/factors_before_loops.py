"""What the steps of a loop multiply matrices by lies in memory as the products read it.

    for t: c = f(c @ w.T)     ->   v = contiguous(w.T); for t: c = f(c @ v)

A product goes along rows of its right factor. Of one that lies the other way round it transposes pieces, in each step
the same ones again: so it is transposed once, before the loop, and before the loops round that if it stays the same in
them, too. The gradient of a recurrent cell has such a product.
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
    """The graph, with such factors before its loops."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(node, inputs)
        if not isinstance(made, Iteration):
            return made
        made = with_body(made, factors_before_loops)
        is_repeated = made.length is None or made.length.constant not in (0, 1)
        return _moved(made) if is_repeated else made

    return transform(graph, rule)


def _moved(node: Iteration) -> Iteration:
    """The iteration, which gets such factors as further operands."""
    body = node.body
    fixed: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    given: dict[Contiguous, Input] = {}  # what goes before the loop, in terms of the inputs of the body

    def input_for(made: Contiguous) -> Input:
        return given.setdefault(made, fresh_input("factor", made.shape, made.dtype))

    def along_rows(view: View, axis: int) -> View:
        shape = _exchanged(view.src.shape, axis)
        copy = Contiguous(View(view.src, shape, _exchanged(positions(shape), axis)))
        return View(input_for(copy), view.shape, _exchanged(view.index, axis))

    def rule(inner: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(inner, inputs)
        if isinstance(made, Contiguous) and isinstance(made.src, View) and made.src.src in fixed:
            return input_for(made)  # as those of a loop in this one
        if isinstance(made, MapReduce):
            across: dict[Node, Node] = {
                view: along_rows(view, axis) for view, axis in _lying_across(made) if view.src in fixed
            }
            return _reading(made, across) if across else made
        return made

    steps = transform(graph_of(body), rule)
    if not given:
        return node
    whole = Graph((*steps.inputs, *given.values()), steps.outputs, steps.sites)
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
    terms = [o for o in node.operands if isinstance(o, MapReduce) and o.reduce is None]
    for view in dict.fromkeys(o for part in (node, *terms) for o in part.operands):
        if not isinstance(view, View) or view.conditions or not isinstance(view.src, Input):
            continue
        others = view.index[:-1]
        is_whole = len(set(view.index)) == len(view.index) and all(map(_is_along, view.index, view.src.shape))
        if is_whole and view.index[-1] in summed and loops[rows[-1]] in others:
            if any(loops[row] not in others for row in rows[:-1]):
                yield view, others.index(loops[rows[-1]])


def _is_along(p: Index, size: Index) -> bool:
    """Whether it goes along all of an axis."""
    return isinstance(p.atom, Loop) and p.atom.extent is size


def _reading(node: MapReduce, views: Mapping[Node, Node]) -> Node:
    """The sum of the same terms, with others in place of views; they may be of use elsewhere as they are."""

    def term(operand: Node) -> Node:
        if not isinstance(operand, MapReduce) or operand.reduce is not None:
            return views.get(operand, operand)
        return with_inputs(operand, tuple(views.get(o, o) for o in operand.operands))

    return with_inputs(node, tuple(map(term, node.operands)))


def _exchanged(values: tuple[Index, ...], axis: int) -> tuple[Index, ...]:
    """With that axis last, and the last one in its place."""
    found = list(values)
    found[axis], found[-1] = found[-1], found[axis]
    return tuple(found)
