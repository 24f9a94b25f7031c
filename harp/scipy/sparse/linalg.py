"""Solutions of linear equations by iteration, for a matrix or a function that multiplies by one; vectors are trees.

M. R. Hestenes, E. Stiefel, Methods of conjugate gradients for solving linear systems (1952); H. A. van der Vorst,
Bi-CGSTAB (1992).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harp.errors import ArgumentError
from harp.flatten_util import ravel_pytree
from harp.numpy.complexes import conj, real
from harp.numpy.elementwise import maximum, where
from harp.numpy.linalg.products import matmul
from harp.numpy.reductions import sum as sum_
from harp.trace.array.array import Array
from harp.trace.source_locations import where as place
from harp.transforms.control.conditional import while_loop
from harp.tree import structure

__all__ = ["bicgstab", "cg"]

_Vector = Callable[[Array], Array]


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
    element by default. M is about the inverse of A. Raises ArgumentError for an x0 that is another tree than b.

    >>> import numpy as np
    >>> cg(lambda x: 2.0 * x, np.array([2.0, 4.0]))[0]
    Array([1., 2.])
    """
    multiply, divide, right, x, unravel, most, limit = _given("cg", A, b, x0, tol, atol, maxiter, M)

    def goes_on(state: Any) -> Any:
        k, _, left, _, _ = state
        return (k < most) & (_inner(left, left) > limit)

    def step(state: Any) -> Any:
        k, x, left, direction, size = state
        image = multiply(direction)
        length = size / _inner(direction, image)
        x, left = x + length * direction, left - length * image
        divided = divide(left)
        new = _inner(left, divided)
        return k + 1, x, left, divided + new / size * direction, new

    left = right - multiply(x)
    direction = divide(left)
    return unravel(while_loop(goes_on, step, (0, x, left, direction, _inner(left, direction)))[1]), None


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
    multiply, divide, right, x, unravel, most, limit = _given("bicgstab", A, b, x0, tol, atol, maxiter, M)
    shadow = right - multiply(x)

    def goes_on(state: Any) -> Any:
        k, _, left, _, _, size = state
        return (k < most) & (_inner(left, left) > limit) & (size != 0)

    def step(state: Any) -> Any:
        k, x, left, direction, _, size = state
        near = divide(direction)
        image = multiply(near)
        length = size / _product(shadow, image)
        halfway = left - length * image
        divided = divide(halfway)
        turned = multiply(divided)
        square = _inner(turned, turned)
        weight = _product(turned, halfway) / where(square > 0, square, 1)
        x, left = x + length * near + weight * divided, halfway - weight * turned
        new = _product(shadow, left)
        factor = new / size * length / where(weight == 0, 1, weight)
        return k + 1, x, left, left + factor * (direction - weight * image), image, new

    first = (0, x, shadow, shadow, 0 * shadow, _product(shadow, shadow))
    return unravel(while_loop(goes_on, step, first)[1]), None


def _given(name: str, A: Any, b: Any, x0: Any, tol: float, atol: float, maxiter: int | None, M: Any) -> Any:
    """The operators on vectors, right side and start as vectors, and when to end."""
    right, unravel = ravel_pytree(b)
    right = right if right.dtype.kind in "fc" else right.astype("float64")
    if x0 is not None and structure(x0) != structure(b):
        raise ArgumentError(f"x0 of {name} is another tree than b{place()}")
    start = 0 * right if x0 is None else ravel_pytree(x0)[0].astype(right.dtype)

    def on_vectors(operator: Any) -> _Vector:
        apply = operator if callable(operator) else lambda x: matmul(operator, x)
        return lambda x: ravel_pytree(apply(unravel(x)))[0]

    most = 10 * right.shape[0] if maxiter is None else maxiter
    limit = maximum(tol**2 * _inner(right, right), atol**2)
    return on_vectors(A), on_vectors(M) if M is not None else lambda x: x, right, start, unravel, most, limit


def _product(a: Array, b: Array) -> Array:
    return sum_(conj(a) * b)


def _inner(a: Array, b: Array) -> Array:
    return real(_product(a, b))
