"""Solutions of linear equations by iteration, for a matrix or a function that multiplies by one; vectors are trees.

M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems (1952); H. A. van der Vorst,
Bi-CGSTAB (1992); Y. Saad, M. H. Schultz, GMRES (1986). Derivatives are such solutions, to the same tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harp.errors import ArgumentError
from harp.flatten_util import ravel_pytree
from harp.numpy.complexes import conj, real
from harp.numpy.creation import arange, eye, zeros
from harp.numpy.elementwise import abs, maximum, sqrt, where
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import solve_triangular
from harp.numpy.reductions import sum as sum_
from harp.numpy.types import finfo
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_integer
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.grad import stop_gradient, vjp
from harp.transforms.control.conditional import while_loop
from harp.transforms.implicit import custom_linear_solve
from harp.tree import structure

__all__ = ["bicgstab", "cg", "gmres"]

_Vector = Callable[[Array], Array]


class _Task(NamedTuple):
    """Where to begin, the number of steps at most, the square of the norm at which to end, and about the inverse."""

    start: Array
    most: object
    limit: Array
    divide: _Vector


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x for which `A(x)`, or `A @ x`, is `b`, by conjugate gradients, and None; A is Hermitian, positive definite.

    It ends where the norm of what is left is at most max(tol*norm(b), atol), or after `maxiter` steps: 10 for each
    element by default. M is about the inverse of A. Derivatives flow to `b` and to what A reads, and are as exact as
    `tol` says. Raises ArgumentError for an x0 that is another tree than b.

    >>> import numpy as np
    >>> cg(lambda x: 2.0 * x, np.array([2.0, 4.0]))[0]
    Array([1., 2.])
    """
    return _solved("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M)


def _conjugate_gradients(multiply: _Vector, right: Array, task: _Task) -> Array:
    def goes_on(state: Any) -> Any:
        k, _, left, _, _ = state
        return (k < task.most) & (_inner(left, left) > task.limit)

    def step(state: Any) -> Any:
        k, x, left, direction, size = state
        image = multiply(direction)
        length = size / _inner(direction, image)
        x, left = x + length * direction, left - length * image
        divided = task.divide(left)
        new = _inner(left, divided)
        return k + 1, x, left, divided + new / size * direction, new

    left = right - multiply(task.start)
    direction = task.divide(left)
    x: Array = while_loop(goes_on, step, (0, task.start, left, direction, _inner(left, direction)))[1]
    return x


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
) -> tuple[Any, None]:
    """The x for which `A(x)`, or `A @ x`, is `b`, by stabilised biconjugate gradients, for any A; see `cg`.

    >>> import numpy as np
    >>> bicgstab(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([4.0, 2.0]))[0].round(6)
    Array([1., 2.])
    """
    return _solved("bicgstab", _biconjugate_gradients, A, b, x0, tol, atol, maxiter, M)


def _biconjugate_gradients(multiply: _Vector, right: Array, task: _Task) -> Array:
    shadow = right - multiply(task.start)

    def goes_on(state: Any) -> Any:
        k, _, left, _, _, size = state
        return (k < task.most) & (_inner(left, left) > task.limit) & (size != 0)

    def step(state: Any) -> Any:
        k, x, left, direction, _, size = state
        near = task.divide(direction)
        image = multiply(near)
        length = size / _product(shadow, image)
        halfway = left - length * image
        divided = task.divide(halfway)
        turned = multiply(divided)
        square = _inner(turned, turned)
        weight = _product(turned, halfway) / where(square > 0, square, 1)
        x, left = x + length * near + weight * divided, halfway - weight * turned
        new = _product(shadow, left)
        factor = new / size * length / where(weight == 0, 1, weight)
        return k + 1, x, left, left + factor * (direction - weight * image), image, new

    first = (0, task.start, shadow, shadow, 0 * shadow, _product(shadow, shadow))
    x: Array = while_loop(goes_on, step, first)[1]
    return x


# -- GMRES ---------------------------------------------------------------------------------------------------------


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Any = None,
    solve_method: str = "batched",
) -> tuple[Any, None]:
    """The x for which `A(x)`, or `A @ x`, is `b`, by generalised minimal residuals, for any A; see `cg`.

    `restart` directions are kept, and it begins anew at most `maxiter` times. M is applied from the right, so what
    is left is that of the equation itself; `solve_method` changes nothing. Raises ArgumentError for a restart below 1.

    >>> import numpy as np
    >>> gmres(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([4.0, 2.0]))[0].round(6)
    Array([1., 2.])
    """
    many = as_integer("restart of gmres", restart)
    if many < 1:
        raise ArgumentError(f"restart of gmres is at least 1, not {many}{place()}")

    def minimal_residuals(multiply: _Vector, right: Array, task: _Task) -> Array:
        def goes_on(state: Any) -> Any:
            k, _, left = state
            return (k < task.most) & (_inner(left, left) > task.limit)

        def again(state: Any) -> Any:
            k, x, left = state
            x = x + _best_change(multiply, left, task, many)
            return k + 1, x, right - multiply(x)

        x: Array = while_loop(goes_on, again, (0, task.start, right - multiply(task.start)))[1]
        return x

    return _solved("gmres", minimal_residuals, A, b, x0, tol, atol, maxiter, M)


def _best_change(multiply: _Vector, left: Array, task: _Task, many: int) -> Array:
    """The change of x that leaves least, among combinations of `many` directions.

    The images of directions are h @ basis, where q @ h is the upper triangle r, and q a product of rotations; what is
    left has the size of the last element of q @ (norm(left), 0, ...), row 0 of the basis being `left`.
    """
    size = sqrt(_inner(left, left))
    basis = zeros((many + 1, left.shape[0]), left.dtype).at[0].set(left / size)
    one = eye(many + 1, dtype=left.dtype)
    limit = sqrt(task.limit)

    def goes_on(state: Any) -> Any:
        k, _, q, _ = state
        return (k < many) & (size * abs(q[k, 0]) > limit)

    def step(state: Any) -> Any:
        k, basis, q, r = state
        image = multiply(task.divide(basis[k]))
        whole = sqrt(_inner(image, image))
        parts = zeros(many + 1, left.dtype)
        for _ in range(2):  # once more, for what rounding has left
            more = matmul(conj(basis), image)
            image, parts = image - matmul(more, basis), parts + more
        rest = sqrt(_inner(image, image))
        rest = where(rest > 10 * finfo(left.dtype).eps * whole, rest, 0)
        basis = basis.at[k + 1].set(where(rest > 0, image / where(rest > 0, rest, 1), 0))
        column = matmul(q, parts)
        length = sqrt(real(column[k] * conj(column[k])) + rest**2)
        c, s = column[k] / where(length > 0, length, 1), rest / where(length > 0, length, 1)
        c = where(length > 0, c, 1)
        upper, lower = q[k], q[k + 1]
        q = q.at[k].set(conj(c) * upper + s * lower).at[k + 1].set(c * lower - s * upper)
        column = where(arange(many + 1) < k, column, 0).at[k].set(where(length > 0, length, float("inf")))
        return k + 1, basis, q, r.at[:, k].set(column[:many])

    count, basis, q, r = while_loop(goes_on, step, (0, basis, one, one[:many, :many]))
    right = where(arange(many) < count, size * q[:many, 0], 0)
    weights = solve_triangular(r, right)
    return task.divide(matmul(weights, basis[:many]))


# -- what they share -----------------------------------------------------------------------------------------------


def _solved(
    name: str, method: Any, A: Any, b: Any, x0: Any, tol: float, atol: float, maxiter: int | None, M: Any
) -> tuple[Any, None]:
    """The solution by a method for vectors, with derivatives by the same method, of which the first begins at `x0`."""
    right, unravel = ravel_pytree(b)
    right = right if right.dtype.kind in "fc" else right.astype("float64")
    if x0 is not None and structure(x0) != structure(b):
        raise ArgumentError(f"x0 of {name} is another tree than b{place()}")
    given = stop_gradient(0 * right if x0 is None else ravel_pytree(x0)[0].astype(right.dtype))
    most = 10 * right.shape[0] if maxiter is None else maxiter

    def on_vectors(operator: Any) -> _Vector:
        apply = operator if callable(operator) else lambda x: matmul(operator, x)
        return lambda x: ravel_pytree(apply(unravel(x)))[0]

    def solve(divide: _Vector, start: Array) -> Any:
        def found(multiply: _Vector, right: Array) -> Array:
            limit = maximum(tol**2 * _inner(right, right), atol**2)
            return method(multiply, right, _Task(start, most, limit, divide))  # type: ignore[no-any-return]

        return found

    divide = on_vectors(M) if M is not None else lambda x: x

    def transposed(y: Array) -> Any:
        return vjp(divide, y)[1](y)[0]

    symmetric = method is _conjugate_gradients and right.dtype.kind == "f"
    back = solve(divide if M is None or symmetric else transposed, 0 * given)
    return unravel(custom_linear_solve(on_vectors(A), right, solve(divide, given), back)), None


def _product(a: Array, b: Array) -> Array:
    return sum_(conj(a) * b)


def _inner(a: Array, b: Array) -> Array:
    return real(_product(a, b))
