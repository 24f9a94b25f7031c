"""How a transform applies the rule of a node, from a table with one for each kind; derivatives that a user gives."""

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
    *given: object,
    now: Node | None = None,
) -> _T:
    """What the rule makes of a node of a graph, or of what it is `now`. Raises MissingRuleError, with the user's line,
    where there is none, or the rule says so, and ClosureGradientError with the line."""
    try:
        rule = rules.get(type(node))
        if rule is None:
            raise MissingRuleError(f"{what} of {node!r} has no rule")
        return rule(now or node, *given)
    except (MissingRuleError, ClosureGradientError) as error:
        site = graph.site(node)
        place = f"\n  at {site[0]}:{site[1]}" if site else ""
        raise type(error)(f"{error}{place}") from None


def without_derivative(node: Foreign) -> MissingRuleError:
    """The error for a routine of the user through which a derivative is to flow."""
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


# -- derivatives that somebody has given ----------------------------------------------------------------------------


class Given(Derivative):
    """Makes graphs for a function, of whose body the shapes of arguments and results are known. Both graphs speak of
    floating-point arguments and results only, and of the first `count` arguments: the others are closed over.
    `moving` says of each of these whether a derivative flows through it; that of another one is not read, or 0.

    The last `saved` results are for the reverse pass."""

    count: int
    called: str = "a function"  # the name of the function, for messages
    rules: tuple[Callable[..., object], ...] = ()  # those of the user that make them
    saved: int = 0
    name: str | None = None  # of the value, for who chooses what to save
    # Whether the derivatives may be others than those of the body.
    is_own: bool = True

    @abstractmethod
    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """From the arguments, and a tangent for each floating-point one, to the tangents of the results."""

    @abstractmethod
    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """From the arguments, the saved results, and a cotangent for each floating-point result, to those of the
        arguments."""

    def arguments(self, body: Body) -> tuple[Input, ...]:
        """The inputs of the body that are arguments."""
        return body.inputs[1 : 1 + self.count]
