"""Where user-defined derivatives are put into a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harp.errors import ClosureGradientError
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import Custom, Node
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.loops.rules import Pushed
from harp.transforms.rules import Given


def push_custom(node: Custom, tangents: Mapping[Node, Node]) -> list[Pushed]:
    """All results, and their tangents."""
    derivative, operands = _derivative_and_operands(node, tangents.__contains__)
    graph = derivative.forward(node.body, [o in tangents for o in operands])
    directions = [tangents.get(o) or constant(0, o) for o in operands if o.dtype.is_inexact]
    pushed = iter(_inlined(graph, (*operands, *directions)))
    return [Pushed(part, next(pushed) if part.dtype.is_inexact else None) for part in node.parts]


def pull_custom(
    node: Custom, cotangents: Mapping[int, Node], active: Callable[[Node], bool]
) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents."""
    derivative, operands = _derivative_and_operands(node, active)
    graph = derivative.backward(node.body, [active(o) for o in operands])
    seeds = [cotangents.get(k) or constant(0, p) for k, p in enumerate(node.parts) if p.dtype.is_inexact]
    saved = node.parts[len(node.parts) - derivative.saved :]
    pulled = _inlined(graph, (*operands, *saved, *seeds))
    inexact = [o for o in operands if o.dtype.is_inexact]
    return [(operand, ct) for operand, ct in zip(inexact, pulled, strict=True) if active(operand)]


def _derivative_and_operands(node: Custom, active: Callable[[Node], bool]) -> tuple[Given, tuple[Node, ...]]:
    """The derivative and the operands that it differentiates. Raises ClosureGradientError if a derivative flows into
    another operand, an array that the function closes over: the user's rules do not cover it."""
    derivative = node.derivative
    assert isinstance(derivative, Given)
    for operand in node.operands[derivative.count :]:
        if operand.dtype.is_inexact and active(operand):
            sizes = ", ".join(map(str, operand.shape))
            raise ClosureGradientError(
                f"{derivative.called!r} has derivatives of its own, and reads an array of a function round it "
                f"({operand.dtype.numpy}[{sizes}]) that a derivative would flow into, of which its rules say nothing; "
                "make that array an argument, or read harp.stop_gradient of it"
            )
    return derivative, node.operands[: derivative.count]


def _inlined(graph: Graph, arguments: Sequence[Node]) -> tuple[Node, ...]:
    return inline(graph, dict(zip(graph.inputs, arguments, strict=True))).outputs
