"""Arrays that the reverse pass through a loop restores, step by step, to their values before the step.

    for t: c, old[t] = c.at[i].set(f(c)), c[i]              the forward pass keeps what a step overwrites
    for t backward: c = c.at[i].set(old[t]); pull(c)        the reverse pass begins with the array after all steps

So in both passes a step costs what it changes and reads, not the whole array. Steps with inner loops run these forward
again on the same array, and then undo them, too.

The part of an array that a step changes must be an element, a row or a column:

    y = x.at[i].set(a)                    ->  [i]
    for j: y = y.at[i, j].set(f(j))       ->  [i, :]        i is constant in the inner loop, and j is not
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
    """Indices along the first axes of an array, each an integer node; None stands for a whole axis. Indices outside of
    the array change nothing; with `clips` they mean its first or last index."""

    places: tuple[Node | None, ...]
    clips: bool


def changes(after: Node, before: Node) -> tuple[Change, ...] | None:
    """The parts in which an array may differ from `before`, from which it was made; None if everywhere, or unknown."""
    parts: dict[Change, None] = {}
    while after is not before:
        change: Sequence[Change] | None = None
        if isinstance(after, MapReduce) and after.reduce is None and isinstance(after.expr, Operand):
            change, after = (), after.operands[after.expr.slot]  # a copy
        elif isinstance(after, Scatter):
            change, after = _scatter_changes(after), after.base
        elif isinstance(after, Part) and isinstance(after.whole, Iteration) and after.number < after.whole.body.carried:
            change, after = _loop_changes(after.whole, after.number), after.whole.operands[after.number]
        if change is None:
            return None
        parts.update(dict.fromkeys(change))
    return tuple(parts)


def changed_in_parts(body: Body) -> dict[int, tuple[Change, ...]]:
    """The large carried arrays, by number, of which a step changes only parts, at indices that are not read from
    another such array."""
    large = {i for place in body.place()[0] if product((i := body.inputs[place]).shape).constant is None}
    by_number: dict[int, tuple[Change, ...]] = {}
    for number in range(body.carried):
        array = body.inputs[1 + number]
        parts = changes(body.outputs[number], array) if array in large else None
        if parts and not large & set(walk(p for part in parts for p in part.places if p is not None)):
            by_number[number] = parts
    return by_number


def part_of(array: Node, change: Change) -> Node:
    """The elements of such a part."""
    return Gather(array, _indices(array, change))


def with_part(array: Node, change: Change, part: Node) -> Node:
    """The array with other elements in that part."""
    return Scatter(array, _indices(array, change), part, Put.SET, change.clips, True)


def _indices(array: Node, change: Change) -> tuple[Node, ...]:
    axes = [axis for axis, place in enumerate(change.places) if place is None]
    shape = tuple(array.shape[axis] for axis in axes)
    along = dict(zip(axes, positions(shape), strict=True))
    return tuple(
        MapReduce(shape, (), Position(along[axis])) if place is None else view(place, shape, ())
        for axis, place in enumerate(change.places)
    )


def _scatter_changes(node: Scatter) -> tuple[Change, ...] | None:
    return _narrow([_scalar_index(index) for index in node.indices], node.clips)


def _narrow(places: list[Node | None], clips: bool) -> tuple[Change, ...] | None:
    while places and places[-1] is None:
        places.pop()
    return (Change(tuple(places), clips),) if places else None


def _scalar_index(index: Node) -> Node | None:
    """The integer node that all elements of an index equal; None if they differ."""
    if not index.shape:
        return index
    if isinstance(index, View) and not index.src.shape and not index.conditions:
        return index.src
    if isinstance(index, MapReduce) and isinstance(index.expr, Position) and not loops_in(index.expr.index):
        return MapReduce((), (), index.expr)
    return None


def _loop_changes(node: Iteration, number: int) -> tuple[Change, ...] | None:
    """The parts that all steps of a loop change together: whole axes where the index differs between steps."""
    body = node.body
    inside = changes(body.outputs[number], body.inputs[1 + number])
    if inside is None:
        return None
    same: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    parts: dict[Change, None] = {}
    for change in inside:
        places = [None if p is None or not _is_made_of(p, same) else _outside(p, same) for p in change.places]
        narrow = _narrow(places, change.clips)
        if narrow is None:
            return None
        parts.update(dict.fromkeys(narrow))
    return tuple(parts)


def _is_made_of(node: Node, known: dict[Node, Node]) -> bool:
    return all(i in known for i in walk((node,)) if isinstance(i, Input))


def _outside(node: Node, operands: dict[Node, Node]) -> Node:
    return replaced(Graph((), (node,)), operands).outputs[0]


class Undone(NamedTuple):
    """A carried array, by its number, and the parts of it that a step changes."""

    number: int
    changed: tuple[Change, ...]

    def kept(self, body: Body) -> tuple[Node, ...]:
        """The parts as they are before a step, which are kept."""
        return tuple(part_of(body.inputs[1 + self.number], change) for change in self.changed)


def undoable(body: Body) -> list[Undone]:
    """The carried arrays that can be restored."""
    return [Undone(number, changed) for number, changed in changed_in_parts(body).items()]


def undone(arrays: Sequence[Undone], body: Body, step: Graph) -> list[Undone]:
    """The arrays that the reverse pass restores by undoing writes. Of other arrays a step reads nothing, or elements at
    indices that depend on its number alone: these are checkpointed instead (`harp.lower.graph.dead_results`)."""
    number = body.inputs[0]
    return [array for array in arrays if _is_read_otherwise(body.inputs[1 + array.number], step, number)]


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
    """The step, which restores these arrays instead of getting them as inputs."""
    behind: list[Input] = []
    kept: list[Input] = []
    before: dict[Node, Node] = {}
    parts: list[tuple[Input, ...]] = []
    for array in arrays:
        carried = body.inputs[1 + array.number]
        behind.append(fresh_input("an array behind a step", carried.shape, carried.dtype))
        old = tuple(fresh_input("what a step changes", p.shape, p.dtype) for p in array.kept(body))
        before[carried] = _with_parts(behind[-1], array, old)
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


def _with_parts(array: Node, undone_array: Undone, parts: Sequence[Node]) -> Node:
    for change, part in zip(undone_array.changed, parts, strict=True):
        array = with_part(array, change, part)
    return array


def _last_state(graph: Graph, before: Node, array: Undone) -> Node:
    """The array after the last inner loop of the step that changes it, and changes only parts that the step changes."""
    last = before
    for node in graph.nodes():
        for part in node.parts[: node.body.carried] if isinstance(node, Iteration) else ():
            changed = changes(part, before) if part.shape == before.shape else None
            if changed is not None and {*changed} <= {*array.changed}:
                last = part
    return last
