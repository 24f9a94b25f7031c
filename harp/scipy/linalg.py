"""SciPy's linear algebra: triangular and Cholesky factors as values, exponentials and roots of matrices, and matrices
of a structure. All take batches in the last two axes.

>>> import numpy as np
>>> factor = cho_factor(np.array([[4.0, 2.0], [2.0, 5.0]]))
>>> cho_solve(factor, np.array([8.0, 12.0]))
Array([1., 2.])
"""

from __future__ import annotations

import math
import operator
from functools import reduce
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.complexes import conj
from harp.numpy.creation import arange, asarray, eye, tril, triu, zeros
from harp.numpy.elementwise import abs, ceil, equal, exp, exp2, log2, maximum, sqrt, where
from harp.numpy.indexing import take_along_axis
from harp.numpy.linalg.batches import adjoint, lapack, operands, require_matrices, require_square
from harp.numpy.linalg.factors import cholesky as lower_cholesky
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.singular import lstsq, pinv
from harp.numpy.linalg.systems import slogdet
from harp.numpy.linalg.triangular import by_columns, substituted
from harp.numpy.manipulation import broadcast_to, matrix_transpose
from harp.numpy.padding import pad
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import sum as sum_
from harp.numpy.sorting import argsort
from harp.numpy.types import finfo
from harp.scipy.banded import cho_solve_banded, cholesky_banded, solve_banded, solveh_banded
from harp.scipy.decompositions import eigh_tridiagonal, qr_multiply, solve_sylvester
from harp.scipy.matrices import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    dft,
    fiedler,
    fiedler_companion,
    hadamard,
    hankel,
    helmert,
    hilbert,
    invhilbert,
    invpascal,
    leslie,
    pascal,
    toeplitz,
)
from harp.scipy.schur import funm, hessenberg, rsf2csf, schur
from harp.scipy.systems import det, eigh, inv, qr, solve, solve_triangular, svd
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.scalar.dtypes import c64, c128, f32, real_of
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.forward import jvp
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.conditional import while_loop
from harp.transforms.control.scan import fori_loop

__all__ = [
    "block_diag",
    "cho_factor",
    "cho_solve",
    "cho_solve_banded",
    "cholesky",
    "cholesky_banded",
    "circulant",
    "companion",
    "convolution_matrix",
    "det",
    "dft",
    "eigh",
    "eigh_tridiagonal",
    "expm",
    "expm_frechet",
    "fiedler",
    "fiedler_companion",
    "funm",
    "hadamard",
    "hankel",
    "helmert",
    "hessenberg",
    "hilbert",
    "inv",
    "invhilbert",
    "invpascal",
    "leslie",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "pascal",
    "pinv",
    "polar",
    "qr",
    "qr_multiply",
    "rsf2csf",
    "schur",
    "solve",
    "solve_banded",
    "solve_sylvester",
    "solve_triangular",
    "solveh_banded",
    "sqrtm",
    "svd",
    "toeplitz",
]


def cholesky(a: object, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The upper triangular U with `U.mT.conj() @ U` equal to `a`, or with `lower` the L of `harp.numpy.linalg`.

    >>> import numpy as np
    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]])
    """
    return lower_cholesky(a, upper=not lower)


def cho_factor(
    a: object, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factor, and whether it is the lower one, for `cho_solve`; its other triangle is zero.

    >>> import numpy as np
    >>> cho_factor(np.array([[4.0]]), lower=True)
    (Array([[2.]]), True)
    """
    return cholesky(a, lower), lower


def cho_solve(
    c_and_lower: tuple[object, bool], b: object, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x for which `a @ x` is `b`, given `cho_factor(a)`. Raises ShapeError for sizes that do not fit.

    >>> import numpy as np
    >>> cho_solve(cho_factor(np.array([[4.0]])), np.array([8.0]))
    Array([2.])
    """
    factor, lower = c_and_lower
    factor = as_array(factor)
    below = factor if lower else adjoint(factor)
    halfway = solve_triangular(below, b, lower=True)
    return solve_triangular(below, halfway, trans="C", lower=True)


# -- LU ------------------------------------------------------------------------------------------------------------


def lu_factor(a: object, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Both triangles of `lu` in one matrix, without the ones of L, and for each row the one that it changed places
    with.

    `a` has m rows and n columns. The gradient is that of the factors of `a` with its rows as they were exchanged.

    >>> import numpy as np
    >>> lu_factor(np.array([[1.0, 2.0], [4.0, 4.0]]))
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]]), Array([1, 1]))
    """
    (matrix,), result = operands("lu_factor", a=a)
    require_matrices("lu_factor", matrix)
    factors, _, pivots = _factors(matrix)
    return astype(factors, result), pivots


@custom_jvp
def _factors(a: Array) -> Any:
    """Both triangles, the rows of `a` in their new order, and the exchanges."""
    factors, order, pivots = lapack(MatrixOp.LU, a)
    return matrix_transpose(factors), order, pivots


@_factors.defjvp
def _factors_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of p @ a = l @ u, where l and u are made square by rows of the identity: with f = inv(l) @ p @ da @ inv(u), the
    tangent of both triangles is l @ (f below its diagonal) + (the rest of f) @ u."""
    packed, order, pivots = _factors(*primals)
    (m, n), k = packed.shape[-2:], pivots.shape[-1]
    none = [(0, 0)] * (packed.ndim - 2)
    lower = pad(tril(packed[..., :k], -1), (*none, (0, 0), (0, m - k))) + eye(m, dtype=packed.kind)
    upper = pad(triu(packed[..., :k, :]), (*none, (0, n - k), (0, 0)))
    upper = upper + where(arange(n) < k, 0, 1) * eye(n, dtype=packed.kind)
    inner = substituted(True, True, lower, _rows(tangents[0], order))
    inner = matrix_transpose(substituted(True, False, matrix_transpose(upper), matrix_transpose(inner)))
    tangent = matmul(lower, tril(inner, -1)) + matmul(triu(inner), upper)
    return (packed, order, pivots), (tangent, zeros(order.shape), zeros(pivots.shape))


def _rows(a: Array, order: Array) -> Array:
    """The rows of the matrices of a batch in another order."""
    return take_along_axis(a, broadcast_to(order, a.shape[:-1])[..., None], axis=-2)


def lu(a: object, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, ...]:
    """P, L and U with `P @ L @ U` equal to `a`: a permutation, a lower triangle with ones and an upper one. With
    `permute_l` `P @ L`, and U.

    `a` has m rows and n columns; L has min(m, n) columns.

    >>> import numpy as np
    >>> lu(np.array([[1.0, 2.0], [4.0, 4.0]]), permute_l=True)
    (Array([[0.25, 1.  ],
           [1.  , 0.  ]]), Array([[4., 4.],
           [0., 1.]]))
    """
    (matrix,), result = operands("lu", a=a)
    require_matrices("lu", matrix)
    packed, order, pivots = _factors(matrix)
    m, k = packed.shape[-2], pivots.shape[-1]
    lower = astype(tril(packed[..., :k], -1) + eye(m, k, dtype=packed.kind), result)
    upper = astype(triu(packed[..., :k, :]), result)
    if permute_l:
        return _rows(lower, argsort(order, axis=-1)), upper
    return astype(equal(order[..., None, :], arange(m)[:, None]), result), lower, upper


def lu_solve(
    lu_and_piv: tuple[object, object],
    b: object,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x for which `a @ x` is `b`, given `lu_factor(a)`; with `trans` 1 of the transpose of `a`, with 2 of its
    adjoint. Raises ShapeError for sizes that do not fit, ArgumentError for other `trans`.

    >>> import numpy as np
    >>> lu_solve(lu_factor(np.array([[0.0, 2.0], [1.0, 1.0]])), np.array([2.0, 3.0]))
    Array([2., 1.])
    """
    if trans not in (0, 1, 2):
        raise ArgumentError(f"trans of lu_solve is 0, 1 or 2, not {trans!r}{place()}")
    (packed, right), result = operands("lu_solve", lu=lu_and_piv[0], b=b)
    require_square("lu_solve", packed)
    packed = conj(packed) if trans == 2 else packed
    order = _order(as_array(lu_and_piv[1]))

    def solved(a: Array, x: Array) -> Array:
        if not trans:
            return substituted(False, False, a, substituted(True, True, a, _rows(x, order)))
        turned = matrix_transpose(a)
        return _rows(substituted(False, True, turned, substituted(True, False, turned, x)), argsort(order, axis=-1))

    return astype(by_columns("lu_solve", solved, packed, right), result)


def _order(pivots: Array) -> Array:
    """The rows in their new order, given for each the one that it changed places with, one after the other."""
    places = arange(pivots.shape[-1])

    def exchanged(i: Any, order: Array) -> Array:
        other = sum_(where(equal(places, i), pivots, 0), -1, keepdims=True)
        one, two = (sum_(where(equal(places, k), order, 0), -1, keepdims=True) for k in (i, other))
        return where(equal(places, i), two, where(equal(places, other), one, order))

    order: Array = fori_loop(0, pivots.shape[-1], exchanged, broadcast_to(places, pivots.shape))
    return order


# -- functions of matrices -----------------------------------------------------------------------------------------

# The approximation of exp by a quotient of polynomials of degree 13, and the norms for which it is exact in float64.
_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_NORM = 5.371920351148152


def expm(A: object, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices, by scaling and squaring; NaN where more squarings are needed than
    `max_squarings`. `upper_triangular` changes nothing.

    N. J. Higham, The scaling and squaring method for the matrix exponential revisited (2005). Raises ShapeError for
    matrices that are not square.

    >>> import numpy as np
    >>> expm(np.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]])
    """
    (a,), result = operands("expm", A=A)
    require_square("expm", a)
    norm = stop_gradient(max_(sum_(abs(a), -2), -1, initial=0))
    times = ceil(log2(maximum(norm / _NORM, 1)))
    fits = times <= max_squarings  # NaN does not
    times = astype(where(fits, times, 0), "int64")[..., None, None]
    a = a / exp2(astype(times, real_of(a.kind)))
    squared = matmul(a, a)
    fourth = matmul(squared, squared)
    sixth = matmul(fourth, squared)
    powers = (eye(a.shape[-1], dtype=a.kind), squared, fourth, sixth)

    def polynomial(first: int) -> Array:
        """Every second term, from this one on."""
        low, high = _PADE[first:8:2], _PADE[8 + first :: 2]
        above = reduce(operator.add, (c * power for c, power in zip(high, powers[1:], strict=True)))
        below = reduce(operator.add, (c * power for c, power in zip(low, powers, strict=True)))
        return below + matmul(sixth, above)

    odd, even = matmul(a, polynomial(1)), polynomial(0)
    quotient = solve(even - odd, even + odd)
    whole = fori_loop(
        0, max_(times, initial=0), lambda k, found: where(k < times, matmul(found, found), found), quotient
    )
    return astype(where(fits[..., None, None], whole, math.nan), result)


def expm_frechet(
    A: object, E: object, *, method: str | None = None, compute_expm: bool = True, check_finite: bool = True
) -> Any:
    """`expm(A)` and its derivative in the direction E, or with `compute_expm=False` the latter only.

    >>> import numpy as np
    >>> expm_frechet(np.zeros((1, 1)), np.ones((1, 1)))
    (Array([[1.]]), Array([[1.]]))
    """
    value, tangent = jvp(expm, (asarray(A),), (asarray(E),))
    return (value, tangent) if compute_expm else tangent


# Newton's steps, and the change of the last one as a multiple of what rounding makes of it.
_STEPS, _LAST = 60, 8


def sqrtm(A: object, blocksize: int = 1) -> Array:
    """The square root of square matrices whose eigenvalues have positive real parts: complex, `x @ x` is `A`. NaN for
    matrices without one that Newton's steps find, singular ones and those with negative eigenvalues.

    E. D. Denman, A. N. Beavers, The matrix sign function and computations in systems (1976), as products and scaled
    (N. J. Higham, Functions of matrices, 2008, 6.29). Raises ShapeError for matrices that are not square.

    >>> import numpy as np
    >>> sqrtm(np.array([[4.0, 0.0], [0.0, 9.0]])).real.round(6)
    Array([[2., 0.],
           [0., 3.]])
    """
    (a,), result = operands("sqrtm", A=A)
    require_square("sqrtm", a)
    kind = c64 if real_of(result).itemsize <= f32.itemsize else c128
    a = astype(a, kind)
    n = a.shape[-1]
    one = eye(n, dtype=kind)
    tolerance = _LAST * finfo(real_of(kind)).eps

    def distance(m: Array) -> Array:
        """Of the matrices from the identity."""
        return max_(abs(m - one), (-2, -1), initial=0)

    def goes_on(state: Any) -> Any:
        k, m, _ = state
        return (k < _STEPS) & any_(distance(m) > tolerance * n)

    def step(state: Any) -> Any:
        k, m, x = state
        done = (distance(m) <= tolerance * n)[..., None, None]
        inverse = inv(m)
        scale = stop_gradient(exp(-slogdet(m)[1] / maximum(n, 1)))[..., None, None]  # the square of Higham's
        scale = where(distance(m)[..., None, None] < 1e-2, 1, scale)
        left = (one + (scale * m + inverse / scale) / 2) / 2
        right = sqrt(scale) * matmul(x, one + inverse / scale) / 2
        return k + 1, where(done, m, left), where(done, x, right)

    _, m, root = while_loop(goes_on, step, (0, a, a))
    found = distance(m) <= 1e3 * tolerance * n
    return where(found[..., None, None], root, math.nan)


def polar(
    a: object,
    side: str = "right",
    *,
    method: str = "svd",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """U with orthonormal columns or rows, and P, positive semidefinite, with `U @ P` equal to `a`; on the "left",
    `P @ U`. By the singular values, whatever the `method`, `eps` and `max_iterations`. Raises ArgumentError for other
    sides.

    >>> import numpy as np
    >>> polar(np.array([[0.0, -2.0], [2.0, 0.0]]))[1].round(6)
    Array([[2., 0.],
           [0., 2.]])
    """
    if side not in ("left", "right"):
        raise ArgumentError(f"side of polar is 'left' or 'right', not {side!r}{place()}")
    u, values, vh = svd(a, full_matrices=False)
    basis = u if side == "left" else adjoint(vh)
    return matmul(u, vh), matmul(basis * values[..., None, :], adjoint(basis))
