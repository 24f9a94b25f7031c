"""Activations, in floating point: each is its formula, in a form that neither overflows nor makes NaN of what is not
chosen; and labels as rows of zeros with a one.
"""

from __future__ import annotations

import math
from typing import Any

from harp.errors import ArgumentError, DTypeError
from harp.numpy.activation import logsumexp, sigmoid, softplus
from harp.numpy.checks import as_count
from harp.numpy.creation import arange, ones_like
from harp.numpy.elementwise import clip, exp, expm1, float_map, log, log1p, rsqrt, sqrt, square, tanh, where
from harp.numpy.joining import split
from harp.numpy.manipulation import expand_dims
from harp.numpy.reductions import mean as mean_of
from harp.numpy.reductions import sum as sum_of
from harp.scipy.special.errors import erfc
from harp.trace.array.arithmetic import absolute, add, divide, equal, less, multiply, negative, subtract
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, normalize_axis
from harp.trace.scalar.dtypes import DTypeLike, i64, u64
from harp.trace.sizes.size import wrap
from harp.trace.source_locations import where as place

# Of the networks that normalise themselves: G. Klambauer and others, 2017.
_ALPHA, _SCALE = 1.6732632423543772, 1.0507009873554805


def identity(x: object) -> Array:
    """Elementwise x.

    >>> identity(2.0)
    Array(2.)
    """
    return as_array(x)


def relu6(x: object) -> Array:
    """Elementwise min(max(x, 0), 6); the gradient at 0 and at 6 is 0.

    >>> relu6(7.0)
    Array(6.)
    """
    array = as_array(x)
    return where(less(0, array), where(less(array, 6), array, 6), 0)


def leaky_relu(x: object, negative_slope: object = 0.01) -> Array:
    """Elementwise x where x >= 0, else negative_slope*x.

    >>> leaky_relu(-2.0, 0.5)
    Array(-1.)
    """
    array = _floats(x)
    return where(less(array, 0), multiply(negative_slope, array), array)


def elu(x: object, alpha: object = 1.0) -> Array:
    """Elementwise x where x > 0, else alpha*(exp(x) - 1).

    >>> elu(0.0)
    Array(0.)
    """
    array = _floats(x)
    above = less(0, array)
    return where(above, array, multiply(alpha, expm1(where(above, 0, array))))


def selu(x: object) -> Array:
    """Elementwise 1.0507*elu(x, 1.6733), which keeps mean 0 and variance 1 (G. Klambauer and others, 2017).

    >>> selu(1.0)
    Array(1.05070099)
    """
    return multiply(_SCALE, elu(x, _ALPHA))


def celu(x: object, alpha: object = 1.0) -> Array:
    """Elementwise x where x > 0, else alpha*(exp(x/alpha) - 1).

    >>> celu(0.0)
    Array(0.)
    """
    array = _floats(x)
    above = less(0, array)
    return where(above, array, multiply(alpha, expm1(divide(where(above, 0, array), alpha))))


def gelu(x: object, approximate: bool = True) -> Array:
    """Elementwise x times the probability that a normal number is below x: by the error function, or `approximate` by
    tanh (D. Hendrycks, K. Gimpel, 2016).

    >>> gelu(1.0, approximate=False)
    Array(0.84134475)
    """
    array = _floats(x)
    if not approximate:
        return multiply(multiply(0.5, array), erfc(multiply(-math.sqrt(0.5), array)))
    cubed = add(array, multiply(0.044715, multiply(array, square(array))))
    return multiply(array, multiply(0.5, add(1, tanh(multiply(math.sqrt(2 / math.pi), cubed)))))


def silu(x: object) -> Array:
    """Elementwise x*sigmoid(x).

    >>> silu(0.0)
    Array(0.)
    """
    array = _floats(x)
    return multiply(array, sigmoid(array))


def mish(x: object) -> Array:
    """Elementwise x*tanh(softplus(x)).

    >>> mish(0.0)
    Array(0.)
    """
    array = _floats(x)
    return multiply(array, tanh(softplus(array)))


def log_sigmoid(x: object) -> Array:
    """Elementwise log(sigmoid(x)), without overflow.

    >>> log_sigmoid(-1000.0)
    Array(-1000.)
    """
    return negative(softplus(negative(_floats(x))))


def hard_tanh(x: object) -> Array:
    """Elementwise x between -1 and 1, and these beyond.

    >>> hard_tanh(3.0)
    Array(1.)
    """
    array = as_array(x)
    return where(less(1, array), 1, where(less(array, -1), -1, array))


def hard_sigmoid(x: object) -> Array:
    """Elementwise relu6(x + 3)/6.

    >>> hard_sigmoid(0.0)
    Array(0.5)
    """
    return divide(relu6(add(x, 3.0)), 6.0)


def hard_silu(x: object) -> Array:
    """Elementwise x*hard_sigmoid(x).

    >>> hard_silu(3.0)
    Array(3.)
    """
    array = _floats(x)
    return multiply(array, hard_sigmoid(array))


def soft_sign(x: object) -> Array:
    """Elementwise x/(|x| + 1).

    >>> soft_sign(1.0)
    Array(0.5)
    """
    array = _floats(x)
    return divide(array, add(absolute(array), 1))


def squareplus(x: object, b: object = 4) -> Array:
    """Elementwise (x + sqrt(x**2 + b))/2.

    >>> squareplus(0.0)
    Array(1.)
    """
    array = _floats(x)
    return multiply(0.5, add(array, sqrt(add(square(array), b))))


def sparse_plus(x: object) -> Array:
    """Elementwise 0 up to -1, x from 1 on, and (x + 1)**2/4 between.

    >>> sparse_plus(0.0)
    Array(0.25)
    """
    array = _floats(x)
    return where(less(array, 1), multiply(0.25, square(add(clip(array, -1, 1), 1))), array)


def sparse_sigmoid(x: object) -> Array:
    """Elementwise (x + 1)/2, from 0 to 1: the derivative of `sparse_plus`.

    >>> sparse_sigmoid(0.5)
    Array(0.75)
    """
    return clip(multiply(0.5, add(_floats(x), 1)), 0, 1)


def log1mexp(x: object) -> Array:
    """Elementwise log(1 - exp(-x)), accurate for all x > 0.

    M. Mächler, Accurately computing log(1 - exp(-|a|)), 2012.

    >>> log1mexp(1e-20)
    Array(-46.05170186)
    """
    array = _floats(x)
    small = less(array, math.log(2))
    of_small, of_large = where(small, array, 1), where(small, 1, array)
    return where(small, log(negative(expm1(negative(of_small)))), log1p(negative(exp(negative(of_large)))))


def logmeanexp(x: object, axis: Any = None, keepdims: bool = False, *, where: Any = None) -> Array:
    """The logarithm of the mean of exp(x) over axes, without overflow; with `where`, of those elements for which it is
    true.

    >>> import harp.numpy as hnp
    >>> logmeanexp(hnp.asarray([1000.0, 1000.0]))
    Array(1000.)
    """
    array = _floats(x)
    count = sum_of(ones_like(array), axis=axis, keepdims=keepdims, where=where)
    return subtract(logsumexp(array, axis, keepdims, where=where), log(count))


def glu(x: object, axis: int = -1) -> Array:
    """The first half of an axis times the sigmoid of the second one. Raises ShapeError for an odd size.

    >>> import harp.numpy as hnp
    >>> glu(hnp.asarray([3.0, 0.0]))
    Array([1.5])
    """
    first, second = split(_floats(x), 2, axis)
    return multiply(first, sigmoid(second))


def standardize(
    x: object,
    axis: Any = -1,
    mean: object = None,
    variance: object = None,
    epsilon: object = 1e-5,
    where: object = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """(x - mean)/sqrt(variance + epsilon), with those along axes where they are not given; with `where`, of those
    elements for which it is true. The variance is the mean square distance from the mean, whatever the `algorithm`.

    >>> import harp.numpy as hnp
    >>> standardize(hnp.asarray([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.])
    """
    if algorithm not in ("fast", "stable"):
        raise ArgumentError(f"algorithm of standardize is 'fast' or 'stable', not {algorithm!r}{place()}")
    array = _floats(x)
    middle = mean_of(array, axis, keepdims=True, where=where) if mean is None else as_array(mean)
    distance = subtract(array, middle)
    spread = mean_of(square(distance), axis, keepdims=True, where=where) if variance is None else as_array(variance)
    return multiply(distance, rsqrt(add(spread, epsilon)))


def one_hot(x: object, num_classes: object, *, dtype: DTypeLike = float, axis: int = -1) -> Array:
    """1 at the place that an integer says along a new axis of `num_classes` elements, else 0; zeros only for one that
    says no place. Raises DTypeError for what is no integer, ArgumentError and ShapeError for such numbers of classes,
    AxisError.

    >>> import harp.numpy as hnp
    >>> one_hot(hnp.asarray([2, 0]), 3)
    Array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    array = as_array(x)
    if not array.kind.is_integer:
        raise DTypeError(f"one_hot takes integers, not {array.dtype}; convert with astype{place()}")
    axis = normalize_axis(axis, array.ndim + 1)
    behind = array.ndim - axis
    # Of a dtype that holds all places, which that of the array need not do.
    classes = wrap(as_count("num_classes of one_hot", num_classes))
    places = arange(classes, dtype=u64 if array.kind is u64 else i64).reshape((-1, *(1,) * behind))
    return equal(expand_dims(array, axis), places).astype(dtype)


def _floats(x: object) -> Array:
    return float_map(lambda a: a, x)
