"""Batches of functions with derivatives of their own, whose derivatives are the batches of these."""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Custom, MapReduce, Node
from harp.trace.index.polynomial import Index
from harp.trace.scalar.expr import Operand
from harp.trace.scalar.ops import Reduce
from harp.transforms.batching.given import Given, lifted
from harp.transforms.batching.iteration_rules import Batch
from harp.transforms.rules import Given as Derivatives


def batch_custom(node: Custom, operands: Sequence[Given], size: Index, batch: Batch) -> list[Given]:
    """All results, for a batch of operands."""
    assert isinstance(node.derivative, Derivatives)
    flags = [o.batched for o in operands]
    graph = graph_of(node.body)
    batched, found = batch(graph, [False, *flags], size)
    outputs = tuple(lifted(Given(o, has), size) for o, has in zip(batched.outputs, found, strict=True))
    body, more = close(Graph(batched.inputs, outputs, batched.sites), 0, 0, hoists=False)
    derivative = _Batched(node.derivative, node.body, flags[: node.derivative.count], size, batch)
    parts = Custom((*(o.node for o in operands), *more), body, derivative).parts
    return [Given(part, True) for part in parts]


class _Batched(Derivatives):
    """The derivatives of a batch, of which some arguments are the same for all examples; `body` is that of one."""

    def __init__(self, one: Derivatives, body: Body, flags: Sequence[bool], size: Index, batch: Batch) -> None:
        self.one, self.body, self.flags, self.size, self.batch = one, body, flags, size, batch
        self.count, self.is_own, self.saved, self.name = one.count, one.is_own, one.saved, one.name
        self.called, self.rules = one.called, one.rules

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        one = self.one.forward(self.body, moving)
        batched, found = self.batch(one, [*self.flags, *self._inexact()], self.size)
        outputs = tuple(lifted(Given(o, has), self.size) for o, has in zip(batched.outputs, found, strict=True))
        return Graph(batched.inputs, outputs, batched.sites)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        results = self.saved + sum(r.dtype.is_inexact for r in self.body.outputs)
        one = self.one.backward(self.body, moving)
        batched, found = self.batch(one, [*self.flags, *(True,) * results], self.size)
        outputs = []
        for output, has, wanted in zip(batched.outputs, found, self._inexact(), strict=True):
            whole = lifted(Given(output, has), self.size)
            outputs.append(whole if wanted else _sum_of_examples(whole))
        return Graph(batched.inputs, tuple(outputs), batched.sites)

    def _inexact(self) -> list[bool]:
        """Of floating-point arguments, whether they are batched."""
        pairs = zip(self.flags, self.one.arguments(self.body), strict=True)
        return [flag for flag, i in pairs if i.dtype.is_inexact]


def _sum_of_examples(node: Node) -> Node:
    return MapReduce(node.shape, (node,), Operand(node.dtype, 0), Reduce.SUM, (0,))
