"""That views stay inside their sources: no index of a view, where its conditions hold, lies outside of an axis.

Most views show it by their expressions, some by a guard of the trace. What neither shows is asked at each call, of its
sizes: a fact about sizes that was assumed without a guard ends there in an error, not in a wrong number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from harp.trace.eval.inside import is_plain, require_inside
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import View, WithBody, walk
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Symbol, as_index
from harp.trace.sizes.scope import Assumptions, Guard
from harp.trace.source_locations import Site

# Raises AddressError where a view leaves its source, for these values of the program's sizes.
Inspect = Callable[..., None]


class Claim(NamedTuple):
    """`room >= 0` at every position of the view where its conditions hold: an index is inside an axis of its source."""

    view: View
    room: Index
    site: Site | None = None


def claims(graph: Graph) -> Iterator[Claim]:
    """What must hold of the views of a graph, also in loops, but for axes that are plainly read from end to end."""
    for node in walk(graph.outputs):
        if isinstance(node, WithBody):
            yield from claims(graph_of(node.body))
        if isinstance(node, View):
            for p, size in zip(node.index, node.src.shape, strict=True):
                if not is_plain(p, size):
                    yield Claim(node, p)
                    yield Claim(node, size - 1 - p)


def unproved(graph: Graph, guards: Iterable[Guard], trusts: bool = True) -> tuple[Claim, ...]:
    """The claims that follow neither from the expressions nor from a guard, with the user's lines; all of them, if
    no proof is to be trusted."""
    known = Assumptions(fact for guard in guards for fact in guard.bounds)
    found = [claim for claim in claims(graph) if not trusts or not _is_proved(claim, known)]
    return tuple(claim._replace(site=graph.site(claim.view)) for claim in found)


def _is_proved(claim: Claim, known: Assumptions) -> bool:
    view, room = claim.view, claim.room
    if room in view.conditions or nonnegative(room):
        return True
    running = (extent - 1 for extent in view.shape)  # at a position all extents are at least 1
    return any(nonnegative(room - fact) for fact in (*view.conditions, *running)) or known.imply(room)


def inspection(claims: Sequence[Claim], sizes: Sequence[Symbol]) -> Inspect:
    """A function that looks at these claims for the sizes of a call; it remembers those that it has seen."""

    @lru_cache(maxsize=1 << 10)
    def inspect(*values: int) -> None:
        known = dict(zip(sizes, values, strict=True))
        for claim in claims:
            if not _holds(claim, known):
                require_inside(claim.view, known, claim.site)

    return inspect


def _holds(claim: Claim, sizes: Mapping[Symbol, int]) -> bool:
    """Whether the claim is proved with sizes as numbers; the positions need not be looked at then."""
    numbers: dict[Atom, Index] = {symbol: as_index(value) for symbol, value in sizes.items()}
    known = Substitution(numbers)
    view = claim.view
    conditions, room = known.each(view.conditions), known(claim.room)
    return room in conditions or any(nonnegative(room - fact) for fact in (as_index(0), *conditions))
