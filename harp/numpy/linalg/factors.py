"""Factorisations of symmetric matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from harp.numpy.creation import arange, full_like, tril, zeros
from harp.numpy.elementwise import equal, sqrt, where
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import at_once, for_each, operands, require_real, require_square
from harp.numpy.linalg.blocks import BLOCKS, block_size, with_identity
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import substituted
from harp.numpy.manipulation import matrix_transpose
from harp.numpy.reductions import all as all_
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import contiguous
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.control.scan import fori_loop


def cholesky(a: object, /, *, upper: bool = False) -> Array:
    """The lower triangular L with `L @ L.T` equal to `a`, or with `upper` its transpose: NumPy's function.

    `a` is a symmetric positive definite matrix, or a batch of them in the last two axes. As in NumPy, only its lower
    or, with `upper`, its upper triangle is read. Integers give float64. Where a matrix is not positive definite, all of
    its factor is NaN, as in JAX; NumPy raises. The gradient, by I. Murray, Differentiation of the Cholesky
    decomposition (2016), is that among symmetric matrices, and symmetric itself, as in JAX.

    Raises ShapeError for matrices that are not square, DTypeError for complex ones.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.cholesky(hnp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]])
    """
    (matrix,), result = operands("cholesky", a=a)
    require_real("cholesky", matrix)
    require_square("cholesky", matrix)
    factor = astype(_factor(matrix_transpose(matrix) if upper else matrix), result)
    return matrix_transpose(factor) if upper else factor


@custom_jvp
def _factor(a: Array) -> Any:
    found = at_once(np.linalg.cholesky, a)
    return for_each(_in_blocks, _eliminated, (a,), (2,)) if found is None else found


@_factor.defjvp
def _tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Of a = l @ l.T: dl = l @ phi(inv(l) @ da @ inv(l).T), where phi is the lower triangle with half the diagonal."""
    (a,), (tangent,) = primals, tangents
    factor: Array = _factor(a)
    symmetric = (tangent + matrix_transpose(tangent)) / 2
    inner = substituted(True, False, factor, matrix_transpose(substituted(True, False, factor, symmetric)))
    return factor, matmul(factor, (tril(inner) + tril(inner, -1)) / 2)


def _in_blocks(a: Array) -> Array:
    """The lower factor of one matrix, from block to block of columns, or NaN."""
    count = a.shape[0]
    size = block_size(count)
    rest = with_identity(a, size)
    columns: list[Array] = []
    for block in range(BLOCKS):
        column = _columns(rest[:, :size])
        columns.append(concatenate([zeros((block * size, size), a.kind), column], axis=0))
        left = column[size:]
        rest = rest[size:, size:] - matmul(left, matrix_transpose(left))
    return _or_nan(concatenate(columns, axis=1)[:count, :count])


def _eliminated(a: Array) -> Array:
    """The same without blocks."""
    return _or_nan(_columns(a))


def _or_nan(factor: Array) -> Array:
    return where(all_(diagonal(factor) > 0), factor, full_like(factor, np.nan))


def _columns(a: Array) -> Array:
    """The factor of the first rows of a block of columns, and below it the rows that belong to it: a multiple of each
    column is subtracted from those behind it, row by row."""
    rows, columns = a.shape
    number = arange(columns)

    def step(j: Array, a: Array) -> Array:
        root = contiguous(a[:, j] / sqrt(a[j, j]))

        def below(i: Array, a: Array) -> Array:
            left = where(equal(number, j), root[i], a[i])
            return a.at[i].set(where(number > j, a[i] - root[i] * root[:columns], left))

        return fori_loop(j, rows, below, a)

    result: Array = fori_loop(0, columns, step, a)
    return tril(result)
