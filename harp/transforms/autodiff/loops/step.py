"""The derivative of one step of an iteration, which all reverse passes through iterations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harp.trace.graph.graph import Graph, replaced
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.node import (
    Cumulative,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    RowWise,
    fresh_input,
)
from harp.transforms.autodiff.active import active_inputs
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.loops.bounds import numbers, with_bounds
from harp.transforms.autodiff.loops.changes import changed_in_parts
from harp.transforms.autodiff.loops.sums import with_totals
from harp.transforms.autodiff.loops.undone import undoable

Pass = Callable[[Graph, Sequence[Input]], Graph]


class Backward:
    """The derivative of a step of `node`, given the cotangents of the results by number.

    What is carried backward are the cotangents of what was carried, `moving`, and sums of those of what is the same in
    all steps, `summed`. Cotangents of elements of arrays, `sliced`, are elements of arrays again."""

    def __init__(
        self, node: Iteration, cotangents: Mapping[int, Node], active: Callable[[Node], bool], vjp: Pass
    ) -> None:
        self.node, self.given = node, cotangents
        body = self.body = node.body
        self.undoable = undoable(body)
        self.wrt = active_inputs(node, active)
        # The results of a step that have cotangents.
        carried = [k for k in range(body.carried) if body.inputs[k + 1] in self.wrt]
        seeded = carried + [k for k in range(body.carried, len(body.outputs)) if k in cotangents]
        step = Graph(body.inputs, tuple(body.outputs[k] for k in seeded), dict(body.sites))
        step = with_bounds(step, {body.inputs[0]: numbers(node.length)}, changed_in_parts)
        self.graph = vjp(silenced(step), self.wrt)  # whose outputs are the cotangents of `wrt`
        self.seeds = dict(zip(seeded, self.graph.inputs[len(body.inputs) :], strict=True))
        self.found = dict(zip(self.wrt, self.graph.outputs, strict=True))
        self.carried, self.elements, self.same = ([body.inputs[k] for k in places] for places in body.place())
        self.operand = dict(zip(body.inputs[1:], node.operands, strict=True))
        self.moving = [i for i in self.carried if i in self.found]
        self.summed = [i for i in self.same if i in self.found]
        self.sliced = [i for i in self.elements if i in self.found]

    @property
    def made(self) -> tuple[int, ...]:
        """The arrays made by the loop of which there are cotangents, by the numbers of their results."""
        return tuple(k for k in self.seeds if k >= self.body.carried)

    @property
    def first_cotangents(self) -> tuple[Node, ...]:
        """Those of what was carried in the end."""
        numbers = [self.carried.index(i) for i in self.moving]
        return tuple(self.given.get(k) or constant(0, self.node.parts[k]) for k in numbers)

    def kept(self, value: Node) -> Node:
        """What the loop has kept of each step."""
        return Part(self.node, self.body.outputs.index(value, self.body.carried))

    def step(self, made: Sequence[int], kept: Sequence[Node] = ()) -> Graph:
        """From the number of the step, the cotangents of what it carried on, sums so far, what it was given, and the
        cotangents of the elements that it made, to the cotangents of what it was given. Values of the step that are
        `kept` are given, too, behind what was carried."""
        known: dict[Node, Input] = {value: fresh_input("kept", value.shape, value.dtype) for value in kept}
        before = {i: fresh_input("a sum", i.shape, i.dtype) for i in self.summed}
        number = {i: k for k, i in enumerate(self.carried)}
        sums = range(len(self.moving), len(self.moving) + len(before))
        found = (*self.moving, *self.summed, *self.sliced)
        pulled = Graph((), tuple(self.found[i] for i in found), self.graph.sites)
        whole = with_totals(pulled, dict(zip(sums, before.values(), strict=True)))
        inputs = (
            self.body.inputs[0],
            *(self.seeds[number[i]] for i in self.moving),
            *before.values(),
            *self.carried,
            *known.values(),
            *self.elements,
            *(self.seeds[k] for k in made),
            *self.same,
        )
        return replaced(Graph(inputs, whole.outputs, whole.sites), known)


def is_expensive(node: Node) -> bool:
    """Whether a value costs much more than its memory: each of its elements is made of many."""
    return isinstance(node, (Cumulative, RowWise)) or (isinstance(node, MapReduce) and node.reduce is not None)
