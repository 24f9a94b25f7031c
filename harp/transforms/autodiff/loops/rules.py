"""The derivatives of loops: the derivative of a loop is a loop whose step is the derivative of its step.

Forward, the tangents are carried beside the values. Backward, the loop runs in the other direction on the carried
values of each step, which the first run keeps, and recomputes the rest of the step; loop invariants are not kept. Of
arrays that a step changes in parts only these parts are kept, and restored (`undone`). Reductions of a step are kept,
too, if they are no larger than its carry: a product of a matrix and a state costs much more than its memory. A branch,
which runs once or not at all, keeps nothing. Loops that end by a test are in `tested`, those that keep few states in
`bisection`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import attrs

from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Body, Iteration, MapReduce, Node, Part, fresh_input, walk
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ONE, ZERO, product
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import const
from harp.transforms.autodiff.active import active_inputs, between
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.loops.bisection import through_bisection
from harp.transforms.autodiff.loops.states import Backward, Pass, is_expensive
from harp.transforms.autodiff.loops.tested import counting, through_tested
from harp.transforms.autodiff.loops.undone import undoable, undoing, undone

# -- forward ------------------------------------------------------------------------------------------------------


class Pushed(NamedTuple):
    """A result of an iteration, and its tangent; None is 0."""

    value: Node
    tangent: Node | None


def push(node: Iteration, tangents: Mapping[Node, Node], jvp: Pass) -> list[Pushed]:
    """All results of the iteration that carries tangents beside values."""
    body = node.body
    wrt = active_inputs(node, tangents.__contains__)
    forward = jvp(graph_of(body), wrt)  # its inputs are those of the body, and the tangents of `wrt`
    moving = dict(zip(wrt, forward.inputs[len(body.inputs) :], strict=True))
    inside = between(graph_of(body).nodes(), wrt)
    values, tangents_found = forward.outputs[: len(body.outputs)], iter(forward.outputs[len(body.outputs) :])
    pushed = [next(tangents_found) if o.dtype.is_inexact else None for o in body.outputs]
    carried, elements, same = ([body.inputs[k] for k in places] for places in body.place())
    groups = [(*group, *(moving[i] for i in group if i in moving)) for group in (carried, elements, same)]
    kept = [o in inside for o in body.outputs]
    for k, i in enumerate(carried):
        kept[k] = i in moving
    split = body.carried
    first, second = range(split), range(split, len(body.outputs))
    outputs: list[Node] = []
    for places in (first, second):
        outputs += [values[k] for k in places]
        outputs += [part for k in places if kept[k] and (part := pushed[k]) is not None]
    whole = Graph((body.inputs[0], *(i for group in groups for i in group)), tuple(outputs), forward.sites)
    closed, more = close(whole, len(groups[0]), len(groups[1]), recomputes=body.recomputes)
    by_input = dict(zip(body.inputs[1:], node.operands, strict=True))
    operands: list[Node] = []
    for group in (carried, elements, same):
        operands += [by_input[i] for i in group]
        operands += [tangents.get(by_input[i]) or constant(0, by_input[i]) for i in group if i in moving]
    parts = Iteration(node.length, (*operands, *more), closed, node.tested, node.reverse).parts
    results: list[Pushed] = []
    place = 0
    for places in (first, second):
        after = place + len(places)
        for k in places:
            tangent = None
            if kept[k]:
                tangent, after = parts[after], after + 1
            results.append(Pushed(parts[place + k - places.start], tangent))
        place = after
    return results


# -- backward -----------------------------------------------------------------------------------------------------


def saving(graph: Graph, active: Callable[[Node], bool]) -> Graph:
    """The graph in which each iteration through which a derivative flows keeps the carried values of all steps, and
    counts its steps if it ends by a test."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(node, inputs)
        if isinstance(node, Part) and isinstance(node.whole, Iteration):
            (whole,) = inputs
            assert isinstance(whole, Iteration)
            first = node.whole.body.carried  # the count stands behind what is carried
            return Part(whole, node.number + whole.body.carried - first) if node.number >= first else made
        if isinstance(node, Iteration) and isinstance(made, Iteration) and not _is_branch(node) and active(node):
            return _saving(counting(made) if made.tested else made)
        return made

    return transform(graph, rule)


def _is_branch(node: Iteration) -> bool:
    return node.tested and node.length is ONE


def _saving(node: Iteration) -> Iteration:
    body = node.body
    carried = [body.inputs[k] for k in body.place()[0]]
    made = body.outputs[body.carried :]
    parts = [part for array in undoable(body) for part in array.kept(body)]
    missing = tuple(dict.fromkeys(value for value in (*carried, *_expensive(body), *parts) if value not in made))
    if not missing or node.length is None or body.recomputes:  # a loop without length makes no arrays
        return node
    more = attrs.evolve(body, outputs=(*body.outputs, *missing))
    return Iteration(node.length, node.operands, more, node.tested, node.reverse)


def _expensive(body: Body) -> list[Node]:
    """The reductions of a step, of which each is no larger than the step's carry."""
    carried = sum((product(body.inputs[k].shape) for k in body.place()[0]), ZERO)
    values = (node for node in graph_of(body).nodes() if is_expensive(node))
    return [node for node in values if nonnegative(carried - product(node.shape))]


def pull(
    node: Iteration, cotangents: Mapping[int, Node], active: Callable[[Node], bool], vjp: Pass
) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents; given those of results, by number."""
    backward = Backward(node, cotangents, active, vjp)
    if not node.tested:
        return through_bisection(backward) if node.body.recomputes else _through_all(backward)
    return _through_branch(backward) if _is_branch(node) else through_tested(backward)


def _through_all(back: Backward) -> list[tuple[Node, Node]]:
    """The steps in reverse, each on the carried values that it had."""
    body, node, made = back.body, back.node, back.made
    expensive = {o: k for k, o in enumerate(body.outputs) if k >= body.carried and is_expensive(o)}
    step = back.step(made, tuple(expensive))
    arrays = undone(back.undoable, body, step)
    undo = undoing(body, step, arrays)
    carried = len(back.moving) + len(back.summed)
    split, results = 1 + carried, (*back.moving, *back.summed, *back.sliced)
    # The body's inputs of which each step gets an element; then those that are the same in all steps.
    element_operands = (
        *(back.kept(i) for i in back.carried if i in undo.graph.inputs),
        *(Part(node, k) for k in expensive.values()),
        *(back.operand[i] for i in back.elements),
        *(back.result_cotangents[k] for k in made),
    )
    read = set(walk(undo.graph.outputs))
    sliced = {i: operand for i, operand in zip(undo.graph.inputs[split:], element_operands, strict=False) if i in read}
    same = [i for i in back.same if i in read]
    inputs = (*undo.graph.inputs[:split], *undo.behind, *undo.kept, *sliced, *same)
    pulled = undo.graph.outputs
    outputs = (*pulled[:carried], *pulled[len(results) :], *pulled[carried : len(results)])
    step_graph = Graph(inputs, outputs, undo.graph.sites)
    closed, more = close(step_graph, carried + len(arrays), len(undo.kept) + len(sliced))
    operands = (
        *back.first_cotangents,
        *(constant(0, i) for i in back.summed),
        *(Part(node, array.number) for array in arrays),
        *(back.kept(part) for array in arrays for part in array.kept(body)),
        *sliced.values(),
        *(back.operand[i] for i in same),
        *more,
    )
    parts = Iteration(node.length, operands, closed, False, not node.reverse).parts
    parts = (*parts[:carried], *parts[carried + len(arrays) :])
    return [(back.operand[i], part) for i, part in zip(results, parts, strict=True)]


def _through_branch(back: Backward) -> list[tuple[Node, Node]]:
    """The derivative of a branch if it was taken; else the identity, since the carry passes through."""
    assert not back.sliced and back.body.carried == len(back.body.outputs), "a branch makes no arrays"
    step = back.step(())
    number, *others = step.inputs
    test = fresh_input("the condition", (), bool_)
    never_again = MapReduce((), (), const(False, bool_))
    once = Graph((number, test, *others), (never_again, *step.outputs), step.sites)
    closed, more = close(once, 1 + len(back.moving) + len(back.summed), 0, hoists=False)
    operands = (
        back.operand[back.carried[0]],
        *back.first_cotangents,
        *(constant(0, i) for i in back.summed),
        *(back.operand[i] for i in (*back.carried, *back.same)),
        *more,
    )
    parts = Iteration(ONE, operands, closed, True, False).parts
    return [(back.operand[i], part) for i, part in zip((*back.moving, *back.summed), parts[1:], strict=True)]
