"""Updates of arrays in place: what a scatter puts is computed before it, and so is what is read between two scatters.

    y = a scatter of u = f(x) to x      ->  x; u = contiguous f(x); y = x with u in its places, where x is in memory

This needs that only the scatter and its updates read x. Updates as large as x are computed while they are put, to a
copy of x.

    y = x with a at [0]; z = y with f(y[0], y[1]) at [1]
                                        ->   b = f(a, x[1]); y = x with a at [0]; z = y with b at [1]

An element read between two scatters, if the first one leaves it as it is, is read before it; if the first one sets it,
it is the update. So the state between the scatters is not needed as an array.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import (
    Constant,
    Contiguous,
    Gather,
    Input,
    MapReduce,
    Node,
    Put,
    Scatter,
    View,
    at,
    positions,
    walk,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.view import view
from harp.trace.index.bounds import bounded, nonnegative
from harp.trace.index.polynomial import ZERO, Index, Shape, loops_in, product, split_linear
from harp.trace.scalar.expr import Position


def updated_in_place(graph: Graph, carried: Sequence[Input] = ()) -> Graph:
    """The graph in which updates of arrays that can be changed in place are computed before their scatter.

    Inputs that are `carried` by a loop may be changed in place, too. Whether all their reads, indices included, come
    first is decided where memory is chosen (`harp.lower.kernels.donate`); here only the updates stop to be readers,
    also those of a chain of scatters.
    """
    users = _users(graph.nodes())

    def is_computed_before(node: Scatter) -> bool:
        first = node.base
        while isinstance(first, Scatter):
            first = first.base
        if first in carried:
            return first in set(walk((node.updates,)))
        few = len(node.updates.shape) < len(node.shape)
        return few and len(users[node.base]) > 1 and _reads_end(node, users, graph.outputs)

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Scatter) and not isinstance(node.updates, Contiguous) and is_computed_before(node):
            inputs = (*inputs[:-1], Contiguous(inputs[-1]))
        return with_inputs(node, inputs)

    return transform(graph, rule)


def changed_in_place(nodes: Sequence[Node], outputs: Sequence[Node]) -> dict[Node, Scatter]:
    """The arrays whose only reader, besides computations done before it, is a scatter; each with that."""
    users = _users(nodes)
    scatters: dict[Node, Scatter] = {}
    for node in nodes:
        if isinstance(node, Scatter) and node.inputs.count(node.base) == 1:
            computed = users[node.base] == [node] or isinstance(node.updates, Contiguous)
            if computed and _reads_end(node, users, outputs):
                scatters[node.base] = node
    return scatters


def _users(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for operand in set(node.inputs):
            users[operand].append(node)
    return users


def _reads_end(node: Scatter, users: dict[Node, list[Node]], outputs: Sequence[Node]) -> bool:
    """Whether all values computed from the base, except the scatter, are computed for its updates only."""
    if isinstance(node.base, (Input, Constant)):
        return False
    if users[node.base] == [node]:
        return node.base not in outputs
    before = set(walk((node.updates, *node.indices))) - set(walk((node.base,)))
    stack, seen = [node.base], {node.base, node}
    while stack:
        reader = stack.pop()
        if reader in outputs:
            return False
        more = [user for user in users[reader] if user not in seen]
        if not before.issuperset(more):
            return False
        seen.update(more)
        stack += more
    return True


def reads_before_updates(graph: Graph) -> Graph:
    """The graph, in which reads of few elements of updated inputs become reads of the inputs before the update."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        made = with_inputs(node, inputs)
        while isinstance(made, (Gather, View)) and isinstance(made.src, Scatter) and _is_few(made, made.src):
            if _is_set(made, made.src):
                return made.src.updates
            if not _are_apart(made, made.src):
                break
            made = _read_of(made, made.src.base)
        return made

    return transform(graph, rule)


def _is_few(read: Gather | View, change: Scatter) -> bool:
    """Whether few elements are read, of an input after updates."""
    base: Node = change
    while isinstance(base, Scatter):
        base = base.base
    return isinstance(base, Input) and bounded(product(read.shape)) and not bounded(product(change.shape))


def _read_of(read: Gather | View, array: Node) -> Node:
    if isinstance(read, Gather):
        return Gather(array, read.indices, read.fill, read.strict)
    return view(array, read.shape, read.index, read.conditions, read.fill)


def _is_set(read: Gather | View, change: Scatter) -> bool:
    """Whether the elements that are read are the updates, in order. A view without conditions reads inside the
    array."""
    if change.kind is not Put.SET or len(change.indices) != len(change.shape) or read.shape != change.updates.shape:
        return False
    if not _are_distinct(change):
        return False
    read_at, set_at = _index_formulas(read), [_formula(index) for index in change.indices]
    if len(read_at) != len(set_at) or not all(p is q for p, q in zip(read_at, set_at, strict=True)):
        return False
    certain = isinstance(read, View) and not read.conditions
    return all(p is not None and (certain or _is_inside(p, n)) for p, n in zip(read_at, change.shape, strict=True))


def _are_distinct(change: Scatter) -> bool:
    """Whether no element has two updates: each axis of the updates moves an index that no other axis moves."""
    places = [p for index in change.indices if (p := _formula(index)) is not None]
    slopes = {loop: split_linear(p, loop) for p in places if len(loops_in(p)) == 1 for loop in loops_in(p)}
    moving = {loop for loop, parts in slopes.items() if parts is not None and parts[0].constant}
    return change.unique or moving.issuperset(p.atom for p in positions(change.indices[0].shape) if p is not ZERO)


def _are_apart(read: Gather | View, change: Scatter) -> bool:
    """Whether none of the elements that are read has changed: along some axis the indices always differ."""
    read_at, changed_at = _index_formulas(read), [_formula(index) for index in change.indices]
    clips = isinstance(read, Gather) and read.fill is None
    shape = read.indices[0].shape if isinstance(read, Gather) else read.shape
    changed = change.indices[0].shape
    both: Shape = (*shape, *changed)
    left, right = at(shape, positions(both)[: len(shape)]), at(changed, positions(both)[len(shape) :])
    for p, q, size in zip(read_at, changed_at, change.shape, strict=False):
        if p is None or q is None or not _names_itself(q, size, change.clips):
            continue
        if isinstance(read, Gather) and not _names_itself(p, size, clips):
            continue
        if nonnegative(left(p) - right(q) - 1) or nonnegative(right(q) - left(p) - 1):
            return True
    return False


def _names_itself(p: Index, size: Index, clips: bool) -> bool:
    """Whether an index means the element of that number, if there is one: negative indices count from the end, and with
    `clips` an index behind the end means the last element."""
    return _is_inside(p, size) if clips else nonnegative(p)


def _is_inside(p: Index, size: Index) -> bool:
    return nonnegative(p) and nonnegative(size - 1 - p)


def _index_formulas(read: Gather | View) -> list[Index | None]:
    return [_formula(index) for index in read.indices] if isinstance(read, Gather) else [*read.index]


def _formula(index: Node) -> Index | None:
    """The index as a formula of positions, if it is one."""
    if isinstance(index, MapReduce) and not index.operands and isinstance(index.expr, Position):
        return index.expr.index
    return None
