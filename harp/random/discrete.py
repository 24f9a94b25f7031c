"""One of several: categories by their logits, elements of an array, and orders."""

from __future__ import annotations

from harp.errors import ShapeError
from harp.numpy import add, argmax
from harp.random.exponential import gumbel
from harp.random.parameters import common_float, spread
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, normalize_axis, to_shape
from harp.trace.source_locations import plural, where


def categorical(key: object, logits: object, axis: int = -1, shape: object = None) -> Array:
    """Positions (int64) along an axis, each with a probability proportional to the exponential of its logit.

    The result has the shape of `logits` without that axis, or a `shape` to which that broadcasts. A logit of -inf is
    never chosen. The position is that of the largest `logits + gumbel(...)`, the form through which to differentiate:
    C. J. Maddison, D. Tarlow, T. Minka: "A* sampling", NIPS 2014. Raises ShapeError where there are no categories,
    AxisError for a wrong axis.

    >>> import harp
    >>> harp.random.categorical(harp.random.key(0), harp.numpy.asarray([0.0, 50.0, 0.0]), shape=4)
    Array([1, 1, 1, 1])
    """
    array = as_array(logits)
    if not array.ndim:
        raise ShapeError(f"categorical takes logits along an axis, not one number{where()}")
    dtype, place = common_float("categorical", array), normalize_axis(axis, array.ndim)
    sizes = list(node_of(array).shape)
    categories = sizes.pop(place)
    rest = len(sizes)
    wanted = tuple(sizes) if shape is None else to_shape(shape)
    if len(wanted) < rest:
        raise ShapeError(
            f"shape has {plural(len(wanted), 'axes')}, and the logits {rest} beside their categories{where()}"
        )
    place += len(wanted) - rest
    whole = (*wanted[:place], categories, *wanted[place:])
    return argmax(add(spread(array, dtype, whole), gumbel(key, whole, dtype)), axis=place)
