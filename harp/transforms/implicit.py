"""Solutions of equations, however they are found: derivatives are by the equation, and not through the steps.

    A(x) = b    A(dx) = db - dA(x)        f(x) = 0    f'(x) dx = -df(x)

What the functions read besides becomes an argument of the solution, which has derivatives of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from harp.errors import MissingRuleError, TreeError
from harp.trace.array.arithmetic import negative
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.source_locations import where
from harp.trace.trees import Tree, alike, flatten, map_leaves, tree_text
from harp.transforms.autodiff.custom import custom_jvp, custom_vjp
from harp.transforms.autodiff.forward import jvp
from harp.transforms.autodiff.grad import stop_gradient, vjp
from harp.transforms.closures import closed_over, standing_for

Function = Callable[..., Any]


def custom_linear_solve(
    matvec: Function,
    b: Tree,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The tree x for which the linear function `matvec(x)` is `b`, as `solve(matvec, b)` finds it.

    Derivatives of any order, by `b` and by what `matvec` reads, are solutions as well: of the transposed function by
    `transpose_solve`, which is `solve` if it is `symmetric`. With `has_aux` both return pairs of x and something else,
    without derivatives, and so does this function.

    Raises TreeError for an x that is another tree than `b`, MissingRuleError for derivatives without `transpose_solve`.

    >>> import harp, harp.numpy as hnp
    >>> by_division = lambda matvec, b: b / matvec(hnp.ones_like(b))
    >>> harp.grad(lambda a: custom_linear_solve(lambda x: a * x, 3.0, by_division, symmetric=True))(2.0)
    Array(-0.75)
    """
    transpose_solve = solve if symmetric else transpose_solve
    reads, multiplied = _with_reads(matvec, solve, transpose_solve)

    @custom_vjp
    def solution(values: Sequence[Array], b: Tree) -> Any:
        with standing_for(reads, values):
            found = solve(matvec, b)
        _require_like("custom_linear_solve", found[0] if has_aux else found, b, "b")
        return map_leaves(as_array, found)

    def forward(values: Sequence[Array], b: Tree) -> tuple[Any, Any]:
        found = solution(values, b)
        return found, (values, found[0] if has_aux else found)

    def backward(kept: Any, cotangent: Any) -> tuple[Any, Any]:
        values, x = kept
        if transpose_solve is None:
            raise MissingRuleError(f"custom_linear_solve has no derivatives without transpose_solve{where()}")

        def transposed(y: Tree) -> Any:
            return multiplied(values, y) if symmetric else vjp(lambda v: multiplied(values, v), x)[1](y)[0]

        right = cotangent[0] if has_aux else cotangent
        found = custom_linear_solve(transposed, right, transpose_solve, solve, symmetric, has_aux)
        of_right = found[0] if has_aux else found
        (of_values,) = vjp(lambda values: multiplied(values, x), values)[1](map_leaves(negative, of_right))
        return of_values, of_right

    solution.defvjp(forward, backward)
    return solution(reads, map_leaves(as_array, b))


def custom_root(
    f: Function, initial_guess: Tree, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """The tree x for which `f(x)`, a tree like x, is 0, as `solve(f, initial_guess)` finds it.

    Derivatives by what `f` reads are solutions of linear equations by `tangent_solve(g, y)`, for a linear function g;
    reverse mode takes derivatives of it. With `has_aux` `solve` returns a pair of x and something else, without
    derivatives, and so does this function. Raises TreeError for an x that is another tree than `initial_guess`.

    >>> import harp
    >>> root = lambda f, x: harp.fori_loop(0, 40, lambda k, x: x - 0.2 * f(x), x)
    >>> harp.grad(lambda a: custom_root(lambda x: x * x - a, 1.0, root, lambda g, y: y / g(1.0)))(4.0).round(9)
    Array(0.25)
    """
    reads, valued = _with_reads(f, solve, tangent_solve)
    guess = stop_gradient(initial_guess)

    @custom_jvp
    def solution(values: Sequence[Array]) -> Any:
        with standing_for(reads, values):
            found = solve(f, guess)
        _require_like("custom_root", found[0] if has_aux else found, guess, "initial_guess")
        return map_leaves(as_array, found)

    @solution.defjvp
    def tangent(primals: Any, tangents: Any) -> tuple[Any, Any]:
        (values,), found = primals, solution(*primals)
        x, aux = found if has_aux else (found, None)
        left = jvp(lambda values: valued(values, x), primals, tangents)[1]
        change = tangent_solve(lambda v: jvp(lambda x: valued(values, x), (x,), (v,))[1], map_leaves(negative, left))
        return found, (change, map_leaves(_zeros, aux)) if has_aux else change

    return solution(reads)


def _with_reads(function: Function, *others: object) -> tuple[list[Array], Function]:
    """The traced arrays that it and others read, of floating-point numbers; the function of these and its argument."""
    reads = [array for array in closed_over([function, *others]) if array.kind.is_inexact]

    def of_both(values: Sequence[Array], x: Tree) -> Any:
        with standing_for(reads, values):
            return function(x)

    return reads, of_both


def _zeros(leaf: object) -> Array:
    return 0 * as_array(leaf)


def _require_like(name: str, found: Tree, given: Tree, what: str) -> None:
    ours, theirs = flatten(found)[1], flatten(given)[1]
    if not alike(ours, theirs):
        texts = f"{tree_text(ours)}, but {what} is {tree_text(theirs)}"
        raise TreeError(f"what solve of {name} returns is {texts}{where()}")
