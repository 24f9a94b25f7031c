"""Sums of products of two arrays: matmul, dot, tensordot and others. Each is one map, reduced at once."""

from __future__ import annotations

from collections.abc import Sequence

from harp.errors import ShapeError
from harp.numpy.complexes import conj
from harp.numpy.joining import stack
from harp.numpy.linalg.pairs import Term, contract, in_order, multiply_pair
from harp.numpy.manipulation import broadcast_arrays, moveaxis, ravel
from harp.numpy.reductions import sum as sum_
from harp.trace.array.arithmetic import in_common, multiply, subtract
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import (
    as_array,
    as_integer,
    broadcast_shapes,
    common_dtype,
    emit,
    normalize_axis,
)
from harp.trace.graph import view
from harp.trace.graph.node import positions
from harp.trace.index.division import minimum, relu
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, promote
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve, resolve_all, unify
from harp.trace.source_locations import plural, where


def promoted(values: Sequence[object], wanted: DTypeLike | None = None) -> list[Array]:
    """The operands as arrays of their common dtype, or of the `wanted` one if it is wider."""
    arrays = [as_array(v) for v in values]
    dtype, _ = common_dtype(arrays)
    if wanted is not None:
        dtype = promote((dtype, as_dtype(wanted)))
    return [in_common(a, dtype) for a in arrays]


def preferred(result: Array, wanted: DTypeLike | None) -> Array:
    """The result in the dtype that is wanted, if one is."""
    return result if wanted is None else result.astype(wanted)


def matmul(a: object, b: object, *, precision: object = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product over the last axis of `a` and the last but one of `b`; axes in front broadcast.

    An operand with one axis is a row (left) or a column (right), and its axis is not in the result. For bool it is
    `any` of `and`. Raises ShapeError for operands without axes and for sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> hnp.matmul(hnp.ones((2, 3)), hnp.ones(3))
    Array([3., 3.])
    """
    left, right = promoted((a, b), preferred_element_type)
    if left.ndim == 0 or right.ndim == 0:
        raise ShapeError(f"matmul needs arrays with axes; for a number, multiply with *{where()}")
    x, y = node_of(left), node_of(right)
    inner = unify(
        x.shape[-1],
        y.shape[-2] if right.ndim > 1 else y.shape[-1],
        lambda: f"matmul: axis {left.ndim - 1} of the first operand and axis {max(right.ndim - 2, 0)} of the second",
    )
    batch = broadcast_shapes([x.shape[:-2], y.shape[:-2]])
    names = tuple(f"batch{k}" for k in range(len(batch)))
    rows, columns = (("rows",) if left.ndim > 1 else ()), (("columns",) if right.ndim > 1 else ())
    sizes = dict(zip(names, batch, strict=True)) | {"inner": inner}
    if rows:
        sizes["rows"] = x.shape[-2]
    if columns:
        sizes["columns"] = y.shape[-1]
    of_left = (*names[len(names) - max(left.ndim - 2, 0) :], *rows, "inner")
    of_right = (*names[len(names) - max(right.ndim - 2, 0) :], "inner", *columns)
    product = contract((x, y), (of_left, of_right), sizes, (*names, *rows, *columns))
    return preferred(product, preferred_element_type)


def tensordot(
    a: object, b: object, axes: object = 2, *, precision: object = None, preferred_element_type: DTypeLike | None = None
) -> Array:
    """The sum of products over pairs of axes: the last `axes` of `a` and the first of `b`, or two lists of axes.

    Raises ShapeError for sizes that do not fit, AxisError for axes that are not there. `precision` and
    `preferred_element_type` are those of `matmul`.

    >>> import harp.numpy as hnp
    >>> hnp.tensordot(hnp.ones((2, 3, 4)), hnp.ones((4, 3)), axes=([1, 2], [1, 0])).shape
    (2,)
    """
    left, right = promoted((a, b), preferred_element_type)
    if isinstance(axes, (tuple, list)):
        pairs = [tuple(e) if isinstance(e, (tuple, list)) else (e,) for e in axes]
        if len(pairs) != 2 or len(pairs[0]) != len(pairs[1]):
            raise ShapeError(f"tensordot takes two lists of as many axes, not {axes}{where()}")
        of_left = [normalize_axis(k, left.ndim) for k in pairs[0]]
        of_right = [normalize_axis(k, right.ndim) for k in pairs[1]]
    else:
        count = as_integer("axes of tensordot", axes)
        if not 0 <= count <= min(left.ndim, right.ndim):
            raise ShapeError(
                f"tensordot over {plural(count, 'axes')} of arrays with {left.ndim} and {right.ndim} axes{where()}"
            )
        of_left, of_right = list(range(left.ndim - count, left.ndim)), list(range(count))
    x, y = node_of(left), node_of(right)
    names_left = [f"left{k}" for k in range(left.ndim)]
    names_right = [f"right{k}" for k in range(right.ndim)]
    sizes: dict[str, Index] = {}
    for p, q in zip(of_left, of_right, strict=True):
        names_right[q] = names_left[p]
        sizes[names_left[p]] = unify(
            x.shape[p],
            y.shape[q],
            lambda p=p, q=q: f"a sum over axis {p} of the first operand and axis {q} of the second",  # type: ignore[misc]
        )
    out = [n for k, n in enumerate(names_left) if k not in of_left]
    out += [n for k, n in enumerate(names_right) if k not in of_right]
    for names, node in ((names_left, x), (names_right, y)):
        for name, size in zip(names, node.shape, strict=True):
            sizes.setdefault(name, size)
    result = multiply_pair(Term(x, tuple(names_left)), Term(y, tuple(names_right)), sizes, tuple(out))
    return preferred(emit(in_order(result, tuple(out))), preferred_element_type)


def dot(a: object, b: object, *, precision: object = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The product of numbers, vectors or matrices: over the last axis of `a` and the last but one of `b`.

    >>> import harp.numpy as hnp
    >>> hnp.dot(hnp.asarray([[1, 2], [3, 4]]), hnp.asarray([10, 1]))
    Array([12, 34])
    """
    left, right = as_array(a), as_array(b)
    if left.ndim == 0 or right.ndim == 0:
        return preferred(multiply(left, right), preferred_element_type)
    axes = ([left.ndim - 1], [max(right.ndim - 2, 0)])
    return tensordot(left, right, axes, preferred_element_type=preferred_element_type)


def inner(a: object, b: object, *, precision: object = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products over the last axes.

    >>> import harp.numpy as hnp
    >>> hnp.inner(hnp.asarray([1.0, 2.0]), hnp.asarray([3.0, 4.0]))
    Array(11.)
    """
    left, right = as_array(a), as_array(b)
    if left.ndim == 0 or right.ndim == 0:
        return preferred(multiply(left, right), preferred_element_type)
    axes = ([left.ndim - 1], [right.ndim - 1])
    return tensordot(left, right, axes, preferred_element_type=preferred_element_type)


def vdot(a: object, b: object, *, precision: object = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """The sum of products of all elements, flattened; of complex numbers, with the conjugate of `a`.

    >>> import harp.numpy as hnp
    >>> hnp.vdot(hnp.asarray([1j, 2.0]), hnp.asarray([1j, 3.0]))
    Array(7.+0.j)
    """
    return dot(ravel(conj(a)), ravel(b), preferred_element_type=preferred_element_type)


def outer(a: object, b: object) -> Array:
    """All products of an element of `a` and one of `b`, both flattened: a matrix.

    >>> import harp.numpy as hnp
    >>> hnp.outer(hnp.asarray([1, 2]), hnp.asarray([10, 20, 30]))
    Array([[10, 20, 30],
           [20, 40, 60]])
    """
    return tensordot(ravel(a), ravel(b), 0)


def diagonal(a: object, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of two axes, as the last axis; `offset` counts from the main one along `axis2`.

    >>> import harp.numpy as hnp
    >>> hnp.diagonal(hnp.asarray([[1, 2], [3, 4]]))
    Array([1, 4])
    """
    array = as_array(a)
    first, second = normalize_axis(axis1, array.ndim), normalize_axis(axis2, array.ndim)
    if first == second:
        raise ShapeError(f"diagonal needs two different axes{where()}")
    node = node_of(array)
    shape = resolve_all(node.shape)
    down, right = max(-offset, 0), max(offset, 0)
    length = relu(minimum(shape[first] - down, shape[second] - right))
    kept = [k for k in range(array.ndim) if k not in (first, second)]
    result = (*(shape[k] for k in kept), length)
    loops = positions(result)
    index = {k: loops[place] for place, k in enumerate(kept)} | {first: loops[-1] + down, second: loops[-1] + right}
    return emit(view.view(node, result, tuple(index[k] for k in range(array.ndim))), array.weak)


def cross(a: object, b: object, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Array:
    """The vector product along an axis of each, of three elements or two, the third then 0; others broadcast.

    `axisc` is the axis of the result, which is the third element alone, without it, if both have two; `axis` stands for
    all three. Raises ShapeError for other sizes, AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.cross(hnp.asarray([1, 0, 0]), hnp.asarray([0, 1]))
    Array([0, 0, 1])
    """
    of_a, of_b, of_c = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    parts: list[list[object]] = []
    for array, along in zip(map(as_array, (a, b)), (of_a, of_b), strict=True):
        k = normalize_axis(along, array.ndim)
        size, rows = resolve(node_of(array).shape[k]), moveaxis(array, k, -1)
        two = ask(Relation.ZERO, size - 2, "cross asks whether an axis has two elements")
        if not two:
            unify(size, as_index(3), lambda k=k: f"cross takes two or three elements along axis {k}")  # type: ignore[misc]
        parts.append([rows[..., 0], rows[..., 1], *([] if two else [rows[..., 2]])])
    x, y = ([*part, 0][:3] for part in parts)
    pairs = ((1, 2), (2, 0), (0, 1)) if len(parts[0]) + len(parts[1]) > 4 else ((0, 1),)
    found = [subtract(multiply(x[i], y[j]), multiply(x[j], y[i])) for i, j in pairs]
    return moveaxis(stack(broadcast_arrays(*found), -1), -1, of_c) if len(found) == 3 else found[0]


def matvec(x1: object, x2: object) -> Array:
    """The products of matrices in the last two axes of `x1` and vectors in the last one of `x2`.

    >>> import harp.numpy as hnp
    >>> hnp.matvec(hnp.asarray([[1, 2], [3, 4]]), hnp.asarray([[1, 0], [0, 1]]))
    Array([[1, 3],
           [2, 4]])
    """
    return matmul(_with_axes("matvec", x1, 2), _with_axes("matvec", x2, 1)[..., None])[..., 0]


def vecmat(x1: object, x2: object) -> Array:
    """The products of conjugated vectors in the last axis of `x1` and matrices in the last two of `x2`.

    >>> import harp.numpy as hnp
    >>> hnp.vecmat(hnp.asarray([1, 0]), hnp.asarray([[1, 2], [3, 4]]))
    Array([1, 2])
    """
    return matmul(_with_axes("vecmat", conj(x1), 1)[..., None, :], _with_axes("vecmat", x2, 2))[..., 0, :]


def _with_axes(name: str, x: object, least: int) -> Array:
    array = as_array(x)
    if array.ndim < least:
        raise ShapeError(f"{name} needs at least {plural(least, 'axes')}, not {array.ndim}{where()}")
    return array


def trace(a: object, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None) -> Array:
    """The sum of the diagonal of two axes.

    >>> import harp.numpy as hnp
    >>> hnp.trace(hnp.asarray([[1, 2], [3, 4]]))
    Array(5)
    """
    return sum_(diagonal(a, offset, axis1, axis2), -1, dtype)
