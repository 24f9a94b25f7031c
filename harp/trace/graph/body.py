"""Bodies of iterations: graphs that read nothing but their inputs, and how often those run that only count.

What a traced function reads of the functions round it becomes an input of the body, and so does what does not change
from one iteration to the next: it is computed once, before.

    while 0 < n: ...; n > t + 1        for step t, where n is the same in all steps

How many steps such a loop has is known before they run. It is tested like others that data ends, so all transforms know
it. Where n is a formula of sizes and of the numbers of the loops round it, as in a triangular loop, lowering makes it a
loop of that length.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

import attrs

from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import (
    Body,
    Constant,
    Custom,
    Input,
    Iteration,
    MapReduce,
    Node,
    View,
    WithBody,
    body_input,
    walk,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.index.division import relu
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Const, Expr, Operand, Position, apply, const, substitute
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import Site

# Whether a loop of so many steps begins. This stays beside the loop, and is not computed before loops round it: so how
# many steps there are is known there.
BEGINS = apply(Op.LT, const(0, i64), Operand(i64, 0))
Sites = tuple[tuple[Node, Site], ...]


def close(
    graph: Graph,
    carried: int,
    sliced: int,
    free: Collection[Node] = (),
    hoists: bool = True,
    recomputes: bool = False,
) -> tuple[Body, tuple[Node, ...]]:
    """The body of a graph, whose inputs are the number of the iteration, what is carried, and elements of arrays, in
    this order; and the nodes that it reads besides, which are its other inputs.

    `free` are the nodes that the graph reads of what is round it. Of the rest, what does not change from one iteration
    to the next is computed before, if it `hoists`; loops that data ends are not, for they may not be wanted at all.
    """
    # What is round it: also what the free nodes are views of, for a view of a view reads that.
    outside = set(walk(free))
    own = set(graph.inputs)
    moving: dict[Node, bool] = {}
    for node in walk(graph.outputs):
        if node in outside or isinstance(node, Constant) or (isinstance(node, Input) and node not in own):
            moving[node] = False
        elif hoists:
            stays = isinstance(node, Iteration) and node.length is None
            stays |= isinstance(node, MapReduce) and node.expr is BEGINS and not node.domain
            moving[node] = stays or node in own or any(moving[i] for i in node.inputs)
        else:
            moving[node] = True
    same: dict[Node, None] = {}
    reads = [i for node, moves in moving.items() if moves for i in node.inputs]
    for node in (*reads, *graph.outputs):
        while isinstance(node, View) and not moving[node]:  # what it shows is passed on, and not a copy of it
            node = node.src
        if not moving[node] and not _is_written_down(node):
            same[node] = None
    new: dict[Node, Node] = {}
    for place, old in enumerate((*graph.inputs, *same)):
        new[old] = body_input(place, old.shape, old.dtype)
    for node in walk(graph.outputs, lambda node: () if node in new else node.inputs):
        if node not in new:
            new[node] = with_inputs(node, tuple(new[i] for i in node.inputs))
    inputs = tuple(i for i in (new[old] for old in (*graph.inputs, *same)) if isinstance(i, Input))
    outputs, sites = tuple(new[o] for o in graph.outputs), _moved(graph.sites, new)
    return Body(inputs, outputs, carried, sliced, sites, recomputes), tuple(same)


def _is_written_down(node: Node) -> bool:
    """Whether it reads nothing: numbers and positions, which cost more to pass on than to write down."""
    return isinstance(node, MapReduce) and not node.operands and node.reduce is None


def graph_of(body: Body) -> Graph:
    """The body as a graph."""
    return Graph(body.inputs, body.outputs, dict(body.sites))


def sites_of(graph: Graph) -> Sites:
    """The lines of the nodes of a graph, as a body has them."""
    return _moved(graph.sites, {node: node for node in graph.nodes()})


def _moved(sites: Mapping[Node, Site], new: Mapping[Node, Node]) -> Sites:
    """The lines of nodes for what stands in their place, each once, in the order of these."""
    found: dict[Node, Site] = {}
    for old, node in new.items():
        if old in sites:
            found.setdefault(node, sites[old])
    return tuple(found.items())


def in_place(node: Custom) -> Graph:
    """The body of a function with derivatives of its own, over its operands."""
    zero = MapReduce((), (), const(0, i64))
    return inline(graph_of(node.body), dict(zip(node.body.inputs, (zero, *node.operands), strict=True)))


def with_body(node: Iteration, run: Callable[[Graph], Graph]) -> Iteration:
    """The iteration with another body, of the same inputs."""
    made = run(graph_of(node.body))
    if made.outputs == node.body.outputs:
        return node
    body = attrs.evolve(node.body, outputs=made.outputs, sites=sites_of(made))
    return Iteration(node.length, node.operands, body, node.tested, node.reverse)


def selected(
    node: Iteration, places: Iterable[int], results: Sequence[int], known: Mapping[Node, Node] = MappingProxyType({})
) -> Iteration:
    """The iteration with some of its inputs, by their places, and some of its results, by their numbers; in each step
    `known` stand for other inputs. What is carried is in both, or in none."""
    body, kept = node.body, (0, *sorted(places))
    new = dict(known)
    for number, place in enumerate(kept):
        old = body.inputs[place]
        new[old] = body_input(number, old.shape, old.dtype)
    outputs = [body.outputs[number] for number in results]
    for inner in walk(outputs, lambda inner: () if inner in new else inner.inputs):
        if inner not in new:
            new[inner] = with_inputs(inner, tuple(new[i] for i in inner.inputs))
    inputs = tuple(i for i in (new[body.inputs[place]] for place in kept) if isinstance(i, Input))
    carried, sliced = (len({*kept} & {*group}) for group in body.place()[:2])
    sites = _moved(dict(body.sites), new)
    made = Body(inputs, tuple(new[o] for o in outputs), carried, sliced, sites, body.recomputes)
    operands = tuple(node.operands[place - 1] for place in kept[1:])
    return Iteration(node.length, operands, made, node.tested, node.reverse)


# Whether there is a step behind one, of its number and the number of steps.
_NEXT = apply(Op.LT, Operand(i64, 0) + const(1, i64), Operand(i64, 1))


def first_test(count: Node) -> Node:
    """Whether a loop of so many steps begins."""
    return MapReduce((), (count,), BEGINS)


def next_test(number: Node, count: Node) -> Node:
    """Whether it goes on behind the step of this number."""
    return MapReduce((), (number, count), _NEXT)


def trip_count(node: Iteration) -> Node | None:
    """How many steps a loop has that data ends, or less than 0 for none; None if it does not say so before it runs."""
    body = node.body
    test = body.outputs[0] if node.tested else None
    if not isinstance(test, MapReduce) or test.expr is not _NEXT or test.operands[0] is not body.inputs[0]:
        return None
    same: dict[Node, Node] = {body.inputs[place]: node.operands[place - 1] for place in body.place()[2]}
    count = same.get(test.operands[1])
    return count if count is not None and node.operands[0] is first_test(count) else None


def known_length(node: Iteration) -> Index | None:
    """How many steps such a loop has, if that is a formula, as simplifying leaves it."""
    if not node.tested or node.length is not None:  # it may have no operands
        return None
    test, begins = node.body.outputs[0], node.operands[0]
    if not isinstance(test, MapReduce) or not isinstance(begins, MapReduce) or begins.operands:
        return None
    if test.operands != node.body.inputs[:1]:
        return None
    for e in _leaves(test.expr):
        if test.expr is substitute(_NEXT, {1: e}) and begins.expr is substitute(BEGINS, {0: e}):
            return relu(e.index if isinstance(e, Position) else as_index(int(e.value)))
    return None


def _leaves(e: Expr) -> list[Position | Const]:
    """What a comparison compares its first operand with."""
    return [a for a in e.args[1:] if isinstance(a, (Position, Const))]


def with_length(node: Iteration, length: Index) -> Iteration:
    """The loop as one of this length, without its test: its results are those behind the first one."""
    body = node.body
    known: dict[Node, Node] = {body.inputs[1]: MapReduce((), (), const(True, bool_))}
    places = range(2, len(body.inputs))
    untested = selected(node, places, range(1, len(body.outputs)), known)
    return Iteration(length, untested.operands, untested.body, False, node.reverse)


def may_not_end(graph: Graph) -> bool:
    """Whether data says how long some iteration runs: perhaps for ever."""
    bodies = [node for node in graph.nodes() if isinstance(node, WithBody)]
    endless = any(isinstance(node, Iteration) and node.length is None and not _is_bounded(node) for node in bodies)
    return endless or any(may_not_end(graph_of(node.body)) for node in bodies)


def _is_bounded(node: Iteration) -> bool:
    """Whether its steps are counted by a formula of sizes and of the number of the loop round it."""
    count = trip_count(node)
    if count is None:
        return known_length(node) is not None
    return all(i is body_input(0, (), i64) or (isinstance(i, MapReduce) and i.reduce is None) for i in walk((count,)))
