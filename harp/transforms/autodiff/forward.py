"""`jvp` and `linearize`: forward-mode derivatives of functions of trees of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

from harp.errors import ArgumentError, TangentError
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.graph.host_calls import silenced
from harp.trace.scalar.expr import const
from harp.trace.source_locations import where
from harp.trace.tracer import function_name, require_function
from harp.trace.trees import Tree, TreeSpec, alike, children, count_leaves, flatten, is_pair, tree_text, unflatten
from harp.transforms.autodiff.arguments import Staged, fitting, stage_arguments
from harp.transforms.autodiff.jvp import jvp as jvp_graph
from harp.transforms.staging import run
from harp.transforms.typed import R

Function = Callable[..., Any]


@overload
def jvp(
    function: Callable[..., R], primals: Sequence[Tree], tangents: Sequence[Tree], has_aux: Literal[False] = False
) -> tuple[R, R]: ...


@overload
def jvp(
    function: Function, primals: Sequence[Tree], tangents: Sequence[Tree], has_aux: Literal[True]
) -> tuple[Any, Any, Any]: ...


@overload
def jvp(
    function: Function, primals: Sequence[Tree], tangents: Sequence[Tree], has_aux: bool = False
) -> tuple[Any, ...]: ...


def jvp(
    function: Function, primals: Sequence[Tree], tangents: Sequence[Tree], has_aux: bool = False
) -> tuple[Any, ...]:
    """The value of `function(*primals)` and its derivative in a direction.

    `primals` is a tuple of trees of floating-point arrays, and `tangents` one of trees like these, with the same shapes
    and dtypes. Returns `(value, tangent)`, where the tangent is a tree like the value; with `has_aux` the function
    returns `(value, aux)`, and the result is `(value, tangent, aux)`. The tangent of an integer result is 0.

    Raises TangentError for tangents that do not fit, IntegerGradientError for integers among the primals, and
    MissingRuleError where an operation has no derivative.

    >>> value, tangent = jvp(lambda x, y: x * y, (2.0, 5.0), (1.0, 10.0))
    >>> float(value), float(tangent)
    (10.0, 25.0)
    """
    require_function("jvp", function)
    require_tuples("jvp", primals, tangents)
    staged = stage_arguments(function, range(len(primals)), tuple(primals), {})
    directions = _tangents(tuple(tangents), staged)
    value, tangent, aux = _pushed(function, staged, directions, has_aux)
    return (value, tangent, aux) if has_aux else (value, tangent)


@overload
def linearize(
    function: Callable[..., R], *primals: Tree, has_aux: Literal[False] = False
) -> tuple[R, Callable[..., R]]: ...


@overload
def linearize(function: Function, *primals: Tree, has_aux: Literal[True]) -> tuple[Any, Function, Any]: ...


def linearize(function: Function, *primals: Tree, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `function(*primals)` and a linear function from tangents of the primals to that of the value.

    Returns `(value, pushforward)`, or `(value, pushforward, aux)` with `has_aux`. `pushforward(*tangents)` takes one
    tree for each primal. Raises as `jvp`.

    >>> value, pushforward = linearize(lambda x: x * x, 3.0)
    >>> [float(pushforward(t)) for t in (1.0, 2.0)]
    [6.0, 12.0]
    """
    require_function("linearize", function)
    staged = stage_arguments(function, range(len(primals)), primals, {})
    value, aux, _ = _split_aux(function, staged, run(staged.traced.graph, staged.primals), has_aux)

    again = staged._replace(traced=staged.traced._replace(graph=silenced(staged.traced.graph)))

    def pushforward(*tangents: Tree) -> Any:
        return _pushed(function, again, _tangents(tangents, staged), has_aux)[1]

    return (value, pushforward, aux) if has_aux else (value, pushforward)


def _pushed(function: Function, staged: Staged, directions: Sequence[Array], has_aux: bool) -> tuple[Any, Any, Any]:
    """The value, its tangent, and the auxiliary output."""
    graph = staged.traced.graph
    forward = jvp_graph(graph, graph.inputs)
    results = run(forward, [*staged.primals, *directions])
    values, moving = results[: len(graph.outputs)], iter(results[len(graph.outputs) :])
    tangents = [next(moving) if o.dtype.is_inexact else _zeros(v) for o, v in zip(graph.outputs, values, strict=True)]
    value, aux, treedef = _split_aux(function, staged, values, has_aux)
    return value, unflatten(treedef, tangents[: count_leaves(treedef)]), aux


def require_tuples(name: str, primals: object, tangents: object) -> None:
    """Raise ArgumentError unless both are tuples, with an entry for each argument."""
    for what, argument in (("primals", primals), ("tangents", tangents)):
        if not isinstance(argument, (tuple, list)):
            raise ArgumentError(
                f"{name} takes a tuple of primals and a tuple of tangents, one for each argument: "
                f"{name}(f, (x,), (direction,)); the {what} are of type {type(argument).__name__}{where()}"
            )


def _zeros(like: Array) -> Array:
    return map_(lambda x: const(0, x.dtype), like)


def _split_aux(function: Function, staged: Staged, values: Sequence[Array], has_aux: bool) -> tuple[Any, Any, TreeSpec]:
    """The value, the auxiliary output, and the tree of the value."""
    result, treedef = unflatten(staged.traced.treedef, values), staged.traced.treedef
    if not has_aux:
        return result, None, treedef
    if not is_pair(treedef):
        raise ArgumentError(f"with has_aux, {function_name(function)!r} must return a pair (value, aux){where()}")
    return (*result, children(treedef)[0])


def _tangents(tangents: tuple[Tree, ...], staged: Staged) -> list[Array]:
    """Tangents as arrays. Raises TangentError where they do not fit the primals."""
    leaves, tree = flatten(tangents)
    if not alike(tree, staged.treedef):
        texts = f"the tangents are {tree_text(tree)}, but the primals are {tree_text(staged.treedef)}"
        raise TangentError(f"{texts}{where()}")
    inputs = staged.traced.graph.inputs
    return [fitting(leaf, i, "tangent", f"{i.name}", TangentError) for leaf, i in zip(leaves, inputs, strict=True)]
