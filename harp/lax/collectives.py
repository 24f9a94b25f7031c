"""Functions of one example that ask about all examples of a batch: `vmap(..., axis_name=...)` says by which name.

    vmap(lambda x: x - pmean(x, "batch"), axis_name="batch")        ->      lambda x: x - mean(x, axis=0)

Inside of the function what they return is the same in all examples, and the program computes it once. As in JAX, the
derivative of what an example has of others is what all examples together have of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, normalize_axis
from harp.trace.sizes.size import Size
from harp.trace.source_locations import where
from harp.trace.trees import Tree, map_leaves
from harp.transforms.batching.named_axes import NamedAxis, in_all_examples, named_axis, number_of, size_of


def _axes(axis_name: object) -> list[NamedAxis]:
    names = axis_name if isinstance(axis_name, (tuple, list)) else (axis_name,)
    return [named_axis(name) for name in names]


def _reduced(x: Tree, axis_name: object, function: Callable[..., Array]) -> Tree:
    axes = _axes(axis_name)

    def reduced(leaf: object) -> Array:
        array = as_array(leaf)
        for axis in axes:
            array = function(in_all_examples(array, axis), axis=0)
        return array

    return map_leaves(reduced, x)


def psum(x: Tree, axis_name: object) -> Tree:
    """The sum over all examples of the batch of this name, or of these names, of each array of a tree; of a number of
    Python, the number times the examples.

    Raises BatchError if the function that calls it is no example of such a batch.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: x / psum(x, "batch"), axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([0.25, 0.75])
    """
    if isinstance(x, (int, float)) and not isinstance(x, bool):
        return x * axis_size(axis_name)
    return _reduced(x, axis_name, hnp.sum)


def pmean(x: Tree, axis_name: object) -> Tree:
    """The mean over all examples of the batch of this name. Raises as `psum` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: x - pmean(x, "batch"), axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([-1.,  1.])
    """
    return _reduced(x, axis_name, hnp.mean)


def pmax(x: Tree, axis_name: object) -> Tree:
    """The largest element over all examples of the batch of this name. Raises as `psum` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: pmax(x, "batch"), axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([3., 3.])
    """
    return _reduced(x, axis_name, hnp.max)


def pmin(x: Tree, axis_name: object) -> Tree:
    """The smallest element over all examples of the batch of this name. Raises as `psum` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: pmin(x, "batch"), axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([1., 1.])
    """
    return _reduced(x, axis_name, hnp.min)


def axis_size(axis_name: object) -> Size | int:
    """How many examples the batch of this name has; of several names, the product. Raises as `psum` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: x * axis_size("batch"), axis_name="batch")(hnp.array([1.0, 3.0]))
    Array([2., 6.])
    """
    sizes = [size_of(axis) for axis in _axes(axis_name)]
    return math.prod(sizes[1:], start=sizes[0])


def axis_index(axis_name: object) -> Array:
    """The number of the example in the batch of this name, an int64 array without axes; of several names, in row-major
    order. Raises as `psum` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: x + 10 * axis_index("batch"), axis_name="batch")(hnp.array([1, 3]))
    Array([ 1, 13])
    """
    first, *others = _axes(axis_name)
    number = number_of(first)
    for axis in others:
        number = number * size_of(axis) + number_of(axis)
    return number


def all_gather(x: Tree, axis_name: object, *, axis: int = 0, tiled: bool = False) -> Tree:
    """The arrays of all examples, along a new `axis`, or with `tiled` one behind the other along this axis.

    Raises as `psum` does, and AxisError where an array has no such axis.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: all_gather(x, "batch"), axis_name="batch")(hnp.array([1, 3]))
    Array([[1, 3],
           [1, 3]])
    """
    named = named_axis(axis_name)

    def gathered(leaf: object) -> Array:
        array = as_array(leaf)
        place = normalize_axis(axis, array.ndim + (not tiled))
        stacked = hnp.moveaxis(in_all_examples(array, named), 0, place)
        if not tiled:
            return stacked
        shape = array.shape
        return hnp.reshape(stacked, (*shape[:place], size_of(named) * shape[place], *shape[place + 1 :]))

    return map_leaves(gathered, x)


def ppermute(x: Tree, axis_name: object, perm: Sequence[tuple[int, int]]) -> Tree:
    """The array of another example: `perm` has pairs of numbers, from which example and to which. Who gets none has 0.

    Raises as `psum` does, and ArgumentError where an example is to get two.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: ppermute(x, "batch", [(0, 1), (1, 2)]), axis_name="batch")(hnp.array([5, 6, 7]))
    Array([0, 5, 6])
    """
    pairs = [(int(source), int(target)) for source, target in perm]
    targets = [target for _, target in pairs]
    if len(set(targets)) < len(targets):
        raise ArgumentError(f"perm of ppermute sends two arrays to one example: {pairs}{where()}")
    named = named_axis(axis_name)
    number = number_of(named)

    sources, targets_at = hnp.asarray([source for source, _ in pairs], int), hnp.asarray(targets, int) == number

    def permuted(leaf: object) -> Array:
        sent = hnp.take(in_all_examples(as_array(leaf), named), hnp.sum(hnp.where(targets_at, sources, 0)), axis=0)
        return hnp.where(hnp.any(targets_at), sent, hnp.zeros_like(sent))

    return map_leaves(permuted, x)


def all_to_all(x: Tree, axis_name: object, split_axis: int, concat_axis: int, *, tiled: bool = False) -> Tree:
    """Each example sends its part number k along `split_axis` to example k, and has what it got along `concat_axis`.

    Without `tiled` the split axis is as long as the batch, and goes; with it, its parts are equally long pieces, and
    what comes is one behind the other. Raises as `psum` does, AxisError and ShapeError where the axes do not fit.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: all_to_all(x, "batch", 0, 0), axis_name="batch")(hnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]])
    """
    named = named_axis(axis_name)

    def exchanged(leaf: object) -> Array:
        array = as_array(leaf)
        split = normalize_axis(split_axis, array.ndim)
        parts = _parts(array, split, named, tiled, "all_to_all")
        mine = hnp.take(in_all_examples(parts, named), number_of(named), axis=1)  # example, then the part
        if not tiled:
            return hnp.moveaxis(mine, 0, normalize_axis(concat_axis, array.ndim))
        join = normalize_axis(concat_axis, array.ndim)
        moved = hnp.moveaxis(mine, 0, join)
        shape = mine.shape[1:]
        return hnp.reshape(moved, (*shape[:join], size_of(named) * shape[join], *shape[join + 1 :]))

    return map_leaves(exchanged, x)


def psum_scatter(x: Tree, axis_name: object, *, scatter_dimension: int = 0, tiled: bool = False) -> Tree:
    """The part of the sum over all examples, along an axis, that has the example's number. Raises as `all_to_all` does.

    >>> import harp
    >>> import harp.numpy as hnp
    >>> harp.vmap(lambda x: psum_scatter(x, "batch"), axis_name="batch")(hnp.array([[1, 2], [3, 4]]))
    Array([4, 6])
    """
    named = named_axis(axis_name)

    def scattered(leaf: object) -> Array:
        total = hnp.sum(in_all_examples(as_array(leaf), named), axis=0)
        axis = normalize_axis(scatter_dimension, total.ndim)
        return hnp.take(_parts(total, axis, named, tiled, "psum_scatter"), number_of(named), axis=0)

    return map_leaves(scattered, x)


def _parts(array: Array, axis: int, named: NamedAxis, tiled: bool, name: str) -> Array:
    """The parts of an array along an axis, one for each example, along a new first axis."""
    size, shape = size_of(named), array.shape
    if tiled:
        if shape[axis] % size != 0:
            raise ShapeError(f"{name} splits axis {axis}, of size {shape[axis]}, into {size} equal parts{where()}")
        cut = hnp.reshape(array, (*shape[:axis], size, shape[axis] // size, *shape[axis + 1 :]))
        return hnp.moveaxis(cut, axis, 0)
    if shape[axis] != size:
        raise ShapeError(f"{name} splits axis {axis}, of size {shape[axis]}, among {size} examples{where()}")
    return hnp.moveaxis(array, axis, 0)
