"""That views stay inside their sources: no index of a view, where its conditions hold, lies outside of an axis.

Most views show it by their expressions, some by a guard of the trace. What neither shows is asked at each call, of its
sizes: a size fact that was assumed without a guard ends there in an error, not in a wrong number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harp.trace.bounds import nonnegative
from harp.trace.graph import Graph
from harp.trace.index import ONE, ZERO, Index, Loop, symbols_in
from harp.trace.node import View, walk
from harp.trace.scope import Guard, Relation
from harp.trace.sites import Site


class Claim(NamedTuple):
    """`room >= 0` at every position of the view where its conditions hold: its index is inside an axis of its source."""

    view: View
    axis: int
    room: Index
    site: Site | None


def claims(graph: Graph) -> Iterator[Claim]:
    """What must hold of the views of a graph, but for axes that are read from one end to the other."""
    for node in walk(graph.outputs):
        if isinstance(node, View):
            for axis, (p, size) in enumerate(zip(node.index, node.src.shape, strict=True)):
                whole = isinstance(p.atom, Loop) and p.atom.extent is size
                if not whole and not (p is ZERO and size is ONE):
                    yield Claim(node, axis, p, graph.sites.get(node))
                    yield Claim(node, axis, size - 1 - p, graph.sites.get(node))


def unproved(graph: Graph, guards: Iterable[Guard]) -> tuple[Claim, ...]:
    """The claims that follow neither from the expressions nor from a guard."""
    known = [fact for guard in guards for fact in _facts(guard)]
    return tuple(claim for claim in claims(graph) if not _proved(claim, known))


def _facts(guard: Guard) -> tuple[Index, ...]:
    """What is >= 0 by a guard."""
    if guard.relation is Relation.ZERO:
        return guard.index, -guard.index
    return (guard.index,) if guard.relation is Relation.NONNEGATIVE else ()


def _proved(claim: Claim, known: Sequence[Index]) -> bool:
    view, room = claim.view, claim.room
    if room in view.conditions or nonnegative(room):
        return True
    sizes = symbols_in(room)
    running = (extent - 1 for extent in view.shape)  # there is a position, so all extents are at least 1
    related = (fact for fact in known if not sizes.isdisjoint(symbols_in(fact)))
    return any(nonnegative(room - fact) for fact in (*view.conditions, *running, *related))


