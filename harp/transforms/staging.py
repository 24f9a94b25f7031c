"""What every transform shares: trace a function on arrays to a graph of its own, and run a graph on arrays.

Inside a trace "run" means: put the graph's nodes, with its inputs replaced, into the function being traced. Elsewhere
it means the NumPy interpreter, or a program (`harp.transforms.running`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from harp.config import settings
from harp.errors import ArgumentError, UnsupportedDTypeError
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.foreign import to_numpy
from harp.trace.array.primitives import as_named, emit
from harp.trace.eval.not_finite import require_finite
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.node import Input, MapReduce, Node, fresh_input
from harp.trace.index.polynomial import ONE, Index, Shape, as_index
from harp.trace.scalar.dtypes import ArraySignature, i64
from harp.trace.scalar.expr import Operand, apply
from harp.trace.scalar.ops import Op
from harp.trace.sizes.levels import NO_CALL, current
from harp.trace.sizes.scope import Scope
from harp.trace.sizes.size import resolve_all, wrap
from harp.trace.source_locations import where
from harp.trace.tracer import Argument, Traced, function_name, leaf_names, require_function, trace_function
from harp.trace.trees import Tree, flatten, map_leaves, unflatten
from harp.transforms.running import values_of


def shape_of(array: Array) -> Shape:
    """The sizes of an array as index expressions: numbers outside of a trace."""
    if current() is None:
        return tuple(map(as_index, np.asarray(array).shape))
    return resolve_all(node_of(array).shape)


def stage(
    function: Callable[[Sequence[Array]], Tree],
    arguments: Sequence[Argument],
    name: str,
    before: Input | None = None,
    steps: Index | None = ONE,
) -> Traced:
    """Trace `function` on fresh inputs, within the current trace if there is one. A function that becomes the body of a
    node gets the token `before` for its calls of Python. `steps` is how often it runs; None if data decides."""
    level = current()
    return trace_function(function, arguments, Scope() if level is None else level.scope, name, before, steps)


def with_arrays(tree: Tree, name: str) -> Any:
    """The arguments of a user's function, where arrays of NumPy and other libraries have become harp arrays. Python's
    numbers and leaves that are no arrays stay."""
    return map_leaves(lambda leaf: _with_array(leaf, name), tree)


def called_at_once(function: Callable[..., Any], args: Tree, kwargs: Tree) -> Any:
    """What a function returns for arguments in which all arrays are harp's."""
    given, named = with_arrays((args, kwargs), function_name(function))
    return function(*given, **named)


def _with_array(leaf: object, name: str) -> object:
    if isinstance(leaf, (Array, np.generic)):
        return leaf
    label = f"an argument of {name!r}"
    found = leaf if isinstance(leaf, np.ndarray) else to_numpy(leaf, label)
    try:
        return leaf if found is None else as_named(found, label)
    except UnsupportedDTypeError:  # such as text
        return leaf


def fresh_token() -> Input:
    """An input for the token of the calls before a body."""
    return fresh_input("the token", (), i64)


def token_now() -> Node:
    """The token that the next call of Python waits for."""
    level = current()
    return NO_CALL if level is None else level.token


def note_token(token: Node | None) -> None:
    """Make the token of the last call that was put into the current trace the one that the next call waits for."""
    level = current()
    if level is not None and token is not None:
        level.after = token


def taking_token(traced: Traced) -> tuple[Graph, tuple[Node, ...]]:
    """The graph of a body, with the token as its last input and output if it calls Python; and the operand for that
    input."""
    graph, before = traced.graph, traced.before
    if graph.token is None or before is None:
        return graph, ()
    return Graph((*graph.inputs, before), graph.results, graph.sites), (token_now(),)


def without_token(parts: Sequence[Node], traced: Traced) -> Sequence[Node]:
    """The results of a node with such a body, without the token, which becomes the current one."""
    if traced.graph.token is None:
        return parts
    note_token(parts[-1])
    return parts[:-1]


def _after_both(first: Node, second: Node) -> Node:
    """A token that waits for both. The second has waited for the first already, unless it is that of an empty batch."""
    if first is NO_CALL:
        return second
    return MapReduce((), (first, second), apply(Op.MAX, Operand(i64, 0), Operand(i64, 1)))


def run(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """The graph's outputs for these arrays as its inputs."""
    level = current()
    if level is None:
        given = [np.asarray(a) for a in arrays]
        # A caller that does not want the token has run the graph before, or only wants derivatives.
        whole = silenced(graph) if graph.token is None else graph.with_token_as_output()
        values = values_of(whole, given)[: len(graph.outputs)]
        if settings.nans:
            require_finite(graph, given, {}, values)
        return [from_numpy(value) for value in values]
    arguments: dict[Input, Node] = {i: node_of(a) for i, a in zip(graph.inputs, arrays, strict=True)}
    inlined = inline(graph, arguments)
    for node, site in inlined.sites.items():
        level.sites.setdefault(node, site)
    if inlined.token is not None:
        note_token(_after_both(level.token, inlined.token))
    return [emit(node) for node in inlined.outputs]


def eval_shape(function: Callable[..., Tree], *args: Tree, **kwargs: Tree) -> Any:
    """The tree that `function(*args, **kwargs)` returns, with the signature of each array, dtype and shape, instead.

    Arguments are arrays, numbers, and signatures such as `harp.f32[2, 3]`, whose sizes are numbers. Nothing is
    computed. Raises ArgumentError for signatures with names for sizes, and what the function itself raises.

    >>> import harp
    >>> eval_shape(lambda x: (x.T, x.sum()), harp.f32[2, 3])
    (f32[3, 2], f32[])
    """
    require_function("eval_shape", function)
    leaves, treedef = flatten((args, kwargs))
    named = zip(leaf_names(function, args, kwargs), leaves, strict=True)

    def call(arrays: Sequence[Array]) -> Tree:
        again, keywords = unflatten(treedef, arrays)
        return function(*again, **keywords)

    traced = stage(call, [_argument(leaf, name) for name, leaf in named], function_name(function))
    found = [ArraySignature(o.dtype, tuple(map(wrap, o.shape))) for o in traced.graph.outputs]  # type: ignore[arg-type]
    return unflatten(traced.treedef, found)


def _argument(leaf: object, name: str) -> Argument:
    if not isinstance(leaf, ArraySignature):
        array = as_named(leaf, f"argument {name}", "close over it")
        return Argument(name, array.kind, shape_of(array), array.weak)
    if any(isinstance(size, str) for size in leaf.shape):
        raise ArgumentError(f"argument {name} is {leaf}, but eval_shape takes numbers for sizes{where()}")
    return Argument(name, leaf.dtype, tuple(map(as_index, leaf.shape)))  # type: ignore[arg-type]
