"""Objects that make arrays of what stands in brackets: `mgrid[0:n, 0:m]`, `r_[0, x, 5:n]`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from harp.errors import ArgumentError
from harp.numpy.creation import arange, asarray, linspace, result_type
from harp.numpy.joining import concatenate, stack
from harp.numpy.manipulation import expand_dims, meshgrid
from harp.trace.array.array import Array
from harp.trace.source_locations import where

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]


def _points(name: str, key: object) -> Array:
    """The numbers of a slice: from start to stop by step, or so many of them, both ends included, for an imaginary
    step."""
    if not isinstance(key, slice):
        raise ArgumentError(f"{name} takes slices, as in {name}[0:n, 0:m], not {key!r}{where()}")
    start = 0 if key.start is None else key.start
    if key.stop is None:
        raise ArgumentError(f"a slice of {name} needs its end, as in {name}[0:n]{where()}")
    if isinstance(key.step, complex):
        return linspace(start, key.stop, int(abs(key.step)))
    return arange(start, key.stop, 1 if key.step is None else key.step)


class _Dense:
    """The coordinates of all points of a grid, stacked: as `numpy.mgrid`.

    >>> mgrid[0:2, 0:3]
    Array([[[0, 0, 0],
            [1, 1, 1]],
    <BLANKLINE>
           [[0, 1, 2],
            [0, 1, 2]]])
    """

    def __getitem__(self, key: object) -> Array:
        if not isinstance(key, tuple):
            return _points("mgrid", key)
        return stack(meshgrid(*(_points("mgrid", k) for k in key), indexing="ij"))


class _Open:
    """The coordinates of a grid, each along an axis of its own: as `numpy.ogrid`.

    >>> [axis.shape for axis in ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    @overload
    def __getitem__(self, key: slice) -> Array: ...

    @overload
    def __getitem__(self, key: tuple[slice, ...]) -> tuple[Array, ...]: ...

    def __getitem__(self, key: slice | tuple[slice, ...]) -> Array | tuple[Array, ...]:
        if not isinstance(key, tuple):
            return _points("ogrid", key)
        axes = [_points("ogrid", k) for k in key]
        common = result_type(*axes)
        shapes = [[-1 if i == k else 1 for i in range(len(axes))] for k in range(len(axes))]
        return tuple(axis.astype(common).reshape(shape) for axis, shape in zip(axes, shapes, strict=True))


class _Row:
    """Numbers, slices and arrays, one after the other: as `numpy.r_`.

    >>> r_[0.5, 1:4, asarray([7.0])]
    Array([0.5, 1. , 2. , 3. , 7. ])
    """

    def __getitem__(self, key: object) -> Array:
        return concatenate([_at_least_1d(p) for p in _parts("r_", key)], axis=0)


class _Column:
    """Vectors as columns, and matrices, side by side: as `numpy.c_`.

    >>> c_[0:2, asarray([5, 6])]
    Array([[0, 5],
           [1, 6]])
    """

    def __getitem__(self, key: object) -> Array:
        listed = [_at_least_1d(p) for p in _parts("c_", key)]
        return concatenate([expand_dims(p, 1) if p.ndim == 1 else p for p in listed], axis=-1)


def _parts(name: str, key: object) -> Sequence[Array]:
    keys = key if isinstance(key, tuple) else (key,)
    if any(isinstance(k, str) for k in keys):
        raise ArgumentError(f"{name} does not read directives; use harp.numpy.concatenate or stack{where()}")
    return [_points(name, k) if isinstance(k, slice) else asarray(k) for k in keys]


def _at_least_1d(array: Array) -> Array:
    return array.reshape(1) if array.ndim == 0 else array


class _Index:
    """What stands in brackets, for later use as an index: as `numpy.s_`.

    >>> s_[1:, ::2]
    (slice(1, None, None), slice(None, None, 2))
    """

    def __getitem__(self, key: object) -> object:
        return key


class _IndexTuple:
    """What stands in brackets, as a tuple: as `numpy.index_exp`.

    >>> index_exp[2]
    (2,)
    """

    def __getitem__(self, key: object) -> tuple[object, ...]:
        return key if isinstance(key, tuple) else (key,)


mgrid = _Dense()
ogrid = _Open()
r_ = _Row()
c_ = _Column()
s_ = _Index()
index_exp = _IndexTuple()
