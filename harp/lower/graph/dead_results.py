"""Iterations without what nobody reads: results, what is carried for them, and what they are computed of.

    c, y = for t: c, g(c)              where nobody reads y   ->   c = for t: c
    c, d = for t: f(c), h(c, d)        where nobody reads d   ->   c = for t: f(c)
    d = for t: h(d)  of elements x[t]  that no step reads     ->   d = for t: h(d)

The states that a loop keeps for its gradient go in this way where the gradient is linear: readers come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from harp.trace.graph.body import graph_of, selected, sites_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Input, Iteration, Node, Part, Several, walk
from harp.trace.graph.rebuild import with_inputs


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
