"""Systems of linear equations, inverses and determinants, by LU factorisation with partial pivoting.

The derivatives are by M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
differentiation (2008). They use the factors of the function itself, and no derivative goes through the elimination.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError
from harp.numpy.complexes import real
from harp.numpy.creation import arange, eye
from harp.numpy.elementwise import abs, divide, equal, log, where
from harp.numpy.linalg.batches import at_once, in_batch, lapack, operands, require_square
from harp.numpy.linalg.matrices import diagonal
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import by_columns
from harp.numpy.manipulation import broadcast_to, matrix_transpose, moveaxis, reshape
from harp.numpy.reductions import prod
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.scalar.dtypes import i64, real_of
from harp.trace.sizes.size import to_index, unify
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_jvp, custom_vjp


class SlogdetResult(NamedTuple):
    """What `slogdet` returns: the determinant is `sign * exp(logabsdet)`."""

    sign: Array
    logabsdet: Array


def solve(a: object, b: object) -> Array:
    """The x for which `a @ x` is `b`: NumPy's function.

    `a` is a square matrix or a batch of them in the last two axes. `b` is a vector if it has one axis, else a matrix of
    columns or a batch of them, as in NumPy 2; axes in front broadcast. Integers give float64. Gradients cost two
    triangular solutions.

    Raises ShapeError for matrices that are not square and for sizes that do not fit, LinAlgError for a singular matrix;
    in functions that are traced, as by `harp.jit`, there are infinities or NaN instead, as in JAX.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.solve(hnp.asarray([[0.0, 2.0], [1.0, 1.0]]), hnp.asarray([2.0, 3.0]))
    Array([2., 1.])
    """
    (matrix, right), result = operands("solve", a=a, b=b)
    require_square("solve", matrix)
    return astype(by_columns("solve", partial(_solved, matrix), matrix, right), result)


def _solved(own: Array, a: Array, b: Array) -> Array:
    """The solutions for matrices and columns in one batch, of which the matrices are factorised in their own."""
    found = at_once(np.linalg.solve, a, b, refused_by=MatrixOp.LU_SOLVE)
    if found is not None:
        return found  # type: ignore[no-any-return]
    factors, order, _ = lapack(MatrixOp.LU, own)
    factors, order, _ = in_batch((factors, order, b), (2, 1, 2))
    result: Array = _solution(False, a, factors, order, b)
    return result


@partial(custom_vjp, nondiff_argnums=(0,))
def _solution(transposed: bool, a: Array, factors: Array, order: Array, b: Array) -> Any:
    """The solution for the matrix or its transpose, by its factors, which are constants to derivatives."""
    return lapack(MatrixOp.LU_SOLVE, factors, order, b, flags=(transposed,))[0]


def _forward(transposed: bool, a: Array, factors: Array, order: Array, b: Array) -> tuple[Array, tuple[Array, ...]]:
    x: Array = _solution(transposed, a, factors, order, b)
    return x, (a, factors, order, x)


def _backward(transposed: bool, kept: tuple[Array, ...], cotangent: Array) -> tuple[Array | None, ...]:
    a, factors, order, x = kept
    of_right: Array = _solution(not transposed, a, factors, order, cotangent)
    left, right = (x, of_right) if transposed else (of_right, x)
    return -matmul(left, matrix_transpose(right)), None, None, of_right


_solution.defvjp(_forward, _backward)


def tensorsolve(a: object, b: object, axes: int | Sequence[int] | None = None) -> Array:
    """The x for which `tensordot(a, x, x.ndim)` is `b`: NumPy's function.

    `a` has the axes of `b`, and then those of the result, as many elements as these; `axes` of `a` are moved to its end
    first. Raises ShapeError for sizes that do not fit, AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.tensorsolve(2 * hnp.eye(6).reshape(2, 3, 6), hnp.ones((2, 3)))
    Array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5])
    """
    tensor, right = as_array(a), as_array(b)
    if axes is not None:
        axes = (axes,) if isinstance(axes, int) else tuple(axes)
        tensor = moveaxis(tensor, axes, tuple(range(-len(axes), 0)))
    own = tensor.shape[right.ndim :]
    unify(to_index(right.size), to_index(math.prod(own)), lambda: "tensorsolve: b has as many elements as the result")
    matrix = reshape(tensor, (right.size, math.prod(own)))
    return reshape(solve(matrix, reshape(right, (-1,))), own)


def tensorinv(a: object, ind: int = 2) -> Array:
    """The inverse of `tensordot(a, x, ...)` over the axes behind the first `ind`: NumPy's function.

    Its axes are these, and then the first `ind`. Raises ShapeError for sizes that do not fit, ArgumentError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.tensorinv(2 * hnp.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    tensor, count = as_array(a), as_integer("ind of tensorinv", ind)
    if count <= 0:
        raise ArgumentError(f"ind of tensorinv is at least 1, not {count}{place()}")
    rows, columns = tensor.shape[:count], tensor.shape[count:]
    sizes = (to_index(math.prod(rows)), to_index(math.prod(columns)))
    unify(*sizes, lambda: f"tensorinv: the first {count} axes have as many elements as the others")
    return reshape(inv(reshape(tensor, (math.prod(rows), math.prod(columns)))), (*columns, *rows))


def inv(a: object) -> Array:
    """The inverse of a square matrix, or of each of a batch in the last two axes: NumPy's function.

    Integers give float64. To solve equations write `solve`, which is faster and more accurate. Raises ShapeError for
    matrices that are not square, LinAlgError for a singular one; in functions that are traced, as by `harp.jit`, there
    are infinities or NaN instead, as in JAX.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.inv(hnp.asarray([[1.0, 2.0], [0.0, 4.0]]))
    Array([[ 1.  , -0.5 ],
           [ 0.  ,  0.25]])
    """
    (matrix,), result = operands("inv", a=a)
    require_square("inv", matrix)
    return astype(inverse(True, matrix), result)


@partial(custom_jvp, nondiff_argnums=(0,))
def inverse(refuses: bool, a: Array) -> Any:
    """The inverses of a batch in the dtype in which it is computed, those of singular matrices not finite if they are
    not to be refused."""
    found = at_once(np.linalg.inv, a, refused_by=MatrixOp.LU_SOLVE if refuses else None)
    if found is not None:
        return found
    factors, order, _ = lapack(MatrixOp.LU, a)
    identity = broadcast_to(eye(a.shape[-1], dtype=a.kind), a.shape)
    return lapack(MatrixOp.LU_SOLVE, factors, order, identity, flags=(False,), refuses=refuses)[0]


@inverse.defjvp
def _inverse_tangent(refuses: bool, primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Of x = inv(a): dx = -x @ da @ x."""
    x: Array = inverse(refuses, *primals)
    return x, -matmul(matmul(x, tangents[0]), x)


def slogdet(a: object) -> SlogdetResult:
    """The sign of the determinant of a square matrix and the logarithm of its magnitude: NumPy's function.

    For a batch in the last two axes, both for each matrix. Of a singular matrix the sign is 0, and the logarithm is
    minus infinity, with a gradient that is not finite. Of a complex matrix the sign is a number of magnitude 1.
    Integers give float64. Raises ShapeError for matrices that are not square.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.slogdet(hnp.asarray([[0.0, 1.0], [1.0, 0.0]]))
    SlogdetResult(sign=Array(-1.), logabsdet=Array(0.))
    """
    (matrix,), result = operands("slogdet", a=a)
    require_square("slogdet", matrix)
    sign, logarithm = _sign_and_logarithm(matrix)
    return SlogdetResult(astype(sign, result), astype(logarithm, real_of(result)))


@custom_jvp
def _sign_and_logarithm(a: Array) -> Any:
    found = at_once(np.linalg.slogdet, a)
    if found is not None:
        return found
    factors, _, pivots = lapack(MatrixOp.LU, a)
    diagonals = diagonal(factors)
    sizes = abs(diagonals)
    signs = where(equal(sizes, 0), 0, divide(diagonals, where(equal(sizes, 0), 1, sizes)))
    return prod(signs, -1) * _parity(pivots, a), sum_(log(sizes), -1)


@_sign_and_logarithm.defjvp
def _logarithm_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Any, Any]:
    """Of log det a: sum(inv(a).T * da), of which the real part changes the magnitude, and the rest the sign."""
    sign, logarithm = _sign_and_logarithm(*primals)
    total = sum_(matrix_transpose(inverse(False, *primals)) * tangents[0], (-2, -1))
    size = real(total)
    return (sign, logarithm), (sign * (total - size), size)


def det(a: object) -> Array:
    """The determinant of a square matrix, or of each of a batch in the last two axes: NumPy's function.

    Integers give float64. Large determinants overflow: write `slogdet`. The gradient is that of `slogdet` times the
    determinant: for a singular matrix it is NaN. Raises ShapeError for matrices that are not square.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.det(hnp.asarray([[2.0, 1.0], [4.0, 3.0]]))
    Array(2.)
    """
    (matrix,), result = operands("det", a=a)
    require_square("det", matrix)
    return astype(_determinant(matrix), result)


@custom_jvp
def _determinant(a: Array) -> Any:
    found = at_once(np.linalg.det, a)
    if found is not None:
        return found
    factors, _, pivots = lapack(MatrixOp.LU, a)
    return prod(diagonal(factors), -1) * _parity(pivots, a)


@_determinant.defjvp
def _determinant_tangent(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """Of d = det(a): d * sum(inv(a).T * da)."""
    determinant: Array = _determinant(*primals)
    return determinant, determinant * sum_(matrix_transpose(inverse(False, *primals)) * tangents[0], (-2, -1))


def _parity(pivots: Array, like: Array) -> Array:
    """1 or -1: the determinant of the permutation, by the number of rows that were exchanged with another one."""
    exchanged = astype(pivots != arange(pivots.shape[-1]), i64)
    return astype(1 - 2 * (sum_(exchanged, -1) % 2), like.kind)
