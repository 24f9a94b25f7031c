"""What every transform shares: trace a function on arrays to a graph of its own, and run a graph on arrays.

Inside a trace "run" means: put the graph's nodes, with its inputs replaced, into the function being traced. Elsewhere
it means the NumPy interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.config import settings
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import emit
from harp.trace.eval.interpret import interpret
from harp.trace.eval.not_finite import require_finite
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.node import Input, Node
from harp.trace.index.polynomial import Shape, as_index
from harp.trace.sizes.levels import current
from harp.trace.sizes.scope import Scope
from harp.trace.sizes.size import resolve_all
from harp.trace.tracer import Argument, Traced, trace_function
from harp.trace.trees import Tree


def shape_of(array: Array) -> Shape:
    """The sizes of an array as index expressions: numbers outside of a trace."""
    if current() is None:
        return tuple(map(as_index, np.asarray(array).shape))
    return resolve_all(node_of(array).shape)


def stage(function: Callable[[Sequence[Array]], Tree], arguments: Sequence[Argument], name: str) -> Traced:
    """Trace `function` on fresh inputs, as a part of what is being traced, if anything is."""
    level = current()
    return trace_function(function, arguments, Scope() if level is None else level.scope, name)


def run(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """The graph's outputs for these arrays as its inputs."""
    level = current()
    if level is None:
        given = [np.asarray(a) for a in arrays]
        values = interpret(graph, given, {})
        if settings.nans:
            require_finite(graph, given, {}, values)
        return [from_numpy(value) for value in values]
    arguments: dict[Input, Node] = {i: node_of(a) for i, a in zip(graph.inputs, arrays, strict=True)}
    inlined = inline(graph, arguments)
    for node, site in inlined.sites.items():
        level.sites.setdefault(node, site)
    return [emit(node) for node in inlined.outputs]
