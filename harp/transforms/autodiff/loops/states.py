"""One step of the reverse pass, for all reverse passes of loops.

It computes the carried values again, only those that the derivative reads and those that these depend on, and then
pulls the cotangents back: from those after the step to those before it. The derivative of a step is in `Backward`, the
steps forward and backward on arrays are in `Steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from typing import TypeVar

from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.primitives import emit, from_positions, map_
from harp.trace.graph.body import first_test, graph_of, next_test
from harp.trace.graph.graph import Graph, replaced
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.node import (
    Cumulative,
    Gather,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    RowWise,
    fresh_input,
    walk,
)
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.expr import Position, apply, const
from harp.trace.scalar.ops import Op
from harp.trace.trees import flatten
from harp.transforms.autodiff.active import active_inputs
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.loops.bounds import numbers, with_bounds
from harp.transforms.autodiff.loops.sums import with_totals
from harp.transforms.autodiff.loops.undone import changed_in_parts, undoable, undoing, undone
from harp.transforms.control.staging import Leaves, iterate, traced
from harp.transforms.staging import run

Pass = Callable[[Graph, Sequence[Input]], Graph]


class Backward:
    """The derivative of a step of `node`, given the cotangents of the results by number.

    The reverse pass carries the cotangents of carried values, `moving`, and sums of the cotangents of loop invariants,
    `summed`. The cotangents of elements of arrays, `sliced`, are elements of arrays again."""

    def __init__(
        self, node: Iteration, cotangents: Mapping[int, Node], active: Callable[[Node], bool], vjp: Pass
    ) -> None:
        self.node, self.result_cotangents = node, cotangents
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
        self.cotangent_of = dict(zip(self.wrt, self.graph.outputs, strict=True))
        self.carried, self.elements, self.same = ([body.inputs[k] for k in places] for places in body.place())
        self.operand = dict(zip(body.inputs[1:], node.operands, strict=True))
        self.moving = [i for i in self.carried if i in self.cotangent_of]
        self.summed = [i for i in self.same if i in self.cotangent_of]
        self.sliced = [i for i in self.elements if i in self.cotangent_of]

    @property
    def made(self) -> tuple[int, ...]:
        """The numbers of those results, arrays with an element for each step, that have cotangents."""
        return tuple(k for k in self.seeds if k >= self.body.carried)

    @property
    def first_cotangents(self) -> tuple[Node, ...]:
        """The cotangents of the carried values after the last step."""
        numbers = [self.carried.index(i) for i in self.moving]
        return tuple(self.result_cotangents.get(k) or constant(0, self.node.parts[k]) for k in numbers)

    def kept(self, value: Node) -> Node:
        """The array of the values that the loop has kept, one for each step."""
        return Part(self.node, self.body.outputs.index(value, self.body.carried))

    def step(self, made: Sequence[int], kept: Sequence[Node] = ()) -> Graph:
        """The reverse step: from the number of the step, the cotangents of its new carry, sums so far, its inputs, and
        the cotangents of the elements that it made, to the cotangents of its inputs. Values of the step that are `kept`
        are inputs behind the carry."""
        known: dict[Node, Input] = {value: fresh_input("kept", value.shape, value.dtype) for value in kept}
        before = {i: fresh_input("a sum", i.shape, i.dtype) for i in self.summed}
        number = {i: k for k, i in enumerate(self.carried)}
        sums = range(len(self.moving), len(self.moving) + len(before))
        cotangent_of = (*self.moving, *self.summed, *self.sliced)
        pulled = Graph((), tuple(self.cotangent_of[i] for i in cotangent_of), self.graph.sites)
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
    """Whether a value costs much more than its memory: each of its elements is computed from many."""
    return isinstance(node, (Cumulative, RowWise)) or (isinstance(node, MapReduce) and node.reduce is not None)


State = list[Array]
_T = TypeVar("_T")


class Steps:
    """The steps of a loop, forward and backward, on arrays of the current trace. A state holds those carried values
    that the reverse pass reads, without arrays that are `undone`."""

    def __init__(self, back: Backward, same: Sequence[Array], undoes: bool = False) -> None:
        step = back.step(back.made)
        self.undone = undone(back.undoable, back.body, step) if undoes else []
        undo = undoing(back.body, step, self.undone)
        gone = {back.carried[array.number] for array in self.undone}
        inputs = (*(i for i in step.inputs if i not in gone), *undo.behind, *undo.kept)
        self.backward = Graph(inputs, undo.graph.outputs, undo.graph.sites)
        self.kept_inputs = [i for i in back.carried if i not in gone]
        self.same, self.carried = same, back.carried
        forward = silenced(graph_of(back.body))
        self.is_read = _is_read(self.carried, forward, self.backward)
        self.forward = Graph(forward.inputs, tuple(self.read(forward.outputs[: len(self.carried)])), forward.sites)

    def read(self, whole: Sequence[_T]) -> list[_T]:
        """The carried values that the reverse pass reads: neither the test of the loop, nor sums."""
        return list(compress(whole, self.is_read))

    def _all_carried(self, state: State, kept_inputs: Sequence[Node]) -> State:
        rest = iter(state)
        whole: dict[Node, Array] = {
            i: next(rest) if is_read else zeros(i) for i, is_read in zip(self.carried, self.is_read, strict=True)
        }
        return [whole[i] for i in kept_inputs]

    def after(self, number: Array, state: State, elements: Sequence[Array] = ()) -> State:
        """The state behind a step."""
        return run(self.forward, [number, *self._all_carried(state, self.carried), *elements, *self.same])

    def pulled(
        self,
        number: Array,
        cotangents: State,
        state: State,
        elements: Sequence[Array],
        made: Sequence[Array],
        undone: Sequence[Array] = (),
    ) -> State:
        """The cotangents before a step, given those after it, the state before it, and those of the elements that it
        made. Also restores the arrays in `undone`, given their values after the step and the parts that were kept."""
        whole = self._all_carried(state, self.kept_inputs)
        return run(self.backward, [number, *cotangents, *whole, *elements, *made, *self.same, *undone])


def _is_read(carried: Sequence[Node], forward: Graph, backward: Graph) -> list[bool]:
    """Whether the reverse pass reads each carried value, or one that is computed from it."""
    read: set[Node] = set()
    below = set(walk(backward.outputs))
    while not below & {*carried} <= read:
        read |= below & {*carried}
        below = set(walk(o for i, o in zip(carried, forward.outputs, strict=False) if i in read))
    return [i in read for i in carried]


def repeat(
    count: Array, body: Callable[[Array, State], tuple[State, State]], state: State, length: Index | None = None
) -> tuple[State, State]:
    """`state, made = body(k, state)` for each k below the count: the last state, and what was made, as arrays."""

    def call(arrays: Sequence[Array]) -> list[Array]:
        k = marked(arrays[0], weak=False)
        after, made = body(k, list(arrays[2:]))
        return [emit(next_test(node_of(k), node_of(count))), *after, *made]

    carried = [emit(first_test(node_of(count))), *state]
    names = ["what is carried"] * len(carried)
    made = traced(call, Leaves(carried, names, flatten(carried)[1]), (), length, "reverse mode")
    results = iterate(made, length, carried, tested=True)
    return results[1 : len(carried)], results[len(carried) :]


def zeros(like: Node) -> Array:
    """An array of zeros like a node."""
    return from_positions(like.shape, const(0, like.dtype))


def integer(value: int | Index) -> Array:
    """An integer without axes."""
    return from_positions((), Position(as_index(value)))


def less(a: Array, b: Array) -> Array:
    """Whether a < b."""
    return map_(lambda x, y: apply(Op.LT, x, y), a, b, to=i64)


def least(a: Array, b: Array) -> Array:
    """The lesser of both."""
    return map_(lambda x, y: apply(Op.MIN, x, y), a, b, to=i64)


def most(a: Array, b: Array) -> Array:
    """The greater of both."""
    return map_(lambda x, y: apply(Op.MAX, x, y), a, b, to=i64)


def element(array: Array, place: Array) -> Array:
    """The element at a place along the first axis."""
    return emit(Gather(node_of(array), (node_of(place),)))
