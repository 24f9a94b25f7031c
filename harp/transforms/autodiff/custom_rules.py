"""Where derivatives that somebody has given are put into a graph."""

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
    given, own = _own(node, tangents.__contains__)
    graph = given.forward(node.body, [o in tangents for o in own])
    directions = [tangents.get(o) or constant(0, o) for o in own if o.dtype.is_inexact]
    found = iter(_put(graph, (*own, *directions)))
    return [Pushed(part, next(found) if part.dtype.is_inexact else None) for part in node.parts]


def pull_custom(
    node: Custom, cotangents: Mapping[int, Node], active: Callable[[Node], bool]
) -> list[tuple[Node, Node]]:
    """The operands through which a derivative flows, with their cotangents."""
    given, own = _own(node, active)
    graph = given.backward(node.body, [active(o) for o in own])
    seeds = [cotangents.get(k) or constant(0, p) for k, p in enumerate(node.parts) if p.dtype.is_inexact]
    saved = node.parts[len(node.parts) - given.saved :]
    found = _put(graph, (*own, *saved, *seeds))
    inexact = [o for o in own if o.dtype.is_inexact]
    return [(operand, ct) for operand, ct in zip(inexact, found, strict=True) if active(operand)]


def _own(node: Custom, active: Callable[[Node], bool]) -> tuple[Given, tuple[Node, ...]]:
    """What was given, and the operands that it speaks of. Raises ClosureGradientError if a derivative flows into one of
    the others, which the function has closed over: no rule says what becomes of it."""
    given = node.derivative
    assert isinstance(given, Given)
    for operand in node.operands[given.count :]:
        if operand.dtype.is_inexact and active(operand):
            sizes = ", ".join(map(str, operand.shape))
            raise ClosureGradientError(
                f"{given.called!r} has derivatives of its own, and reads an array of a function round it "
                f"({operand.dtype.numpy}[{sizes}]) that a derivative would flow into, of which its rules say nothing; "
                "make that array an argument, or read harp.stop_gradient of it"
            )
    return given, node.operands[: given.count]


def _put(graph: Graph, arguments: Sequence[Node]) -> tuple[Node, ...]:
    return inline(graph, dict(zip(graph.inputs, arguments, strict=True))).outputs
