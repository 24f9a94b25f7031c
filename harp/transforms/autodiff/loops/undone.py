"""Arrays that the reverse pass through a loop restores, step by step, to their values before the step.

    for t: c, old[t] = c with f(c) at [i], c[i]             the forward pass, which keeps what a step changes
    for t backward: c = c with old[t] at [i]; pull(c)       the reverse pass, which begins with the array in the end

So a step costs what it changes and reads, in both passes, and not the array. Steps that hold loops run them forward
again on the same array, and back, which leaves it as it was behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harp.trace.graph.graph import Graph, replaced
from harp.trace.graph.node import Body, Gather, Input, Iteration, Node, View, fresh_input, walk
from harp.transforms.autodiff.loops.changes import Change, changed_in_parts, changes, part_of, with_part


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
