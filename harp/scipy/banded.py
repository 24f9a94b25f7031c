"""SciPy's systems of equations whose matrices have few diagonals: each is a row, with its elements in their columns.

    ab[u + i - j, j] = a[i, j]        of a Hermitian matrix those above only, or with `lower`, ab[i - j, j] = a[i, j]

By elimination with partial pivoting, which takes n*l*(l + u) operations. Derivatives are by M. Giles, Collected matrix
derivative results for forward and reverse mode algorithmic differentiation (2008): solutions for the transpose.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from harp.errors import ArgumentError, LinAlgError, ShapeError
from harp.numpy.complexes import conj, real
from harp.numpy.creation import zeros
from harp.numpy.elementwise import sqrt
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import lapack, operands
from harp.numpy.linalg.triangular import by_columns
from harp.numpy.manipulation import moveaxis
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import astype
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_flag, as_integer, emit
from harp.trace.graph.matrix_functions import MATRICES, MatrixOp
from harp.trace.graph.node import positions
from harp.trace.graph.view import view
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.expr import const
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import require_at_least_one, resolve, resolve_all, to_index, unify
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.control.scan import scan


def solve_banded(
    l_and_u: tuple[int, int],
    ab: object,
    b: object,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x for which `a @ x` is `b`, for a matrix with l diagonals below the main one, and u above it.

    `ab` has them as l + u + 1 rows: `ab[u + i - j, j]` is `a[i, j]`. `b` is a vector if it has one axis, else a matrix
    of columns; axes in front broadcast. Raises ShapeError for sizes that do not fit, ArgumentError for l and u that are
    no numbers of diagonals, LinAlgError for a singular matrix; in functions that are traced, as by `harp.jit`, there
    are infinities or NaN instead.

    >>> import numpy as np
    >>> solve_banded((1, 1), np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0], [1.0, 1.0, 0.0]]), np.array([3.0, 4.0, 3.0]))
    Array([1., 1., 1.])
    """
    if not isinstance(l_and_u, tuple) or len(l_and_u) != 2:
        raise ArgumentError(f"l_and_u of solve_banded is a pair of integers, not {l_and_u!r}{place()}")
    below, above = (as_integer(f"{name} of solve_banded", k) for name, k in zip("lu", l_and_u, strict=True))
    if below < 0 or above < 0:
        raise ArgumentError(f"l_and_u of solve_banded counts diagonals, and is {l_and_u!r}{place()}")
    (diagonals, right), result = operands("solve_banded", ab=ab, b=b)
    _require_rows("solve_banded", diagonals)
    rows = as_index(below + above + 1)
    unify(node_of(diagonals).shape[-2], rows, lambda: f"solve_banded: ab has l + u + 1 = {rows} rows")
    return astype(by_columns("solve_banded", partial(_solved, above), diagonals, right), result)


def _require_rows(name: str, array: Array, label: str = "ab") -> None:
    if array.ndim < 2:
        raise ShapeError(f"{label} of {name} has a row for each diagonal, not {plural(array.ndim, 'axes')}{place()}")
    require_at_least_one(resolve(node_of(array).shape[-2]), lambda: f"{name} needs at least one row of {label}")


def _solved(above: Any, ab: Array, b: Array) -> Array:
    """The solutions for batches of the same axes."""
    result: Array = _solution(above, ab, b)
    return result


@partial(custom_vjp, nondiff_argnums=(0,))
def _solution(above: Any, ab: Array, b: Array) -> Array:
    return lapack(MatrixOp.SOLVE_BANDED, ab[..., above + 1 :, :], ab[..., : above + 1, :], b)[0]


def _forward(above: Any, ab: Array, b: Array) -> tuple[Array, tuple[Array, Array]]:
    x = _solved(above, ab, b)
    return x, (ab, x)


def _backward(above: Any, kept: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    ab, x = kept
    of_right = _solved(ab.shape[-2] - 1 - above, transposed(above, ab), cotangent)
    *batch, rows, n = resolve_all(node_of(ab).shape)
    shape = (*batch, rows, n, node_of(x).shape[-1])
    loops = positions(shape)
    row = loops[-2] + loops[-3] - to_index(above)
    along = _where_inside(of_right, shape, (*loops[:-3], row, loops[-1]), row, n)
    return -sum_(along * x[..., None, :, :], -1), of_right


_solution.defvjp(_forward, _backward)


def transposed(above: Any, ab: Array) -> Array:
    """The diagonals of the transposes, of which as many are above as were below."""
    shape = resolve_all(node_of(ab).shape)
    *batch, row, j = positions(shape)
    column = j + to_index(above) + row + 1 - shape[-2]
    return _where_inside(ab, shape, (*batch, shape[-2] - 1 - row, column), column, shape[-1])


def _where_inside(a: Array, shape: tuple[Index, ...], index: tuple[Index, ...], place: Index, n: Index) -> Array:
    """The elements at an index, and zeros where one of its positions is outside."""
    return emit(view(node_of(a), shape, index, (place, n - 1 - place), const(0, a.kind)))


# -- Hermitian matrices --------------------------------------------------------------------------------------------


def solveh_banded(
    ab: object,
    b: object,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """The x for which `a @ x` is `b`, for a Hermitian matrix, of which `ab` has the main diagonal and those above it,
    or with `lower` those below; the matrix need not be positive definite. See `solve_banded`.

    >>> import numpy as np
    >>> solveh_banded(np.array([[2.0, 2.0, 2.0], [1.0, 1.0, 0.0]]), np.array([3.0, 4.0, 3.0]), lower=True)
    Array([1., 1., 1.])
    """
    (diagonals, right), result = operands("solveh_banded", ab=ab, b=b)
    _require_rows("solveh_banded", diagonals)
    one, rows = as_flag("lower of solveh_banded", lower), diagonals.shape[-2]
    if one:
        whole = concatenate((_adjoint(0, diagonals)[..., :-1, :], diagonals), axis=-2)
    else:
        whole = concatenate((diagonals, _adjoint(rows - 1, diagonals)[..., 1:, :]), axis=-2)
    return astype(by_columns("solveh_banded", partial(_solved, rows - 1), whole, right), result)


def _adjoint(above: Any, ab: Array) -> Array:
    return conj(transposed(above, ab))


def cholesky_banded(ab: object, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Array:
    """The diagonals of the upper triangular U with `U.mT.conj() @ U` equal to a Hermitian matrix, given those of this
    matrix; with `lower` of the L with `L @ L.mT.conj()`. See `solveh_banded`.

    Where SciPy leaves what is no element as it was, zeros. Raises LinAlgError for a matrix that is not positive
    definite; in functions that are traced there is NaN instead.

    >>> import numpy as np
    >>> cholesky_banded(np.array([[0.0, 2.0], [4.0, 5.0]]))
    Array([[0., 1.],
           [2., 2.]])
    """
    (diagonals,), result = operands("cholesky_banded", ab=ab)
    _require_rows("cholesky_banded", diagonals)
    one = as_flag("lower of cholesky_banded", lower)
    below = _adjoint(diagonals.shape[-2] - 1, _adjoint(0, diagonals) if one else diagonals)
    factor = _factor(moveaxis(below, -1, 0))
    if current() is None and np.any(np.isfinite(below).all((-2, -1)) & ~np.isfinite(factor).all((-2, -1))):
        raise LinAlgError(f"the matrix {MATRICES[MatrixOp.CHOLESKY].refuses}{place()}")
    return astype(factor if one else _adjoint(0, factor), result)


def _factor(columns: Array) -> Array:
    """The diagonals of the lower factor, column by column, given those of the matrix: what a column takes away from the
    next ones is carried, from the next one on."""

    def step(carried: Array, column: Array) -> tuple[Array, Array]:
        column = column - carried[..., 0, :]
        column = column / sqrt(real(column[..., 0, None]))
        shifted = _shifted(column)
        taken = carried + shifted * conj(column)[..., :, None]
        return concatenate((taken[..., 1:, :], 0 * taken[..., 0, None, :]), axis=-2), column

    start = zeros((*columns.shape[1:], columns.shape[-1]), columns.kind)
    return moveaxis(scan(step, start, columns)[1], 0, -1)


def _shifted(column: Array) -> Array:
    """In row k the elements from that one on, and zeros."""
    (*batch, size) = resolve_all(node_of(column).shape)
    shape = (*batch, size, size)
    loops = positions(shape)
    index = loops[-1] + loops[-2]
    return _where_inside(column, shape, (*loops[:-2], index), index, size)


def cho_solve_banded(
    cb_and_lower: tuple[object, bool], b: object, overwrite_b: bool = False, check_finite: bool = True
) -> Array:
    """The x for which `a @ x` is `b`, given `cholesky_banded(a, lower=lower)` and `lower`. See `solve_banded`.

    >>> import numpy as np
    >>> cho_solve_banded((np.array([[2.0, 4.0]]), False), np.array([8.0, 16.0]))
    Array([2., 1.])
    """
    (factor, right), result = operands("cho_solve_banded", cb=cb_and_lower[0], b=b)
    _require_rows("cho_solve_banded", factor, "cb")
    last = factor.shape[-2] - 1
    below = factor if cb_and_lower[1] else _adjoint(last, factor)

    def solve(a: Array, columns: Array) -> Array:
        return _solved(last, _adjoint(0, a), _solved(0, a, columns))

    return astype(by_columns("cho_solve_banded", solve, below, right), result)
