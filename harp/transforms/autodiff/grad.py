"""`grad`, `value_and_grad`, `vjp` and `stop_gradient`: reverse-mode derivatives of functions of trees of arrays.

The function is traced to a graph, the graph is differentiated by the tables of `harp.transforms.autodiff.vjp`, and the
result is put back into whatever is being traced, so that all transforms compose, to any depth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, cast, overload

import numpy as np

from harp.errors import (
    ArgumentError,
    ComplexGradientError,
    CotangentError,
    IntegerGradientError,
    NonScalarGradientError,
)
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, map_
from harp.trace.graph.graph import Graph
from harp.trace.scalar.expr import apply, const
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Traced, function_name, require_function
from harp.trace.trees import (
    Tree,
    TreeSpec,
    alike,
    children,
    count_leaves,
    flatten,
    is_pair,
    map_leaves,
    spec_text,
    tree_text,
    unflatten,
)
from harp.transforms.autodiff.arguments import argument_numbers, fitting, stage_arguments
from harp.transforms.autodiff.vjp import prepared
from harp.transforms.autodiff.vjp import vjp as vjp_graph
from harp.transforms.pickling import derived
from harp.transforms.staging import run
from harp.transforms.typed import P, Pullback, R, Transformed

Function = Callable[..., Any]
_T = TypeVar("_T")


def value_and_grad(
    function: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, tuple[R, Any]]:
    """A function that returns `(value, gradient)` of a function with one scalar floating-point result.

    `argnums` names the positional arguments, trees of floating-point arrays, with respect to which to differentiate;
    the gradient has their tree, shapes and dtypes (a tuple of trees if `argnums` is a sequence). With `has_aux` the
    function returns `(value, aux)`, and so does the result: `((value, aux), gradient)`.

    The gradient with respect to z = x + iy is df/dx - i df/dy, as JAX's. With `holomorphic` the result is complex, as
    all arguments that are differentiated, and the gradient is df/dz.

    Raises NonScalarGradientError, IntegerGradientError, ComplexGradientError, and MissingRuleError where an operation
    has no derivative.

    >>> value, gradient = value_and_grad(lambda x: x * x)(3.0)
    >>> float(value), float(gradient)
    (9.0, 6.0)
    """
    require_function("grad", function)
    several = not isinstance(argnums, (int, np.integer))
    numbers = argument_numbers(argnums)

    @derived(value_and_grad, function, argnums, has_aux, holomorphic)
    def differentiated(*args: Tree, **kwargs: Tree) -> Tree:
        staged = stage_arguments(function, numbers, args, kwargs)
        graph, treedef = prepared(staged.traced.graph, staged.traced.graph.inputs), staged.traced.treedef
        value_only = Graph(graph.inputs, graph.outputs[:1], graph.sites)
        _check_scalar(staged.traced, function_name(function), has_aux, holomorphic)
        backward = vjp_graph(value_only, graph.inputs)
        one = const(1.0, value_only.outputs[0].dtype)
        # One run for values and gradients, so that they share their nodes: the cotangent of the value is 1.
        both = Graph(
            backward.inputs, (*graph.outputs, *backward.outputs), {**graph.sites, **backward.sites}, graph.token
        )
        with_seed = run(both, [*staged.primals, map_(lambda: one, to=one.dtype)])
        values, gradients = with_seed[: len(graph.outputs)], with_seed[len(graph.outputs) :]
        result = unflatten(treedef, values)
        trees: tuple[Tree, ...] = unflatten(staged.treedef, gradients)
        return result, (trees if several else trees[0])

    return cast("Transformed[P, tuple[R, Any]]", differentiated)


def _check_scalar(traced: Traced, name: str, has_aux: bool, holomorphic: bool) -> None:
    if has_aux and not is_pair(traced.treedef):
        raise NonScalarGradientError(
            f"with has_aux, {name!r} must return a pair (value, aux), but returns {spec_text(traced.treedef)}; leave "
            f"out has_aux if there is nothing beside the value{where()}"
        )
    leaves = count_leaves(children(traced.treedef)[0] if has_aux else traced.treedef)
    if leaves != 1:
        raise NonScalarGradientError(
            f"{name!r} must return one scalar, not {plural(leaves, 'arrays')}; with has_aux=True it returns a pair "
            f"(value, aux), where aux is any tree; for derivatives of several results use harp.jacrev{where()}"
        )
    output = traced.graph.outputs[0]
    if output.shape:
        raise NonScalarGradientError(
            f"{name!r} must return a scalar, but its result has shape {list(output.shape)}; reduce it, for example "
            f"with harp.numpy.sum, or use harp.vjp{where()}"
        )
    if not output.dtype.is_inexact:
        raise IntegerGradientError(
            f"{name!r} returns {output.dtype.numpy}, which has no derivative; convert it with .astype{where()}"
        )
    if holomorphic:
        _check_holomorphic(traced.graph, name)
    elif output.dtype.is_complex:
        raise ComplexGradientError(
            f"{name!r} returns {output.dtype.numpy}, but a gradient is that of a real result; take harp.numpy.real, "
            f"imag or abs of it, or say holomorphic=True if the function is complex-differentiable{where()}"
        )


def _check_holomorphic(graph: Graph, name: str) -> None:
    for node in (*graph.inputs, graph.outputs[0]):
        if not node.dtype.is_complex:
            raise ComplexGradientError(
                f"with holomorphic=True, {name!r} is a function from complex numbers to complex numbers, but takes or "
                f"returns {node.dtype.numpy}; convert it with .astype{where()}"
            )


def grad(
    function: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, Any]:
    """A function that returns the gradient of a function with one scalar floating-point result.

    As `value_and_grad`, without the value; with `has_aux` it returns `(gradient, aux)`.

    >>> float(grad(grad(lambda x: x * x * x))(2.0))
    12.0
    """
    both: Function = value_and_grad(function, argnums, has_aux, holomorphic)

    @derived(grad, function, argnums, has_aux, holomorphic)
    def gradient(*args: Tree, **kwargs: Tree) -> Tree:
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return cast("Transformed[P, Any]", gradient)


@overload
def vjp(function: Callable[..., R], *primals: Tree, has_aux: Literal[False] = False) -> tuple[R, Pullback]: ...


@overload
def vjp(function: Function, *primals: Tree, has_aux: Literal[True]) -> tuple[Any, Pullback, Any]: ...


def vjp(function: Function, *primals: Tree, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of `function(*primals)` and a function from a cotangent to the cotangents of the primals.

    Returns `(value, pullback)`, or `(value, pullback, aux)` with `has_aux`. `pullback(cotangent)` takes a tree like
    the value and returns a tuple of trees like the primals. Integer results take a cotangent that is ignored.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 5.0)
    >>> [float(c) for c in pullback(1.0)]
    [5.0, 2.0]
    """
    require_function("vjp", function)
    staged = stage_arguments(function, range(len(primals)), primals, {})
    graph, treedef = prepared(staged.traced.graph, staged.traced.graph.inputs), staged.traced.treedef
    values = unflatten(treedef, run(graph, staged.primals))
    count = len(graph.outputs)
    aux: Tree = None
    if has_aux:
        _check_pair(treedef, function_name(function))
        values, aux = values
        treedef = children(treedef)[0]
        count = count_leaves(treedef)
    primal_graph = Graph(graph.inputs, graph.outputs[:count], graph.sites)
    backward = vjp_graph(primal_graph, graph.inputs)

    def pullback(cotangent: Tree) -> tuple[Tree, ...]:
        seeds = _cotangents(cotangent, treedef, primal_graph)
        outputs = run(backward, [*staged.primals, *seeds])
        result: tuple[Tree, ...] = unflatten(staged.treedef, outputs)
        return result

    return (values, pullback, aux) if has_aux else (values, pullback)


def _check_pair(treedef: TreeSpec, name: str) -> None:
    if not is_pair(treedef):
        raise ArgumentError(f"with has_aux, {name!r} must return a pair (value, aux){where()}")


def _cotangents(cotangent: Tree, treedef: TreeSpec, graph: Graph) -> list[Array]:
    leaves, tree = flatten(cotangent)
    if not alike(tree, treedef):
        texts = f"the cotangent is {tree_text(tree)}, but the result is {tree_text(treedef)}"
        raise CotangentError(f"{texts}{where()}")
    seeds = []
    for leaf, output in zip(leaves, graph.outputs, strict=True):
        if not output.dtype.is_inexact:
            continue
        seeds.append(fitting(leaf, output, "cotangent", "the result", CotangentError))
    return seeds


def stop_gradient(tree: _T) -> _T:
    """The same arrays, through which no derivative flows.

    >>> float(grad(lambda x: x * stop_gradient(x))(3.0))
    3.0
    """

    def stop(leaf: object) -> Array:
        return map_(lambda x: apply(Op.STOP, x), as_array(leaf))

    result: _T = map_leaves(stop, tree)
    return result
