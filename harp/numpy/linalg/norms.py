"""Norms of vectors and matrices, as the array API standard has them.

Derivatives follow JAX's conventions: that of the Euclidean norm (and of a matrix's Frobenius norm) at zero is NaN, as
that of its square root; elements that share an extremum share its derivative; a magnitude at zero has the derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import root_of_squares
from harp.numpy.elementwise import abs, isnan, logical_not, maximum, not_equal, power
from harp.numpy.elementwise import where as chosen
from harp.numpy.linalg.batches import operands, require_matrices, require_square
from harp.numpy.linalg.singular import svdvals
from harp.numpy.linalg.systems import inverse
from harp.numpy.manipulation import expand_dims, moveaxis, squeeze
from harp.numpy.reductions import any as any_
from harp.numpy.reductions import min as min_
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import astype, divide, multiply
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import Axis, as_array, fold, map_, normalize_axes, normalize_axis
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import computing, f32, f64, real_of
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.size import require_at_least_one
from harp.trace.source_locations import where

Axes = tuple[int, ...]
_MATRIX_NORMS = (1, 2, math.inf, -1, -2, -math.inf, "nuc")
# Powers between 1/2**n and 2**n are summed as they are.
_NEAR = {f32: 80, f64: 600}


def vector_norm(x: object, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> Array:
    """The norm over axes, or over all: (sum of |x|**ord)**(1/ord), with 0, inf and -inf as their limits.

    `ord` 0 counts what is not zero, inf is the largest and -inf the smallest magnitude. Integers and bool give float64.
    The norm of no elements is 0, or inf for negative orders. Raises ArgumentError for other orders, AxisError, and
    ShapeError for the smallest of none.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.vector_norm(hnp.asarray([3.0, 4.0]))
    Array(5.)
    """
    array = _inexact(x)
    axes = normalize_axes(axis, array.ndim)
    if isinstance(ord, bool) or not isinstance(ord, (int, float)) or math.isnan(ord):
        raise ArgumentError(f"the order of a vector norm is a number, not {ord!r}{where()}")
    special = _VECTOR_NORMS.get(ord)
    if special is not None:
        return special(array, axes, keepdims)
    return _of_order(array, axes, keepdims, float(ord))


def _of_order(array: Array, axes: Axes, keepdims: bool, ord: float) -> Array:
    """(sum of |x|**ord)**(1/ord). Where the power of the element that counts most is very small or large, elements are
    divided by that before. No derivative flows through the divisor, which cancels."""
    sizes = abs(array)
    dtype = sizes.kind
    sizes = astype(sizes, computing(dtype))
    divisor = map_(
        lambda e: _divisor(e, ord), fold(lambda e: e, sizes, Reduce.MAX if ord > 0 else Reduce.MIN, axes, True)
    )
    total = sum_(power(divide(sizes, divisor), ord), axes, keepdims=keepdims)
    root = multiply(power(total, 1 / ord), divisor if keepdims else squeeze(divisor, axes))
    return astype(root, dtype)


def _divisor(size: Expr, ord: float) -> Expr:
    """The size if it is a number whose power is not near 1, else 1."""
    power, limit = apply(Op.POW, size, const(ord, size.dtype)), 2.0 ** _NEAR[size.dtype]
    far = (power < 1 / limit) | (power > limit)
    is_number = (size > 0) & (size < math.inf)
    return apply(Op.STOP, select(is_number & far, size, const(1, size.dtype)))


def matrix_norm(x: object, *, keepdims: bool = False, ord: object = "fro") -> Array:
    """The norm of the matrices in the last two axes: "fro", 1, -1 (column sums), inf, -inf (row sums of magnitudes), or
    2, -2, "nuc" (singular values).

    1, inf and 2 take the largest, -1, -inf and -2 the smallest, "nuc" the sum of all. Integers and bool give float64.
    Raises ArgumentError for other orders, ShapeError for fewer than two axes.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.matrix_norm(hnp.asarray([[1.0, -2.0], [3.0, 0.0]]), ord=1)
    Array(4.)
    """
    array = _inexact(x)
    if array.ndim < 2:
        raise ShapeError(f"matrix_norm needs at least two axes, not {array.ndim}{where()}")
    rows, columns = array.ndim - 2, array.ndim - 1
    if isinstance(ord, str) and ord == "fro":
        return root_of_squares(array, (rows, columns), keepdims)
    if isinstance(ord, bool) or not isinstance(ord, (int, float, str)) or ord not in _MATRIX_NORMS:
        raise ArgumentError(
            f"the order of a matrix norm is 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf, not {ord!r}{where()}"
        )
    if ord in (2, -2, "nuc"):
        of_values = {2: _largest, -2: _smallest, "nuc": _total}[ord]
        result = of_values(svdvals(array), (rows,), False)
        return expand_dims(result, (rows, columns)) if keepdims else result
    assert not isinstance(ord, str)
    summed, left = (rows, columns) if ord in (1, -1) else (columns, rows)
    totals = sum_(abs(array), summed, keepdims=True)
    extremum = (_largest if ord > 0 else _smallest)(totals, (left,), True)
    return extremum if keepdims else squeeze(extremum, (rows, columns))


def norm(x: object, ord: object = None, axis: Axis = None, keepdims: bool = False) -> Array:
    """The norm of vectors along an axis, or of matrices along a pair of axes, as `numpy.linalg.norm`.

    Without `ord` it is the square root of the sum of squares: over all elements, along one axis or along two. With it
    and without `axis` the array has one axis or two. Orders are those of `vector_norm` and `matrix_norm`. Raises
    ArgumentError for other orders, ShapeError for another number of axes, AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.norm(hnp.asarray([[3.0, 4.0], [0.0, 2.0]]), axis=1)
    Array([5., 2.])
    """
    array = _inexact(x)
    if axis is None and ord is not None and array.ndim not in (1, 2):
        raise ShapeError(f"norm with an order takes a vector or a matrix, not {array.ndim} axes; give axis{where()}")
    axes = normalize_axes(axis, array.ndim)
    if ord is None:
        return root_of_squares(array, axes, keepdims)
    if len(axes) == 1:
        return vector_norm(array, axis=axes, keepdims=keepdims, ord=ord)  # type: ignore[arg-type]
    if len(axes) != 2:
        raise ShapeError(f"norm takes one axis, or the two of matrices, not {len(axes)}{where()}")
    result = matrix_norm(moveaxis(array, _given(axis, array.ndim), (-2, -1)), ord=ord)
    return expand_dims(result, axes) if keepdims else result


def cond(x: object, p: object = None) -> Array:
    """The condition number of a matrix, or of each of a batch in the last two axes: NumPy's function.

    Without `p`, and for 2 and -2, the ratio of the largest and the smallest singular value, or its inverse; for other
    orders of `matrix_norm`, that of a square matrix times that of its inverse; of a singular matrix it is infinite.
    Raises ShapeError, also for matrices without elements, and ArgumentError for other orders.

    >>> import harp.numpy as hnp
    >>> hnp.linalg.cond(hnp.asarray([[4.0, 0.0], [0.0, 2.0]]))
    Array(2.)
    """
    array = _inexact(x)
    require_matrices("cond", array, "x")
    for axis, size in enumerate(node_of(array).shape[-2:], array.ndim - 2):
        require_at_least_one(size, partial("cond of matrices without elements: axis {} of x has none".format, axis))
    if p is None or p == 2 or p == -2:
        s = svdvals(array)
        first, last = (-1, 0) if p == -2 else (0, -1)
        found = divide(s[..., first], s[..., last])
    else:
        own = matrix_norm(array, ord=p)
        require_square("cond", array)
        (computed,), _ = operands("cond", x=array)
        found = multiply(own, matrix_norm(astype(inverse(False, computed), array.kind), ord=p))
    return chosen(isnan(found) & logical_not(any_(isnan(array), axis=(-2, -1))), math.inf, found)  # of zeros, as NumPy


def _given(axis: Any, ndim: int) -> tuple[int, ...]:
    """Both axes, in the order in which they were given: rows first."""
    return (0, 1) if axis is None else tuple(normalize_axis(a, ndim) for a in axis)


def _inexact(x: object) -> Array:
    array = as_array(x)
    return array if array.kind.is_inexact else astype(array, dtypes.f64)


def _count(array: Array, axes: Axes, keepdims: bool) -> Array:
    return sum_(not_equal(array, 0), axes, dtype=real_of(array.kind), keepdims=keepdims)


def _total(array: Array, axes: Axes, keepdims: bool) -> Array:
    return sum_(abs(array), axes, keepdims=keepdims)


def _largest(array: Array, axes: Axes, keepdims: bool) -> Array:
    return maximum(fold(lambda e: e, abs(array), Reduce.MAX, axes, keepdims), 0)  # of no elements, 0


def _smallest(array: Array, axes: Axes, keepdims: bool) -> Array:
    return min_(abs(array), axes, keepdims)


_VECTOR_NORMS: dict[float, Callable[[Array, Axes, bool], Array]] = {
    0: _count,
    1: _total,
    2: root_of_squares,
    math.inf: _largest,
    -math.inf: _smallest,
}
