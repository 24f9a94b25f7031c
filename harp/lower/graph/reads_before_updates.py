"""What is read between two changes of an array, of elements that the first one leaves as they are, is read before it;
of those that it sets, it is what it sets.

    y = x with a at [0]; z = y with f(y[0], y[1]) at [1]
                                        ->   b = f(a, x[1]); y = x with a at [0]; z = y with b at [1]

So no state between the changes is wanted as an array of its own, and all of them are in place.
"""

from __future__ import annotations

from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Gather, Input, MapReduce, Node, Put, Scatter, View, at, positions
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.view import view
from harp.trace.index.bounds import bounded, nonnegative
from harp.trace.index.polynomial import ZERO, Index, Shape, loops_in, product, split_linear
from harp.trace.scalar.expr import Position


def reads_before_updates(graph: Graph) -> Graph:
    """The graph, in which few elements are read of what the inputs are before they change."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(node, inputs)
        while isinstance(made, (Gather, View)) and isinstance(made.src, Scatter) and _is_few(made, made.src):
            if _is_set(made, made.src):
                return made.src.updates
            if not _are_apart(made, made.src):
                break
            made = _of(made, made.src.base)
        return made

    return transform(graph, rule)


def _is_few(read: Gather | View, change: Scatter) -> bool:
    """Whether few elements are read of an input that has changed."""
    base: Node = change
    while isinstance(base, Scatter):
        base = base.base
    return isinstance(base, Input) and bounded(product(read.shape)) and not bounded(product(change.shape))


def _of(read: Gather | View, array: Node) -> Node:
    if isinstance(read, Gather):
        return Gather(array, read.indices, read.fill, read.strict)
    return view(array, read.shape, read.index, read.conditions, read.fill)


def _is_set(read: Gather | View, change: Scatter) -> bool:
    """Whether all that is read is what was set, in the same order. What a view reads is certain to be there."""
    if change.kind is not Put.SET or len(change.indices) != len(change.shape) or read.shape != change.updates.shape:
        return False
    if not _are_distinct(change):
        return False
    own, others = _places(read), [_place(index) for index in change.indices]
    if len(own) != len(others) or not all(p is q for p, q in zip(own, others, strict=True)):
        return False
    certain = isinstance(read, View) and not read.conditions
    return all(p is not None and (certain or _is_inside(p, n)) for p, n in zip(own, change.shape, strict=True))


def _are_distinct(change: Scatter) -> bool:
    """Whether no place has two updates: each axis of the updates moves an index that no other one moves."""
    places = [p for index in change.indices if (p := _place(index)) is not None]
    slopes = {loop: split_linear(p, loop) for p in places if len(loops_in(p)) == 1 for loop in loops_in(p)}
    moving = {loop for loop, parts in slopes.items() if parts is not None and parts[0].constant}
    return change.unique or moving.issuperset(p.atom for p in positions(change.indices[0].shape) if p is not ZERO)


def _are_apart(read: Gather | View, change: Scatter) -> bool:
    """Whether none of the elements that are read has changed: along some axis, all of them are at other places."""
    own, others = _places(read), [_place(index) for index in change.indices]
    clips = isinstance(read, Gather) and read.fill is None
    shape = read.indices[0].shape if isinstance(read, Gather) else read.shape
    changed = change.indices[0].shape
    both: Shape = (*shape, *changed)
    left, right = at(shape, positions(both)[: len(shape)]), at(changed, positions(both)[len(shape) :])
    for p, q, size in zip(own, others, change.shape, strict=False):
        if p is None or q is None or not _names_itself(q, size, change.clips):
            continue
        if isinstance(read, Gather) and not _names_itself(p, size, clips):
            continue
        if nonnegative(left(p) - right(q) - 1) or nonnegative(right(q) - left(p) - 1):
            return True
    return False


def _names_itself(p: Index, size: Index, clips: bool) -> bool:
    """Whether an index names the place of that number, if any: a negative one counts from the end, and one behind the
    end is the last place if it is clipped."""
    return _is_inside(p, size) if clips else nonnegative(p)


def _is_inside(p: Index, size: Index) -> bool:
    return nonnegative(p) and nonnegative(size - 1 - p)


def _places(read: Gather | View) -> list[Index | None]:
    return [_place(index) for index in read.indices] if isinstance(read, Gather) else [*read.index]


def _place(index: Node) -> Index | None:
    """The formula of an index, if it is one."""
    if isinstance(index, MapReduce) and not index.operands and isinstance(index.expr, Position):
        return index.expr.index
    return None
