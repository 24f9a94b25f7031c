"""Applying a transform's table of rules, one for each kind of node; the interface of user-defined derivatives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from harp.errors import ClosureGradientError, MissingRuleError
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.node import Body, Derivative, Foreign, Input, Node

_T = TypeVar("_T")


def apply_rule(
    rules: Mapping[type[Node], Callable[..., _T]],
    what: str,
    graph: Graph,
    node: Node,
    *arguments: object,
    now: Node | None = None,
) -> _T:
    """The result of the rule for a node, applied to `now` instead if given. Raises MissingRuleError where there is no
    rule, or the rule raises it, and ClosureGradientError, both with the user's line."""
    try:
        rule = rules.get(type(node))
        if rule is None:
            raise MissingRuleError(f"{what} of {node!r} has no rule")
        return rule(now or node, *arguments)
    except (MissingRuleError, ClosureGradientError) as error:
        site = graph.site(node)
        place = f"\n  at {site[0]}:{site[1]}" if site else ""
        raise type(error)(f"{error}{place}") from None


def without_derivative(node: Foreign) -> MissingRuleError:
    """The error for a derivative through a routine of the user."""
    routine = node.routine
    name = f"function {routine}"
    if isinstance(routine, MatrixFunction):
        name = routine.content()
    elif not isinstance(routine, int):
        name = f"kernel {routine.name!r}" if isinstance(routine, KernelSource) else routine.name
    return MissingRuleError(
        f"{name} is computed outside of what harp can differentiate; give the function that calls it a derivative "
        "of its own with harp.custom_vjp or harp.custom_jvp, or take it out of the derivative with harp.stop_gradient"
    )


# -- user-defined derivatives ---------------------------------------------------------------------------------------


class Given(Derivative):
    """Makes the derivative graphs of a function, given its body, whose shapes are known. The graphs have tangents and
    cotangents for floating-point arguments and results only, and only for the first `count` operands: the others are
    closed over. `moving` says for each argument whether a derivative flows through it; other tangents are ignored or 0.

    The last `saved` results are for the reverse pass."""

    count: int
    called: str = "a function"  # the name of the function, for messages
    rules: tuple[Callable[..., object], ...] = ()  # the user's rules
    saved: int = 0
    name: str | None = None  # the name of the value, which policies of `checkpoint` read
    # Whether the derivatives may differ from those of the body.
    is_own: bool = True

    @abstractmethod
    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """The graph from the arguments, and a tangent for each floating-point one, to the tangents of the results."""

    @abstractmethod
    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """The graph from the arguments, the saved results, and a cotangent for each floating-point result, to the
        cotangents of the arguments."""

    def arguments(self, body: Body) -> tuple[Input, ...]:
        """The inputs of the body that are arguments."""
        return body.inputs[1 : 1 + self.count]
