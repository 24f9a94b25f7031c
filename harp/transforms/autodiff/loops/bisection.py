"""The reverse pass through long loops, in memory for log2(n) states.

States are kept on a stack, the first one at its bottom. To get the state before a step, the loop runs on from the state
on top and pushes the state halfway, again and again:

    for step n-1, ..., 0:  while the state on top is that before an earlier step p:
                               push the state before step p + ceil((step - p) / 2), computed from the top
                           cotangents = pull(step, pop, cotangents)

`pop` takes the state from the top of the stack. `pull` computes the cotangents before a step from those after it, given
the state before the step.

So a loop of n steps recomputes n/2 * log2(n) steps, and the stack has log2(n) + 2 states at most.

Source: A. Griewank, "Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation", Optimization Methods and Software 1 (1992).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.primitives import emit, from_positions
from harp.trace.graph.graph import inline
from harp.trace.graph.node import Node, Put, Scatter
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.expr import const
from harp.trace.tracer import Argument
from harp.trace.trees import flatten
from harp.transforms.autodiff.loops.states import Backward, State, Steps, element, integer, less, repeat, zeros
from harp.transforms.control.conditional import while_loop
from harp.transforms.control.staging import Leaves, iterate, traced
from harp.transforms.staging import stage

# A loop of 2**62 steps, and none is longer, has 64 states on the stack at most. A few more are in memory, where they
# are changed in place, and not in variables.
_MOST = 72


def through_bisection(back: Backward) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents."""
    node, length = back.node, back.node.length
    assert length is not None and not node.tested
    groups: list[Sequence[Node]] = [
        back.first_cotangents,
        [back.result_cotangents[k] for k in back.made],
        [back.operand[i] for i in back.carried],
        [back.operand[i] for i in back.elements],
        [back.operand[i] for i in back.same],
    ]

    def call(arrays: Sequence[Array]) -> list[Array]:
        rest = iter(arrays)
        cotangents, made, state, elements, same = ([next(rest) for _ in group] for group in groups)
        way = _WayBack(back, Steps(back, same), length, node.reverse, elements)
        return way.through([*cotangents, *map(zeros, back.summed)], way.steps.read(state), made)

    nodes = [node for group in groups for node in group]
    graph = stage(call, [Argument("a part of a loop", n.dtype, n.shape) for n in nodes], "reverse mode").graph
    pulled = inline(graph, dict(zip(graph.inputs, nodes, strict=True))).outputs
    results = (*back.moving, *back.summed, *back.sliced)
    return [(back.operand[i], ct) for i, ct in zip(results, pulled, strict=True)]


@attrs.frozen
class _WayBack:
    """The loop forward again, from states on the stack, and backward. `place` counts the steps as they run; `number` is
    the index of a step, which in a reversed loop counts down."""

    back: Backward
    steps: Steps
    length: Index
    reverse: bool
    elements: Sequence[Array]

    def number(self, place: Array) -> Array:
        """The number of the step at a place; or its place, given the number."""
        return integer(self.length - 1) - place if self.reverse else place

    def through(self, cotangents: State, state: State, made: Sequence[Array]) -> State:
        """The cotangents before all steps, of carried values, sums and elements."""
        stack = [_set(_stack_of(part), integer(0), part) for part in state]
        carried = [integer(0), _stack_of(integer(0)), *stack, *cotangents]
        split = 2 + len(stack)

        def call(arrays: Sequence[Array]) -> list[Array]:
            number = marked(arrays[0], weak=False)
            now, last = list(arrays[1 : 1 + len(carried)]), arrays[1 + len(carried) :]
            top, places, *states = self.reached(self.number(number), now[:split])
            taken = [element(x, number) for x in self.elements]
            before = [element(s, top) for s in states]
            found = self.steps.pulled(number, now[split:], before, taken, last)
            count = len(cotangents)
            return [top - 1, places, *states, *found[:count], *found[count:]]

        leaves = Leaves(carried, ["what is carried"] * len(carried), flatten(carried)[1])
        slices = [("a cotangent", m.kind, node_of(m).shape[1:]) for m in made]
        body = traced(call, leaves, slices, self.length, "reverse mode")
        return iterate(body, self.length, carried, made, reverse=not self.reverse)[split:]

    def reached(self, place: Array, stack: State) -> State:
        """The stack, with the state before the step at `place` on top; its top was the state of an earlier step."""

        def push(now: State) -> State:
            top, places, *states = now
            first = element(places, top)
            last = first + (place - first + 1) // 2
            state = self.advance(first, last, [element(s, top) for s in states])
            above = top + 1
            return [above, *(_set(s, above, part) for s, part in zip((places, *states), (last, *state), strict=True))]

        found: State = while_loop(lambda now: less(element(now[1], now[0]), place), push, stack)
        return found

    def advance(self, first: Array, last: Array, state: State) -> State:
        """The state before the step at one place, given that before an earlier one."""

        def body(k: Array, now: State) -> tuple[State, State]:
            number = self.number(first + k)
            return self.steps.after(number, now, [element(x, number) for x in self.elements]), []

        return repeat(last - first, body, state)[0]


def _stack_of(state: Array) -> Array:
    """An array of zeros for a stack of such states."""
    node = node_of(state)
    return from_positions((as_index(_MOST), *node.shape), const(0, node.dtype))


def _set(stack: Array, place: Array, state: Array) -> Array:
    """The stack with a state at a place."""
    return emit(Scatter(node_of(stack), (node_of(place),), node_of(state), Put.SET, False, True))
