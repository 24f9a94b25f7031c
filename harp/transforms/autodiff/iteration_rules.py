"""The derivatives of iterations: iterations of the derivatives of their bodies.

Forward, the tangents are carried beside the values. Backward, the iterations run the other way on what each of them had
carried, which the first run keeps, and compute their own step again; what does not change in the loop is not kept. A
branch, which runs once or not at all, keeps nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import attrs

from harp.errors import MissingRuleError
from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Input, Iteration, MapReduce, Node, Part, Put, Scatter, fresh_input, rebuild
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ONE
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Operand, const
from harp.transforms.autodiff.active import active_inputs, between
from harp.transforms.autodiff.gather_rules import constant

Pass = Callable[[Graph, Sequence[Input]], Graph]
_SAME_SIZES = Substitution({})


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
    values, found = forward.outputs[: len(body.outputs)], iter(forward.outputs[len(body.outputs) :])
    pushed = [next(found) if o.dtype.is_inexact else None for o in body.outputs]
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
    closed, more = close(whole, len(groups[0]), len(groups[1]))
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
    """The graph in which iterations through which a derivative flows keep what each step has carried."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = node
        if any(a is not b for a, b in zip(inputs, node.inputs, strict=True)):
            made = rebuild(node, inputs, _SAME_SIZES)
        if isinstance(node, Iteration) and isinstance(made, Iteration) and _saves(node) and active(node):
            return _saving(made)
        return made

    return transform(graph, rule)


def _saves(node: Iteration) -> bool:
    return not node.tested


def _saving(node: Iteration) -> Iteration:
    body = node.body
    carried = [body.inputs[k] for k in body.place()[0]]
    missing = tuple(i for i in carried if i not in body.outputs[body.carried :])
    if not missing:
        return node
    more = attrs.evolve(body, outputs=(*body.outputs, *missing))
    return Iteration(node.length, node.operands, more, node.tested, node.reverse)


def pull(
    node: Iteration, cotangents: Mapping[int, Node], active: Callable[[Node], bool], vjp: Pass
) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents; given those of results, by number."""
    if not node.tested:
        return _Backward(node, cotangents, active, vjp).through_all()
    if node.length is ONE:
        return _Backward(node, cotangents, active, vjp).through_branch()
    raise MissingRuleError(
        "a loop whose end depends on data has no derivative in reverse mode, for what its steps carried would have to "
        "be kept, and nobody knows how many there are; let it run a fixed number of times and keep what it carries, by "
        "harp.numpy.where, or use forward mode (harp.jvp, harp.jacfwd)"
    )


class _Backward:
    """The derivative of one step, and what goes in and comes out of it."""

    def __init__(
        self, node: Iteration, cotangents: Mapping[int, Node], active: Callable[[Node], bool], vjp: Pass
    ) -> None:
        self.node, self.given = node, cotangents
        body = self.body = node.body
        self.wrt = active_inputs(node, active)
        self.graph = vjp(graph_of(body), self.wrt)  # whose outputs are the cotangents of `wrt`
        inexact = [k for k, o in enumerate(body.outputs) if o.dtype.is_inexact]
        self.seeds = dict(zip(inexact, self.graph.inputs[len(body.inputs) :], strict=True))
        self.found = dict(zip(self.wrt, self.graph.outputs, strict=True))
        self.carried, self.elements, self.same = ([body.inputs[k] for k in places] for places in body.place())
        self.operand = dict(zip(body.inputs[1:], node.operands, strict=True))
        # What is carried backward: the cotangents of what was carried, and the sums of those of what is the same.
        self.moving = [i for i in self.carried if i in self.found]
        self.summed = [i for i in self.same if i in self.found]
        self.sliced = [i for i in self.elements if i in self.found]

    def cotangent(self, number: int) -> Node:
        part = self.node.parts[number]
        return self.given.get(number) or constant(0, part)

    def sums(self) -> dict[Input, tuple[Input, Node]]:
        """For each input that is the same in all steps, the sum so far, and the sum with this step."""
        before = {i: fresh_input("a sum", i.shape, i.dtype) for i in self.summed}
        return {i: (b, _accumulated(b, self.found[i])) for i, b in before.items()}

    def through_all(self) -> list[tuple[Node, Node]]:
        """The steps in the other direction, each on what it had carried."""
        body, node = self.body, self.node
        sums = self.sums()
        places = {i: body.outputs.index(i, body.carried) for i in self.carried}
        made = [k for k in self.seeds if k >= body.carried and k in self.given]
        number = {i: k for k, i in enumerate(self.carried)}
        idle = {seed: _zero(seed) for k, seed in self.seeds.items() if not self._flows(k, made)}
        inputs = (
            body.inputs[0],
            *(self.seeds[number[i]] for i in self.moving),
            *(sums[i][0] for i in self.summed),
            *self.carried,
            *self.elements,
            *(self.seeds[k] for k in made),
            *self.same,
        )
        outputs = (
            *(self.found[i] for i in self.moving),
            *(sums[i][1] for i in self.summed),
            *(self.found[i] for i in self.sliced),
        )
        step = _with(Graph(inputs, outputs, self.graph.sites), idle)
        carried = len(self.moving) + len(self.summed)
        closed, more = close(step, carried, len(self.carried) + len(self.elements) + len(made))
        operands = (
            *(self.cotangent(number[i]) for i in self.moving),
            *(constant(0, i) for i in self.summed),
            *(Part(node, places[i]) for i in self.carried),
            *(self.operand[i] for i in self.elements),
            *(self.given[k] for k in made),
            *(self.operand[i] for i in self.same),
            *more,
        )
        parts = Iteration(node.length, operands, closed, False, not node.reverse).parts
        results = (*self.moving, *self.summed, *self.sliced)
        return [(self.operand[i], part) for i, part in zip(results, parts, strict=True)]

    def _flows(self, number: int, made: Sequence[int]) -> bool:
        if number < self.body.carried:
            return self.carried[number] in self.found
        return number in made

    def through_branch(self) -> list[tuple[Node, Node]]:
        """The derivative of the branch where it ran; where it did not, what it would have carried on goes through."""
        body = self.body
        number = {i: k for k, i in enumerate(self.carried)}
        sums = self.sums()
        slices = {i: fresh_input("a cotangent", i.shape, i.dtype) for i in self.sliced}
        idle = {seed: _zero(seed) for k, seed in self.seeds.items() if not self._flows(k, ())}
        test = fresh_input("the condition", (), bool_)
        inputs = (
            body.inputs[0],
            test,
            *(self.seeds[number[i]] for i in self.moving),
            *(sums[i][0] for i in self.summed),
            *self.carried,
            *self.same,
        )
        outputs = (
            MapReduce((), (), const(False, bool_)),
            *(self.found[i] for i in self.moving),
            *(sums[i][1] for i in self.summed),
        )
        assert not slices and body.carried == len(body.outputs), "a branch makes no arrays"
        step = _with(Graph(inputs, outputs, self.graph.sites), idle)
        closed, more = close(step, 1 + len(self.moving) + len(self.summed), 0, ())
        operands = (
            self.operand[self.carried[0]],
            *(self.cotangent(number[i]) for i in self.moving),
            *(constant(0, i) for i in self.summed),
            *(self.operand[i] for i in self.carried),
            *(self.operand[i] for i in self.same),
            *more,
        )
        parts = Iteration(ONE, operands, closed, True, False).parts
        results = (*self.moving, *self.summed)
        return [(self.operand[i], part) for i, part in zip(results, parts[1:], strict=True)]


def _zero(seed: Input) -> Node:
    return constant(0, seed)


def _with(graph: Graph, values: Mapping[Input, Node]) -> Graph:
    """The graph with some inputs replaced, which are not listed any more."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Input) and node in values:
            return values[node]
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return rebuild(node, inputs, _SAME_SIZES)

    return transform(graph, rule)


def _accumulated(total: Node, part: Node) -> Node:
    """The sum of both. What a scatter adds to zeros is added to the sum: a step costs what it changes."""
    if isinstance(part, Scatter) and part.kind is Put.ADD and part.base is constant(0, part):
        return Scatter(total, part.indices, part.updates, part.kind, part.clips, part.unique)
    return _added(total, part)


def _added(a: Node, b: Node) -> Node:
    return MapReduce(a.shape, (a, b), Operand(a.dtype, 0) + Operand(b.dtype, 1))
