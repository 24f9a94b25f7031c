"""Removal of dead results of iterations, and of the carried values and computations that only they need. Of arrays with
a value for each step, only the elements that another loop reads are kept.

    c, y = for t: c, g(c)              where y is unused        ->   c = for t: c
    c, d = for t: f(c), h(c, d)        where d is unused        ->   c = for t: f(c)
    d = for t: h(d)  of elements x[t]  that no step reads       ->   d = for t: h(d)

So the states that a loop keeps for its gradient are removed if the gradient is linear. Users are visited first.

    for t: c = f(c), keeps c              ->   for t: c = f(c), keeps c[t]
    for t backward: g(c_t[t])             ->   for t backward: g(kept_t)

So the gradient of a loop that changes an array element by element, or a table row by row, keeps one element or row for
each step, not the array. This needs indices that depend on the step's number only, and parts that are smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from harp.trace.graph.body import close, graph_of, selected, sites_of, with_body
from harp.trace.graph.graph import Graph, replaced, transform
from harp.trace.graph.node import Body, Gather, Input, Iteration, Node, Part, Several, View, fresh_input, walk
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.bounds import bounded
from harp.trace.index.polynomial import Shape, product


class _Kept(NamedTuple):
    """The live part of an iteration: its steps, the positions of its inputs, and the numbers of its results."""

    node: Iteration
    places: tuple[int, ...]
    results: tuple[int, ...]


def without_dead_results(graph: Graph) -> Graph:
    """The graph, in which iterations compute only results that are used."""
    nodes = graph.nodes()
    if not any(isinstance(node, Iteration) for node in nodes):
        return graph
    kept = _kept(graph, nodes)

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        live = kept.get(node.whole if isinstance(node, Part) else node)
        if live is not None and isinstance(node, Part):
            (whole,) = inputs
            assert isinstance(whole, Several)
            return Part(whole, live.results.index(node.number)) if node.number in live.results else node
        if live is not None:
            node = selected(_over(live.node, inputs), live.places, live.results)
            dropped = len(live.results) < len(live.node.body.outputs)
            return _with_clean_steps(node) if dropped else node
        return with_inputs(node, inputs)

    return transform(graph, rule)


def _kept(graph: Graph, nodes: Sequence[Node]) -> dict[Node, _Kept]:
    """The live part of each iteration, from the outputs back."""
    read: set[Node] = {*graph.outputs}
    kept: dict[Node, _Kept] = {}
    for node in reversed(nodes):
        if isinstance(node, Iteration):
            parts = {part.number for part in node.parts if part in read}
            live = kept[node] = _live_part(_with_clean_steps(node), parts)
            read |= {node.operands[place - 1] for place in live.places}
        elif node in read:
            read |= {*node.inputs}
    return kept


def _with_clean_steps(node: Iteration) -> Iteration:
    """The iteration, without dead results in its steps."""
    steps = without_dead_results(graph_of(node.body))
    body = attrs.evolve(node.body, outputs=steps.outputs, sites=sites_of(steps))
    return Iteration(node.length, node.operands, body, node.tested, node.reverse)


def _over(node: Iteration, operands: tuple[Node, ...]) -> Iteration:
    return Iteration(node.length, operands, node.body, node.tested, node.reverse)


def _live_part(node: Iteration, parts: set[int]) -> _Kept:
    """The inputs and results that these results need, in this step and in earlier ones."""
    body = node.body
    numbers = {i: place for place, i in enumerate(body.inputs)}
    results = {*parts, 0} if node.tested else {*parts}
    places: set[int] = set()
    while True:
        read = walk(body.outputs[number] for number in results)
        places = {numbers[i] for i in read if isinstance(i, Input) and i in numbers} - {0}
        more = results | {place - 1 for place in places if place in body.place()[0]}
        if more == results:
            break
        results = more
    carried = {number + 1 for number in results if number < body.carried}
    return _Kept(node, tuple(sorted(places | carried)), tuple(sorted(results)))


# The most parts of an array that are kept in its place.
_FEW = 8


class _Read(NamedTuple):
    """A read of an array that another loop keeps for each step: the node, and its equal in the other loop."""

    kept: Part
    node: Node
    value: Node


def kept_elements(graph: Graph) -> Graph:
    """The graph, in which loops keep only the parts of their values that other loops read."""
    if not any(isinstance(node, Iteration) for node in graph.nodes()):
        return graph
    reads = _reads(graph)
    more = {node: tuple(dict.fromkeys(read.value for read in changed)) for node, changed in _by_keeper(reads).items()}

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        new = with_inputs(node, inputs)
        if not isinstance(node, Iteration) or not isinstance(new, Iteration):
            return new
        if node in more:
            outputs = (*new.body.outputs, *more[node])
            body = attrs.evolve(new.body, outputs=outputs)
            new = Iteration(new.length, new.operands, body, new.tested, new.reverse)
        if node in reads:
            new = _narrowed(node, new, reads[node], more)
        return with_body(new, kept_elements)

    changed = transform(graph, rule)
    return without_dead_results(changed) if reads else changed


def _reads(graph: Graph) -> dict[Iteration, list[_Read]]:
    """The reads of each loop from arrays that other loops keep, if all readers of the array read small parts."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes():
        for operand in dict.fromkeys(node.inputs):
            readers.setdefault(operand, []).append(node)
    reads: dict[Iteration, list[_Read]] = {}
    keepers: set[Node] = set()
    for part, using in readers.items():
        if not isinstance(part, Part) or not isinstance(part.whole, Iteration) or part in graph.results:
            continue
        keeps = part.number >= part.whole.body.carried and part.whole not in reads
        groups = [_read_by(part, node) for node in using] if keeps else []
        if groups and all(groups) and not any(node in keepers for node in using):
            keepers.add(part.whole)
            for node, group in zip(using, groups, strict=True):
                assert isinstance(node, Iteration)
                reads.setdefault(node, []).extend(group or ())
    return reads


def _by_keeper(reads: dict[Iteration, list[_Read]]) -> dict[Node, list[_Read]]:
    by_keeper: dict[Node, list[_Read]] = {}
    for read in (read for group in reads.values() for read in group):
        by_keeper.setdefault(read.kept.whole, []).append(read)
    return by_keeper


def _read_by(kept: Part, node: Node) -> list[_Read] | None:
    """The reads of a node from such an array; None if it reads the array otherwise, or more than a few parts."""
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
    """The nodes that read an array; a view of which only elements are gathered is replaced by these gathers."""
    graph = graph_of(body)
    readers: list[Node] = []
    for node in graph.nodes():
        if array in node.inputs:
            further = [inner for inner in graph.nodes() if node in inner.inputs]
            gathers = node not in graph.outputs and all(isinstance(inner, Gather) for inner in further)
            readers += further if isinstance(node, View) and gathers else [node]
    return list(dict.fromkeys(readers))


def _is_less(node: Node, array: Node, number: Input) -> bool:
    """Whether a node reads a smaller part of an array, with fewer axes, or bounded along an axis of symbolic size, at
    indices that depend on the step's number only."""
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


def _narrowed(old: Iteration, node: Iteration, reads: Sequence[_Read], more: dict[Node, tuple[Node, ...]]) -> Iteration:
    """The loop, which gets the parts that it reads as elements of arrays of their own."""
    body = node.body
    kept = {read.node: fresh_input("kept", read.node.shape, read.node.dtype) for read in reads}
    operands = []
    for read in reads:
        (part,) = (new for before, new in zip(old.operands, node.operands, strict=True) if before is read.kept)
        assert isinstance(part, Part) and isinstance(read.kept.whole, Iteration)
        first = len(read.kept.whole.body.outputs)
        operands.append(Part(part.whole, first + more[read.kept.whole].index(read.value)))
    graph = replaced(graph_of(body), dict[Node, Node](kept))
    split = 1 + body.carried + body.sliced
    inputs = (*graph.inputs[:split], *kept.values(), *graph.inputs[split:])
    whole = Graph(inputs, graph.outputs, graph.sites)
    closed, outside = close(whole, body.carried, body.sliced + len(kept), hoists=False, recomputes=body.recomputes)
    assert not outside, "a body reads nothing but its inputs"
    every = (*node.operands[: split - 1], *operands, *node.operands[split - 1 :])
    return Iteration(node.length, every, closed, node.tested, node.reverse)
