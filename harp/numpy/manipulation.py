"""Shapes: reordering, reshaping and broadcasting. All are views: nothing is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from harp.errors import ArgumentError, AxisError, InterchangeError, ShapeError
from harp.numpy.reshaping import new_shape
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import (
    Axis,
    as_array,
    as_tuple,
    broadcast,
    emit,
    expand_to,
    join_sizes,
    normalize_axes,
    normalize_axis,
    to_shape,
)
from harp.trace.array.primitives import broadcast_shapes as join_shapes
from harp.trace.graph import view
from harp.trace.graph.node import Node
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape, as_index, product
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.levels import current
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import (
    Size,
    ask,
    describe,
    resolve,
    resolve_all,
    to_index,
    unify,
    wrap,
)
from harp.trace.source_locations import plural, where


def emit_like(array: Array, node: Node) -> Array:
    """An array for a node, weak if `array` is."""
    return emit(node, array.weak)


def shown(array: Array, build: Callable[[Node], Node], at_once: Callable[[NDArray], NDArray]) -> Array:
    """A view: a node inside a trace, elsewhere at once one of the memory."""
    value = array._value
    if value is not None and current() is None:
        return from_numpy(np.asarray(at_once(value)), array.weak)
    return emit_like(array, build(node_of(array)))


def shape_of(array: Array) -> Shape:
    """The sizes as expressions."""
    return tuple(map(to_index, array.shape))


def _permuted(array: Array, order: Sequence[int]) -> Array:
    return shown(array, lambda node: view.permute(node, order), lambda value: value.transpose(order))


def transpose(a: object, axes: object = None) -> Array:
    """The axes in another order: reversed, or axis axes[k] as axis k. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.transpose(hnp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    array = as_array(a)
    if axes is None:
        return _permuted(array, range(array.ndim)[::-1])
    order = [normalize_axis(axis, array.ndim) for axis in as_tuple(axes)]
    if sorted(order) != list(range(array.ndim)):
        raise AxisError(f"transpose needs each of {plural(array.ndim, 'axes')} once, not {axes}{where()}")
    return _permuted(array, order)


def permute_dims(x: object, axes: object) -> Array:
    """The axes in another order: axis axes[k] as axis k. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.permute_dims(hnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(x, axes)


def matrix_transpose(x: object) -> Array:
    """The last two axes swapped. Raises ShapeError for fewer than two axes.

    >>> import harp.numpy as hnp
    >>> hnp.matrix_transpose(hnp.asarray([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]])
    """
    array = as_array(x)
    if array.ndim < 2:
        raise ShapeError(f"matrix_transpose needs at least two axes, not {array.ndim}{where()}")
    return swapaxes(array, -1, -2)


def swapaxes(a: object, axis1: int, axis2: int) -> Array:
    """Two axes exchanged. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.swapaxes(hnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    array = as_array(a)
    first, second = normalize_axis(axis1, array.ndim), normalize_axis(axis2, array.ndim)
    order = list(range(array.ndim))
    order[first], order[second] = order[second], order[first]
    return _permuted(array, order)


def moveaxis(a: object, source: object, destination: object) -> Array:
    """Axes moved to other places; the others keep their order. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.moveaxis(hnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    array = as_array(a)
    origin = [normalize_axis(axis, array.ndim) for axis in as_tuple(source)]
    target = [normalize_axis(axis, array.ndim) for axis in as_tuple(destination)]
    if len(origin) != len(target) or len(set(origin)) != len(origin) or len(set(target)) != len(target):
        raise AxisError(f"moveaxis cannot move axes {source} to {destination}{where()}")
    order = [axis for axis in range(array.ndim) if axis not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return _permuted(array, order)


def _by_columns(order: object, name: str) -> bool:
    """Whether elements go in column-major order. "A" and "K" ask for that of the memory, which is row-major."""
    if order not in ("C", "F", "A", "K"):
        raise ArgumentError(f"order of {name} must be one of 'C', 'F', 'A', 'K', not {order!r}{where()}")
    return order == "F"


def reshape(a: object, shape: object, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements in row-major order in another shape, where one size may be -1: the remainder. With the order "F"
    they are taken and put in column-major order.

    Raises ArgumentError for another order, ShapeError if the numbers of elements differ, and for -1 beside a size 0,
    where any would do, and InterchangeError if `copy` is False, where strides of the memory do not allow the shape.

    >>> import harp.numpy as hnp
    >>> hnp.reshape(hnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]])
    """
    by_columns = _by_columns(order, "reshape")
    array = as_array(a)
    old_shape = shape_of(array)
    wanted = list(as_tuple(shape))
    free = [k for k, size in enumerate(wanted) if not isinstance(size, (Size, Index)) and _is_minus_one(size)]
    if len(free) > 1:
        raise ShapeError(f"reshape to {tuple(wanted)}: only one size can be -1{where()}")
    for k in free:
        wanted[k] = 1
    sizes = to_shape(wanted)

    def what() -> str:
        old, new = ", ".join(map(describe, old_shape)), ", ".join(map(str, as_tuple(shape)))
        return f"reshape from ({old}) to ({new}) changes the number of elements"

    new = new_shape(old_shape, sizes, free[0] if free else None, what)
    result = transpose(_in_order(transpose(array), new[::-1])) if by_columns else _in_order(array, new)
    return result if copy is None else _copied(result, array, copy)


def _in_order(array: Array, shape: Shape) -> Array:
    """The elements in row-major order; of numbers without a trace, a view where strides allow one."""
    return shown(
        array,
        lambda node: view.reshape(node, shape),
        lambda value: value.reshape([int(wrap(size)) for size in shape]),
    )


def _copied(result: Array, source: Array, copy: bool) -> Array:
    """A result that is, or must not be, a copy; inside a trace there is no difference."""
    value, origin = result._value, source._value
    if value is None or origin is None:
        return result
    shared = np.may_share_memory(value, origin)
    if not copy and not shared and value.size:
        raise InterchangeError(f"reshape to {value.shape} needs a copy; leave out copy=False{where()}")
    return from_numpy(value.copy(), result.weak) if copy and shared else result


def _is_minus_one(size: object) -> bool:
    return hasattr(size, "__index__") and size.__index__() == -1


def ravel(a: object, order: str = "C") -> Array:
    """All elements in row-major order along one axis, with the order "F" in column-major order.

    >>> import harp.numpy as hnp
    >>> hnp.ravel(hnp.asarray([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4])
    """
    array = transpose(a) if _by_columns(order, "ravel") else as_array(a)
    shape = resolve_all(shape_of(array))
    return _in_order(array, (product(shape),)) if array.ndim != 1 else array


flatten = ravel


def squeeze(a: object, axis: Axis = None) -> Array:
    """Without these axes, which must have one element; None means all that have. Raises ShapeError.

    >>> import harp.numpy as hnp
    >>> hnp.squeeze(hnp.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    array = as_array(a)
    shape = shape_of(array)
    if axis is None:
        axes: Sequence[int] = [k for k, n in enumerate(shape) if ask(Relation.ZERO, resolve(n) - 1, "squeeze asks")]
    else:
        axes = normalize_axes(as_tuple(axis), array.ndim)
        for k in axes:
            unify(shape[k], ONE, lambda k=k: f"squeeze of axis {k}, which must have one element")  # type: ignore[misc]
    if not axes:
        return array
    return shown(
        array,
        lambda node: view.drop_axes(node, dict.fromkeys(axes, ZERO)),
        lambda value: value.squeeze(tuple(axes)),
    )


def expand_dims(a: object, axis: Axis = 0) -> Array:
    """With new axes of one element at these places of the result. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.expand_dims(hnp.ones((2, 3)), 1).shape
    (2, 1, 3)
    """
    array = as_array(a)
    places = as_tuple(axis)
    axes = normalize_axes(places, array.ndim + len(places))
    return shown(array, lambda node: view.insert_axes(node, axes), lambda value: np.expand_dims(value, axes))


def broadcast_to(array: object, shape: object) -> Array:
    """Repeated along axes of one element, and along new axes in front, to this shape. Raises ShapeError.

    >>> import harp.numpy as hnp
    >>> hnp.broadcast_to(hnp.asarray([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]])
    """
    given, target = as_array(array), to_shape(shape)
    offset = len(target) - given.ndim
    if offset < 0:
        raise ShapeError(f"broadcast_to {plural(len(target), 'axes')} from {given.ndim}: axes cannot go{where()}")
    node = node_of(given)
    for axis, (size, wanted) in enumerate(zip(node.shape, target[offset:], strict=True)):
        joined = join_sizes(size, wanted, partial(_no_broadcast, axis))
        unify(joined, wanted, partial(_no_broadcast, axis))  # what is wanted to be 1 is not stretched
    expanded = expand_to(node, resolve_all(target))
    return given if expanded is node else emit_like(given, expanded)


def _no_broadcast(axis: int) -> str:
    return f"broadcast_to does not fit along axis {axis}"


def broadcast_arrays(*arrays: object) -> tuple[Array, ...]:
    """All arrays in the shape to which they broadcast. Raises ShapeError.

    >>> import harp.numpy as hnp
    >>> [x.shape for x in hnp.broadcast_arrays(hnp.ones((3, 1)), hnp.ones(2))]
    [(3, 2), (3, 2)]
    """
    handles = [as_array(a) for a in arrays]
    _, nodes = broadcast([node_of(a) for a in handles])
    return tuple(emit_like(a, n) for a, n in zip(handles, nodes, strict=True))


def broadcast_shapes(*shapes: object) -> tuple[Size | int, ...]:
    """The shape to which arrays of these shapes broadcast. Raises ShapeError.

    >>> broadcast_shapes((2, 1), 3)
    (2, 3)
    """
    return tuple(map(wrap, join_shapes([to_shape(shape) for shape in shapes])))


def meshgrid(*arrays: object, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Grids of coordinates from vectors: array k varies along axis k, or with "xy" the first two axes swapped.

    With `sparse` the other axes have one element. `copy` changes nothing, for arrays do not change.

    Raises ShapeError for arrays of more than one axis, ArgumentError for other `indexing` than "xy" and "ij".

    >>> import harp.numpy as hnp
    >>> hnp.meshgrid(hnp.arange(2), hnp.arange(3), indexing="ij")[0]
    Array([[0, 0, 0],
           [1, 1, 1]])
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f"indexing of meshgrid is 'xy' or 'ij', not {indexing!r}{where()}")
    vectors = [ravel(a) if as_array(a).ndim == 0 else as_array(a) for a in arrays]
    count = len(vectors)
    for k, vector in enumerate(vectors):
        if vector.ndim > 1:
            raise ShapeError(f"meshgrid takes vectors, but array {k} has {plural(vector.ndim, 'axes')}{where()}")
    spread = [expand_dims(v, tuple(a for a in range(count) if a != k)) for k, v in enumerate(vectors)]
    grids = tuple(spread) if sparse else broadcast_arrays(*spread)
    return tuple(swapaxes(g, 0, 1) for g in grids) if indexing == "xy" and count > 1 else grids


def unstack(x: object, /, *, axis: Axis = 0) -> tuple[Array, ...]:
    """The slices along an axis, one array each; in a traced function their number is fixed, by a guard.

    Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.unstack(hnp.asarray([[1, 2], [3, 4]]))
    (Array([1, 2]), Array([3, 4]))
    """
    array = as_array(x)
    along = normalize_axis(axis, array.ndim)
    node, count = node_of(array), int(array.shape[along])
    return tuple(emit_like(array, view.drop_axes(node, {along: as_index(k)})) for k in range(count))


def flip(m: object, axis: Axis = None) -> Array:
    """The elements in reverse order along axes; None means all. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.flip(hnp.asarray([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]])
    """
    array = as_array(m)
    axes = normalize_axes(None if axis is None else as_tuple(axis), array.ndim)
    return shown(array, lambda node: view.flip(node, axes), lambda value: np.flip(value, axes))
