"""Whole matrices of derivatives: the derivative in each direction, as one batch.

`jacfwd` pushes a tangent forward for each element of the arguments, `jacrev` pulls a cotangent back for each element of
the results; so the first is for functions with fewer arguments than results, and the second for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError, ComplexGradientError, IntegerGradientError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import emit
from harp.trace.graph.graph import Graph
from harp.trace.graph.host_calls import silenced
from harp.trace.graph.node import MapReduce, Node, positions
from harp.trace.graph.view import permute, view
from harp.trace.index.polynomial import Shape
from harp.trace.scalar.dtypes import DType, bool_
from harp.trace.scalar.expr import Expr, Position, apply, cast, const
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where
from harp.trace.tracer import function_name, require_function
from harp.trace.trees import Tree, TreeSpec, children, count_leaves, is_pair, unflatten
from harp.transforms.autodiff.arguments import Staged, argument_numbers, stage_arguments
from harp.transforms.autodiff.forward import jvp, require_tuples
from harp.transforms.autodiff.grad import grad
from harp.transforms.autodiff.jvp import jvp as jvp_graph
from harp.transforms.autodiff.vjp import prepared
from harp.transforms.autodiff.vjp import vjp as vjp_graph
from harp.transforms.batching.rules import batch
from harp.transforms.pickling import derived
from harp.transforms.staging import run
from harp.transforms.typed import P, R, Transformed

Function = Callable[..., Any]
_Blocks = list[list[Array]]  # for each result, a block for each argument


class _Results(NamedTuple):
    """The results of a function as leaves, and the tree of those that are differentiated."""

    staged: Staged
    graph: Graph  # of these only
    values: list[Array]
    treedef: TreeSpec


def value_and_jacfwd(
    function: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, tuple[R, Any]]:
    """A function that returns `(value, jacobian)`; see `jacfwd`. With `has_aux`, `((value, aux), jacobian)`.

    >>> import harp, harp.numpy as hnp
    >>> value, matrix = harp.value_and_jacfwd(lambda x: x**2)(hnp.asarray([1.0, 3.0]))
    >>> value
    Array([1., 9.])
    >>> matrix
    Array([[2., 0.],
           [0., 6.]])
    """
    return _value_and_jacobian(value_and_jacfwd, _forward, "jacfwd", function, argnums, has_aux, holomorphic)


def value_and_jacrev(
    function: Callable[P, R], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, tuple[R, Any]]:
    """A function that returns `(value, jacobian)`; see `jacrev`. With `has_aux`, `((value, aux), jacobian)`.

    >>> import harp, harp.numpy as hnp
    >>> value, row = harp.value_and_jacrev(lambda x: hnp.sum(x**2))(hnp.asarray([1.0, 3.0]))
    >>> value
    Array(10.)
    >>> row
    Array([2., 6.])
    """
    return _value_and_jacobian(value_and_jacrev, _backward, "jacrev", function, argnums, has_aux, holomorphic)


def jacfwd(
    function: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, Any]:
    """A function that returns the matrix of all derivatives, in forward mode: one derivative for each element of the
    arguments.

    For each array that the function returns there is a tree like the argument that `argnums` names (a tuple of trees if
    `argnums` is a sequence), in which each array has the shape of the result followed by the argument's. With `has_aux`
    the function returns `(value, aux)`, and the result is `(jacobian, aux)`. Complex arguments need `holomorphic`: then
    all arguments and results are complex.

    Raises IntegerGradientError, ComplexGradientError, and MissingRuleError where an operation has no derivative.

    >>> import harp.numpy as hnp
    >>> jacfwd(lambda x: x * x)(hnp.asarray([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]])
    """
    return _jacobian_only(jacfwd, value_and_jacfwd, function, argnums, has_aux, holomorphic)


def jacrev(
    function: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, Any]:
    """A function that returns the matrix of all derivatives, in reverse mode: one derivative for each element of the
    results. Results and errors are those of `jacfwd`; complex results need `holomorphic`.

    >>> import harp.numpy as hnp
    >>> jacrev(lambda x: hnp.sum(x * x))(hnp.asarray([1.0, 2.0]))
    Array([2., 4.])
    """
    return _jacobian_only(jacrev, value_and_jacrev, function, argnums, has_aux, holomorphic)


def hessian(
    function: Callable[P, object], argnums: int | Sequence[int] = 0, has_aux: bool = False, holomorphic: bool = False
) -> Transformed[P, Any]:
    """A function that returns all second derivatives: `jacfwd` of `jacrev`.

    >>> import harp.numpy as hnp
    >>> hessian(lambda x: hnp.prod(x))(hnp.asarray([2.0, 3.0]))
    Array([[0., 1.],
           [1., 0.]])
    """
    return jacfwd(jacrev(function, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def hvp(function: Function, primals: Sequence[Tree], tangents: Sequence[Tree]) -> Any:
    """The second derivatives of a function with a scalar result, times a direction: the derivative of its gradient.

    Takes about as long as four gradients, and never makes the matrix. `primals` and `tangents` are tuples with an entry
    for each argument; the result is a tree like the argument, or a tuple of trees where there are several.

    Raises ArgumentError where they are no tuples, and the errors of `grad` and `jvp`.

    >>> import harp.numpy as hnp
    >>> hvp(lambda x: hnp.sum(x**3), (hnp.asarray([1.0, 2.0]),), (hnp.asarray([1.0, 1.0]),))
    Array([ 6., 12.])
    """
    require_tuples("hvp", primals, tangents)
    argnums = 0 if len(primals) == 1 else tuple(range(len(primals)))
    return jvp(grad(function, argnums), primals, tangents)[1]


def _jacobian_only(
    make: Function,
    with_value: Function,
    function: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
) -> Function:
    both = with_value(function, argnums, has_aux, holomorphic)

    @derived(make, function, argnums, has_aux, holomorphic)
    def jacobian(*args: Tree, **kwargs: Tree) -> Tree:
        value, result = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return jacobian


def _value_and_jacobian(
    make: Function,
    blocks: Callable[[_Results], _Blocks],
    name: str,
    function: Function,
    argnums: int | Sequence[int],
    has_aux: bool,
    holomorphic: bool,
) -> Function:
    require_function(name, function)
    numbers = argument_numbers(argnums)
    several = not isinstance(argnums, (int, np.integer))

    @derived(make, function, argnums, has_aux, holomorphic)
    def differentiated(*args: Tree, **kwargs: Tree) -> Tree:
        staged = stage_arguments(function, numbers, args, kwargs)
        results = _staged_results(staged, has_aux, function_name(function))
        _check_numbers(results.graph, name, function_name(function), holomorphic)
        rows = []
        for row in blocks(results):
            trees: tuple[Tree, ...] = unflatten(staged.treedef, row)
            rows.append(trees if several else trees[0])
        return unflatten(staged.traced.treedef, results.values), unflatten(results.treedef, rows)

    return differentiated


def _staged_results(staged: Staged, has_aux: bool, name: str) -> _Results:
    graph, treedef = prepared(staged.traced.graph, staged.traced.graph.inputs), staged.traced.treedef
    values = run(graph, staged.primals)
    if has_aux:
        if not is_pair(treedef):
            raise ArgumentError(f"with has_aux, {name!r} must return a pair (value, aux){where()}")
        treedef = children(treedef)[0]
    outputs = graph.outputs[: count_leaves(treedef)]
    return _Results(staged, Graph(graph.inputs, outputs, graph.sites), values, treedef)


def _check_numbers(graph: Graph, transform: str, name: str, holomorphic: bool) -> None:
    for output in graph.outputs:
        if not output.dtype.is_inexact:
            raise IntegerGradientError(f"{name!r} returns {output.dtype.numpy}, which has no derivative{where()}")
    asked = graph.inputs if transform == "jacfwd" else graph.outputs
    what = "takes" if transform == "jacfwd" else "returns"
    for node in (*graph.inputs, *graph.outputs) if holomorphic else asked:
        if node.dtype.is_complex is not holomorphic:
            kind = "complex" if holomorphic else "real"
            raise ComplexGradientError(
                f"{name!r} {what} {node.dtype.numpy}, but with holomorphic={holomorphic} {transform} is for {kind} "
                f"numbers{where()}"
            )


# -- blocks -------------------------------------------------------------------------------------------------------


def _forward(results: _Results) -> _Blocks:
    """For each argument, the derivatives in the direction of each of its elements; the axes of directions go last."""
    graph, primals = results.graph, results.staged.primals
    columns: list[list[Array]] = []
    for i in graph.inputs:
        forward = jvp_graph(silenced(graph), [i])
        only = Graph(forward.inputs, forward.outputs[len(graph.outputs) :], forward.sites)
        pushed = _in_all_directions(only, len(graph.inputs), i.shape)
        tangents = run(pushed, [*primals, _identity(i.shape, i.dtype)])
        columns.append([_axes_last(t, len(i.shape)) for t in tangents])
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in graph.outputs]


def _backward(results: _Results) -> _Blocks:
    """For each result, the cotangents of the arguments for a unit cotangent at each of its elements."""
    graph, primals = results.graph, results.staged.primals
    rows: _Blocks = []
    for output in graph.outputs:
        pulled = vjp_graph(Graph(graph.inputs, (output,), graph.sites), graph.inputs)
        whole = _in_all_directions(pulled, len(graph.inputs), output.shape)
        rows.append(run(whole, [*primals, _identity(output.shape, output.dtype)]))
    return rows


def _in_all_directions(graph: Graph, which: int, shape: Shape) -> Graph:
    """The graph for a batch of values of one input, a tangent or cotangent of this shape: that input, and each output,
    gets the axes of the shape once more, in front."""
    for extent in reversed(shape):
        graph, batched = batch(graph, [k == which for k in range(len(graph.inputs))], extent)
        outputs = tuple(o if has else _repeated(o, (extent,)) for o, has in zip(graph.outputs, batched, strict=True))
        graph = Graph(graph.inputs, outputs, graph.sites)
    return graph


def _repeated(node: Node, shape: Shape) -> Node:
    whole = (*shape, *node.shape)
    return view(node, whole, positions(whole)[len(shape) :])


def _identity(shape: Shape, dtype: DType) -> Array:
    """The identity matrix with `shape` for its rows and for its columns."""
    domain = (*shape, *shape)
    loops = positions(domain)
    same: Expr = const(True, bool_)
    for mine, other in zip(loops[: len(shape)], loops[len(shape) :], strict=True):
        same = same & apply(Op.EQ, Position(mine), Position(other))
    return emit(MapReduce(domain, (), cast(same, dtype)))


def _axes_last(array: Array, count: int) -> Array:
    """The array with its first `count` axes moved behind the others."""
    if not count or count == array.ndim:
        return array
    order = [*range(count, array.ndim), *range(count)]
    return emit(permute(node_of(array), order))
