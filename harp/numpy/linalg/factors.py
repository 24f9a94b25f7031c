"""Factorisations of matrices into triangular and orthogonal ones."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from harp.errors import ArgumentError, MissingRuleError
from harp.numpy.complexes import imag, real
from harp.numpy.creation import eye, tril, triu
from harp.numpy.linalg.batches import adjoint, at_once, lapack, operands, require_matrices, require_square
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import substituted
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.source_locations import where
from harp.transforms.autodiff.custom import custom_jvp


class QRResult(NamedTuple):
    """What `qr` returns: `Q @ R` is the matrix."""

    Q: Array
    R: Array


def cholesky(a: object, *, upper: bool = False) -> Array:
    """The lower triangular L with `L @ L.mT.conj()` equal to `a`, or with `upper` its adjoint: NumPy's function.

    `a` is a symmetric (Hermitian) positive definite matrix, or a batch of them in the last two axes. As in NumPy, only
    its lower or, with `upper`, its upper triangle is read. Integers give float64. The gradient, by
    I. Murray, Differentiation of the Cholesky decomposition (2016), is that among symmetric matrices, and symmetric
    itself, as in JAX.

    Raises ShapeError for matrices that are not square, LinAlgError for one that is not positive definite; in functions
    that are traced, as by `harp.jit`, all of its factor is NaN, as in JAX.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.cholesky(hnp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]])
    """
    (matrix,), result = operands("cholesky", a=a)
    require_square("cholesky", matrix)
    factor = astype(_factor(adjoint(matrix) if upper else matrix), result)
    return adjoint(factor) if upper else factor


@custom_jvp
def _factor(a: Array) -> Any:
    found = at_once(np.linalg.cholesky, a, finite=True, refused_by=MatrixOp.CHOLESKY)
    return lapack(MatrixOp.CHOLESKY, a)[0] if found is None else found


@_factor.defjvp
def _tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Of a = l @ l.mH: dl = l @ phi(inv(l) @ da @ inv(l).mH), where phi is the lower triangle, half of the diagonal."""
    (a,), (tangent,) = primals, tangents
    factor: Array = _factor(a)
    symmetric = (tangent + adjoint(tangent)) / 2
    inner = substituted(True, False, factor, adjoint(substituted(True, False, factor, symmetric)))
    return factor, matmul(factor, (tril(inner) + tril(inner, -1)) / 2)


def qr(a: object, *, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """Q with orthonormal columns and R, upper triangular, with `Q @ R` equal to `a`: NumPy's function.

    `a` is a matrix with m rows and n columns, or a batch of them in the last two axes. Q has min(m, n) columns, or with
    `mode="complete"` m; R is then as large. With `mode="r"` only R is returned. Integers give float64. Gradients need a
    matrix whose first min(m, n) columns are linearly independent, and are not there for `"complete"`, in which other
    columns of Q are not determined.

    Raises ShapeError for fewer than two axes, ArgumentError for other modes, MissingRuleError for a derivative of
    `"complete"`.

    >>> import harp.numpy as hnp
    >>> hnp.abs(hnp.linalg.qr(hnp.asarray([[3.0, 1.0], [4.0, 2.0]]), mode="r")).round(3)
    Array([[5. , 2.2],
           [0. , 0.4]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"mode of qr is 'reduced', 'complete' or 'r', not {mode!r}{where()}")
    (matrix,), result = operands("qr", a=a)
    require_matrices("qr", matrix)
    q, r = (astype(factor, result) for factor in (_complete if mode == "complete" else _reduced)(matrix))
    return r if mode == "r" else QRResult(q, r)


@custom_jvp
def _reduced(a: Array) -> Any:
    found = at_once(np.linalg.qr, a)
    return lapack(MatrixOp.QR, a, flags=(False,)) if found is None else found


@_reduced.defjvp
def _reduced_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of a = q @ r, by S. Walter and L. Lehmann, Algorithmic differentiation of linear algebra functions (2018).

    For x, the first columns, as many as q has, and its r: x' = da @ inv(r), c = q.mH @ x' and the skew-Hermitian s with
    the lower triangle of c: dq = x' + q @ (s - c). All else of r follows from r = q.mH @ a.
    """
    (a,), (tangent,) = primals, tangents
    q, r = _reduced(a)
    count = q.shape[-1]
    # da @ inv(r) is the adjoint of the solution of r.mH @ y = da.mH.
    moved = adjoint(substituted(True, False, adjoint(r[..., :count]), adjoint(tangent[..., :count])))
    seen = matmul(adjoint(q), moved)
    below = tril(seen, -1)
    skew = below - adjoint(below)
    if a.kind.is_complex:
        skew = skew + 1j * imag(seen) * eye(count, dtype=real(seen).kind)
    dq = moved + matmul(q, skew - seen)
    return (q, r), (dq, triu(matmul(adjoint(dq), a) + matmul(adjoint(q), tangent)))


@custom_jvp
def _complete(a: Array) -> Any:
    found = at_once(partial(np.linalg.qr, mode="complete"), a)
    return lapack(MatrixOp.QR, a, flags=(True,)) if found is None else found


@_complete.defjvp
def _complete_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    raise MissingRuleError(f"qr with mode='complete' has no derivative: take mode='reduced'{where()}")
