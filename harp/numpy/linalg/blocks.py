"""Square matrices cut into a few blocks of columns, so that most of the work on them is products of matrices.

A factorisation, or a substitution, goes along the columns of one block by a loop, and from block to block by matrix
products, whose sizes are formulas of the size of the matrix. How many blocks there are is the same for all sizes.
"""

from __future__ import annotations

from harp.numpy.creation import arange
from harp.numpy.elementwise import where
from harp.numpy.padding import pad
from harp.trace.array.array import Array
from harp.trace.index.division import floordiv, maximum
from harp.trace.index.polynomial import ONE
from harp.trace.sizes.size import Size, to_index, wrap

BLOCKS = 4


def block_size(count: Size | int) -> Size | int:
    """How many columns each block has, at least one: all together at least as many as there are."""
    return wrap(maximum(floordiv(to_index(count) + (BLOCKS - 1), BLOCKS), ONE))


def whole_size(size: Size | int) -> Size | int:
    """How many columns all blocks have."""
    return wrap(to_index(size) * BLOCKS)


def rows_of(a: Array, block: int, size: Size | int) -> Array:
    """The rows of one block."""
    return a[block * size : (block + 1) * size]


def with_identity(a: Array, size: Size | int) -> Array:
    """A square matrix, with the identity below and to the right of it, so that it is made of whole blocks."""
    many = whole_size(size)
    more = many - a.shape[0]
    number = arange(many)
    added = (number[:, None] == number) & (number >= a.shape[0])
    return where(added, 1, pad(a, ((0, more), (0, more))))
