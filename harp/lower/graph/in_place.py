"""Arrays that are made, then changed in some places, are changed in place: what is put there is computed before.

    y = a scatter of u = f(x) to x      ->  x; u = contiguous f(x); y = x with u in its places, where x is in memory

That is so if nothing reads x but the scatter and what it puts. Updates that are as large as x are computed while they
are put, to a copy of x.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.graph.graph import Graph, transform
from harp.trace.graph.node import Constant, Contiguous, Input, Node, Scatter, walk
from harp.trace.graph.rebuild import with_inputs


def updated_in_place(graph: Graph, carried: Sequence[Input] = ()) -> Graph:
    """The graph in which updates are computed before they are put to arrays that are changed in place.

    Those inputs that are `carried` by a loop may be changed in place, too. Whether all readers of one are done by then,
    its indices included, is found out where its memory is chosen (`harp.lower.kernels.donate`); here its updates only
    stop to be a reader, those of several scatters one after the other as well.
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
    """The arrays that nobody reads but the scatter which changes them, and what is computed before for it."""
    users = _users(nodes)
    found: dict[Node, Scatter] = {}
    for node in nodes:
        if isinstance(node, Scatter) and node.inputs.count(node.base) == 1:
            computed = users[node.base] == [node] or isinstance(node.updates, Contiguous)
            if computed and _reads_end(node, users, outputs):
                found[node.base] = node
    return found


def _users(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    users: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for operand in set(node.inputs):
            users[operand].append(node)
    return users


def _reads_end(node: Scatter, users: dict[Node, list[Node]], outputs: Sequence[Node]) -> bool:
    """Whether everything that is computed of the base, but the scatter, is computed for its updates only."""
    if isinstance(node.base, (Input, Constant)):
        return False
    if users[node.base] == [node]:
        return node.base not in outputs
    before = set(walk((node.updates, *node.indices))) - set(walk((node.base,)))
    left, seen = [node.base], {node.base, node}
    while left:
        reader = left.pop()
        if reader in outputs:
            return False
        more = [user for user in users[reader] if user not in seen]
        if not before.issuperset(more):
            return False
        seen.update(more)
        left += more
    return True
