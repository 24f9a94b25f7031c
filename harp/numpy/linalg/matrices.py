"""Vectors and matrices of the last axes: products, and diagonals, as the array API standard has them."""

from __future__ import annotations

from harp.errors import ShapeError
from harp.numpy.complexes import conj
from harp.numpy.linalg import products
from harp.numpy.linalg.pairs import contract
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import moveaxis
from harp.numpy.reductions import sum as sum_
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, broadcast_shapes, normalize_axis
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import DTypeLike
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where


def vecdot(x1: object, x2: object, *, axis: int = -1) -> Array:
    """The sum of products along an axis of both, which the others broadcast around. `axis` counts from the end.

    Of complex numbers those of `x1` are conjugated. The dtype is the common one. Raises ShapeError for sizes that do
    not fit, AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.vecdot(hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), hnp.asarray([1.0, 1.0]))
    Array([3., 7.])
    """
    left, right = promoted((conj(x1), x2))
    left, right = (moveaxis(a, normalize_axis(axis, a.ndim), -1) for a in (left, right))
    x, y = node_of(left), node_of(right)
    inner = unify(x.shape[-1], y.shape[-1], lambda: f"vecdot: axis {axis} of both operands")
    batch = broadcast_shapes([x.shape[:-1], y.shape[:-1]])
    names = tuple(f"batch{k}" for k in range(len(batch)))
    sizes = dict(zip(names, batch, strict=True)) | {"inner": inner}
    labels = [(*names[len(names) - a.ndim + 1 :], "inner") for a in (left, right)]
    return contract((x, y), labels, sizes, names)


def cross(x1: object, x2: object, *, axis: int = -1) -> Array:
    """The vector product along an axis of three elements, which the others broadcast around.

    Raises ShapeError for other sizes, AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.cross(hnp.asarray([1, 0, 0]), hnp.asarray([0, 1, 0]))
    Array([0, 0, 1])
    """
    for array in map(as_array, (x1, x2)):
        along = normalize_axis(axis, array.ndim)
        unify(node_of(array).shape[along], as_index(3), lambda: f"cross takes three elements along axis {axis}")
    return products.cross(x1, x2, axis=axis)


def outer(x1: object, x2: object) -> Array:
    """All products of an element of one vector and one of the other: a matrix. Raises ShapeError for other ranks.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.outer(hnp.asarray([1, 2]), hnp.asarray([10, 20]))
    Array([[10, 20],
           [20, 40]])
    """
    left, right = as_array(x1), as_array(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(f"outer takes two vectors, not arrays with {left.ndim} and {right.ndim} axes{where()}")
    return products.outer(left, right)


def diagonal(x: object, *, offset: int = 0) -> Array:
    """The diagonal of the last two axes, as the last axis; `offset` counts to the right. Raises ShapeError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.diagonal(hnp.asarray([[1, 2], [3, 4]]))
    Array([1, 4])
    """
    return products.diagonal(matrices("diagonal", x), offset, -2, -1)


def trace(x: object, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of the diagonal of the last two axes; integers are added in 64 bits. Raises ShapeError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.trace(hnp.ones((5, 3, 3)))
    Array([3., 3., 3., 3., 3.])
    """
    return sum_(diagonal(matrices("trace", x), offset=offset), -1, dtype)


def matrices(name: str, x: object) -> Array:
    """The operand, which has at least two axes. Raises ShapeError."""
    array = as_array(x)
    if array.ndim < 2:
        raise ShapeError(f"{name} needs at least two axes, not {array.ndim}{where()}")
    return array
