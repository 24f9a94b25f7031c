"""Batches of iterations: iterations of batches.

    while some example goes on: each carries on what its step made, if it goes on itself, and else what it had

A branch that some examples take and others do not is computed for all of them, and each takes its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph, inline, transform
from harp.trace.graph.node import Input, Iteration, MapReduce, Node, fresh_input, positions, rebuild
from harp.trace.graph.view import permute, view
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Operand, apply, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.batching.given import Given, lifted

_SAME_SIZES = Substitution({})
Batch = Callable[[Graph, Sequence[bool], Index], tuple[Graph, tuple[bool, ...]]]


def batch_iteration(node: Iteration, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """All results, for a batch of operands."""
    body, graph = node.body, graph_of(node.body)
    carried, elements, _ = body.place()
    flags = [False, *(o.batched for o in operands)]
    while True:
        if node.tested and flags[1]:
            return _masked(node, operands, size, batch)
        batched, found = batch(graph, flags, size)
        more = [k for k in carried if found[k - 1] and not flags[k]]
        if not more:
            break
        for k in more:
            flags[k] = True
    outputs = [
        lifted(Given(o, has), size) if k < body.carried and flags[k + 1] else o
        for k, (o, has) in enumerate(zip(batched.outputs, found, strict=True))
    ]
    closed, same = close(Graph(batched.inputs, tuple(outputs), batched.sites), body.carried, body.sliced)
    given = [
        lifted(o, size) if flags[k] and k in carried else _second(o.node) if flags[k] and k in elements else o.node
        for k, o in enumerate(operands, 1)
    ]
    parts = Iteration(node.length, (*given, *same), closed, node.tested, node.reverse).parts
    results = [Given(part, flags[k + 1]) for k, part in enumerate(parts[: body.carried])]
    made = zip(parts[body.carried :], found[body.carried :], strict=True)
    return results + [Given(_second(part) if has else part, has) for part, has in made]


def _second(node: Node) -> Node:
    """The first two axes in the other order: that of the batch, and that of the iterations."""
    return permute(node, (1, 0, *range(2, len(node.shape))))


def _masked(node: Iteration, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """Where examples end at different times, or only some of them take a branch."""
    body, graph = node.body, _with_loops_of_some(graph_of(node.body))
    carried, _, _ = body.place()
    flags = [False, *(k in carried or o.batched for k, o in enumerate(operands, 1))]
    batched, found = batch(graph, flags, size)
    outputs = [lifted(Given(o, has), size) for o, has in zip(batched.outputs, found, strict=True)]
    whole = [lifted(o, size) if flags[k] else o.node for k, o in enumerate(operands, 1)]
    if node.length is ONE:
        first = MapReduce((), (), const(0, i64))
        goes = whole[0]
        # Through an example that does not take the branch no derivative flows, not even one that is infinite or NaN.
        every = [lifted(o, size) for o in operands]
        taken = [_where_taken(goes, o) if o.dtype.is_inexact else o for o in every]
        batched, found = batch(graph, [False, *(True for _ in operands)], size)
        outputs = [lifted(Given(o, has), size) for o, has in zip(batched.outputs, found, strict=True)]
        arguments = dict(zip(batched.inputs, (first, *taken), strict=True))
        new = inline(Graph((), tuple(outputs)), arguments).outputs
        return [Given(_where(goes, a, b), True) for a, b in zip(new, whole, strict=False)]
    goes_on = batched.inputs[1]
    some = fresh_input("some go on", (), bool_)
    before = [batched.inputs[k] for k in carried]
    after = [_where(goes_on, a, b) for a, b in zip(outputs, before, strict=False)]
    inputs: tuple[Input, ...] = (batched.inputs[0], some, *batched.inputs[1:])
    # Of an example that has ended the loop makes anything: nobody reads it.
    step = Graph(inputs, (_any(after[0]), *after, *outputs[body.carried :]), batched.sites)
    closed, same = close(step, 1 + body.carried, 0)
    parts = Iteration(node.length, (_any(whole[0]), *whole, *same), closed, True, node.reverse).parts
    made = [Given(_second(part), True) for part in parts[1 + body.carried :]]
    return [Given(part, True) for part in parts[1 : 1 + body.carried]] + made


def _with_loops_of_some(graph: Graph) -> Graph:
    """The body, which runs where its test holds, with loops inside that data ends begun only there: for an example that
    has ended they might never end, for what it would compute them of means nothing."""
    test = graph.inputs[1]

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        if isinstance(node, Iteration) and node.tested:
            first, *others = inputs
            both = MapReduce((), (first, test), Operand(bool_, 0) & Operand(bool_, 1))
            return rebuild(node, (both, *others), _SAME_SIZES)
        if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
            return node
        return rebuild(node, inputs, _SAME_SIZES)

    return transform(graph, rule)


def _any(test: Node) -> Node:
    return MapReduce(test.shape, (test,), Operand(bool_, 0), Reduce.MAX, (0,))


def _where_taken(test: Node, operand: Node) -> Node:
    """The operand, of which a derivative flows for some of the examples only."""
    return _where(test, operand, MapReduce(operand.shape, (operand,), apply(Op.STOP, Operand(operand.dtype, 0))))


def _where(test: Node, yes: Node, no: Node) -> Node:
    """For each example, one of two arrays."""
    spread = view(test, yes.shape, positions(yes.shape)[:1])
    chosen = select(Operand(bool_, 0), Operand(yes.dtype, 1), Operand(yes.dtype, 2))
    return MapReduce(yes.shape, (spread, yes, no), chosen)
