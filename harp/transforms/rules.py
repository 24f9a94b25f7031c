"""How a transform applies the rule of a node, from a table with one for each kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from harp.errors import MissingRuleError
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Foreign, Node

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
    where there is none, or the rule says so."""
    try:
        rule = rules.get(type(node))
        if rule is None:
            raise MissingRuleError(f"{what} of {node!r} has no rule")
        return rule(now or node, *given)
    except MissingRuleError as error:
        site = graph.site(node)
        place = f"\n  at {site[0]}:{site[1]}" if site else ""
        raise MissingRuleError(f"{error}{place}") from None


def without_derivative(node: Foreign) -> MissingRuleError:
    """The error for a routine of the user through which a derivative is to flow."""
    name = repr(node.routine) if isinstance(node.routine, int) else node.routine.name
    return MissingRuleError(
        f"{name} is computed outside of what harp can differentiate; give the function that calls it a derivative "
        "of its own with harp.custom_vjp or harp.custom_jvp, or take it out of the derivative with harp.stop_gradient"
    )
