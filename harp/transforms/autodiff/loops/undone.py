"""Arrays that the reverse pass through a loop restores, step by step, to their values before the step.

    for t: c, old[t] = c with f(c) at [i], c[i]             the forward pass, which keeps what a step changes
    for t backward: c = c with old[t] at [i]; pull(c)       the reverse pass, which begins with the array in the end

So a step costs what it changes and reads, in both passes, and not the array. Steps that hold loops run them forward
again on the same array, and back, which leaves it as it was behind them.

That is so where what a step changes of an array is an element, a row or a column:

    y = x with a at [i]                   ->  [i]
    for j: y = y with f(j) at [i, j]      ->  [i, :]        i is the same in all steps of the inner loop, and j is not
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harp.trace.graph.graph import Graph, replaced
from harp.trace.graph.node import (
    Body,
    Gather,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    Put,
    Scatter,
    View,
    fresh_input,
    positions,
    walk,
)
from harp.trace.graph.view import view
from harp.trace.index.polynomial import loops_in, product
from harp.trace.scalar.expr import Operand, Position


class Change(NamedTuple):
    """Places along the first axes of an array, each an integer without axes; None stands for all places of an axis.
    What is outside of the array changes nothing, unless it `clips`: then it means the first or the last place."""

    places: tuple[Node | None, ...]
    clips: bool


def changes(after: Node, before: Node) -> tuple[Change, ...] | None:
    """Where an array may differ from the one that it was made of; None if that is everywhere, or not known."""
    found: dict[Change, None] = {}
    while after is not before:
        change: Sequence[Change] | None = None
        if isinstance(after, MapReduce) and after.reduce is None and isinstance(after.expr, Operand):
            change, after = (), after.operands[after.expr.slot]  # a copy
        elif isinstance(after, Scatter):
            change, after = _of_scatter(after), after.base
        elif isinstance(after, Part) and isinstance(after.whole, Iteration) and after.number < after.whole.body.carried:
            change, after = _of_loop(after.whole, after.number), after.whole.operands[after.number]
        if change is None:
            return None
        found.update(dict.fromkeys(change))
    return tuple(found)


def changed_in_parts(body: Body) -> dict[int, tuple[Change, ...]]:
    """Of what a loop carries, by number, the large arrays of which a step changes parts, at places that no other such
    array says."""
    large = {i for place in body.place()[0] if product((i := body.inputs[place]).shape).constant is None}
    found: dict[int, tuple[Change, ...]] = {}
    for number in range(body.carried):
        array = body.inputs[1 + number]
        parts = changes(body.outputs[number], array) if array in large else None
        if parts and not large & set(walk(p for part in parts for p in part.places if p is not None)):
            found[number] = parts
    return found


def part_of(array: Node, change: Change) -> Node:
    """What is at these places."""
    return Gather(array, _indices(array, change))


def with_part(array: Node, change: Change, part: Node) -> Node:
    """The array with that at these places."""
    return Scatter(array, _indices(array, change), part, Put.SET, change.clips, True)


def _indices(array: Node, change: Change) -> tuple[Node, ...]:
    axes = [axis for axis, place in enumerate(change.places) if place is None]
    shape = tuple(array.shape[axis] for axis in axes)
    along = dict(zip(axes, positions(shape), strict=True))
    return tuple(
        MapReduce(shape, (), Position(along[axis])) if place is None else view(place, shape, ())
        for axis, place in enumerate(change.places)
    )


def _of_scatter(node: Scatter) -> tuple[Change, ...] | None:
    return _narrow([_place(index) for index in node.indices], node.clips)


def _narrow(places: list[Node | None], clips: bool) -> tuple[Change, ...] | None:
    while places and places[-1] is None:
        places.pop()
    return (Change(tuple(places), clips),) if places else None


def _place(index: Node) -> Node | None:
    """The integer that an index is, as far as it is one."""
    if not index.shape:
        return index
    if isinstance(index, View) and not index.src.shape and not index.conditions:
        return index.src
    if isinstance(index, MapReduce) and isinstance(index.expr, Position) and not loops_in(index.expr.index):
        return MapReduce((), (), index.expr)
    return None


def _of_loop(node: Iteration, number: int) -> tuple[Change, ...] | None:
    """What all steps of a loop change: along an axis all places, if these are not the same in all steps."""
    body = node.body
    inside = changes(body.outputs[number], body.inputs[1 + number])
    if inside is None:
        return None
    same: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    found: dict[Change, None] = {}
    for change in inside:
        places = [None if p is None or not _is_made_of(p, same) else _outside(p, same) for p in change.places]
        narrow = _narrow(places, change.clips)
        if narrow is None:
            return None
        found.update(dict.fromkeys(narrow))
    return tuple(found)


def _is_made_of(node: Node, known: dict[Node, Node]) -> bool:
    return all(i in known for i in walk((node,)) if isinstance(i, Input))


def _outside(node: Node, operands: dict[Node, Node]) -> Node:
    return replaced(Graph((), (node,)), operands).outputs[0]


class Undone(NamedTuple):
    """An array that is carried, by its number, and what a step changes of it."""

    number: int
    changed: tuple[Change, ...]

    def kept(self, body: Body) -> tuple[Node, ...]:
        """What is kept of a step: what is there before."""
        return tuple(part_of(body.inputs[1 + self.number], change) for change in self.changed)


def undoable(body: Body) -> list[Undone]:
    """The arrays of a loop that can be restored."""
    return [Undone(number, changed) for number, changed in changed_in_parts(body).items()]


def undone(arrays: Sequence[Undone], body: Body, step: Graph) -> list[Undone]:
    """The arrays that the reverse pass restores by undoing writes. Of other arrays a step reads nothing, or elements at
    indices that depend on its number alone: these are checkpointed instead (`harp.lower.graph.dead_results`)."""
    number = body.inputs[0]
    return [found for found in arrays if _is_read_otherwise(body.inputs[1 + found.number], step, number)]


def _is_read_otherwise(array: Node, step: Graph, number: Node) -> bool:
    for node in step.nodes():
        if array not in node.inputs or isinstance(node, View):
            continue
        if not isinstance(node, Gather) or array in node.indices:
            return True
        if any(i is not number for i in walk(node.indices) if isinstance(i, Input)):
            return True
    return False


class Undoing(NamedTuple):
    """A step of the reverse pass that restores arrays. Its further inputs are these arrays `behind` the step, and the
    parts that were `kept`; its further outputs are the arrays before the step."""

    graph: Graph
    behind: tuple[Input, ...]
    kept: tuple[Input, ...]


def undoing(body: Body, step: Graph, arrays: Sequence[Undone]) -> Undoing:
    """The step, which is no longer given these arrays."""
    behind: list[Input] = []
    kept: list[Input] = []
    before: dict[Node, Node] = {}
    parts: list[tuple[Input, ...]] = []
    for array in arrays:
        given = body.inputs[1 + array.number]
        behind.append(fresh_input("an array behind a step", given.shape, given.dtype))
        old = tuple(fresh_input("what a step changes", p.shape, p.dtype) for p in array.kept(body))
        before[given] = _with_parts(behind[-1], array, old)
        parts.append(old)
        kept += old
    graph = replaced(step, before)
    states = []
    for array, old in zip(arrays, parts, strict=True):
        state = before[body.inputs[1 + array.number]]
        last = _last_state(graph, state, array)
        states.append(state if last is state else _with_parts(last, array, old))
    inputs = tuple(i for i in step.inputs if i not in before)
    return Undoing(Graph(inputs, (*graph.outputs, *states), graph.sites), tuple(behind), tuple(kept))


def _with_parts(array: Node, found: Undone, parts: Sequence[Node]) -> Node:
    for change, part in zip(found.changed, parts, strict=True):
        array = with_part(array, change, part)
    return array


def _last_state(graph: Graph, before: Node, array: Undone) -> Node:
    """What loops of the step leave of the array in the end: it differs in what the step changes, and nothing else."""
    last = before
    for node in graph.nodes():
        for part in node.parts[: node.body.carried] if isinstance(node, Iteration) else ():
            found = changes(part, before) if part.shape == before.shape else None
            if found is not None and {*found} <= {*array.changed}:
                last = part
    return last
