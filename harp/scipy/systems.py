"""SciPy's arguments for systems of equations and decompositions that `harp.numpy.linalg` has."""

from __future__ import annotations

from typing import Any, Literal

from harp.errors import ArgumentError
from harp.numpy.complexes import real
from harp.numpy.creation import eye, tril, triu
from harp.numpy.indexing import take_along_axis
from harp.numpy.linalg import eigen, factors, singular, systems, triangular
from harp.numpy.linalg.batches import adjoint, operands, require_matrices, require_square
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import broadcast_to, matrix_transpose
from harp.numpy.padding import pad
from harp.scipy.decompositions import pivots
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_flag
from harp.trace.source_locations import where as place

_HERMITIAN = {"her": True, "hermitian": True, "sym": False, "symmetric": False}
_POSITIVE = ("pos", "positive definite")
_QR_MODES = {"full": "complete", "economic": "reduced", "r": "r"}


def det(a: object, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of a square matrix: `harp.numpy.linalg.det`.

    >>> import numpy as np
    >>> det(np.array([[2.0, 0.0], [0.0, 3.0]]))
    Array(6.)
    """
    return systems.det(a)


def inv(a: object, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a square matrix: `harp.numpy.linalg.inv`.

    >>> import numpy as np
    >>> inv(np.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return systems.inv(a)


def solve(
    a: object,
    b: object,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """The x for which `a @ x` is `b`: `harp.numpy.linalg.solve`. With `assume_a` "sym", "her" or "pos" of a symmetric,
    Hermitian or positive definite matrix, of which the upper, or with `lower` the lower triangle is read.

    Raises as that, and ArgumentError for another assumption.

    >>> import numpy as np
    >>> solve(np.array([[4.0, 2.0], [0.0, 5.0]]), np.array([8.0, 12.0]), assume_a="pos")
    Array([1., 2.])
    """
    if assume_a in ("gen", "general", None):
        return systems.solve(a, b)
    if assume_a not in _HERMITIAN and assume_a not in _POSITIVE:
        raise ArgumentError(f"assume_a of solve is 'gen', 'sym', 'her' or 'pos', not {assume_a!r}{place()}")
    (matrix,), _ = operands("solve", a=a)
    require_square("solve", matrix)
    one = as_flag("lower of solve", lower)
    if assume_a in _POSITIVE:
        below = factors.cholesky(matrix if one else adjoint(matrix))
        return triangular.solve_triangular(
            below, triangular.solve_triangular(below, b, lower=True), trans="C", lower=True
        )
    return systems.solve(_whole(matrix, one, _HERMITIAN[assume_a]), b)


def _whole(a: Array, lower: bool, hermitian: bool) -> Array:
    """The Hermitian or symmetric matrices with this triangle."""
    part = tril(a, -1) if lower else triu(a, 1)
    main = eye(a.shape[-1], dtype=a.kind) * (real(a) if hermitian else a)
    return part + main + (adjoint(part) if hermitian else matrix_transpose(part))


def solve_triangular(
    a: object,
    b: object,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """The x for which a triangle times x is `b`: `harp.numpy.linalg.solve_triangular`.

    >>> import numpy as np
    >>> solve_triangular(np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([5.0, 1.0]))
    Array([2., 1.])
    """
    return triangular.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def svd(
    a: object,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """The singular values and vectors of a matrix: `harp.numpy.linalg.svd`, or with `compute_uv` False the values.

    >>> import numpy as np
    >>> svd(np.array([[3.0, 0.0], [0.0, 2.0]]), compute_uv=False)
    Array([3., 2.])
    """
    return singular.svd(a, full_matrices=full_matrices) if compute_uv else singular.svdvals(a)


def qr(
    a: object,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Q with orthonormal columns and R, upper triangular, with `Q @ R` equal to `a`: `harp.numpy.linalg.qr`.

    `mode` is "full", in which Q is square, "economic", in which it has min(m, n) columns, or "r", for R only, in a
    tuple, as "full" has it. With `pivoting` there are also the columns of `a` in the order in which R has them, as in
    `qr_multiply`. Of a matrix with more rows than columns "full" has no derivative. Raises ArgumentError for others.

    >>> import numpy as np
    >>> [part.shape for part in qr(np.ones((3, 2)))]
    [(3, 3), (3, 2)]
    """
    if mode not in _QR_MODES:
        raise ArgumentError(f"mode of qr is 'full', 'economic' or 'r', not {mode!r}{place()}")
    (matrix,), result = operands("qr", a=a)
    require_matrices("qr", matrix)
    extra: tuple[Array, ...] = ()
    if as_flag("pivoting of qr", pivoting):
        order = pivots(matrix)
        matrix, extra = take_along_axis(matrix, broadcast_to(order[..., None, :], matrix.shape), axis=-1), (order,)
    wide = mode != "full" or matrix.shape[-2] <= matrix.shape[-1]
    q, r = factors.qr(matrix, mode="reduced" if wide else "complete")
    if mode == "r":
        below = [(0, 0)] * (r.ndim - 2) + [(0, matrix.shape[-2] - r.shape[-2]), (0, 0)]
        return (astype(pad(r, below), result), *extra)
    return (astype(q, result), astype(r, result), *extra)


def eigh(
    a: object,
    b: object = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Any:
    """The eigenvalues of a Hermitian matrix, in ascending order, and its eigenvectors as columns, or with
    `eigvals_only` the values: `harp.numpy.linalg.eigh`.

    With a positive definite b, `a @ v` is `b @ v * w`; with `type` 2 `a @ b @ v` is `v * w`, with 3 `b @ a @ v`.
    Vectors are orthonormal with b, in type 3 with its inverse, between them. Raises as that, and ArgumentError for
    `eigvals` and other types.

    >>> import numpy as np
    >>> eigh(np.array([[2.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [0.0, 0.25]]), eigvals_only=True)
    Array([2., 4.])
    """
    if eigvals is not None or type not in (1, 2, 3):
        raise ArgumentError(f"eigh has all values of the types 1, 2 and 3, not eigvals={eigvals}, type={type}{place()}")
    triangle: Literal["L", "U"] = "L" if as_flag("lower of eigh", lower) else "U"
    if b is None:
        return eigen.eigvalsh(a, triangle) if eigvals_only else eigen.eigh(a, triangle)
    (matrix, other), _ = operands("eigh", a=a, b=b)
    require_square("eigh", matrix)
    whole = _whole(matrix, lower, True)
    factor = factors.cholesky(other if lower else adjoint(other))
    if type == 1:
        half = triangular.solve_triangular(factor, whole, lower=True)
        inner = adjoint(triangular.solve_triangular(factor, adjoint(half), lower=True))
    else:
        inner = matmul(adjoint(factor), matmul(whole, factor))
    if eigvals_only:
        return eigen.eigvalsh(inner)
    values, vectors = eigen.eigh(inner)
    if type == 3:
        return values, matmul(factor, vectors)
    return values, triangular.solve_triangular(factor, vectors, trans="C", lower=True)
