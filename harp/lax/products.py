"""Sums of products under `jax.lax`'s names: axes are named by numbers, those of a batch come first in the result."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from harp.errors import AxisError, ShapeError
from harp.numpy.linalg.pairs import Term, in_order, multiply_pair
from harp.numpy.linalg.products import matmul, promoted
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, emit, normalize_axis
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, DTypeLike, as_dtype, promote
from harp.trace.sizes.size import unify
from harp.trace.source_locations import where

Axes = Sequence[int]
DimensionNumbers = tuple[tuple[Axes, Axes], tuple[Axes, Axes]]


class Precision(Enum):
    """How exact products are on some machines; here all are computed in their dtype, and this changes nothing."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2


def in_wanted(lhs: object, rhs: object, preferred: DTypeLike | None) -> tuple[Array, Array, DType]:
    """Both operands in the dtype in which their products are added, and that of the result."""
    left, right = promoted((lhs, rhs))
    wanted = left.kind if preferred is None else as_dtype(preferred)
    if promote((wanted, left.kind)) is wanted:
        left, right = left.astype(wanted), right.astype(wanted)
    return left, right, wanted


def dot(
    lhs: object,
    rhs: object,
    *,
    dimension_numbers: DimensionNumbers | None = None,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The product of vectors or matrices, over the last axis of `lhs` and the first of `rhs`.

    With `dimension_numbers` it is `dot_general`. Raises ShapeError for other numbers of axes, and sizes that differ.

    >>> import harp.numpy as hnp
    >>> dot(hnp.ones((2, 3)), hnp.ones(3))
    Array([3., 3.])
    """
    left, right = as_array(lhs), as_array(rhs)
    if dimension_numbers is None:
        if left.ndim not in (1, 2) or right.ndim not in (1, 2):
            raise ShapeError(
                f"dot takes vectors and matrices, not {left.ndim} and {right.ndim} axes; see dot_general{where()}"
            )
        dimension_numbers = (((left.ndim - 1,), (0,)), ((), ()))
    return dot_general(left, right, dimension_numbers, precision, preferred_element_type)


def batch_matmul(lhs: object, rhs: object, precision: object = None) -> Array:
    """The products of matrices, the last two axes of both; those in front are the batch's, and the same for both.

    >>> import harp.numpy as hnp
    >>> batch_matmul(hnp.ones((4, 2, 3)), hnp.ones((4, 3, 5))).shape
    (4, 2, 5)
    """
    left, right = as_array(lhs), as_array(rhs)
    if left.ndim < 2 or left.ndim != right.ndim:
        raise ShapeError(f"batch_matmul takes matrices by batches, not {left.ndim} and {right.ndim} axes{where()}")
    return matmul(left, right)


def dot_general(
    lhs: object,
    rhs: object,
    dimension_numbers: DimensionNumbers,
    precision: object = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The sum of products over pairs of axes: `dimension_numbers` is `((of lhs, of rhs), (batch of lhs, of rhs))`.

    The result has the axes of the batch, then the others of `lhs`, then those of `rhs`. `preferred_element_type` is its
    dtype, in which the sum is made if it is the wider one. Raises AxisError for axes that are named twice or have no
    partner, ShapeError for sizes that differ.

    >>> import harp.numpy as hnp
    >>> dot_general(hnp.ones((4, 2, 3)), hnp.ones((4, 5, 3)), (((2,), (2,)), ((0,), (0,)))).shape
    (4, 2, 5)
    """
    left, right, wanted = in_wanted(lhs, rhs, preferred_element_type)
    (contracting, batch), x, y = dimension_numbers, node_of(left), node_of(right)
    of_left, of_right = [f"left{k}" for k in range(left.ndim)], [f"right{k}" for k in range(right.ndim)]
    sizes: dict[str, Index] = {}
    named: dict[str, list[str]] = {"contracting": [], "batch": []}
    for what, (first, second) in (("contracting", contracting), ("batch", batch)):
        if len(first) != len(second):
            raise AxisError(f"dot_general has {len(first)} {what} axes of lhs, and {len(second)} of rhs{where()}")
        for p, q in zip(first, second, strict=True):
            i, j = normalize_axis(p, left.ndim), normalize_axis(q, right.ndim)
            if not of_left[i].startswith("left") or not of_right[j].startswith("right"):
                raise AxisError(f"dot_general names axis {i} of lhs or axis {j} of rhs twice{where()}")
            name = of_left[i] = of_right[j] = f"{what}{len(named[what])}"
            named[what].append(name)
            sizes[name] = unify(x.shape[i], y.shape[j], lambda i=i, j=j: f"dot_general: axis {i} of lhs, {j} of rhs")  # type: ignore[misc]
    for names, node in ((of_left, x), (of_right, y)):
        for name, size in zip(names, node.shape, strict=True):
            sizes.setdefault(name, size)
    free = [n for n in of_left if n.startswith("left")] + [n for n in of_right if n.startswith("right")]
    out = (*named["batch"], *free)
    result = multiply_pair(Term(x, tuple(of_left)), Term(y, tuple(of_right)), sizes, out)
    return emit(in_order(result, out)).astype(wanted)
