"""Powers of square matrices."""

from __future__ import annotations

from harp.numpy.creation import eye
from harp.numpy.linalg.matrices import matrices
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.systems import inv
from harp.numpy.manipulation import broadcast_to
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_integer
from harp.trace.sizes.size import unify


def matrix_power(x: object, n: int, /) -> Array:
    """The product of n copies of square matrices in the last two axes; for n = 0, the identity.

    For a negative n, of copies of the inverse, which is of floats. Raises ArgumentError where n is no integer,
    ShapeError for matrices that are not square.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.matrix_power(hnp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]])
    """
    array, count = matrices("matrix_power", x), as_integer("n of matrix_power", n)
    shape = node_of(array).shape
    unify(shape[-2], shape[-1], lambda: "matrix_power takes square matrices")
    if count == 0:
        return broadcast_to(eye(array.shape[-1], dtype=array.kind), array.shape)
    square, result = inv(array) if count < 0 else array, None
    count = abs(count)
    while count:
        if count & 1:
            result = square if result is None else matmul(result, square)
        count >>= 1
        square = matmul(square, square) if count else square
    assert result is not None
    return result
