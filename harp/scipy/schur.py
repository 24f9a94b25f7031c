"""SciPy's Schur and Hessenberg forms of matrices, and functions of matrices by them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from harp.errors import ArgumentError, MissingRuleError
from harp.numpy.creation import arange, eye
from harp.numpy.elementwise import abs, clip, equal, isfinite, minimum, where
from harp.numpy.linalg.batches import adjoint, lapack, operands, require_square
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import matrix_transpose
from harp.numpy.reductions import all as all_
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import min as min_
from harp.numpy.reductions import sum as sum_
from harp.numpy.types import finfo
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.scalar.dtypes import complex_of, real_of
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.control.scan import fori_loop


@partial(custom_jvp, nondiff_argnums=(0,))
def _form(op: MatrixOp, a: Array) -> Any:
    return lapack(op, a)


@_form.defjvp
def _tangent(op: MatrixOp, primals: tuple[Array], tangents: tuple[Array]) -> Any:
    raise MissingRuleError(
        f"{op.value} has no derivatives, as in JAX, and neither has funm: take expm, sqrtm or harp.numpy.linalg.eig"
        f"{place()}"
    )


def schur(a: object, output: str = "real") -> tuple[Array, Array]:
    """T and Z with `Z @ T @ Z.mH` equal to a square matrix, or each of a batch: T is upper triangular and Z unitary.

    Of a real matrix both are real, and T has blocks of 2 on its diagonal, whose eigenvalues are complex; with `output`
    "complex" it is a triangle. There are no derivatives. Raises ShapeError for matrices that are not square,
    ArgumentError for another output, LinAlgError where iterations find no form; NaN if a matrix is not finite.

    >>> import numpy as np
    >>> schur(np.array([[2.0, 1.0], [0.0, 3.0]]))[0]
    Array([[2., 1.],
           [0., 3.]])
    """
    if output not in ("real", "complex"):
        raise ArgumentError(f"output of schur is 'real' or 'complex', not {output!r}{place()}")
    (matrix,), result = operands("schur", a=a)
    require_square("schur", matrix)
    if output == "complex":
        matrix, result = astype(matrix, complex_of(matrix.kind)), complex_of(result)
    t, z = _form(MatrixOp.SCHUR, matrix)
    return astype(t, result), astype(z, result)


def rsf2csf(T: object, Z: object, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a matrix, given its real one. See `schur`.

    >>> import numpy as np
    >>> rsf2csf(np.array([[0.0, 2.0], [-2.0, 0.0]]), np.eye(2))[0].diagonal().imag.round(9)
    Array([-2.,  2.])
    """
    (t, z), result = operands("rsf2csf", T=T, Z=Z)
    require_square("rsf2csf", t)
    require_square("rsf2csf", z)
    triangle, turned = schur(t, "complex")
    return astype(triangle, complex_of(result)), astype(matmul(z, turned), complex_of(result))


def hessenberg(a: object, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """H, zero below the first diagonal under the main one, and with `calc_q` Q, unitary, for which `Q @ H @ Q.mH` is a
    square matrix, or each of a batch.

    There are no derivatives. Raises ShapeError for matrices that are not square; NaN if a matrix is not finite.

    >>> import numpy as np
    >>> hessenberg(np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 1.0], [4.0, 1.0, 1.0]])).round(2)
    Array([[ 1.  , -3.6 ,  0.2 ],
           [-5.  ,  1.96,  0.28],
           [ 0.  ,  0.28,  0.04]])
    """
    (matrix,), result = operands("hessenberg", a=a)
    require_square("hessenberg", matrix)
    h, q = _form(MatrixOp.HESSENBERG, matrix)
    return (astype(h, result), astype(q, result)) if calc_q else astype(h, result)


# Multiples of rounding errors, below which eigenvalues are equal, and numbers above the diagonal are zero.
_CLOSE, _APART = 8, 100


def funm(A: object, func: Callable[[Array], object], disp: bool = True) -> Any:
    """A function of square matrices, given that of numbers: complex. Without `disp` also an estimate of the error.

    By Parlett's recurrence (algorithm 9.1.1 of G. H. Golub, C. F. Van Loan, Matrix Computations, 4th edition, 2013),
    which divides by differences of eigenvalues: where some are close, digits are lost, and there is NaN where they are
    equal and the matrix is not diagonal between them, where SciPy and JAX are wrong. There are no derivatives. Raises
    ShapeError.

    >>> import numpy as np
    >>> funm(np.array([[4.0, 1.0], [0.0, 9.0]]), lambda x: x**0.5).real
    Array([[2. , 0.2],
           [0. , 3. ]])
    """
    (matrix,), _ = operands("funm", A=A)
    t, z = schur(matrix, "complex")
    n, values, places = t.shape[-1], diagonal(t), arange(t.shape[-1])
    turned, numbers = matrix_transpose(t), astype(func(values), t.kind)
    size, of_numbers = max_(sum_(abs(t), -2), -1, initial=0), max_(abs(numbers), -1, initial=0)
    whole, whole_of_numbers = (where(equal(a, 0), 1, a)[..., None, None] for a in (size, of_numbers))
    eps = finfo(real_of(t.kind)).eps

    def step(p: Any, found: Array) -> Array:
        """The diagonal that is p above the main one, from those below it."""
        rows = minimum(places + p, n - 1)
        right, columns = matrix_transpose(found)[..., rows, :], turned[..., rows, :]
        sums, gaps = sum_(t * right, -1) - sum_(found * columns, -1), values[..., rows] - values
        close = abs(gaps) <= _CLOSE * eps * whole[..., 0]
        share = abs(right) / whole_of_numbers + abs(columns) / whole + equal(places, rows[:, None])
        apart = sum_(abs(t) / whole * share, -1) <= _APART * eps
        quotient = where(close, where(apart, 0, math.nan), sums / where(close, 1, gaps))
        return where(equal(places, places[:, None] + p), quotient[..., None], found)

    start = numbers[..., None] * eye(n, dtype=t.kind)
    result = matmul(matmul(z, fori_loop(1, n, step, start)), adjoint(z))
    if disp:
        return result
    gaps = where(equal(places, places[:, None]), math.inf, abs(values[..., None] - values[..., None, :]))
    least = min_(gaps, (-2, -1), initial=math.inf)
    error = clip(eps / where(equal(least, 0), eps, least) * size, eps, 1)
    return result, where(all_(isfinite(result), (-2, -1)), error, math.inf)
