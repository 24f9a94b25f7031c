"""Batches of nodes with bodies: iterations, branches, and functions with derivatives of their own.

    while some example goes on: each example that goes on takes its step's carry, the others keep what they had

A branch that some examples take and others do not is computed for all, and each example selects its result. The
derivatives of a batch of functions are the batches of their derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs

from harp.errors import MissingRuleError
from harp.trace.graph.body import close, graph_of, in_place, may_not_end, sites_of
from harp.trace.graph.graph import Graph, inline, transform
from harp.trace.graph.host_calls import calls_python, has_node
from harp.trace.graph.node import (
    Body,
    Custom,
    Examples,
    Gather,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Part,
    Scatter,
    WithBody,
    body_input,
    fresh_input,
    positions,
)
from harp.trace.graph.rebuild import with_inputs
from harp.trace.graph.view import permute, view
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import bool_, i64
from harp.trace.scalar.expr import Operand, apply, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.transforms.rules import Given as Derivatives


class Given(NamedTuple):
    """An input of a node that is batched, and whether it has the axis of the batch, in front."""

    node: Node
    batched: bool


def lifted(item: Given, size: Index) -> Node:
    """The input with the axis of the batch in front, broadcast if it is the same for all examples."""
    if item.batched:
        return item.node
    shape = (size, *item.node.shape)
    return view(item.node, shape, positions(shape)[1:])


Batch = Callable[[Graph, Sequence[bool], Index], tuple[Graph, tuple[bool, ...]]]


def batch_iteration(node: Iteration, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """All results of the iteration, for a batch of operands."""
    body, graph = node.body, graph_of(node.body)
    carried, elements, _ = body.place()
    flags = [False, *(o.batched for o in operands)]
    read = set(graph.nodes())
    while True:
        if node.tested and flags[1]:
            return _masked(node, operands, size, batch)
        batched, have_axis = batch(graph, flags, size)
        more = [k for k in carried if have_axis[k - 1] and not flags[k]]
        for k in more:
            flags[k] = True
        if any(graph.inputs[k] in read for k in more) or (node.tested and flags[1]):
            continue
        # A carried value that the body does not read, as a branch's, changes only the shape of an input.
        inputs = [
            fresh_input(i.name, (size, *i.shape), i.dtype) if k in more else i for k, i in enumerate(batched.inputs)
        ]
        batched = attrs.evolve(batched, inputs=tuple(inputs))
        break
    outputs = [
        lifted(Given(o, has), size) if k < body.carried and flags[k + 1] else o
        for k, (o, has) in enumerate(zip(batched.outputs, have_axis, strict=True))
    ]
    whole = Graph(batched.inputs, tuple(outputs), batched.sites)
    closed, same = close(whole, body.carried, body.sliced, recomputes=body.recomputes)
    arguments = [
        lifted(o, size) if flags[k] and k in carried else _exchanged(o.node) if flags[k] and k in elements else o.node
        for k, o in enumerate(operands, 1)
    ]
    parts = Iteration(node.length, (*arguments, *same), closed, node.tested, node.reverse).parts
    results = [Given(part, flags[k + 1]) for k, part in enumerate(parts[: body.carried])]
    arrays = zip(parts[body.carried :], have_axis[body.carried :], strict=True)
    return results + [Given(_exchanged(part) if has else part, has) for part, has in arrays]


def _exchanged(node: Node) -> Node:
    """The node with its first two axes exchanged: the axis of the batch, and that of the steps."""
    return permute(node, (1, 0, *range(2, len(node.shape))))


def _masked(node: Iteration, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """The results where examples end at different times, or only some of them take a branch."""
    body, graph = node.body, graph_of(node.body)
    if has_node(graph, (Examples,)):
        raise MissingRuleError(
            "a loop that ends at different times for different examples, or a branch that only some of them take, asks "
            "about all examples of the batch, as psum does; ask before it, or choose by harp.numpy.where"
        )
    graph = _with_loops_of_some(graph, graph.inputs[1])
    carried, _, _ = body.place()
    is_branch = node.length is ONE
    flags = [False, *(is_branch or k in carried or o.batched for k, o in enumerate(operands, 1))]
    batched, have_axis = batch(graph, flags, size)
    outputs = [lifted(Given(o, has), size) for o, has in zip(batched.outputs, have_axis, strict=True)]
    whole = [lifted(o, size) if flags[k] else o.node for k, o in enumerate(operands, 1)]
    if is_branch:
        first = MapReduce((), (), const(0, i64))
        goes = whole[0]
        # No derivative flows through an example that does not take the branch, not even one that is infinite or NaN.
        taken = [_where_taken(goes, o) if o.dtype.is_inexact else o for o in whole]
        arguments = dict(zip(batched.inputs, (first, *taken), strict=True))
        new = inline(Graph((), tuple(outputs)), arguments).outputs
        return [Given(_where(goes, a, b), True) for a, b in zip(new, whole, strict=False)]
    goes_on = batched.inputs[1]
    some = fresh_input("some go on", (), bool_)
    before = [batched.inputs[k] for k in carried]
    after = [_where(goes_on, a, b) for a, b in zip(outputs, before, strict=False)]
    inputs: tuple[Input, ...] = (batched.inputs[0], some, *batched.inputs[1:])
    # What the loop makes for an example that has ended is arbitrary, and not read.
    step = Graph(inputs, (_any(after[0]), *after, *outputs[body.carried :]), batched.sites)
    closed, same = close(step, 1 + body.carried, 0)
    parts = Iteration(node.length, (_any(whole[0]), *whole, *same), closed, True, node.reverse).parts
    arrays = [Given(_exchanged(part), True) for part in parts[1 + body.carried :]]
    return [Given(part, True) for part in parts[1 : 1 + body.carried]] + arrays


def _with_loops_of_some(graph: Graph, test: Node) -> Graph:
    """The body, in which inner loops that end by a test, and calls of Python, run only for examples for which the
    body's test holds: for others, such a loop might never end. Inside of these loops their own tests hold. A function
    that is recomputed for its gradient is inlined, since it would start its loops. Gathers and scatters become
    unchecked: indices of examples that do not run may be outside."""

    def rule(node: Node, inputs: tuple[Node, ...]) -> Node:
        node = with_inputs(node, inputs)
        if isinstance(node, Part) and isinstance(node.whole, Custom) and not _is_own(node.whole):
            return _with_loops_of_some(in_place(node.whole), test).outputs[node.number]
        if isinstance(node, Iteration) and node.tested:
            first, *others = node.operands
            return with_inputs(node, (_and(first, test), *others))
        if isinstance(node, Gather):
            return Gather(node.src, node.indices, node.fill)
        if isinstance(node, Scatter):
            return Scatter(node.base, node.indices, node.updates, node.kind, node.clips, node.unique)
        if isinstance(node, HostCall):
            return HostCall(node.token, _and(node.active, test), node.operands, node.function)
        if isinstance(node, WithBody) and _needs_test(graph_of(node.body)):
            return _reading_test(node, test)
        return node

    return transform(graph, rule)


def _and(test: Node, other: Node) -> Node:
    """`test` and `other`, where `other` is one value for all elements of `test`."""
    spread = other if other.shape == test.shape else view(other, test.shape, ())
    return MapReduce(test.shape, (test, spread), Operand(bool_, 0) & Operand(bool_, 1))


def _needs_test(graph: Graph) -> bool:
    """Whether a graph must know which examples it runs for."""
    return may_not_end(graph) or calls_python(graph)


def _reading_test(node: WithBody, test: Node) -> Node:
    """The node, whose body also reads the test."""
    assert isinstance(node, (Iteration, Custom))
    body = node.body
    told = body_input(len(body.inputs), (), bool_)
    masked = _with_loops_of_some(graph_of(body), told)
    inside = attrs.evolve(body, inputs=(*body.inputs, told), outputs=masked.outputs, sites=sites_of(masked))
    if isinstance(node, Custom):
        return Custom((*node.operands, test), inside, node.derivative)
    return Iteration(node.length, (*node.operands, test), inside, node.tested, node.reverse)


def _is_own(node: Custom) -> bool:
    return isinstance(node.derivative, Derivatives) and node.derivative.is_own


def _any(test: Node) -> Node:
    return MapReduce(test.shape, (test,), Operand(bool_, 0), Reduce.MAX, (0,))


def _where_taken(test: Node, operand: Node) -> Node:
    """The operand, through which derivatives flow only for examples whose test holds."""
    return _where(test, operand, MapReduce(operand.shape, (operand,), apply(Op.STOP, Operand(operand.dtype, 0))))


def _where(test: Node, yes: Node, no: Node) -> Node:
    """An elementwise choice between two arrays, by a test for each example."""
    spread = view(test, yes.shape, positions(yes.shape)[:1])
    chosen = select(Operand(bool_, 0), Operand(yes.dtype, 1), Operand(yes.dtype, 2))
    return MapReduce(yes.shape, (spread, yes, no), chosen)


def batch_custom(node: Custom, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """All results of the function, for a batch of operands."""
    assert isinstance(node.derivative, Derivatives)
    flags = [o.batched for o in operands]
    graph = graph_of(node.body)
    batched, have_axis = batch(graph, [False, *flags], size)
    outputs = tuple(lifted(Given(o, has), size) for o, has in zip(batched.outputs, have_axis, strict=True))
    body, more = close(Graph(batched.inputs, outputs, batched.sites), 0, 0, hoists=False)
    derivative = _Batched(node.derivative, node.body, flags[: node.derivative.count], size, batch)
    parts = Custom((*(o.node for o in operands), *more), body, derivative).parts
    return [Given(part, True) for part in parts]


class _Batched(Derivatives):
    """The derivatives of a batch; arguments without a flag are the same for all. `body` is that of one example."""

    def __init__(self, one: Derivatives, body: Body, flags: Sequence[bool], size: Index, batch: Batch) -> None:
        self.one, self.body, self.flags, self.size, self.batch = one, body, flags, size, batch
        self.count, self.is_own, self.saved, self.name = one.count, one.is_own, one.saved, one.name
        self.called, self.rules = one.called, one.rules

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        one = self.one.forward(self.body, moving)
        batched, have_axis = self.batch(one, [*self.flags, *self._inexact()], self.size)
        outputs = tuple(lifted(Given(o, has), self.size) for o, has in zip(batched.outputs, have_axis, strict=True))
        return Graph(batched.inputs, outputs, batched.sites)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        results = self.saved + sum(r.dtype.is_inexact for r in self.body.outputs)
        one = self.one.backward(self.body, moving)
        batched, have_axis = self.batch(one, [*self.flags, *(True,) * results], self.size)
        outputs = []
        for output, has, wanted in zip(batched.outputs, have_axis, self._inexact(), strict=True):
            whole = lifted(Given(output, has), self.size)
            outputs.append(whole if wanted else _sum_of_examples(whole))
        return Graph(batched.inputs, tuple(outputs), batched.sites)

    def _inexact(self) -> list[bool]:
        """Whether each floating-point argument is batched."""
        pairs = zip(self.flags, self.one.arguments(self.body), strict=True)
        return [flag for flag, i in pairs if i.dtype.is_inexact]


def _sum_of_examples(node: Node) -> Node:
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0), Reduce.SUM, (0,))
