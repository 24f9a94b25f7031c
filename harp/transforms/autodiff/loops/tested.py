"""The reverse pass through loops that end by a test of their data.

The loop counts its steps. Their number is known only after it has run, so states are not kept but computed again: once
to keep the states before some steps, `marks`, at most K of them; then, from the last mark to the first, to keep the
states of a window of K steps, through which the reverse pass goes.

    T steps  ->  for j: marks[j] = the state before step j*stride            stride = K * ceil(T / K**2)
                 for each window, the last one first:
                     for i in window: states[i] = the state before step i    from the mark before it
                     for i in window, backward: cotangents = pull(i, states[i], cotangents)

The loop runs three times in all, in memory for 2*K states, if it has K*K steps or less; else some T/(2*K*K) times more
often. Loops of bounded length, as those over marks and windows are, keep all their states, so this code can itself be
differentiated.

Source: A. Griewank, A. Walther, "Evaluating Derivatives", 2nd edition, 2008, chapter 12: checkpoints on two levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.graph.body import graph_of, sites_of, trip_count
from harp.trace.graph.graph import inline
from harp.trace.graph.node import Iteration, MapReduce, Node, Part, body_input
from harp.trace.index.division import floordiv, maximum, minimum
from harp.trace.index.polynomial import ONE, Index, as_index, product
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Operand, const, select
from harp.trace.sizes.levels import current
from harp.trace.tracer import Argument
from harp.transforms.autodiff.loops.states import (
    Backward,
    State,
    Steps,
    element,
    integer,
    least,
    less,
    most,
    repeat,
    zeros,
)
from harp.transforms.staging import stage

# How many states are kept at marks, and again in a window: as many as have this many elements together, for all
# examples of a batch, within bounds.
_ELEMENTS = 2**20
_FEWEST, _MOST = 32, 1024


def counting(node: Iteration) -> Iteration:
    """The loop with the number of its steps as one more carried value."""
    if _steps(node) is not None:
        return node
    body, carried = node.body, node.body.carried
    number = body.inputs[0]
    # Inputs are numbered by position; those behind the carry move on by one.
    behind = enumerate(body.inputs[1 + carried :], 2 + carried)
    moved = {i: body_input(place, i.shape, i.dtype) for place, i in behind}
    renamed = inline(graph_of(body), dict(moved))
    outputs = (*renamed.outputs[:carried], _next(number), *renamed.outputs[carried:])
    inputs = (*body.inputs[: 1 + carried], body_input(1 + carried, (), i64), *moved.values())
    zero = MapReduce((), (), const(0, i64))
    operands = (*node.operands[:carried], zero, *node.operands[carried:])
    counted = attrs.evolve(body, inputs=inputs, outputs=outputs, carried=carried + 1, sites=sites_of(renamed))
    return Iteration(node.length, operands, counted, node.tested, node.reverse)


def _next(number: Node) -> Node:
    return MapReduce((), (number,), Operand(i64, 0) + const(1, i64))


def _steps(node: Iteration) -> Node | None:
    """The number of steps: that of a counted loop (none if negative), or the result that starts at 0 and becomes the
    step's number plus one, whether harp or the user carries it."""
    known = trip_count(node)
    if known is not None:
        return known
    body = node.body
    last = body.carried - 1
    counts = body.outputs[last] is _next(body.inputs[0]) and node.operands[last] is MapReduce((), (), const(0, i64))
    return Part(node, last) if counts else None


def through_tested(back: Backward) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents."""
    node = back.node
    steps = _steps(node)
    assert steps is not None and not back.elements and not node.reverse, "a loop that data ends counts, and takes none"
    all_kept = node.length is not None
    states: list[Node] = [back.operand[i] for i in back.carried]
    changed: list[Node] = []  # of each array that may be undone: its last value, and the parts kept of it
    if all_kept:
        states = [back.kept(i) for i in back.carried]
        for array in back.undoable:
            changed += [Part(node, array.number), *(back.kept(part) for part in array.kept(back.body))]
    # The nodes that the reverse pass reads, group by group, in the order in which `call` gets them as arrays.
    groups: list[Sequence[Node]] = [
        (steps,),
        back.first_cotangents,
        [back.result_cotangents[k] for k in back.made],
        states,
        [back.operand[i] for i in back.same],
        changed,
    ]

    def call(arrays: Sequence[Array]) -> list[Array]:
        rest = iter(arrays)
        (count,), cotangents, made, state, same, undone = ([next(rest) for _ in group] for group in groups)
        way = _WayBack(back, made, same, dict(zip(changed, undone, strict=True)))
        after = [*cotangents, *map(zeros, back.summed)]
        if all_kept or not any(way.steps.is_read):
            return way.through(integer(0), count, way.steps.read(state), after)
        return way.by_windows(count, way.steps.read(state), after)

    nodes = [node for group in groups for node in group]
    graph = stage(call, [Argument("a part of a loop", n.dtype, n.shape) for n in nodes], "reverse mode").graph
    pulled = inline(graph, dict(zip(graph.inputs, nodes, strict=True))).outputs
    return [(back.operand[i], ct) for i, ct in zip((*back.moving, *back.summed), pulled, strict=True)]


class _WayBack:
    """The loop forward again, and backward. `bound` is the greatest length of a window, if states are kept."""

    def __init__(
        self, back: Backward, made: Sequence[Array], same: Sequence[Array], changed: Mapping[Node, Array]
    ) -> None:
        self.steps, self.made = Steps(back, same, undoes=back.node.length is not None), made
        self.bound = back.node.length
        arrays = self.steps.undone
        self.undone = [changed[Part(back.node, array.number)] for array in arrays]
        self.kept = [changed[back.kept(part)] for array in arrays for part in array.kept(back.body)]
        if self.bound is None and any(self.steps.is_read):
            self.bound = _most_kept(self.steps.read(back.carried))

    def through(self, first: Array, count: Array, states: State, cotangents: State) -> State:
        """The cotangents before the `count` steps from number `first` on, given the cotangents after them."""

        def body(k: Array, now: State) -> tuple[State, State]:
            place = count - 1 - k
            made = [element(m, first + place) for m in self.made]
            state = [element(s, place) for s in states]
            undone = [*now[len(cotangents) :], *(element(part, place) for part in self.kept)]
            return self.steps.pulled(first + place, now[: len(cotangents)], state, (), made, undone), []

        return repeat(count, body, [*cotangents, *self.undone], self.bound)[0][: len(cotangents)]

    def by_windows(self, steps: Array, state: State, cotangents: State) -> State:
        """The cotangents before all steps, given the state before the first one and the cotangents after the last."""
        assert self.bound is not None, "there are states to keep"
        width, steps = integer(self.bound), most(steps, integer(0))
        stride = width * ((steps + width * width - 1) // (width * width))
        windows = (steps + width - 1) // width
        marks = self.marks(steps, stride, state)

        def body(k: Array, now: State) -> tuple[State, State]:
            first = (windows - 1 - k) * width
            count = least(width, steps - first)
            mark = first // stride
            begin = self.advance(mark * stride, first, [element(m, mark) for m in marks])
            return self.through(first, count, self.window(first, count, begin), now), []

        return repeat(windows, body, cotangents)[0]

    def marks(self, steps: Array, stride: Array, state: State) -> State:
        """The states before the steps that are multiples of the stride."""

        def body(j: Array, now: State) -> tuple[State, State]:
            after = (j + 1) * stride
            until = map_(select, less(after, steps), after, j * stride, to=(bool_, i64, i64))
            return self.advance(j * stride, until, now), now

        return repeat((steps + stride - 1) // most(stride, integer(1)), body, state, self.bound)[1]

    def advance(self, first: Array, last: Array, state: State) -> State:
        """The state before step `last`, given that before step `first`."""

        def body(k: Array, now: State) -> tuple[State, State]:
            return self.steps.after(first + k, now), []

        return repeat(last - first, body, state)[0]

    def window(self, first: Array, count: Array, state: State) -> State:
        """The states before the `count` steps from number `first` on."""

        def body(k: Array, now: State) -> tuple[State, State]:
            return self.steps.after(first + k, now), now

        return repeat(count, body, state, self.bound)[1]


def _most_kept(state: Sequence[Node]) -> Index:
    """The most states that are kept."""
    level = current()
    assert level is not None, "the reverse pass is traced"
    elements = maximum(level.examples, ONE) * sum((product(i.shape) for i in state), as_index(0))
    return maximum(minimum(floordiv(_ELEMENTS, elements), _MOST), _FEWEST)
