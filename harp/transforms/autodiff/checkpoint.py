"""`checkpoint`: intermediate values of a function are computed again in the reverse pass instead of being kept.

The reverse pass is an iteration that runs once: a graph of its own, which shares no value with the forward pass, and
whose memory is free after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import attrs

from harp.errors import ClosureGradientError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_named, emit
from harp.trace.graph.body import close, graph_of
from harp.trace.graph.graph import Graph, replaced
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.node import (
    Body,
    Constant,
    Custom,
    HostCall,
    Input,
    Iteration,
    MapReduce,
    Node,
    Several,
    View,
    fresh_input,
    walk,
)
from harp.trace.graph.view import drop_axes
from harp.trace.index.polynomial import ONE, ZERO
from harp.trace.scalar.dtypes import i64
from harp.trace.sizes.levels import current
from harp.trace.tracer import Argument, function_name, leaf_names, require_function
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.autodiff.arguments import argument_numbers
from harp.transforms.autodiff.checkpoint_policies import Policy, nothing_saveable
from harp.transforms.autodiff.gather_rules import constant
from harp.transforms.autodiff.jvp import jvp as jvp_graph
from harp.transforms.autodiff.vjp import vjp as vjp_graph
from harp.transforms.pickling import derived
from harp.transforms.rules import Given
from harp.transforms.staging import fresh_token, shape_of, stage, taking_token, with_arrays, without_token
from harp.transforms.typed import P, R, Transformed


def checkpoint(
    function: Callable[P, R],
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: int | Sequence[int] = (),
) -> Transformed[P, R]:
    """The same function, for which reverse mode keeps only the arguments: it computes the function again, and so takes
    less memory and more time. Use it round the layers of a deep network, or the steps of a loop.

    With a `policy`, of `harp.checkpoint_policies`, values that it accepts are kept, too. The states of loops inside are
    always computed again. Arguments that `static_argnums` names are passed as they are. `prevent_cse` is JAX's, and
    changes nothing.

    >>> import harp, harp.numpy as hnp
    >>> layer = checkpoint(lambda x: hnp.tanh(hnp.sin(x)))
    >>> float(harp.grad(layer)(0.0))
    1.0
    """
    require_function("checkpoint", function)
    accepts = nothing_saveable if policy is None else policy
    require_function("the policy of checkpoint, of harp.checkpoint_policies,", accepts)
    static = argument_numbers(static_argnums)
    call_user: Callable[..., Any] = function

    @derived(partial(checkpoint, policy=policy, static_argnums=static_argnums), function)
    def recomputed(*args: Tree, **kwargs: Tree) -> Any:
        fixed = {k % len(args): args[k] for k in static if -len(args) <= k < len(args)}
        args = tuple(None if k in fixed else arg for k, arg in enumerate(args))

        def with_fixed(arguments: Sequence[Tree], keywords: dict[str, Tree]) -> Any:
            return call_user(*(fixed.get(k, arg) for k, arg in enumerate(arguments)), **keywords)

        if current() is None:
            return with_fixed(*with_arrays((args, kwargs), function_name(function)))
        leaves, treedef = flatten((args, kwargs))
        names = leaf_names(function, args, kwargs)
        advice = "close over it, or name it in static_argnums"
        arrays = [as_named(leaf, f"argument {n}", advice) for leaf, n in zip(leaves, names, strict=True)]

        def call(arrays: Sequence[Array]) -> Tree:
            return with_fixed(*unflatten(treedef, arrays[1:]))

        arguments = [Argument(n, a.kind, shape_of(a), a.weak) for n, a in zip(names, arrays, strict=True)]
        traced = stage(call, [Argument("0", i64, ()), *arguments], function_name(function), fresh_token())
        graph, tokens = taking_token(traced)
        body, more = close(graph, 0, 0, traced.free, hoists=False)
        operands = (*map(node_of, arrays), *tokens, *more)
        whole = _Recomputed(len(operands))
        saved = whole.chosen(body, accepts)
        body = attrs.evolve(body, outputs=(*body.outputs, *saved))
        parts = Custom(operands, body, _Recomputed(len(operands), len(saved))).parts
        results = without_token(parts[: len(parts) - len(saved)], traced)
        return unflatten(traced.treedef, [emit(part) for part in results])

    return cast("Transformed[P, R]", recomputed)


class _Recomputed(Given):
    """The derivatives of the body. The backward graph computes the body again, and shares no node with it."""

    is_own = False

    def __init__(self, count: int, saved: int = 0) -> None:
        self.count, self.saved = count, saved

    def chosen(self, body: Body, policy: Policy) -> list[Node]:
        """The accepted values that the reverse pass reads, without those that only other accepted values need."""
        computed = {node for node in graph_of(body).nodes() if _has_memory(node) and policy(node)}
        if not computed:
            return []
        pulled = _all_cotangents(silenced(graph_of(body)), [i for i in self.arguments(body) if i.dtype.is_inexact])
        read = walk(pulled, lambda node: () if node in computed else node.inputs)
        return [node for node in read if node in computed]

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        graph = silenced(graph_of(body))
        wrt = self._moving(body, moving)
        pushed = jvp_graph(graph, wrt)
        first = len(graph.inputs)
        known = dict(zip(wrt, pushed.inputs[first:], strict=True))
        inexact = [i for i in self.arguments(body) if i.dtype.is_inexact]
        tangents = [known.get(i) or fresh_input(i.name, i.shape, i.dtype) for i in inexact]
        return Graph((*pushed.inputs[1:first], *tangents), pushed.outputs[len(graph.outputs) :], pushed.sites)

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        wrt = self._moving(body, moving)
        pulled = vjp_graph(silenced(graph_of(body)), wrt)
        saved = body.outputs[len(body.outputs) - self.saved :]
        saved_inputs: dict[Node, Input] = {node: fresh_input("saved", node.shape, node.dtype) for node in saved}
        first = 1 + self.count
        inputs = (*pulled.inputs[:first], *saved_inputs.values(), *pulled.inputs[first:])
        inside, more = close(replaced(Graph(inputs, pulled.outputs, pulled.sites), saved_inputs), 0, 0, hoists=False)
        outside = [fresh_input(i.name, i.shape, i.dtype) for i in inputs[1:]]
        parts = Iteration(ONE, (*outside, *more), inside).parts
        known = dict(zip(wrt, (drop_axes(part, {0: ZERO}) for part in parts), strict=True))
        inexact = [i for i in self.arguments(body) if i.dtype.is_inexact]
        return Graph(tuple(outside), tuple(known.get(i) or constant(0, i) for i in inexact), pulled.sites)

    def _moving(self, body: Body, moving: Sequence[bool]) -> list[Input]:
        return [i for i, moves in zip(self.arguments(body), moving, strict=True) if moves]


def _all_cotangents(graph: Graph, wrt: Sequence[Input]) -> list[Node]:
    """The cotangents of all inputs but those that a function with its own derivatives closes over, which have none."""
    try:
        return [*vjp_graph(graph, wrt).outputs]
    except ClosureGradientError:
        return [] if len(wrt) == 1 else [ct for i in wrt for ct in _all_cotangents(graph, [i])]


def _has_memory(node: Node) -> bool:
    """Whether keeping a value saves work: views, for example, cost nothing to compute again."""
    if isinstance(node, MapReduce):
        return bool(node.operands)
    return not isinstance(node, (Input, Constant, View, Several, HostCall))
