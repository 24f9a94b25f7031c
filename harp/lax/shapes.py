"""Shapes and constants under `jax.lax`'s names and arguments: views, and arrays that are made of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from harp.errors import AxisError
from harp.numpy import creation, joining, manipulation
from harp.trace.array.array import Array
from harp.trace.array.primitives import Axis, as_array, as_integer, as_tuple, from_positions, normalize_axis, to_shape
from harp.trace.graph.node import positions
from harp.trace.index.polynomial import ZERO, product
from harp.trace.scalar.dtypes import DTypeLike, as_dtype
from harp.trace.scalar.expr import Position, cast
from harp.trace.sizes.size import unify, wrap
from harp.trace.source_locations import plural, where


def reshape(operand: object, new_sizes: object, dimensions: object = None) -> Array:
    """The elements in row-major order in another shape; `dimensions` is the order of the axes in which they are read.

    Raises ShapeError if the numbers of elements differ.

    >>> import harp.numpy as hnp
    >>> reshape(hnp.asarray([[1, 2], [3, 4]]), (4,), (1, 0))
    Array([1, 3, 2, 4])
    """
    array = as_array(operand) if dimensions is None else manipulation.transpose(operand, dimensions)
    return manipulation.reshape(array, new_sizes)


def broadcast(operand: object, sizes: object) -> Array:
    """Repeated along new axes in front, of these sizes.

    >>> import harp.numpy as hnp
    >>> broadcast(hnp.arange(2), (3,)).shape
    (3, 2)
    """
    array = as_array(operand)
    return manipulation.broadcast_to(array, (*as_tuple(sizes), *array.shape))


def broadcast_in_dim(operand: object, shape: Sequence[object], broadcast_dimensions: Sequence[object]) -> Array:
    """Repeated to this shape, where axis k of the operand becomes axis `broadcast_dimensions[k]`.

    An axis of one element is repeated. Raises AxisError unless there is one increasing place for each axis, ShapeError
    for sizes that do not fit.

    >>> import harp.numpy as hnp
    >>> broadcast_in_dim(hnp.asarray([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]])
    """
    array, rank = as_array(operand), len(shape)
    places = [normalize_axis(axis, rank) for axis in broadcast_dimensions]
    if len(places) != array.ndim or places != sorted(set(places)):
        raise AxisError(
            f"broadcast_in_dim needs an increasing place for each of {plural(array.ndim, 'axes')}, not "
            f"{tuple(broadcast_dimensions)}{where()}"
        )
    others = tuple(axis for axis in range(rank) if axis not in places)
    return manipulation.broadcast_to(manipulation.expand_dims(array, others), tuple(shape))


def transpose(operand: object, permutation: object) -> Array:
    """The axes in another order: axis `permutation[k]` as axis k. Raises AxisError unless each is there once.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.transpose(hnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return manipulation.transpose(operand, permutation)


def expand_dims(array: object, dimensions: Axis) -> Array:
    """With new axes of one element at these places of the result. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> expand_dims(hnp.zeros(3), (0, 2)).shape
    (1, 3, 1)
    """
    return manipulation.expand_dims(array, dimensions)


def squeeze(array: object, dimensions: Axis) -> Array:
    """Without these axes. Raises ShapeError unless they have one element.

    >>> import harp.numpy as hnp
    >>> squeeze(hnp.zeros((1, 3, 1)), (0,)).shape
    (3, 1)
    """
    return manipulation.squeeze(array, dimensions)


def rev(operand: object, dimensions: Axis) -> Array:
    """The elements in reverse order along these axes.

    >>> import harp.numpy as hnp
    >>> rev(hnp.arange(3), (0,))
    Array([2, 1, 0])
    """
    return manipulation.flip(operand, dimensions)


def concatenate(operands: Sequence[object], dimension: int) -> Array:
    """The arrays one after the other along an axis. Raises ShapeError if other sizes differ.

    >>> import harp.numpy as hnp
    >>> concatenate([hnp.zeros(2), hnp.ones(1)], dimension=0)
    Array([0., 0., 1.])
    """
    return joining.concatenate(operands, dimension)


def unstack(x: object, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, one array each; in a traced function their number is fixed, by a guard.

    >>> import harp.numpy as hnp
    >>> from harp import lax
    >>> lax.unstack(hnp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2]), Array([3, 4]))
    """
    return manipulation.unstack(x, axis=axis)


def collapse(operand: object, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """The axes from `start_dimension` to `stop_dimension`, which is not among them, as one; None means to the end.

    >>> import harp.numpy as hnp
    >>> collapse(hnp.zeros((2, 3, 4)), 0, 2).shape
    (6, 4)
    """
    array = as_array(operand)
    first, last, _ = slice(start_dimension, stop_dimension).indices(array.ndim)
    if first >= last:
        raise AxisError(
            f"collapse of the axes from {start_dimension} to {stop_dimension} of {array.ndim} has none{where()}"
        )
    joined = wrap(product(to_shape(array.shape[first:last])))
    return manipulation.reshape(array, (*array.shape[:first], joined, *array.shape[last:]))


def split(operand: object, sizes: Sequence[object], axis: int = 0) -> list[Array]:
    """Parts of these sizes along an axis, which together are all of it. Raises ShapeError where they are not.

    >>> import harp.numpy as hnp
    >>> split(hnp.arange(5), (2, 3))
    [Array([0, 1]), Array([2, 3, 4])]
    """
    array = as_array(operand)
    along = normalize_axis(axis, array.ndim)
    lengths = to_shape(tuple(sizes))
    total = to_shape(array.shape[along])[0]
    ends = [sum(lengths[:k], ZERO) for k in range(len(lengths) + 1)]
    unify(total, ends[-1], lambda: f"split of axis {along}: its size and the sum of the sizes")
    return [joining.take(array, along, start, length) for start, length in zip(ends, lengths, strict=False)]


def iota(dtype: DTypeLike, size: object) -> Array:
    """0, 1, 2 and so on: so many numbers of this dtype.

    >>> iota("float32", 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: DTypeLike, shape: object, dimension: int) -> Array:
    """An array in which each element is its own position along an axis.

    >>> broadcasted_iota("int32", (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    sizes = to_shape(shape)
    along = normalize_axis(as_integer("dimension", dimension), len(sizes))
    return from_positions(sizes, cast(Position(positions(sizes)[along]), as_dtype(dtype)))


def full_like(x: object, fill_value: object, dtype: DTypeLike | None = None, shape: object = None) -> Array:
    """An array of the shape and dtype of `x`, unless others are given, that repeats a value.

    >>> import harp.numpy as hnp
    >>> full_like(hnp.zeros(2, dtype="int8"), 7)
    Array([7, 7], dtype=int8)
    """
    array = as_array(x)
    return creation.full(array.shape if shape is None else shape, fill_value, array.kind if dtype is None else dtype)
