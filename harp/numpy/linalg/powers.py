"""Powers of square matrices, and products of several matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import eye
from harp.numpy.linalg.einsum import einsum
from harp.numpy.linalg.matrices import matrices
from harp.numpy.linalg.products import matmul
from harp.numpy.linalg.systems import inv
from harp.numpy.manipulation import broadcast_to
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_integer
from harp.trace.sizes.size import unify
from harp.trace.source_locations import plural, where


def matrix_power(a: object, n: int) -> Array:
    """The product of n copies of square matrices in the last two axes; for n = 0, the identity.

    For a negative n, of copies of the inverse, which is of floats. Raises ArgumentError where n is no integer,
    ShapeError for matrices that are not square.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.matrix_power(hnp.asarray([[1, 1], [0, 1]]), 3)
    Array([[1, 3],
           [0, 1]])
    """
    array, count = matrices("matrix_power", a), as_integer("n of matrix_power", n)
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


def multi_dot(arrays: Sequence[object]) -> Array:
    """The product of several matrices, in the order of products that takes the fewest operations: NumPy's function.

    The first and the last may be vectors. Raises ArgumentError for fewer than two, ShapeError for sizes that do not
    fit.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.multi_dot([hnp.ones((2, 3)), hnp.ones((3, 4)), hnp.ones(4)])
    Array([12., 12.])
    """
    if not isinstance(arrays, Iterable):
        raise ArgumentError(f"multi_dot takes a list of matrices, not {arrays!r}{where()}")
    given = [as_array(array) for array in arrays]
    if len(given) < 2:
        raise ArgumentError(f"multi_dot takes at least two matrices, not {len(given)}{where()}")
    for number, array in enumerate(given):
        if array.ndim != 2 and not (array.ndim == 1 and number in (0, len(given) - 1)):
            raise ShapeError(
                f"multi_dot takes matrices, and vectors at its ends: array {number} has {plural(array.ndim, 'axes')}"
                f"{where()}"
            )
    for number, (a, b) in enumerate(pairwise(given)):
        columns, rows = node_of(a).shape[-1], node_of(b).shape[0]
        text = f"multi_dot: array {number} has as many columns as array {number + 1} has rows"
        unify(columns, rows, partial(str, text))
    last = len(given) - 1
    labels = [[k, k + 1] for k in range(len(given))]
    labels[0], labels[last] = labels[0][-given[0].ndim :], labels[last][: given[last].ndim]
    ends = [0] * (given[0].ndim - 1) + [last + 1] * (given[last].ndim - 1)
    return einsum(*(part for pair in zip(given, labels, strict=True) for part in pair), ends)
