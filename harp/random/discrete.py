"""One of several: categories by their logits, elements of an array, and orders."""

from __future__ import annotations

import math

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import arange
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import add, log, multiply, subtract
from harp.numpy.indexing import take, take_along_axis
from harp.numpy.reductions import argmax
from harp.numpy.sorting import argsort, searchsorted
from harp.random.floats import common_float, spread
from harp.random.gamma import gumbel
from harp.random.uniform import bits, randint, uniform
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, normalize_axis, to_shape
from harp.trace.scalar.dtypes import u64
from harp.trace.sizes.size import Size
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


def permutation(key: object, x: object, axis: int = 0, independent: bool = False) -> Array:
    """The array with its parts along an axis in random order; of an integer n, the numbers 0 ... n - 1 (int64).

    All orders are equally likely: it is the order of 64 random bits for each part. With `independent` every row along
    the axis has an order of its own. `x` may be a size. Raises AxisError for a wrong axis, ArgumentError for a number
    that is no integer, or negative.

    >>> import harp
    >>> order = harp.random.permutation(harp.random.key(0), 5)
    >>> sorted(order.tolist())
    [0, 1, 2, 3, 4]
    """
    array = _population("permutation", x)
    k = normalize_axis(axis, array.ndim)
    if independent:
        return take_along_axis(array, argsort(bits(key, array.shape, u64), axis=k), axis=k)
    return take(array, argsort(bits(key, array.shape[k], u64)), axis=k)


def choice(key: object, a: object, shape: object = (), replace: bool = True, p: object = None, axis: int = 0) -> Array:
    """Parts of an array along an axis, or of an integer n one of 0 ... n - 1 (int64), drawn at random.

    `shape` takes the place of the axis. With `replace` each is drawn on its own, and any may come again; without,
    none comes twice, and the order is random, too. `p` is a vector of weights: probabilities that need not add up to 1.
    Without `replace` the next one has a probability in proportion to its weight among those that are left; those with
    weight 0 come last. Raises ShapeError for another number of weights, and without `replace` for more parts than there
    are; AxisError for a wrong axis, ArgumentError for a number that is no integer, or negative.

    >>> import harp, harp.numpy as hnp
    >>> sorted(harp.random.choice(harp.random.key(0), 4, 4, replace=False).tolist())
    [0, 1, 2, 3]
    >>> harp.random.choice(harp.random.key(0), hnp.asarray([10, 20]), (2, 3), p=hnp.asarray([0.0, 1.0]))
    Array([[20, 20, 20],
           [20, 20, 20]])
    """
    array = _population("choice", a)
    k = normalize_axis(axis, array.ndim)
    count, wanted = array.shape[k], shape if isinstance(shape, (tuple, list)) else (shape,)
    if p is not None and (given := as_array(p).shape) != (count,):
        raise ShapeError(f"choice takes a weight for each of {count}, not an array of shape {given}{where()}")
    if replace:
        places = randint(key, wanted, 0, count) if p is None else _weighted(key, p, wanted)
        return take(array, places, axis=k)
    drawn = math.prod(wanted)
    if drawn > count:
        raise ShapeError(f"choice without replace draws {drawn} from {count}{where()}")
    order = argsort(bits(key, count, u64)) if p is None else _in_turn(key, p)
    return take(array, order[:drawn].reshape(wanted), axis=k)


def _population(name: str, x: object) -> Array:
    """The array, or the integers below a number."""
    if isinstance(x, Size) or (isinstance(x, int) and not isinstance(x, bool)):
        if x < 0:
            raise ArgumentError(f"{name} takes an array, or a number of at least 0, not {x}{where()}")
        return arange(x)
    array = as_array(x)
    if not array.ndim:
        raise ArgumentError(f"{name} takes an array with an axis, or an integer that is known, not {x!r}{where()}")
    return array


def _weighted(key: object, p: object, shape: object) -> Array:
    """Positions, by the inverse of the distribution function."""
    ends = cumsum(_weights(p))
    return searchsorted(ends, multiply(ends[-1], subtract(1.0, uniform(key, shape, ends.dtype))))


def _in_turn(key: object, p: object) -> Array:
    """All positions in the order in which they are drawn: that of weights' logarithms plus Gumbel numbers."""
    weights = _weights(p)
    return argsort(add(log(weights), gumbel(key, weights.shape, weights.dtype)), descending=True)


def _weights(p: object) -> Array:
    """Weights in a dtype in which numbers are drawn."""
    array = as_array(p)
    return spread(array, common_float("choice", array), node_of(array).shape)
