"""Singular values, and what is made of them: pseudo-inverses, least squares, ranks and condition numbers."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError, MissingRuleError, ShapeError
from harp.numpy.complexes import conj, real
from harp.numpy.creation import asarray, eye
from harp.numpy.elementwise import abs, equal, maximum, not_equal, where
from harp.numpy.linalg.batches import adjoint, at_once, lapack, operands, require_matrices
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.scalar.dtypes import i64, real_of
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp


class SVDResult(NamedTuple):
    """What `svd` returns: `U * S @ Vh` is the matrix."""

    U: Array
    S: Array
    Vh: Array


def svd(a: object, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """U, S and Vh with `(U * S[..., None, :]) @ Vh` equal to `a`: the singular value decomposition, as NumPy has it.

    `a` is a matrix with m rows and n columns, or a batch of them in the last two axes; S are the min(m, n) singular
    values in descending order, U and Vh have orthonormal columns and rows: min(m, n) of them or, with `full_matrices`,
    m and n. Without `compute_uv` only S is returned. Integers give float64. A matrix with NaN or infinities has NaN.

    Gradients of U and Vh need `full_matrices=False`, or MissingRuleError is raised: what else they have is not
    determined. Where singular values are equal, functions that do not depend on the choice of the vectors have their
    gradient, others a finite number without meaning; the same goes for those that are 0. Raises ShapeError for fewer
    than two axes, LinAlgError where iterations find no values; in functions that are traced there is NaN instead.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.svd(hnp.asarray([[0.0, 2.0], [1.0, 0.0]]), compute_uv=False)
    Array([2., 1.])
    """
    if not compute_uv:
        return svdvals(a)
    (matrix,), result = operands("svd", a=a)
    require_matrices("svd", matrix)
    u, s, vh = (_full if full_matrices else _reduced)(matrix)
    return SVDResult(astype(u, result), astype(s, real_of(result)), astype(vh, result))


def svdvals(a: object) -> Array:
    """The singular values of a matrix in descending order, or of each of a batch in the last two axes.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.svdvals(hnp.asarray([[0.0, 2.0], [1.0, 0.0]]))
    Array([2., 1.])
    """
    (matrix,), result = operands("svdvals", a=a)
    require_matrices("svdvals", matrix)
    return astype(_values(matrix), real_of(result))


@custom_jvp
def _reduced(a: Array) -> Any:
    found = at_once(partial(np.linalg.svd, full_matrices=False), a, finite=True, refused_by=MatrixOp.SVD)
    return lapack(MatrixOp.SVD, a, flags=(True, False)) if found is None else found


@_reduced.defjvp
def _reduced_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of a = u * s @ vh, by J. Townsend, Differentiating the singular value decomposition (2016).

    With m = u.mH @ da @ v and f = 1 / (s[j]**2 - s[i]**2): du = u @ (f * (m * s[j] + s[i] * m.mH)), and the same with
    s[i] * m + m.mH * s[j] for v; beside these what is orthogonal to all of u or v, and the phases of complex ones.
    """
    (a,), (tangent,) = primals, tangents
    u, s, vh = _reduced(a)
    v, count = adjoint(vh), s.shape[-1]
    moved = matmul(adjoint(u), matmul(tangent, v))
    row, column = s[..., None, :], s[..., :, None]
    difference = (row - column) * (row + column)
    same = equal(difference, 0)
    between = where(same, 0, 1 / where(same, 1, difference))
    inverse = where(equal(row, 0), 0, 1 / where(equal(row, 0), 1, row))
    right, left = row * moved, column * moved
    inner_u = between * (right + adjoint(right))
    inner_v = between * (left + adjoint(left))
    if a.kind.is_complex:
        inner_u = inner_u + (moved - adjoint(moved)) / 2 * inverse * eye(count, dtype=s.kind)
    # What is left of da behind the columns of u, and behind those of v: nothing, where these span the whole space.
    tall, wide = (asarray(a.shape[axis]) > asarray(count) for axis in (-2, -1))
    du, dv = matmul(u, inner_u), matmul(v, inner_v)
    beside_u, beside_v = matmul(tangent, v), matmul(adjoint(tangent), u)
    du = du + where(tall, (beside_u - matmul(u, moved)) * inverse, 0)
    dv = dv + where(wide, (beside_v - matmul(v, adjoint(moved))) * inverse, 0)
    return (u, s, vh), (du, real(diagonal(moved)), adjoint(dv))


@custom_jvp
def _full(a: Array) -> Any:
    found = at_once(np.linalg.svd, a, finite=True, refused_by=MatrixOp.SVD)
    return lapack(MatrixOp.SVD, a, flags=(True, True)) if found is None else found


@_full.defjvp
def _full_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    raise MissingRuleError(f"svd has derivatives with full_matrices=False only{place()}")


@custom_jvp
def _values(a: Array) -> Any:
    found = at_once(np.linalg.svdvals, a, finite=True, refused_by=MatrixOp.SVD)
    return lapack(MatrixOp.SVD, a, flags=(False, False))[0] if found is None else found


@_values.defjvp
def _values_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    u, s, vh = _reduced(*primals)
    return s, real(sum_(conj(u) * matmul(tangents[0], adjoint(vh)), -2))


def pinv(a: object, rcond: object = None, hermitian: bool = False, *, rtol: object = None) -> Array:
    """The pseudo-inverse of a matrix, or of each of a batch in the last two axes: NumPy's function.

    Singular values that are at most `rtol` (or `rcond`) times the largest count as 0; by default that is the larger
    size times the spacing of floats at 1, as in the array API standard. `hermitian` says that matrices are, and is not
    needed. Integers give float64. The gradient, by G. Golub and V. Pereyra, The differentiation of pseudo-inverses
    (1973), is that among matrices of the same rank.

    Raises ShapeError for fewer than two axes, ArgumentError for both `rcond` and `rtol`.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.pinv(hnp.asarray([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]])
    """
    (matrix,), result = operands("pinv", a=a)
    require_matrices("pinv", matrix)
    _require_one("pinv", rcond=rcond, rtol=rtol)
    return astype(_inverse(matrix, _tolerance(matrix, rcond if rtol is None else rtol)), result)


def _require_one(name: str, **given: object) -> None:
    if all(value is not None for value in given.values()):
        raise ArgumentError(f"{name} takes {' or '.join(given)}, not both{place()}")


def _tolerance(a: Array, given: object) -> Array:
    """That which is given, with two axes more, or the default."""
    if given is not None:
        return as_array(given)[..., None]
    largest = astype(maximum(asarray(a.shape[-2]), asarray(a.shape[-1])), real_of(a.kind))
    return largest * float(np.finfo(np.dtype(real_of(a.kind).numpy_name)).eps)


@custom_jvp
def _inverse(a: Array, tolerance: Array) -> Array:
    u, s, vh = _reduced(a)
    counts = s > tolerance * max_(s, -1, keepdims=True, initial=0)
    inverse = where(counts, 1 / where(counts, s, 1), 0)
    return matmul(adjoint(vh) * inverse[..., None, :], adjoint(u))


@_inverse.defjvp
def _inverse_tangent(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """Of p = pinv(a): dp = -p da p + p p.mH da.mH (1 - a p) + (1 - p a) da.mH p.mH p.

    Squares are as large as `a` has columns, which most often are fewer than its rows.
    """
    a, da = primals[0], tangents[0]
    p: Array = _inverse(*primals)
    turned = adjoint(da)
    left = matmul(matmul(p, adjoint(p)), turned)
    right = matmul(turned, adjoint(p))
    right = right - matmul(matmul(p, a), right)
    return p, left + matmul(right - matmul(left, a) - matmul(p, da), p)


def matrix_rank(A: object, tol: object = None, hermitian: bool = False, *, rtol: object = None) -> Array:
    """How many singular values of a matrix count, or of each of a batch in the last two axes: NumPy's function.

    Those do that are more than `tol`, or than `rtol` times the largest; by default as in `pinv`. Of a vector or a
    number it is 1, or 0 for zeros. int64. Raises ArgumentError for both `tol` and `rtol`.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.matrix_rank(hnp.asarray([[1.0, 2.0], [2.0, 4.0]]))
    Array(1)
    """
    (matrix,), _ = operands("matrix_rank", A=A)
    _require_one("matrix_rank", tol=tol, rtol=rtol)
    if matrix.ndim < 2:
        return astype(any_(not_equal(matrix, 0)), i64)
    s = _values(matrix)
    least = _tolerance(matrix, rtol) * max_(s, -1, keepdims=True, initial=0) if tol is None else _tolerance(matrix, tol)
    return sum_(astype(s > least, i64), -1)


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    x: Array
    residuals: Array
    rank: Array
    s: Array


def lstsq(a: object, b: object, rcond: object = None) -> LstsqResult:
    """The x for which `a @ x` is nearest to `b`, and among several the shortest: NumPy's function.

    `a` is a matrix or a batch of them; `b` is a vector if it has one axis, else a matrix of columns or a batch.
    Singular values that are at most `rcond` times the largest count as 0, by default as in `pinv`; -1 is the spacing of
    floats at 1. Beside x there are the sums of squares of `b - a @ x`, of each column (a vector is one), also where
    NumPy leaves them out; the rank of `a`; and its singular values.

    Raises ShapeError for sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> line = hnp.asarray([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> hnp.linalg.lstsq(line, hnp.asarray([1.0, 3.0, 5.0])).x.round(6)
    Array([2., 1.])
    """
    (matrix, right), result = operands("lstsq", a=a, b=b)
    require_matrices("lstsq", matrix)
    if right.ndim == 0:
        raise ShapeError(f"argument b of lstsq is a number; it is a vector, or a matrix of columns{place()}")
    rows, given = node_of(matrix).shape[-2], node_of(right).shape[-1 if right.ndim == 1 else -2]
    unify(rows, given, lambda: "lstsq takes as many rows of b as of a")
    if isinstance(rcond, (int, float)) and rcond == -1:
        rcond = float(np.finfo(np.dtype(real_of(matrix.kind).numpy_name)).eps)
    inverse = _inverse(matrix, _tolerance(matrix, rcond))
    columns = right[:, None] if right.ndim == 1 else right
    x = matmul(inverse, columns)
    residuals = sum_(abs(columns - matmul(matrix, x)) ** 2, -2)
    return LstsqResult(
        astype(x[..., 0] if right.ndim == 1 else x, result),
        astype(residuals, real_of(result)),
        matrix_rank(matrix, rtol=rcond),
        svdvals(matrix),
    )
