"""Eigenvalues and eigenvectors.

Derivatives are by M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008). Vectors of equal values are not determined, nor have they a derivative; a function has one that
depends on nothing but the space between them, and for it they count as if they stood still.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from harp.errors import ArgumentError
from harp.numpy.complexes import conj, real
from harp.numpy.elementwise import equal, where
from harp.numpy.linalg.batches import adjoint, at_once, lapack, operands, require_square
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.systems import solve
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.scalar.dtypes import complex_of, real_of
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp


class EighResult(NamedTuple):
    """What `eigh` returns: `a @ eigenvectors` is `eigenvectors * eigenvalues`."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """What `eig` returns, both complex."""

    eigenvalues: Array
    eigenvectors: Array


def eigh(a: object, UPLO: Literal["L", "U", "l", "u"] = "L") -> EighResult:
    """The eigenvalues of a symmetric (Hermitian) matrix, in ascending order, and its eigenvectors as columns.

    `a` is a matrix or a batch of them in the last two axes, of which only the lower or, with `UPLO="U"`, the upper
    triangle is read. Integers give float64; the eigenvalues are real. A triangle with NaN or infinities has NaN. The
    gradient is that among symmetric matrices, and symmetric itself. Where eigenvalues are equal, functions that do not
    depend on the choice of the vectors have their gradient, others a finite number without meaning.

    Raises ShapeError for matrices that are not square, ArgumentError for another `UPLO`, LinAlgError where iterations
    find no values; in functions that are traced there is NaN instead.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.eigh(hnp.asarray([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    Array([1., 2.])
    """
    matrix, result = _hermitian("eigh", a, UPLO)
    w, v = _decomposed(matrix)
    return EighResult(astype(w, real_of(result)), astype(v, result))


def eigvalsh(a: object, UPLO: Literal["L", "U", "l", "u"] = "L") -> Array:
    """The eigenvalues of a symmetric (Hermitian) matrix in ascending order: those of `eigh`.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.eigvalsh(hnp.asarray([[2.0, 0.0], [0.0, 1.0]]))
    Array([1., 2.])
    """
    matrix, result = _hermitian("eigvalsh", a, UPLO)
    return astype(_values(matrix), real_of(result))


def _hermitian(name: str, a: object, triangle: str) -> tuple[Array, Any]:
    if not isinstance(triangle, str) or triangle.upper() not in ("L", "U"):
        raise ArgumentError(f"UPLO of {name} is 'L' or 'U', not {triangle!r}{place()}")
    (matrix,), result = operands(name, a=a)
    require_square(name, matrix)
    return adjoint(matrix) if triangle.upper() == "U" else matrix, result


@custom_jvp
def _decomposed(a: Array) -> Any:
    found = at_once(np.linalg.eigh, a, finite=True, refused_by=MatrixOp.EIGH)
    return lapack(MatrixOp.EIGH, a, flags=(True,)) if found is None else found


@_decomposed.defjvp
def _decomposed_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of a @ v = v * w: with m = v.mH @ da @ v, dw = diagonal(m) and dv = v @ (m / (w[j] - w[i]))."""
    w, v = _decomposed(*primals)
    moved = _in_basis(v, tangents[0])
    return (w, v), (real(diagonal(moved)), matmul(v, _between(w) * moved))


@custom_jvp
def _values(a: Array) -> Any:
    found = at_once(np.linalg.eigvalsh, a, finite=True, refused_by=MatrixOp.EIGH)
    return lapack(MatrixOp.EIGH, a, flags=(False,))[0] if found is None else found


@_values.defjvp
def _values_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    w, v = _decomposed(*primals)
    return w, real(diagonal(_in_basis(v, tangents[0])))


def _in_basis(v: Array, tangent: Array) -> Array:
    """The Hermitian part of a tangent, in the basis of the eigenvectors."""
    return matmul(adjoint(v), matmul((tangent + adjoint(tangent)) / 2, v))


def _between(w: Array) -> Array:
    """1 / (w[j] - w[i]), and 0 where they are equal."""
    difference = w[..., None, :] - w[..., :, None]
    same = equal(difference, 0)
    return where(same, 0, 1 / where(same, 1, difference))


def eig(a: object) -> EigResult:
    """The eigenvalues of a square matrix, in no order, and its eigenvectors as columns of length 1: NumPy's function.

    `a` is a matrix or a batch of them in the last two axes. The results are always complex, for which of them are real
    depends on the numbers; integers give complex128. A triangle with NaN or infinities has NaN. Vectors have gradients
    where their eigenvalues differ, up to their phase, which is arbitrary.

    Raises ShapeError for matrices that are not square, LinAlgError as `eigh` does.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.eig(hnp.asarray([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j])
    """
    (matrix,), result = operands("eig", a=a)
    require_square("eig", matrix)
    w, v = _any_decomposed(matrix)
    return EigResult(astype(w, complex_of(result)), astype(v, complex_of(result)))


def eigvals(a: object) -> Array:
    """The eigenvalues of a square matrix, complex and in no order: those of `eig`.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.eigvals(hnp.asarray([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j])
    """
    (matrix,), result = operands("eigvals", a=a)
    require_square("eigvals", matrix)
    return astype(_any_values(matrix), complex_of(result))


@custom_jvp
def _any_decomposed(a: Array) -> Any:
    return lapack(MatrixOp.EIG, a, flags=(True,))


@_any_decomposed.defjvp
def _any_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of a @ v = v * w: with m = inv(v) @ da @ v, dw = diagonal(m), and dv = v @ (m / (w[j] - w[i])), of each of whose
    columns the part along that of v, which would change its length, is left out."""
    w, v = _any_decomposed(*primals)
    moved = solve(v, matmul(astype(tangents[0], v.kind), v))
    free = matmul(v, _between(w) * moved)
    along = real(sum_(conj(v) * free, -2, keepdims=True))
    return (w, v), (diagonal(moved), free - v * along)


@custom_jvp
def _any_values(a: Array) -> Any:
    return lapack(MatrixOp.EIG, a, flags=(False,))[0]


@_any_values.defjvp
def _any_values_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    w, v = _any_decomposed(*primals)
    return w, diagonal(solve(v, matmul(astype(tangents[0], v.kind), v)))
