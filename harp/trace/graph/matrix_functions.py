"""Functions of whole matrices and rows that LAPACK, or NumPy's transforms, compute: a closed set, one row each.

    cholesky(a)                        l, lower triangular: a = l @ l.mH; NaN where a is not positive definite
    lu(a)                              f, order, pivots: the transpose of both factors of a[order] in one matrix,
                                       without the ones of the lower one; row k was exchanged with row pivots[k]
    lu_solve[transposed](f, order, b)  x: a @ x = b, or a.T @ x = b, by the factors of a
    solve_triangular[lower, unit](a, b)   x: a @ x = b for a triangle of a, with ones on its diagonal if it is `unit`
    solve_banded(d, e, b)              x: a @ x = b, a[j+1+k, j] = d[k, j], a[j-k, j] = e[-1-k, j]: the diagonals below,
                                       and those from the highest to the main one, each element in its column
    qr[complete](a)                    q, r: a = q @ r, q with orthonormal columns, r upper triangular
    eigh[vectors](a)                   w, v: a @ v = v * w, for the lower triangle of a Hermitian matrix, w ascending
    eig[vectors](a)                    w, v: the same for any square matrix, complex
    schur(a)                           t, z: a = z @ t @ z.mH, z unitary, t upper triangular, for real a with blocks of
                                       2 on its diagonal, whose eigenvalues are complex
    hessenberg(a)                      h, q: a = q @ h @ q.mH, q unitary, h zero below the diagonal under the main one
    svd[vectors, full](a)              u, s, vh: a = u * s @ vh, s descending
    fft[by_size, by_root, inverse](x)  y[k] = sum of x[j] * exp(-2i*pi*j*k/n), or with exp(+2i*...) if `inverse`,
                                       divided by n or by its root; along the first of two axes, as the next two
    rfft[by_size, by_root](x)          the first n//2 + 1 of these, for real x
    irfft[by_size, by_root](y)         x for y = rfft(x), if divided by n, the length of the result

Without `vectors` there are only the values. Singular matrices have infinities or NaN in their results; what does not
converge, or has NaN or infinities in it, has NaN in all of them. Where numbers are at hand, `refused` says that a
finite matrix has no result.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any, Literal

import attrs
import numpy as np
import numpy.typing as npt

from harp.trace.graph.routines import PureFunction
from harp.trace.graph.schur_form import hessenberg, schur
from harp.trace.index.division import floordiv, minimum
from harp.trace.index.polynomial import Index, Shape, product
from harp.trace.interning import InternedBase, InternedByName
from harp.trace.scalar.dtypes import DType, NDArray, complex_of, i64, real_of

Results = tuple[tuple[Shape, DType], ...]
_Flags = tuple[bool, ...]
_Matrix = npt.NDArray[Any]


class MatrixOp(enum.Enum):
    """The value is the name in printed graphs, and of the file of C that computes it."""

    CHOLESKY = "cholesky"
    LU = "lu"
    LU_SOLVE = "lu_solve"
    SOLVE_TRIANGULAR = "solve_triangular"
    SOLVE_BANDED = "solve_banded"
    QR = "qr"
    EIGH = "eigh"
    EIG = "eig"
    SVD = "svd"
    FFT = "fft"
    RFFT = "rfft"
    IRFFT = "irfft"
    SCHUR = "schur"
    HESSENBERG = "hessenberg"

    __hash__ = object.__hash__  # by C, as keys of nodes need it


@attrs.frozen
class MatrixInfo:
    """A row: the ranks of operands of one call; shapes and dtypes of results, by the flags, and the shapes and the
    dtype of operands; operations of a call, as a factor of a product of sizes; and the meaning in NumPy, for one call.

    A transform takes log2(n) times as many operations, n being the length of the axis that it goes along. Where the row
    `has_length`, operands do not say how long the result is: that is a further shape, and the first argument in NumPy.
    `refuses` says what a matrix is that has no result, and what helps; `has_none`, which matrices of a batch these are,
    by the flags, the operands and the first result.
    """

    ranks: tuple[int, ...]
    results: Callable[[_Flags, Sequence[Shape], DType], Results]
    operations: tuple[Fraction, Callable[[Sequence[Shape]], Index]]
    numpy: Callable[..., Sequence[_Matrix]]
    is_transform: bool = False
    has_length: bool = False
    refuses: str = ""
    has_none: Callable[[_Flags, Sequence[_Matrix], _Matrix], NDArray] = lambda flags, a, result: _not_found(
        a[0], result
    )


@attrs.frozen(eq=False, weakref_slot=False)
class MatrixFunction(InternedBase, metaclass=InternedByName):
    """One of the functions, with its flags."""

    op: MatrixOp
    flags: _Flags = ()

    def content(self) -> str:
        """As programs are told apart by it."""
        return f"{self.op.value}[{', '.join(map(str, self.flags))}]" if self.flags else self.op.value

    @property
    def number(self) -> int:
        """That of its stand-in."""
        return list(MatrixOp).index(self.op)

    def results(self, shapes: Sequence[Shape], dtype: DType) -> Results:
        """Shapes and dtypes of the results of a call."""
        return MATRICES[self.op].results(self.flags, shapes, dtype)

    def operations(self, shapes: Sequence[Shape]) -> tuple[Fraction, Index]:
        """How many a call needs for large matrices, as a factor and a product of sizes."""
        factor, sizes = MATRICES[self.op].operations
        return factor, sizes(shapes)

    def refused(self, operands: Sequence[NDArray], result: NDArray) -> str:
        """What is wrong with the first matrix that has no result, nothing if all have one."""
        row = MATRICES[self.op]
        if not row.refuses:
            return ""
        places = np.argwhere(row.has_none(self.flags, operands, result)).tolist()
        return f"the matrix{f' at {places[0]}' if places[0] else ''} {row.refuses}" if places else ""

    def compute(self, results: Sequence[tuple[tuple[int, ...], DType]], *operands: NDArray) -> list[object]:
        """What NumPy makes of each call; the axes of an array of calls are in front, also of the results."""
        row = MATRICES[self.op]
        calls = operands[0].shape[: operands[0].ndim - row.ranks[0]]
        made = [_nothing(shape, dtype) for shape, dtype in results]
        given = (made[0].shape[-2], *self.flags) if row.has_length else self.flags
        with np.errstate(all="ignore"):
            for place in np.ndindex(calls):
                with suppress(np.linalg.LinAlgError):
                    found = row.numpy(*given, *(operand[place] for operand in operands))
                    for target, value in zip(made, found, strict=True):
                        target[place] = value
        return [*made]


def _nothing(shape: tuple[int, ...], dtype: DType) -> NDArray:
    """What there is where there is no result."""
    return np.full(shape, np.nan if dtype.is_inexact else 0, dtype.numpy)


@cache
def in_python(function: MatrixFunction) -> PureFunction:
    """The same function, computed by NumPy."""
    return PureFunction(function.compute, function.content(), vectorised=True, takes_results=True)


def _has_zero(flags: _Flags, a: Sequence[_Matrix], result: _Matrix, unit: bool = False) -> NDArray:
    """Of triangles, which may have a `unit` diagonal that is not read: whether a number on the diagonal is 0."""
    zero = (np.diagonal(a[0], axis1=-2, axis2=-1) == 0).any(-1)
    return np.zeros_like(zero) if unit else np.asarray(zero)


def _not_found(a: _Matrix, result: _Matrix) -> NDArray:
    """Whether finite matrices have NaN as results."""
    return np.asarray(np.isfinite(a).all((-2, -1)) & np.isnan(result).any(tuple(range(a.ndim - 2, result.ndim))))


def _not_finite(flags: _Flags, operands: Sequence[_Matrix], result: _Matrix) -> NDArray:
    """Whether finite matrices have other results."""
    given = np.logical_and.reduce([np.isfinite(a).all((-2, -1)) for a in operands])
    return np.asarray(given & ~np.isfinite(result).all((-2, -1)))


def _square(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    return ((shapes[0], dtype),)


def _pair(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    return (shapes[0], dtype), (shapes[0], dtype)


def _like_last(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    return ((shapes[-1], dtype),)


def _lu_results(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    m, n = shapes[0]
    return ((n, m), dtype), ((m,), i64), ((minimum(m, n),), i64)


def _qr_results(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    (m, n), (complete,) = shapes[0], flags
    k = m if complete else minimum(m, n)
    return ((m, k), dtype), ((k, n), dtype)


def _eigh_results(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    values = ((shapes[0][0],), real_of(dtype))
    return (values, (shapes[0], dtype)) if flags[0] else (values,)


def _eig_results(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    values = ((shapes[0][0],), complex_of(dtype))
    return (values, (shapes[0], complex_of(dtype))) if flags[0] else (values,)


def _svd_results(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    (m, n), (vectors, full) = shapes[0], flags
    k = minimum(m, n)
    values = ((k,), real_of(dtype))
    return (((m, m if full else k), dtype), values, ((n if full else k, n), dtype)) if vectors else (values,)


def _cholesky(a: _Matrix) -> tuple[_Matrix]:
    factor = np.linalg.cholesky(a)
    return (factor if np.isfinite(factor.diagonal()).all() else np.full_like(factor, np.nan),)


def _lu(a: _Matrix) -> tuple[_Matrix, _Matrix, _Matrix]:
    """By columns: the largest element below is the pivot, and multiples of its row are subtracted from those below."""
    a, (rows, columns) = a.copy(), a.shape
    order, pivots = np.arange(rows), np.arange(min(rows, columns))
    for j in range(min(rows, columns)):
        pivots[j] = pivot = j + int(np.argmax(np.abs(a[j:, j].real) + np.abs(a[j:, j].imag)))
        a[[j, pivot]], order[[j, pivot]] = a[[pivot, j]], order[[pivot, j]]
        if a[j, j] != 0:
            a[j + 1 :, j] /= a[j, j]
        a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
    return a.T, order, pivots


def _lu_solve(transposed: bool, f: _Matrix, order: _Matrix, b: _Matrix) -> tuple[_Matrix]:
    if not transposed:
        return _triangular(False, False, f.T, *_triangular(True, True, f.T, b[order]))
    x = np.empty_like(b)
    x[order] = _triangular(False, True, f, *_triangular(True, False, f, b))[0]
    return (x,)


def _triangular(lower: bool, unit: bool, a: _Matrix, b: _Matrix) -> tuple[_Matrix]:
    """Row by row: NumPy has no such function."""
    x = b.copy()
    for k in range(len(a)) if lower else reversed(range(len(a))):
        known = slice(0, k) if lower else slice(k + 1, None)
        x[k] -= a[k, known] @ x[known]
        x[k] = x[k] if unit else x[k] / a[k, k]
    return (x,)


def _banded(lower: _Matrix, upper: _Matrix, b: _Matrix) -> tuple[_Matrix]:
    """As the C does: each row is kept from the column on that is eliminated next."""
    (below, n), above, x = lower.shape, len(upper) - 1, b.copy()
    width = below + above + 1
    rows, columns = np.zeros((n, width), b.dtype), np.arange(n)
    for row, diagonal in zip(range(-above, below + 1), (*upper, *lower), strict=True):
        j = columns[max(-row, 0) : max(n - row, 0)]
        rows[j + row, np.minimum(j, below - row)] = diagonal[j]
    for k in range(n):
        end = k + below + 1
        pivot = k + int(np.argmax(np.abs(rows[k:end, 0].real) + np.abs(rows[k:end, 0].imag)))
        rows[[k, pivot]], x[[k, pivot]] = rows[[pivot, k]], x[[pivot, k]]
        factors = rows[k + 1 : end, :1] / rows[k, 0]
        rows[k + 1 : end, :-1] = rows[k + 1 : end, 1:] - factors * rows[k, 1:]
        rows[k + 1 : end, -1] = 0
        x[k + 1 : end] -= factors * x[k]
    for k in reversed(range(n)):
        x[k] = (x[k] - rows[k, 1 : n - k] @ x[k + 1 : k + width]) / rows[k, 0]
    return (x,)


def _qr(complete: bool, a: _Matrix) -> Sequence[_Matrix]:
    return np.linalg.qr(a, "complete" if complete else "reduced")


def _finite(a: _Matrix) -> _Matrix:
    """LAPACK does not end for some NaN."""
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError
    return a


def _eigh(vectors: bool, a: _Matrix) -> Sequence[_Matrix]:
    a = _finite(np.tril(a))
    return np.linalg.eigh(a) if vectors else (np.linalg.eigvalsh(a),)


def _eig(vectors: bool, a: _Matrix) -> Sequence[_Matrix]:
    return np.linalg.eig(_finite(a)) if vectors else (np.linalg.eigvals(_finite(a)),)


def _svd(vectors: bool, full: bool, a: _Matrix) -> Sequence[_Matrix]:
    return np.linalg.svd(_finite(a), full) if vectors else (np.linalg.svdvals(_finite(a)),)


def _half(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    length, inner = shapes[0]
    return (((floordiv(length, 2) + 1, inner), complex_of(dtype)),)


def _real(flags: _Flags, shapes: Sequence[Shape], dtype: DType) -> Results:
    (_, inner), (length,) = shapes
    return (((length, inner), real_of(dtype)),)


def _fft(by_size: bool, by_root: bool, inverse: bool, x: _Matrix) -> tuple[_Matrix]:
    return ((np.fft.ifft if inverse else np.fft.fft)(x, axis=-2, norm=_norm(by_size, by_root, inverse)),)


def _rfft(by_size: bool, by_root: bool, x: _Matrix) -> tuple[_Matrix]:
    return (np.fft.rfft(x, axis=-2, norm=_norm(by_size, by_root, False)),)


def _irfft(length: int, by_size: bool, by_root: bool, y: _Matrix) -> tuple[_Matrix]:
    return (np.fft.irfft(y, length, -2, norm=_norm(by_size, by_root, True)),)


def _norm(by_size: bool, by_root: bool, inverse: bool) -> Literal["ortho", "backward", "forward"]:
    """What NumPy calls it."""
    return "ortho" if by_root else "backward" if inverse is by_size else "forward"


def _length(shapes: Sequence[Shape]) -> Index:
    return product(shapes[0])


def _cube(shapes: Sequence[Shape]) -> Index:
    m, n = shapes[0]
    return m * n * minimum(m, n)


def _solved(shapes: Sequence[Shape]) -> Index:
    return shapes[0][0] * product(shapes[-1])


def _of_band(shapes: Sequence[Shape]) -> Index:
    (below, n), (above, _), (_, columns) = shapes
    return n * (below * (below + above) + columns * (2 * below + above))


_SINGULAR = "is singular: harp.numpy.linalg.lstsq and pinv take such, too"
_SINGULAR_BAND = "is singular, or nearly: add a multiple of the identity, as to the row of its main diagonal"
_NOT_FOUND = "has no {} that iterations have found: divide it by its largest number, or take float64"
_NOT_POSITIVE = "is not positive definite: add a multiple of the identity, or take harp.numpy.linalg.eigh"

# fmt: off
MATRICES: dict[MatrixOp, MatrixInfo] = {
    MatrixOp.CHOLESKY: MatrixInfo(
        (2,), _square, (Fraction(1, 3), _cube), _cholesky,
        refuses=_NOT_POSITIVE, has_none=lambda flags, a, result: _not_found(np.tril(a[0]), result),
    ),
    MatrixOp.LU: MatrixInfo((2,), _lu_results, (Fraction(2, 3), _cube), _lu),
    MatrixOp.LU_SOLVE: MatrixInfo(
        (2, 1, 2), _like_last, (Fraction(2), _solved), _lu_solve, refuses=_SINGULAR, has_none=_has_zero
    ),
    MatrixOp.SOLVE_TRIANGULAR: MatrixInfo(
        (2, 2), _like_last, (Fraction(1), _solved), _triangular,
        refuses=_SINGULAR, has_none=lambda flags, a, result: _has_zero(flags, a, result, flags[1]),
    ),
    MatrixOp.SOLVE_BANDED: MatrixInfo(
        (2, 2, 2), _like_last, (Fraction(2), _of_band), _banded, refuses=_SINGULAR_BAND, has_none=_not_finite
    ),
    MatrixOp.QR: MatrixInfo((2,), _qr_results, (Fraction(4), _cube), _qr),
    MatrixOp.EIGH: MatrixInfo(
        (2,), _eigh_results, (Fraction(9), _cube), _eigh,
        refuses=_NOT_FOUND.format("eigenvalues"), has_none=lambda flags, a, result: _not_found(np.tril(a[0]), result),
    ),
    MatrixOp.EIG: MatrixInfo(
        (2,), _eig_results, (Fraction(25), _cube), _eig, refuses=_NOT_FOUND.format("eigenvalues")
    ),
    MatrixOp.SVD: MatrixInfo(
        (2,), _svd_results, (Fraction(14), _cube), _svd, refuses=_NOT_FOUND.format("singular values")
    ),
    MatrixOp.FFT: MatrixInfo((2,), _like_last, (Fraction(5), _length), _fft, is_transform=True),
    MatrixOp.RFFT: MatrixInfo((2,), _half, (Fraction(5, 2), _length), _rfft, is_transform=True),
    MatrixOp.IRFFT: MatrixInfo((2,), _real, (Fraction(5), _length), _irfft, is_transform=True, has_length=True),
    MatrixOp.SCHUR: MatrixInfo(
        (2,), _pair, (Fraction(25), _cube), lambda a: schur(_finite(a)), refuses=_NOT_FOUND.format("Schur form")
    ),
    MatrixOp.HESSENBERG: MatrixInfo((2,), _pair, (Fraction(14, 3), _cube), lambda a: hessenberg(_finite(a))),
}
# fmt: on
