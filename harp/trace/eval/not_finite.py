"""Where a NaN or an infinity comes from: a node that has one, though nothing that it reads has.

The search goes back from a result that has one, by nodes that have one: what is computed on the way to others, or not
chosen in the end, does not matter. In a loop it goes into the first step that makes one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np

from harp.config import settings
from harp.errors import LinAlgError, NotFiniteError
from harp.trace.eval.interpret import evaluate_node, evaluate_nodes
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph, describe
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.node import Foreign, Iteration, MapReduce, Node, Part, WithBody, walk
from harp.trace.index.polynomial import Symbol, evaluate
from harp.trace.scalar.dtypes import NDArray, as_dtype
from harp.trace.scalar.expr import text
from harp.trace.source_locations import Site, user_site

Sizes = Mapping[Symbol, int]


def require_finite_results(
    graph: Graph,
    symbols: Sequence[Symbol],
    infinities: bool,
    arrays: Sequence[NDArray],
    sizes: Sequence[int],
    results: Sequence[NDArray],
) -> None:
    """Raise NotFiniteError for a NaN in the results of a call of a program, whose sizes are given in order."""
    require_finite(graph, arrays, dict(zip(symbols, sizes, strict=True)), results, infinities)


def require_finite(
    graph: Graph,
    arrays: Sequence[NDArray],
    sizes: Sizes,
    results: Sequence[NDArray],
    infinities: bool | None = None,
) -> None:
    """Raise NotFiniteError if a result has a NaN, or an infinity where these are looked for, that is computed of
    numbers which are none. `infinities` says whether they are, instead of `harp.debug.nans`."""
    search = _Search(settings.infinities if infinities is None else infinities)
    if any(map(search.is_bad, results)):
        found = search.origin(silenced(graph), dict(zip(graph.inputs, arrays, strict=True)), sizes)
        if found is not None:
            site = found.site or user_site()
            place = f"\n  at {site[0]}:{site[1]}" if site else ""
            kind = LinAlgError if found.matrix else NotFiniteError
            raise kind(f"{found.text}{''.join(found.steps)}{place}")


@attrs.frozen
class _Origin:
    """What was computed, in which steps of which loops, the inner one first, and the user's line; whether a matrix has
    no result."""

    text: str
    site: Site | None
    steps: tuple[str, ...] = ()
    matrix: bool = False


@attrs.frozen
class _Search:
    """What is looked for."""

    infinities: bool

    def is_bad(self, value: NDArray) -> bool:
        if value.dtype == object or not as_dtype(value.dtype).is_inexact:
            return False
        return bool(self.bad(value).any())

    def bad(self, value: NDArray) -> NDArray:
        """Which elements are NaN or infinite."""
        wide = value.astype(np.float32) if as_dtype(value.dtype).is_stored else value
        return np.asarray(~np.isfinite(wide) if self.infinities else np.isnan(wide))

    def origin(self, graph: Graph, given: Mapping[Node, NDArray], sizes: Sizes) -> _Origin | None:
        """Where the first result that is bad comes from; None if from what was given."""
        values = dict(given)
        for computed in walk(graph.outputs):
            if computed not in values:
                values[computed] = evaluate_node(computed, values, sizes)
        for output in graph.outputs:
            node: Node = output
            while self.is_bad(values[node]):
                read = node.whole.operands if isinstance(node, Part) else node.inputs
                before = next((i for i in read if self.is_bad(values[i])), None)
                if before is not None:
                    node = before
                    continue
                if isinstance(node, Part) and isinstance(node.whole, WithBody):
                    found = self.inside(node.whole, values, sizes)
                    site = graph.site(node) or graph.site(node.whole)
                    return found and attrs.evolve(found, site=found.site or site)
                refused = _refused(node, values)
                text = refused or self.text(node, values)
                return _Origin(text, graph.site(node), matrix=bool(refused)) if read else None
        return None

    def inside(self, node: WithBody, values: Mapping[Node, NDArray], sizes: Sizes) -> _Origin | None:
        """Where a bad result of a node comes from, whose operands are not."""
        body, graph = node.body, graph_of(node.body)
        given: dict[Node, NDArray] = dict(zip(body.inputs[1:], (values[o] for o in node.operands), strict=True))
        carried, elements, _ = ([body.inputs[k] for k in places] for places in body.place())
        tested, steps = isinstance(node, Iteration) and node.tested, _steps(node, sizes)
        for t in steps:
            if tested and not given[carried[0]]:
                break
            inputs: dict[Node, NDArray] = {body.inputs[0]: np.asarray(t, np.int64), **given}
            inputs.update((i, given[i][t]) for i in elements)
            found = evaluate_nodes(body.outputs, dict(inputs), sizes)
            results = [found[o] for o in body.outputs]
            if any(map(self.is_bad, results)):
                origin = self.origin(graph, inputs, sizes)
                is_loop = isinstance(node, Iteration) and len(steps) != 1
                return origin and attrs.evolve(origin, steps=(*origin.steps, *[f", in step {t} of a loop"] * is_loop))
            given.update(zip(carried, results, strict=False))
        return None

    def text(self, node: Node, values: Mapping[Node, NDArray]) -> str:
        """What was computed, of which numbers."""
        value = values[node]
        place = tuple(int(k) for k in np.argwhere(self.bad(value))[0])
        where = f" at {list(place)}" if place else ""
        computed = f"{value[place]} is computed{where} as "
        if isinstance(node, MapReduce) and node.reduce is None:
            operands = [values[o] for o in node.operands]
            numbers = ", ".join(f"x{slot} = {o[place]}" for slot, o in enumerate(operands))
            return f"{computed}{text(node.expr)}{' of ' if numbers else ''}{numbers}"
        node = node.whole if isinstance(node, Part) else node
        names = {operand: f"x{k}" for k, operand in enumerate(node.inputs)}
        shapes = ", ".join(f"{names[o]} of shape {values[o].shape}" for o in node.inputs)
        return f"{computed}{describe(node, names.__getitem__)}, {shapes}, whose numbers are all finite"


def _refused(node: Node, values: Mapping[Node, NDArray]) -> str:
    """What is wrong with a matrix that has no result, if the node is that of a function of matrices."""
    whole = node.whole if isinstance(node, Part) else node
    if not isinstance(whole, Foreign) or not isinstance(whole.routine, MatrixFunction):
        return ""
    return whole.routine.refused([values[o] for o in whole.operands], values[whole][0])


def _steps(node: WithBody, sizes: Sizes) -> Sequence[int]:
    """The numbers of the steps, in their order."""
    if not isinstance(node, Iteration):
        return range(1)
    if node.length is None:
        return range(2**62)
    return range(evaluate(node.length, sizes.__getitem__))[:: -1 if node.reverse else 1]  # type: ignore[arg-type]
