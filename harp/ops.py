"""JAX's reductions of segments: elements that bear the same number are combined.

>>> import numpy as np
>>> segment_sum(np.array([1.0, 2.0, 4.0]), np.array([0, 0, 2]), num_segments=3)
Array([3., 0., 4.])
"""

from __future__ import annotations

from typing import Any

from harp.errors import ArgumentError, ConcretizationError, DTypeError, ShapeError
from harp.numpy.creation import asarray, full
from harp.numpy.elementwise import where
from harp.numpy.reductions import max as max_of
from harp.trace.array.arithmetic import add, less
from harp.trace.array.array import Array, node_of
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.ops import Reduce
from harp.trace.sizes.size import unify
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def segment_sum(data: object, segment_ids: object, num_segments: object = None, **options: Any) -> Array:
    """Sums of the elements along the first axis that bear the same number; 0 where no element does.

    Elements with other numbers than those below `num_segments` are left out. Without it there is a segment for each
    number up to the largest one, which has to be known. `options` are JAX's: `unique_indices` makes some
    gradients faster, the others change nothing.

    >>> segment_sum([1.0, 2.0, 4.0], [0, 0, 1])
    Array([3., 4.])
    """
    return _combined("segment_sum", "add", Reduce.SUM, data, segment_ids, num_segments, options)


def segment_prod(data: object, segment_ids: object, num_segments: object = None, **options: Any) -> Array:
    """Products of the elements that bear the same number; 1 where no element does. See `segment_sum`.

    >>> segment_prod([3.0, 2.0, 4.0], [0, 0, 1])
    Array([6., 4.])
    """
    return _combined("segment_prod", "multiply", Reduce.PROD, data, segment_ids, num_segments, options)


def segment_max(data: object, segment_ids: object, num_segments: object = None, **options: Any) -> Array:
    """Maxima of the elements that bear the same number; -inf, or the least integer, where no element does. See
    `segment_sum`.

    >>> segment_max([3.0, 2.0, 4.0], [0, 0, 1])
    Array([3., 4.])
    """
    return _combined("segment_max", "max", Reduce.MAX, data, segment_ids, num_segments, options)


def segment_min(data: object, segment_ids: object, num_segments: object = None, **options: Any) -> Array:
    """Minima of the elements that bear the same number; inf, or the largest integer, where no element does. See
    `segment_sum`.

    >>> segment_min([3.0, 2.0, 4.0], [0, 0, 1])
    Array([2., 4.])
    """
    return _combined("segment_min", "min", Reduce.MIN, data, segment_ids, num_segments, options)


# Promises about the numbers, and ways to compute, that JAX takes.
_OPTIONS = {"indices_are_sorted", "unique_indices", "bucket_size", "mode"}


def _combined(
    name: str, change: str, reduce: Reduce, data: object, segment_ids: object, count: object, options: dict[str, Any]
) -> Array:
    for option in options.keys() - _OPTIONS:
        raise ArgumentError(f"{name} has no argument {option!r}{place()}")
    array, numbers = asarray(data), asarray(segment_ids)
    if array.ndim < 1 or numbers.ndim != 1:
        raise ShapeError(
            f"{name} combines along the first axis of data, by one number for each of its elements; data has "
            f"{plural(array.ndim, 'axes')} and segment_ids {plural(numbers.ndim, 'axes')}{place()}"
        )
    if not numbers.kind.is_integer:
        raise DTypeError(f"segment_ids of {name} are integers, not {numbers.dtype}{place()}")
    if array.kind is bool_ or (array.kind.is_complex and reduce in (Reduce.MAX, Reduce.MIN)):
        instead = "data.astype(int)" if array.kind is bool_ else "the real part of data, or abs,"
        raise DTypeError(f"{name} takes no data of {array.dtype}: give it {instead} instead{place()}")
    sizes = node_of(array).shape[0], node_of(numbers).shape[0]
    unify(*sizes, lambda: f"{name} takes one of segment_ids for each element of data along its first axis")
    if count is None:
        try:
            count = add(max_of(numbers), 1).item() if numbers.shape[0] else 0
        except ConcretizationError:
            raise ConcretizationError(
                f"segment_ids of {name} are not known here, nor is the number of segments: pass num_segments{place()}"
            ) from None
    elif isinstance(count, int) and count < 0:
        raise ArgumentError(f"num_segments of {name} is {count}, which is no number of segments{place()}")
    empty = full((count, *array.shape[1:]), reduce.identity(array.kind), array.dtype)
    places = numbers.astype("int64")
    inside = where(less(places, 0), count, places)  # a negative number is that of no segment
    unique = bool(options.get("unique_indices"))
    result: Array = getattr(empty.at[inside], change)(array, mode="drop", unique_indices=unique)
    return result
