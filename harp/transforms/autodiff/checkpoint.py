"""`checkpoint`: what a function computes on its way is computed again for its gradient, and not kept.

The way back is an iteration that runs once: a graph of its own, which shares no value with the way there, and whose
memory is free after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_named, emit
from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Custom, Iteration, fresh_input
from harp.trace.graph.view import drop_axes
from harp.trace.index.polynomial import ONE, ZERO
from harp.trace.scalar.dtypes import i64
from harp.trace.sizes.levels import current
from harp.trace.tracer import Argument, function_name, leaf_names, require_function
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.autodiff.jvp import jvp as jvp_graph
from harp.transforms.autodiff.vjp import vjp as vjp_graph
from harp.transforms.derivative import Given
from harp.transforms.staging import shape_of, stage


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, of which reverse mode keeps nothing but the arguments: it computes the function again, and so
    takes less memory and more time. Use it round the layers of a deep network, or the steps of a loop.

    >>> import harp, harp.numpy as hnp
    >>> layer = checkpoint(lambda x: hnp.tanh(hnp.sin(x)))
    >>> float(harp.grad(layer)(0.0))
    1.0
    """
    require_function("checkpoint", function)

    @wraps(function)
    def recomputed(*args: Tree, **kwargs: Tree) -> Any:
        if current() is None:
            return function(*args, **kwargs)
        leaves, treedef = flatten((args, kwargs))
        names = leaf_names(function, args, kwargs)
        arrays = [as_named(leaf, f"argument {n}", "close over it") for leaf, n in zip(leaves, names, strict=True)]

        def call(given: Sequence[Array]) -> Tree:
            again, keywords = unflatten(treedef, given[1:])
            return function(*again, **keywords)

        arguments = [Argument(n, a.kind, shape_of(a), a.weak) for n, a in zip(names, arrays, strict=True)]
        traced = stage(call, [Argument("0", i64, ()), *arguments], function_name(function))
        body, more = close(traced.graph, 0, 0, traced.free, hoists=False)
        operands = (*map(node_of, arrays), *more)
        parts = Custom(operands, body, _Recomputed(len(operands))).parts
        return unflatten(traced.treedef, [emit(part) for part in parts])

    return recomputed


class _Recomputed(Given):
    """The derivatives of the body, of which the backward one shares nothing with it."""

    def __init__(self, count: int) -> None:
        self.count = count

    def forward(self, body: Body) -> Graph:
        graph = graph_of(body)
        pushed = jvp_graph(graph, [i for i in self.arguments(body) if i.dtype.is_inexact])
        return Graph(pushed.inputs[1:], pushed.outputs[len(graph.outputs) :], pushed.sites)

    def backward(self, body: Body) -> Graph:
        pulled = vjp_graph(graph_of(body), [i for i in self.arguments(body) if i.dtype.is_inexact])
        inside, _ = close(pulled, 0, 0, hoists=False)
        assert len(inside.inputs) == len(pulled.inputs), "a body captures nothing"
        given = [fresh_input(i.name, i.shape, i.dtype) for i in pulled.inputs[1:]]
        parts = Iteration(ONE, tuple(given), inside).parts
        return Graph(tuple(given), tuple(drop_axes(part, {0: ZERO}) for part in parts), pulled.sites)
