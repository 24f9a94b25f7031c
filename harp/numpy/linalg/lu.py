"""The LU factorisation with partial pivoting: rows in some order are a unit lower times an upper triangular matrix."""

from __future__ import annotations

from typing import Any

from harp.numpy.creation import arange
from harp.numpy.elementwise import abs, equal, where
from harp.numpy.joining import concatenate
from harp.numpy.linalg.batches import for_each
from harp.numpy.linalg.blocks import BLOCKS, block_size, with_identity
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.triangular import substitute_rows
from harp.numpy.reductions import first
from harp.trace.array.array import Array
from harp.trace.array.primitives import contiguous
from harp.trace.scalar.ops import Reduce
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.scan import fori_loop


def lu(a: Array) -> tuple[Array, Array]:
    """Both factors of each matrix in one, without the ones, and the order of its rows. No derivative flows."""
    factors, order = for_each(_in_blocks, _eliminated, (stop_gradient(a),), (2,))
    return factors, order


def _in_blocks(a: Array) -> tuple[Array, Array]:
    """The factors of one matrix, from block to block of columns.

    A block of columns is factorised, the rows of the others are brought in the same order, and what the block explains
    of them is subtracted. `left` are the columns of the lower factor for the rows that are left.
    """
    count = a.shape[0]
    size = block_size(count)
    rest = with_identity(a, size)
    order = arange(rest.shape[0])
    left = rest[:, :0]
    rows: list[Array] = []
    orders: list[Array] = []
    for _ in range(BLOCKS):
        block, turned = _eliminated(rest[:, :size])
        order, left, right = order[turned], left[turned], rest[:, size:][turned]
        upper = substitute_rows(True, True, block[:size], right[:size])
        rows.append(concatenate([left[:size], block[:size], upper], axis=1))
        orders.append(order[:size])
        order, left = order[size:], concatenate([left[size:], block[size:]], axis=1)
        rest = right[size:] - matmul(block[size:], upper)
    return concatenate(rows)[:count, :count], concatenate(orders)[:count]


def _eliminated(a: Array) -> tuple[Array, Array]:
    """The factors of a matrix with at least as many rows as columns: of each column the largest element below is the
    pivot, whose row is exchanged, and multiples of that row are subtracted from those below."""
    rows, columns = a.shape
    number = arange(columns)

    def step(j: Array, state: Any) -> Any:
        pivot = first(Reduce.MAX, contiguous(where(arange(rows) >= j, abs(state[0][:, j]), -1)))
        a, order = (_exchanged(array, j, pivot) for array in state)
        divisor = where(equal(a[j, j], 0), 1, a[j, j])

        def below(i: Array, a: Array) -> Array:
            factor = a[i, j] / divisor
            left = where(equal(number, j), factor, a[i])
            return a.at[i].set(where(number > j, a[i] - factor * a[j], left))

        return fori_loop(j + 1, rows, below, a), order

    factors, order = fori_loop(0, columns, step, (a, arange(rows)))
    return factors, order


def _exchanged(a: Array, i: Array, j: Array) -> Array:
    """The array with two elements, or rows, exchanged."""
    one, other = contiguous(a[i]), contiguous(a[j])
    return a.at[j].set(one).at[i].set(other)
