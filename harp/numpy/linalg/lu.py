"""The LU factorisation with partial pivoting: rows in some order are a unit lower times an upper triangular matrix."""

from __future__ import annotations

from typing import Any

from harp.numpy.creation import arange, zeros, zeros_like
from harp.numpy.elementwise import abs, equal, where
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import for_each
from harp.numpy.linalg.blocks import BLOCKS, below_each_other, block_size, columns_of, with_identity
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import substitute_rows
from harp.numpy.reductions import argmax
from harp.trace.array.array import Array
from harp.trace.array.primitives import contiguous
from harp.trace.scalar.dtypes import bool_, i64
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.scan import fori_loop


def lu(a: Array) -> tuple[Array, Array]:
    """Both factors of each matrix in one, without the ones, and the order of its rows. No derivative flows."""
    factors, order = for_each(_factorised, (stop_gradient(a),), (2,))
    return factors, order


def _factorised(a: Array) -> tuple[Array, Array]:
    """The factors of one matrix. Rows stay where they are until the end: what a pivot is, is remembered."""
    count = a.shape[0]
    size = block_size(count)
    a = with_identity(a, size)
    chosen = zeros(a.shape[0], bool_)
    lowers: list[Array] = []
    uppers: list[Array] = []
    pivots: list[Array] = []
    for block in range(BLOCKS):
        rest = columns_of(a, block, size)
        above: list[Array] = []
        for lower, pivot in zip(lowers, pivots, strict=True):
            above.append(substitute_rows(True, True, lower[pivot], rest[pivot]))
            rest = rest - matmul(lower, above[-1])
        lower, upper, chosen, pivot = _columns(rest, chosen)
        lowers.append(lower)
        pivots.append(pivot)
        uppers.append(below_each_other([*above, upper], size))
    order = concatenate(pivots)
    lower, upper = concatenate(lowers, axis=1)[order], concatenate(uppers, axis=1)
    number = arange(a.shape[0])
    factors = where(number[:, None] > number, lower, upper)
    return factors[:count, :count], order[:count]


def _columns(a: Array, chosen: Array) -> tuple[Array, Array, Array, Array]:
    """The factors of a block of columns, in which some rows are chosen before: the lower one with its rows where they
    were, the upper one, the rows that are chosen then, and the pivots."""
    rows, columns = a.shape
    row_number, column_number = arange(rows), arange(columns)

    def step(j: Array, state: Any) -> Any:
        lower, upper, chosen, pivots = state
        column = contiguous(a[:, j] - matmul(lower, upper[:, j]))
        pivot = argmax(where(chosen, -1, abs(column)))
        row = where(column_number >= j, a[pivot] - matmul(lower[pivot], upper), 0)
        is_pivot = row_number == pivot
        chosen = chosen | is_pivot
        divisor = where(equal(column[pivot], 0), 1, column[pivot])
        column = where(chosen, where(is_pivot, 1, 0), column / divisor)
        return lower.at[:, j].set(column), upper.at[j].set(row), chosen, pivots.at[j].set(pivot)

    start = zeros_like(a), zeros((columns, columns), a.kind), chosen, zeros(columns, i64)
    lower, upper, chosen, pivots = fori_loop(0, columns, step, start)
    return lower, upper, chosen, pivots
