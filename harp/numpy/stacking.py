"""NumPy's names for joining, splitting and turning arrays along certain axes. All are views and joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.errors import ArgumentError, AxisError, ShapeError
from harp.numpy.joining import concatenate, known_integers, split, take
from harp.numpy.manipulation import expand_dims, flip, moveaxis, ravel, reshape, swapaxes
from harp.trace.array.arithmetic import multiply
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import Axis, as_array, as_integer, as_tuple, normalize_axis
from harp.trace.index.division import floordiv, minimum
from harp.trace.index.division import mod as index_mod
from harp.trace.scalar.dtypes import DTypeLike
from harp.trace.sizes.size import resolve, to_index
from harp.trace.source_locations import plural, where


def _at_least(rank: int, arrays: Sequence[object], build: Callable[[Array], Array]) -> Array | list[Array]:
    found = [a if a.ndim >= rank else build(a) for a in map(as_array, arrays)]
    return found[0] if len(found) == 1 else found


def _of_one_axis(a: Array) -> Array:
    return reshape(a, (1,)) if not a.ndim else a


def _of_two_axes(a: Array) -> Array:
    return expand_dims(_of_one_axis(a), 0) if a.ndim < 2 else a


def _of_three_axes(a: Array) -> Array:
    return expand_dims(_of_two_axes(a), -1) if a.ndim < 3 else a


def atleast_1d(*arrays: object) -> Array | list[Array]:
    """The arrays with at least one axis: a number becomes a vector of one. A list for several arrays.

    >>> atleast_1d(2.0)
    Array([2.])
    """
    return _at_least(1, arrays, _of_one_axis)


def atleast_2d(*arrays: object) -> Array | list[Array]:
    """The arrays with at least two axes: a vector becomes a row. A list for several arrays.

    >>> import harp.numpy as hnp
    >>> hnp.atleast_2d(hnp.ones(3)).shape
    (1, 3)
    """
    return _at_least(2, arrays, _of_two_axes)


def atleast_3d(*arrays: object) -> Array | list[Array]:
    """The arrays with at least three axes: a vector of n has the shape (1, n, 1), a matrix gets a last axis.

    >>> import harp.numpy as hnp
    >>> hnp.atleast_3d(hnp.ones((2, 3))).shape
    (2, 3, 1)
    """
    return _at_least(3, arrays, _of_three_axes)


def _listed(name: str, arrays: object) -> list[Array]:
    if isinstance(arrays, (Array, np.ndarray)) and arrays.ndim > 1:
        arrays = list(as_array(arrays))
    if not isinstance(arrays, (tuple, list)) or not arrays:
        raise ArgumentError(f"{name} takes a list of arrays, at least one{where()}")
    return [as_array(a) for a in arrays]


def vstack(tup: object, dtype: DTypeLike | None = None) -> Array:
    """Rows, or matrices, one below the other: joined along the first of at least two axes, in a dtype if it is given.

    Raises ShapeError if other sizes differ.

    >>> import harp.numpy as hnp
    >>> vstack([hnp.arange(2), hnp.ones((1, 2))])
    Array([[0., 1.],
           [1., 1.]])
    """
    return concatenate([_of_two_axes(a) for a in _listed("vstack", tup)], 0, dtype)


def hstack(tup: object, dtype: DTypeLike | None = None) -> Array:
    """Arrays side by side: joined along the second axis, or the only one. Raises ShapeError if other sizes differ.

    >>> import harp.numpy as hnp
    >>> hnp.hstack([hnp.asarray([1, 2]), hnp.asarray([3])])
    Array([1, 2, 3])
    """
    parts = [_of_one_axis(a) for a in _listed("hstack", tup)]
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def dstack(tup: object) -> Array:
    """Arrays behind each other: joined along the third of at least three axes.

    >>> import harp.numpy as hnp
    >>> hnp.dstack([hnp.asarray([1, 2]), hnp.asarray([3, 4])])
    Array([[[1, 3],
            [2, 4]]])
    """
    return concatenate([_of_three_axes(a) for a in _listed("dstack", tup)], 2)


def column_stack(tup: object) -> Array:
    """Vectors as columns of a matrix, beside matrices. Raises ShapeError for more than two axes.

    >>> import harp.numpy as hnp
    >>> column_stack([hnp.arange(2), hnp.ones(2)])
    Array([[0., 1.],
           [1., 1.]])
    """
    parts = [a if a.ndim > 1 else expand_dims(_of_one_axis(a), 1) for a in _listed("column_stack", tup)]
    return concatenate(parts, 1)


def append(arr: object, values: object, axis: Axis = None) -> Array:
    """The elements of `arr`, then those of `values`, along an axis; both flattened if it is None.

    >>> import harp.numpy as hnp
    >>> hnp.append(hnp.asarray([1, 2]), hnp.asarray([3]))
    Array([1, 2, 3])
    """
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], as_integer("axis", axis))


def block(arrays: object) -> Array:
    """An array from nested lists of blocks: the innermost lists join along the last axis, those around them before it.

    Raises ArgumentError where lists are nested to different depths, ShapeError where blocks do not fit.

    >>> import harp.numpy as hnp
    >>> block([[hnp.ones((1, 1)), hnp.zeros((1, 2))], [hnp.zeros((1, 3))]])
    Array([[1., 0., 0.],
           [0., 0., 0.]])
    """
    depth = _depth(arrays)
    rank = max(depth, _rank(arrays))
    return _block(arrays, depth, rank)


def _depth(arrays: object) -> int:
    if not isinstance(arrays, list):
        return 0
    depths = {_depth(a) for a in arrays}
    if len(depths) != 1:
        raise ArgumentError(f"block takes lists that are nested equally deep, and not empty{where()}")
    return depths.pop() + 1


def _rank(arrays: object) -> int:
    return max(map(_rank, arrays)) if isinstance(arrays, list) else as_array(arrays).ndim


def _block(arrays: object, depth: int, rank: int) -> Array:
    if not isinstance(arrays, list):
        array = as_array(arrays)
        return expand_dims(array, tuple(range(rank - array.ndim))) if array.ndim < rank else array
    return concatenate([_block(a, depth - 1, rank) for a in arrays], -depth)


def array_split(ary: object, indices_or_sections: object, axis: int = 0) -> list[Array]:
    """Pieces along an axis, as `split`, but where it does not divide evenly the first ones have one element more.

    >>> import harp.numpy as hnp
    >>> array_split(hnp.arange(5), 2)
    [Array([0, 1, 2]), Array([3, 4])]
    """
    indices_or_sections = known_integers(indices_or_sections)
    if isinstance(indices_or_sections, (list, tuple)):
        return split(ary, indices_or_sections, axis)
    array, count = as_array(ary), as_integer("sections of array_split", indices_or_sections)
    if count < 1:
        raise ArgumentError(f"array_split into {count} sections{where()}")
    k = normalize_axis(axis, array.ndim)
    size = resolve(node_of(array).shape[k])
    each, extra = floordiv(size, to_index(count)), index_mod(size, to_index(count))
    ends = [resolve(each * j + minimum(to_index(j), extra)) for j in range(count + 1)]
    return [take(array, k, ends[j], resolve(ends[j + 1] - ends[j])) for j in range(count)]


def _split_along(name: str, x: object, sections: object, axis: int, rank: int) -> list[Array]:
    array = as_array(x)
    if array.ndim < rank:
        raise ShapeError(f"{name} needs an array with at least {plural(rank, 'axes')}, not {array.ndim}{where()}")
    return split(array, sections, axis)


def vsplit(ary: object, indices_or_sections: object) -> list[Array]:
    """`split` along the first of at least two axes.

    >>> import harp.numpy as hnp
    >>> [part.shape for part in hnp.vsplit(hnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


def hsplit(ary: object, indices_or_sections: object) -> list[Array]:
    """`split` along the second axis, or the only one.

    >>> import harp.numpy as hnp
    >>> [part.shape for part in hnp.hsplit(hnp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split_along("hsplit", ary, indices_or_sections, 0 if as_array(ary).ndim == 1 else 1, 1)


def dsplit(ary: object, indices_or_sections: object) -> list[Array]:
    """`split` along the third of at least three axes.

    >>> import harp.numpy as hnp
    >>> [part.shape for part in hnp.dsplit(hnp.ones((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def fliplr(m: object) -> Array:
    """The second axis in reverse order. Raises AxisError without one.

    >>> import harp.numpy as hnp
    >>> hnp.fliplr(hnp.asarray([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]])
    """
    return flip(m, 1)


def flipud(m: object) -> Array:
    """The first axis in reverse order. Raises AxisError without one.

    >>> import harp.numpy as hnp
    >>> hnp.flipud(hnp.asarray([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]])
    """
    return flip(m, 0)


def rot90(m: object, k: int = 1, axes: object = (0, 1)) -> Array:
    """The array turned by 90 degrees, `k` times, from the first of two axes towards the second. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> rot90(hnp.asarray([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]])
    """
    array = as_array(m)
    plane = [normalize_axis(a, array.ndim) for a in as_tuple(axes)]
    if len(plane) != 2 or plane[0] == plane[1]:
        raise AxisError(f"rot90 turns two different axes, not {axes!r}{where()}")
    first, second = plane
    quarters = as_integer("k", k) % 4
    if quarters % 2 == 0:
        return flip(array, plane) if quarters else array
    turned = swapaxes(array, first, second)
    return flip(turned, first if quarters == 1 else second)


def rollaxis(a: object, axis: int, start: int = 0) -> Array:
    """An axis moved to stand before the axis `start`; `moveaxis` is easier to read.

    >>> import harp.numpy as hnp
    >>> hnp.rollaxis(hnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    array = as_array(a)
    k, before = normalize_axis(axis, array.ndim), as_integer("start", start)
    if not -array.ndim <= before <= array.ndim:
        raise AxisError(f"start {before} is out of range for an array with {plural(array.ndim, 'axes')}{where()}")
    before += array.ndim if before < 0 else 0
    return moveaxis(array, k, before - 1 if k < before else before)


def kron(a: object, b: object) -> Array:
    """The Kronecker product: each element of `a` times the whole of `b`, in its place.

    >>> import harp.numpy as hnp
    >>> kron(hnp.asarray([1, 10]), hnp.asarray([1, 2]))
    Array([ 1,  2, 10, 20])
    """
    x, y = as_array(a), as_array(b)
    rank = max(x.ndim, y.ndim)
    x, y = (expand_dims(v, tuple(range(rank - v.ndim))) if v.ndim < rank else v for v in (x, y))
    if not rank:
        return multiply(x, y)
    spread = expand_dims(x, tuple(range(1, 2 * rank, 2))), expand_dims(y, tuple(range(0, 2 * rank, 2)))
    shape = tuple(m * n for m, n in zip(x.shape, y.shape, strict=True))
    return reshape(multiply(*spread), shape)
