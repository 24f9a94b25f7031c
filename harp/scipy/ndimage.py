"""SciPy's `map_coordinates`: arrays read between their elements.

>>> import numpy as np
>>> map_coordinates(np.array([0.0, 10.0, 20.0]), [np.array([0.5, 1.75])], order=1)
Array([ 5. , 17.5])
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import asarray
from harp.numpy.elementwise import abs, clip, floor, maximum, round, where
from harp.trace.array.array import Array
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place

__all__ = ["map_coordinates"]

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")


def map_coordinates(
    input: object, coordinates: Sequence[object], order: int, mode: str = "constant", cval: object = 0.0
) -> Array:
    """The elements nearest to some places (`order` 0), or the linear interpolation between those round them (1).

    `coordinates` has an array for each axis, which broadcast; the result has their shape and the dtype of the input.
    Outside, `mode` says what is there: "constant" (`cval`), "nearest", "wrap", "mirror" (about the last element) or
    "reflect" (about its edge). Derivatives flow to both. Raises ArgumentError for other orders and modes, ShapeError
    for another number of coordinates than axes.

    >>> import numpy as np
    >>> map_coordinates(np.arange(4.0), [np.array([-1.0, 5.0])], order=0, mode="nearest")
    Array([0., 3.])
    """
    array, places = asarray(input), [asarray(c) for c in coordinates]
    if order not in (0, 1):
        raise ArgumentError(f"order of map_coordinates is 0 or 1, not {order!r}{place()}")
    if mode not in _MODES:
        raise ArgumentError(f"mode of map_coordinates is one of {', '.join(_MODES)}, not {mode!r}{place()}")
    if len(places) != array.ndim:
        raise ShapeError(
            f"map_coordinates is given {len(places)} coordinates for {plural(array.ndim, 'axes')}{place()}"
        )
    by_axis = [_neighbours(c, size, order, mode) for c, size in zip(places, array.shape, strict=True)]
    terms = []
    for corner in itertools.product(*by_axis):
        indices, inside, weights = zip(*corner, strict=True)
        value = array[indices]
        if mode == "constant":
            value = where(reduce(operator.and_, inside), value, cval)
        terms.append(reduce(operator.mul, (weight for weight in weights if weight is not None), value))
    total = reduce(operator.add, terms)
    return (round(total) if array.dtype.kind in "iu" else total).astype(array.dtype)


def _neighbours(place: Array, size: Any, order: int, mode: str) -> list[tuple[Array, Array, Array | None]]:
    """Index, whether it is inside, and weight of each element that counts along an axis."""
    place = place if place.dtype.kind == "f" else place.astype("float64")
    low = floor(place + 0.5) if order == 0 else floor(place)
    pairs = [(low, None)] if order == 0 else [(low, 1 - (place - low)), (low + 1, place - low)]
    return [(*_inside(position.astype("int64"), size, mode), weight) for position, weight in pairs]


def _inside(index: Array, size: Any, mode: str) -> tuple[Array, Array]:
    """The element of the array that an index means, and whether it is one of its own."""
    inside = (index >= 0) & (index < size)
    if mode == "wrap":
        index = index % size
    elif mode == "mirror":
        index = abs((index + size - 1) % maximum(2 * size - 2, 1) - (size - 1))
    elif mode == "reflect":
        index = abs(2 * ((index + size) % (2 * size)) + 1 - 2 * size) // 2
    return clip(index, 0, size - 1), inside
