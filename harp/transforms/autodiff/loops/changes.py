"""What the steps of a loop change of an array that they carry, if that is an element, a row or a column each.

    y = x with a at [i]                   ->  [i]
    for j: y = y with f(j) at [i, j]      ->  [i, :]        i is the same in all steps of the inner loop, and j is not

The reverse pass through such a loop needs no copy of the array for each step. The elements that a step is going to
change are kept, and put back behind it: so the array is again what it was before the step.
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
