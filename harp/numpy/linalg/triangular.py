"""Systems of linear equations whose matrices are triangular."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import conj
from harp.numpy.creation import arange, tril, triu, zeros_like
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import for_each, in_batch, operands, require_square
from harp.numpy.linalg.blocks import BLOCKS, block_size, rows_of, whole_size, with_identity
from harp.numpy.linalg.products import matmul
from harp.numpy.manipulation import matrix_transpose
from harp.numpy.padding import pad
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import contiguous
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.control.scan import fori_loop

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
    Where the diagonal has a zero, the result has infinities or NaN. Gradients are by M. Giles, Collected matrix
    derivative results for forward and reverse mode algorithmic differentiation (2008): another such solution.

    Raises ShapeError for matrices that are not square and for sizes that do not fit, ArgumentError for other `trans`.

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
def _substituted(lower: bool, unit: bool, a: Array, b: Array) -> Any:
    return for_each(partial(substitute, lower, unit), partial(substitute_rows, lower, unit), (a, b), (2, 2))


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


def substitute(lower: bool, unit: bool, a: Array, b: Array) -> Array:
    """The solution of one system, from block to block, and in each from row to row."""
    count = a.shape[0]
    size = block_size(count)
    a = with_identity(a, size)
    b = pad(b, ((0, whole_size(size) - count), (0, 0)))
    solved: dict[int, Array] = {}
    for block in range(BLOCKS) if lower else reversed(range(BLOCKS)):
        rows, right = rows_of(a, block, size), rows_of(b, block, size)
        for before, x in solved.items():
            right = right - matmul(rows[:, before * size : (before + 1) * size], x)
        solved[block] = substitute_rows(lower, unit, rows[:, block * size : (block + 1) * size], right)
    return concatenate([solved[block] for block in range(BLOCKS)], axis=0)[:count]


def substitute_rows(lower: bool, unit: bool, a: Array, b: Array) -> Array:
    """The solution of one block. Rows that are not solved yet are zeros."""
    count = a.shape[0]
    number = arange(count)

    def step(i: Array, x: Array) -> Array:
        k = i if lower else count - 1 - i
        solved = number < k if lower else number > k
        row = b[k] - matmul(choose(solved, a[k], 0), x)
        return x.at[k].set(contiguous(row if unit else row / a[k, k]))

    result: Array = fori_loop(0, count, step, zeros_like(b))
    return result
