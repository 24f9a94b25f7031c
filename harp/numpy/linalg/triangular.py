"""Systems of linear equations whose matrices are triangular."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import conj
from harp.numpy.creation import tril, triu
from harp.numpy.linalg.batches import in_batch, lapack, operands, require_square
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import matrix_transpose
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where
from harp.transforms.autodiff.custom import custom_vjp

# What SciPy's `trans` may be: whether the matrix is transposed, and whether it is conjugated.
_PLAIN, _TRANSPOSED, _ADJOINT = (False, False), (True, False), (True, True)
_TRANS = {0: _PLAIN, "N": _PLAIN, 1: _TRANSPOSED, "T": _TRANSPOSED, 2: _ADJOINT, "C": _ADJOINT}


def solve_triangular(
    a: object, b: object, *, trans: int | str = 0, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """The x for which `a @ x` is `b`, where `a` is upper or, with `lower`, lower triangular: SciPy's function.

    `a` is a matrix or a batch of them, of which the other triangle is not read, nor, with `unit_diagonal`, the
    diagonal, which is ones then. `b` is a vector if it has one axis, else a matrix of columns or a batch of them; axes
    in front broadcast. With `trans` 1 or "T" `a` is transposed, with 2 or "C" conjugated, too. Integers give float64.
    Gradients are by M. Giles, Collected matrix derivative results for forward and reverse mode algorithmic
    differentiation (2008): another such solution.

    Raises ShapeError for matrices that are not square and for sizes that do not fit, ArgumentError for other `trans`,
    LinAlgError for a zero on the diagonal; in functions that are traced, there are infinities or NaN instead.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.solve_triangular(hnp.asarray([[2.0, 0.0], [1.0, 1.0]]), hnp.asarray([2.0, 3.0]), lower=True)
    Array([1., 2.])
    """
    if isinstance(trans, bool) or not isinstance(trans, (int, str)) or trans not in _TRANS:
        raise ArgumentError(f"trans of solve_triangular is 0, 1, 2, 'N', 'T' or 'C', not {trans!r}{where()}")
    (matrix, right), result = operands("solve_triangular", a=a, b=b)
    require_square("solve_triangular", matrix)
    transposed, conjugated = _TRANS[trans]
    matrix = matrix_transpose(matrix) if transposed else matrix
    matrix = conj(matrix) if conjugated else matrix
    solve = partial(substituted, lower is not transposed, unit_diagonal)
    return astype(by_columns("solve_triangular", solve, matrix, right), result)


def by_columns(name: str, solve: Callable[[Array, Array], Array], a: Array, b: Array) -> Array:
    """The solution for a vector, if `b` has one axis, or for all columns of matrices."""
    if b.ndim == 0:
        raise ShapeError(f"argument b of {name} has no axes; it is a vector, or a matrix of columns{where()}")
    columns = b[:, None] if b.ndim == 1 else b
    many, given = node_of(a).shape[-1], node_of(columns).shape[-2]
    unify(many, given, lambda: f"{name}: the size of a and axis {max(b.ndim - 2, 0)} of b")
    result = solve(*in_batch((a, columns), (2, 2)))
    return result[..., 0] if b.ndim == 1 else result


def substituted(lower: bool, unit: bool, a: Array, b: Array) -> Array:
    """The solutions for batches of the same axes."""
    result: Array = _substituted(lower, unit, a, b)
    return result


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _substituted(lower: bool, unit: bool, a: Array, b: Array) -> Array:
    (x,) = lapack(MatrixOp.SOLVE_TRIANGULAR, a, b, flags=(lower, unit))
    return x


def _forward(lower: bool, unit: bool, a: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
    x = substituted(lower, unit, a, b)
    return x, (a, x)


def _backward(lower: bool, unit: bool, kept: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    a, x = kept
    of_right = substituted(not lower, unit, matrix_transpose(a), cotangent)
    triangle = tril if lower else triu
    of_matrix = triangle(-matmul(of_right, matrix_transpose(x)), (-1 if lower else 1) if unit else 0)
    return of_matrix, of_right


_substituted.defvjp(_forward, _backward)
