"""One step of an iteration as a graph, made ready for lowering.

The number of the iteration is a position, as those along axes are, and so is what is counted from it:

    x[t]                      ->  an element at a place that is certain to be inside
    where(t < i, x, y)        ->  a choice by position: the loops over i are cut at t
"""

from __future__ import annotations

from harp.lower.graph.in_place import updated_in_place
from harp.lower.graph.reads_before_updates import reads_before_updates
from harp.lower.graph.simplify import simplify
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Input, Iteration, MapReduce, Node, at, positions, walk
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.polynomial import Counter, Shape, of, product
from harp.trace.scalar.expr import Position, substitute

# So many numbers are held in variables: more would go through memory, one by one.
_FEW = 64


def step_of(node: Iteration, counter: Counter) -> Graph:
    """The step, of which `counter` is the number."""
    step = reads_before_updates(simplify(_counted(node, counter)))
    return updated_in_place(step, [node.body.inputs[k] for k in node.body.place()[0]])


def _counted(node: Iteration, counter: Counter) -> Graph:
    """The step with formulas for the number of the iteration, and for elements of what is a formula itself."""
    body, number = node.body, of(counter)
    known: dict[Node, Node] = {body.inputs[0]: MapReduce((), (), Position(number))}
    for place in body.place()[1]:
        array = node.operands[place - 1]
        if isinstance(array, MapReduce) and not array.operands and array.reduce is None:
            element = at(array.domain, (number, *positions(array.shape[1:])))
            known[body.inputs[place]] = MapReduce(array.shape[1:], (), substitute(array.expr, {}, element))
    for inner in walk(body.outputs):
        if inner not in known:
            known[inner] = with_inputs(inner, tuple(known[i] for i in inner.inputs))
    sites = {known[node]: site for node, site in reversed(body.sites) if node in known}
    return Graph(body.inputs, tuple(known[o] for o in body.outputs), sites)


def is_few(shape: Shape) -> bool:
    """Whether an array is held in variables while a loop runs."""
    count = product(shape).constant
    return count is not None and count <= _FEW


def passed_on(step: Graph, body: Body) -> dict[int, int]:
    """Which of what is carried on is what another one was, by numbers: (a, b) -> (b, f(a, b)) passes b on to a.

    What is passed on is not passed a second time, to another one or in a circle, but copied: so three arrays take
    turns, of which one is free, and no more (`harp.backends.c_family.turns` relies on it).
    """
    numbers = {step.inputs[place]: number for number, place in enumerate(body.place()[0])}
    found: dict[int, int] = {}
    for number, output in enumerate(step.outputs[: body.carried]):
        source = numbers.get(output) if isinstance(output, Input) and not is_few(output.shape) else None
        seen = {*found, *found.values()}
        if source is not None and source != number and not seen & {source, number}:
            found[number] = source
    return found
