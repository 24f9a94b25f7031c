"""SciPy's functions of decompositions: products with Q, Sylvester's equation, and eigenvalues of three diagonals."""

from __future__ import annotations

from typing import Any

import numpy as np

from harp.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from harp.numpy.complexes import conj, real
from harp.numpy.creation import arange, eye, zeros_like
from harp.numpy.elementwise import abs, equal, greater, less_equal, square, where
from harp.numpy.indexing import take_along_axis
from harp.numpy.linalg.batches import adjoint, in_batch, lapack, operands, require_matrices, require_square
from harp.numpy.linalg.eigen import eigh, eigvalsh
from harp.numpy.linalg.factors import qr
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import broadcast_to, matrix_transpose
from harp.numpy.padding import pad
from harp.numpy.reductions import argmax
from harp.numpy.reductions import sum as sum_
from harp.scipy.schur import schur
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_flag, as_integer
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.index.division import minimum as least
from harp.trace.scalar.dtypes import complex_of
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import unify, wrap
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.scan import fori_loop


def qr_multiply(
    a: object,
    c: object,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """The product of c with the Q of `a`, which has min(m, n) columns, and R: `c @ Q`, or `Q @ c` with `mode` "left".

    With `pivoting` also the columns of `a` in the order in which R has them: at each step the one is next of which most
    is left, as in LAPACK. With `conjugate` Q is conjugated. A vector c is a row, on the left a column, and gives a
    vector. Axes in front broadcast. Raises ShapeError for sizes that do not fit, ArgumentError for another mode.

    >>> import numpy as np
    >>> product, r = qr_multiply(np.array([[3.0, 1.0], [4.0, 2.0]]), np.array([3.0, 4.0]))
    >>> np.abs(product).round(9), np.abs(r[0]).round(9)
    (Array([5., 0.]), Array([5. , 2.2]))
    """
    if mode not in ("left", "right"):
        raise ArgumentError(f"mode of qr_multiply is 'left' or 'right', not {mode!r}{place()}")
    (matrix, other), result = operands("qr_multiply", a=a, c=c)
    require_matrices("qr_multiply", matrix)
    if other.ndim < 1:
        raise ShapeError(f"c of qr_multiply is a vector or a matrix, not a number{place()}")
    extra: tuple[Array, ...] = ()
    left = mode == "left"
    if as_flag("pivoting of qr_multiply", pivoting):
        order = pivots(matrix)
        matrix, extra = take_along_axis(matrix, broadcast_to(order[..., None, :], matrix.shape), axis=-1), (order,)
    factors = qr(matrix)
    q = conj(factors.Q) if as_flag("conjugate of qr_multiply", conjugate) else factors.Q
    columns = (other[:, None] if left else other[None, :]) if other.ndim == 1 else other
    given, wanted = (
        node_of(array).shape[axis] for array, axis in ((columns, -2 if left else -1), (q, -1 if left else -2))
    )
    unify(given, wanted, lambda: f"qr_multiply: the size of c and that of Q, whose sizes are {q.shape[-2:]}")
    product = matmul(q, columns) if left else matmul(columns, q)
    product = product[..., 0 if left else slice(None)] if other.ndim == 1 and left else product
    product = product[..., 0, :] if other.ndim == 1 and not left else product
    return (astype(product, result), astype(factors.R, result), *extra)


def pivots(a: Array) -> Array:
    """The columns in the order in which elimination takes them: each time the longest of what is left."""
    a = stop_gradient(a)
    m, n = node_of(a).shape[-2:]
    places = arange(a.shape[-1])

    def step(k: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, order = state
        sizes = sum_(square(abs(rest)), -2)
        chosen = argmax(where(places < k, -1.0, sizes), -1, keepdims=True)
        swapped = where(equal(places, k), chosen, where(equal(places, chosen), k, places))
        rest, order = take_along_axis(rest, swapped[..., None, :], axis=-1), take_along_axis(order, swapped, axis=-1)
        column = sum_(where(equal(places, k), rest, 0), -1)
        size = sum_(square(abs(column)), -1)[..., None]
        share = sum_(conj(column)[..., None] * rest, -2) / where(equal(size, 0), 1, size)
        return rest - column[..., None] * share[..., None, :], order

    start = broadcast_to(places, (*a.shape[:-2], a.shape[-1]))
    return fori_loop(0, wrap(least(m, n)), step, (a, start))[1]


# -- Sylvester's equation ------------------------------------------------------------------------------------------


def solve_sylvester(A: object, B: object, C: object, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """The X for which `A @ X + X @ B` is C, for square matrices A and B; axes in front broadcast.

    R. H. Bartels, G. W. Stewart, Solution of the matrix equation AX + XB = C (1972): by Schur forms, also for the
    `method` "eigen", and `tol` changes nothing. Raises ShapeError for sizes that do not fit, ArgumentError for another
    method, LinAlgError where A has an eigenvalue that is one of -B; in functions that are traced there are infinities
    or NaN instead.

    >>> import numpy as np
    >>> solve_sylvester(np.array([[1.0, 1.0], [0.0, 2.0]]), np.array([[1.0]]), np.array([[3.0], [3.0]]))
    Array([[1.],
           [1.]])
    """
    if method not in ("schur", "eigen"):
        raise ArgumentError(f"method of solve_sylvester is 'schur' or 'eigen', not {method!r}{place()}")
    (a, b, c), result = operands("solve_sylvester", A=A, B=B, C=C)
    require_square("solve_sylvester", a)
    require_square("solve_sylvester", b)
    require_matrices("solve_sylvester", c, "C")
    (rows, columns), n, m = node_of(c).shape[-2:], node_of(a).shape[-1], node_of(b).shape[-1]
    unify(rows, n, lambda: "solve_sylvester: the rows of C and the size of A")
    unify(columns, m, lambda: "solve_sylvester: the columns of C and the size of B")
    given = in_batch((a, b, c), (2, 2, 2))
    found = _sylvester(*given)
    if current() is None and np.isfinite(np.asarray(c)).all() and not np.isfinite(np.asarray(found)).all():
        raise LinAlgError(f"A of solve_sylvester has an eigenvalue that is one of -B: there is no X, or many{place()}")
    return astype(found, result)


@custom_vjp
def _sylvester(a: Array, b: Array, c: Array) -> Array:
    kind = complex_of(c.kind)
    (t, u), (s, v) = schur(a, "complex"), schur(b, "complex")
    t, u, s, v = (astype(array, kind) for array in (t, u, s, v))
    right = matmul(matmul(adjoint(u), astype(c, kind)), v)
    n, one = c.shape[-1], eye(c.shape[-2], dtype=kind)
    places = arange(n)

    def step(k: Any, x: Array) -> Array:
        """Column k, from those before it."""
        here = equal(places, k)
        of_s = sum_(where(here, s, 0), -1)  # column k, of which the diagonal and what is above count
        pivot = sum_(where(here, of_s, 0), -1)[..., None, None]
        known = sum_(where(here, right, 0), -1) - matmul(x, where(places < k, of_s, 0)[..., None])[..., 0]
        (column,) = lapack(
            MatrixOp.SOLVE_TRIANGULAR, t + pivot * one, known[..., None], flags=(False, False), refuses=False
        )
        return where(here, column, x)

    x = matmul(matmul(u, fori_loop(0, n, step, zeros_like(right))), adjoint(v))
    return x if c.kind.is_complex else real(x)


def _solved(a: Array, b: Array, c: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    x = _sylvester(a, b, c)
    return x, (a, b, x)


def _cotangents(kept: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array, Array]:
    """Of A @ dX + dX @ B = dC - dA @ X - X @ dB."""
    a, b, x = kept
    of_right: Array = _sylvester(matrix_transpose(a), matrix_transpose(b), cotangent)
    return -matmul(of_right, matrix_transpose(x)), -matmul(matrix_transpose(x), of_right), of_right


_sylvester.defvjp(_solved, _cotangents)


# -- three diagonals -----------------------------------------------------------------------------------------------


def eigh_tridiagonal(
    d: object,
    e: object,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    check_finite: bool = True,
    tol: float | None = None,
    lapack_driver: str = "auto",
    *,
    key: object = None,
) -> Any:
    """The eigenvalues, in ascending order, of the symmetric matrix with d on its diagonal and e beside it, and its
    eigenvectors as columns; with `eigvals_only` the values.

    `select` "i" takes those from one position to another one, both included, which `select_range` has; "v" those above
    a number and up to another one, where the numbers are known. Computed by `eigh`, with its derivatives; `tol`,
    `lapack_driver` and `key` change nothing. Axes in front broadcast. Raises ShapeError for sizes that do not fit,
    DTypeError for complex numbers, ArgumentError for other selections.

    >>> import numpy as np
    >>> eigh_tridiagonal(np.array([2.0, 2.0]), np.array([1.0]), eigvals_only=True)
    Array([1., 3.])
    """
    (on, beside), _ = operands("eigh_tridiagonal", d=d, e=e)
    if on.kind.is_complex:
        raise DTypeError(f"eigh_tridiagonal takes real numbers, not {on.dtype}{place()}")
    if on.ndim < 1 or beside.ndim < 1:
        raise ShapeError(f"d and e of eigh_tridiagonal are vectors, not numbers{place()}")
    unify(node_of(on).shape[-1], node_of(beside).shape[-1] + 1, lambda: "eigh_tridiagonal: e is shorter than d by one")
    on, beside = in_batch((on, beside), (1, 1))
    n = on.shape[-1]
    below = pad(beside, [(0, 0)] * (beside.ndim - 1) + [(1, 0)])[..., :, None] * eye(n, k=-1, dtype=on.kind)
    matrix = below + matrix_transpose(below) + on[..., :, None] * eye(n, dtype=on.kind)
    values, vectors = (eigvalsh(matrix), None) if eigvals_only else eigh(matrix)
    chosen = _selected(values, select, select_range)
    values = values[..., chosen]
    return values if vectors is None else (values, vectors[..., chosen])


def _selected(values: Array, select: str, bounds: tuple[float, float] | None) -> Any:
    """The places of the eigenvalues that are asked for."""
    if select in ("a", "all", 0):
        return slice(None)
    if bounds is None or select not in ("i", "index", 2, "v", "value", 1):
        raise ArgumentError(
            f"select of eigh_tridiagonal is 'a', or 'i' or 'v' with select_range, not {select!r}{place()}"
        )
    if select in ("i", "index", 2):
        first, last = (as_integer("select_range of eigh_tridiagonal", bound) for bound in bounds)
        return slice(first, last + 1)
    if values.ndim > 1:
        raise ArgumentError(f"select 'v' of eigh_tridiagonal takes one matrix, for others have other numbers{place()}")
    return greater(values, bounds[0]) & less_equal(values, bounds[1])
