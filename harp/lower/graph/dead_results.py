"""Iterations without what nobody reads: results, what is carried for them, and what they are computed of; and of arrays
that are kept for each step, all but the elements that another loop reads.

    c, y = for t: c, g(c)              where nobody reads y   ->   c = for t: c
    c, d = for t: f(c), h(c, d)        where nobody reads d   ->   c = for t: f(c)
    d = for t: h(d)  of elements x[t]  that no step reads     ->   d = for t: h(d)

The states that a loop keeps for its gradient go in this way where the gradient is linear: readers come first.

    for t: c = f(c), keeps c              ->   for t: c = f(c), keeps c[t]
    for t backward: g(c_t[t])             ->   for t backward: g(kept_t)

So the gradient of a loop that changes an array element by element, or a table row by row, keeps elements or rows of
each step, and not the array. Which ones are read is known from the number of the step alone, and they are fewer.
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
    """What is left of an iteration: its steps, the places of its inputs, and the numbers of its results."""

    node: Iteration
    places: tuple[int, ...]
    results: tuple[int, ...]


def without_dead_results(graph: Graph) -> Graph:
    """The same graph, with iterations that compute what is read."""
    nodes = graph.nodes()
    if not any(isinstance(node, Iteration) for node in nodes):
        return graph
    kept = _kept(graph, nodes)

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        found = kept.get(node.whole if isinstance(node, Part) else node)
        if found is not None and isinstance(node, Part):
            (whole,) = inputs
            assert isinstance(whole, Several)
            return Part(whole, found.results.index(node.number)) if node.number in found.results else node
        if found is not None:
            node = selected(_over(found.node, inputs), found.places, found.results)
            dropped = len(found.results) < len(found.node.body.outputs)
            return _with_clean_steps(node) if dropped else node
        return with_inputs(node, inputs)

    return transform(graph, rule)


def _kept(graph: Graph, nodes: Sequence[Node]) -> dict[Node, _Kept]:
    """What is left of each iteration, from the outputs back."""
    read: set[Node] = {*graph.outputs}
    kept: dict[Node, _Kept] = {}
    for node in reversed(nodes):
        if isinstance(node, Iteration):
            parts = {part.number for part in node.parts if part in read}
            found = kept[node] = _needed(_with_clean_steps(node), parts)
            read |= {node.operands[place - 1] for place in found.places}
        elif node in read:
            read |= {*node.inputs}
    return kept


def _with_clean_steps(node: Iteration) -> Iteration:
    """The iteration, with steps whose own iterations compute what is read."""
    steps = without_dead_results(graph_of(node.body))
    body = attrs.evolve(node.body, outputs=steps.outputs, sites=sites_of(steps))
    return Iteration(node.length, node.operands, body, node.tested, node.reverse)


def _over(node: Iteration, operands: tuple[Node, ...]) -> Iteration:
    return Iteration(node.length, operands, node.body, node.tested, node.reverse)


def _needed(node: Iteration, parts: set[int]) -> _Kept:
    """What is read for some results: what they are computed of, and what that is in the step before."""
    body = node.body
    numbers = {given: place for place, given in enumerate(body.inputs)}
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
