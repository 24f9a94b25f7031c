"""The shape, the number of axes and the number of elements of what is or can be an array; a copy of it."""

from __future__ import annotations

import numpy as np

from harp.numpy.creation import asarray
from harp.trace.array.array import Array
from harp.trace.array.primitives import Axis, normalize_axes

__all__ = ["copy", "isscalar", "ndim", "shape", "size"]


def shape(a: object) -> tuple[int, ...]:
    """The sizes of the axes of an array, a list or a number.

    >>> shape([[1, 2, 3], [4, 5, 6]])
    (2, 3)
    """
    return _array(a).shape


def ndim(a: object) -> int:
    """The number of axes of an array, a list or a number.

    >>> ndim(3.0)
    0
    """
    return _array(a).ndim


def size(a: object, axis: Axis = None) -> int:
    """The number of elements of an array, a list or a number, of all or along axes. Raises AxisError.

    >>> size([[1, 2, 3], [4, 5, 6]]), size([[1, 2, 3], [4, 5, 6]], 1)
    (6, 3)
    """
    array = _array(a)
    if axis is None:
        return array.size
    found = 1
    for k in normalize_axes(axis, array.ndim):
        found = array.shape[k] * found
    return found


def copy(a: object) -> Array:
    """What is or can be an array, as another array; the memory of those of harp is shared, for nobody can change it.

    >>> copy([1, 2])
    Array([1, 2])
    """
    return asarray(a).copy()


def isscalar(element: object) -> bool:
    """Whether it is a number, or an array without axes.

    >>> isscalar(3.0), isscalar(asarray([3.0]))
    (True, False)
    """
    return np.isscalar(element) or (isinstance(element, (Array, np.ndarray)) and element.ndim == 0)


def _array(a: object) -> Array:
    return a if isinstance(a, Array) else asarray(a)
