"""Of what a loop keeps of each step, only those elements are kept that another loop reads.

    for t: c = f(c), keeps c              ->   for t: c = f(c), keeps c[t]
    for t backward: g(c_t[t])             ->   for t backward: g(kept_t)

So the gradient of a loop that changes an array element by element, or a table row by row, keeps elements or rows of
each step, and not the array. Which ones are read is known from the number of the step alone, and they are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from harp.lower.graph.dead_results import without_dead_results
from harp.trace.graph.body import close, graph_of, with_body
from harp.trace.graph.graph import Graph, replaced, transform
from harp.trace.graph.node import Body, Gather, Input, Iteration, Node, Part, View, fresh_input, walk
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.bounds import bounded
from harp.trace.index.polynomial import Shape, product

# Of an array, elements that are kept in its place.
_FEW = 8


class _Read(NamedTuple):
    """What a loop reads of what another one keeps of each step: the node there, and the same in the step that keeps."""

    kept: Part
    node: Node
    value: Node


def kept_elements(graph: Graph) -> Graph:
    """The graph, in which loops keep what is read of what they keep."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph
    reads = _reads(graph)
    more = {node: tuple(dict.fromkeys(read.value for read in found)) for node, found in _by_keeper(reads).items()}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(node, inputs)
        if not isinstance(node, Iteration) or not isinstance(made, Iteration):
            return made
        if node in more:
            outputs = (*made.body.outputs, *more[node])
            body = attrs.evolve(made.body, outputs=outputs)
            made = Iteration(made.length, made.operands, body, made.tested, made.reverse)
        if node in reads:
            made = _reading(node, made, reads[node], more)
        return with_body(made, kept_elements)

    found = transform(graph, rule)
    return without_dead_results(found) if reads else found


def _reads(graph: Graph) -> dict[Iteration, list[_Read]]:
    """What each loop reads of what others keep, where that is less in all of them."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes():
        for operand in dict.fromkeys(node.inputs):
            readers.setdefault(operand, []).append(node)
    found: dict[Iteration, list[_Read]] = {}
    keepers: set[Node] = set()
    for part, using in readers.items():
        if not isinstance(part, Part) or not isinstance(part.whole, Iteration) or part in graph.results:
            continue
        keeps = part.number >= part.whole.body.carried and part.whole not in found
        groups = [_read_by(part, node) for node in using] if keeps else []
        if groups and all(groups) and not any(node in keepers for node in using):
            keepers.add(part.whole)
            for node, group in zip(using, groups, strict=True):
                assert isinstance(node, Iteration)
                found.setdefault(node, []).extend(group or ())
    return found


def _by_keeper(reads: dict[Iteration, list[_Read]]) -> dict[Node, list[_Read]]:
    found: dict[Node, list[_Read]] = {}
    for read in (read for group in reads.values() for read in group):
        found.setdefault(read.kept.whole, []).append(read)
    return found


def _read_by(kept: Part, node: Node) -> list[_Read] | None:
    """What a node reads of the elements of an array; None where it reads another way, or more than a few of them."""
    if not isinstance(node, Iteration) or node.operands.count(kept) != 1:
        return None
    body, place = node.body, 1 + node.operands.index(kept)
    element, keeper = body.inputs[place], kept.whole
    assert isinstance(keeper, Iteration)
    if place not in body.place()[1] or element in body.outputs:
        return None
    nodes = _readers(element, body)
    if not 0 < len(nodes) <= _FEW or not all(_is_less(inner, element, body.inputs[0]) for inner in nodes):
        return None
    value: dict[Node, Node] = {element: keeper.body.outputs[kept.number]}
    return [_Read(kept, inner, replaced(Graph((), (inner,)), value).outputs[0]) for inner in nodes]


def _readers(array: Node, body: Body) -> list[Node]:
    """What reads an array; of a view of it, of which elements are read, these."""
    graph = graph_of(body)
    found: list[Node] = []
    for node in graph.nodes():
        if array in node.inputs:
            further = [inner for inner in graph.nodes() if node in inner.inputs]
            gathers = node not in graph.outputs and all(isinstance(inner, Gather) for inner in further)
            found += further if isinstance(node, View) and gathers else [node]
    return list(dict.fromkeys(found))


def _is_less(node: Node, array: Node, number: Input) -> bool:
    """Whether it is a part of an array without some of its axes, or with a few places along one that is a size, at
    places that the number of the step says."""
    if isinstance(node, Gather):
        at = [i for i in walk(node.indices) if isinstance(i, Input)]
        of_array = node.src is array or (isinstance(node.src, View) and node.src.src is array)
        fits = of_array and array not in at and all(i is number for i in at)
    else:
        fits = isinstance(node, View) and not node.conditions
    return fits and _is_smaller(node.shape, array.shape) and product(array.shape).constant is None


def _is_smaller(part: Shape, whole: Shape) -> bool:
    few = [bounded(n) and not bounded(size) for n, size in zip(part, whole, strict=False)]
    return len(part) < len(whole) or (len(part) == len(whole) and any(few))


def _reading(old: Iteration, node: Iteration, reads: Sequence[_Read], more: dict[Node, tuple[Node, ...]]) -> Iteration:
    """The loop with what it reads as elements of arrays of their own."""
    body = node.body
    given = {read.node: fresh_input("kept", read.node.shape, read.node.dtype) for read in reads}
    operands = []
    for read in reads:
        (part,) = (new for before, new in zip(old.operands, node.operands, strict=True) if before is read.kept)
        assert isinstance(part, Part) and isinstance(read.kept.whole, Iteration)
        first = len(read.kept.whole.body.outputs)
        operands.append(Part(part.whole, first + more[read.kept.whole].index(read.value)))
    graph = replaced(graph_of(body), dict[Node, Node](given))
    split = 1 + body.carried + body.sliced
    inputs = (*graph.inputs[:split], *given.values(), *graph.inputs[split:])
    whole = Graph(inputs, graph.outputs, graph.sites)
    closed, outside = close(whole, body.carried, body.sliced + len(given), hoists=False, recomputes=body.recomputes)
    assert not outside, "a body reads nothing but its inputs"
    every = (*node.operands[: split - 1], *operands, *node.operands[split - 1 :])
    return Iteration(node.length, every, closed, node.tested, node.reverse)
