"""The exponential distribution and its logarithm, that of Gumbel; the gamma distribution, and those made of it: beta
and Dirichlet.

The first two are -log(u), accurate at both ends.

G. Marsaglia, W. W. Tsang: "A simple method for generating gamma variables", ACM TOMS 26 (2000). A shape below
1 is drawn as the one larger by 1, times a power of a uniform number.
"""

from __future__ import annotations

import math
from functools import cache, partial

from harp.numpy.activation import sigmoid, softmax
from harp.numpy.elementwise import subtract
from harp.random.eager import Build
from harp.random.floats import common_float, float_dtype, minus_log, parameters, sample_shape, spread, unit
from harp.random.normal import LANES, deviate
from harp.random.rejection import accepted
from harp.random.streams import derived, draw
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, map_, to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike
from harp.trace.scalar.expr import Expr, apply, less_equal, select
from harp.trace.scalar.formulas import number
from harp.trace.scalar.ops import Op


def exponential(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Positive numbers of density exp(-x), in float64 or float32; multiply for another mean.

    They lie between 2**-65 and 45.1. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.exponential(harp.random.key(0), 4).shape
    (4,)
    """
    target = float_dtype("exponential", dtype)
    return draw(key, to_shape(shape), waiting(target))


def gumbel(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Numbers of the distribution function exp(-exp(-x)), in float64 or float32: the extremes of many samples.

    They lie between -3.9 and 45.1. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.gumbel(harp.random.key(0), 4).shape
    (4,)
    """
    target = float_dtype("gumbel", dtype)
    return draw(key, to_shape(shape), _extreme(target))


@cache
def waiting(dtype: DType) -> Build:
    """-log(u)"""
    return partial(minus_log, dtype=dtype)


@cache
def _extreme(dtype: DType) -> Build:
    """-log(-log(u))"""
    return lambda a, b: -apply(Op.LOG, minus_log(a, b, dtype))


# One attempt fails with a probability of at most 0.0484, that of the shape 1; all of them with less than 2**-69.
ATTEMPTS = 16
_UNIFORM, _POWER = 2, 3  # lanes, after those of the normal numbers


def gamma(key: object, a: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of density x**(a-1) * exp(-x) / Gamma(a), of the shape of `a`, or of one to which `a` broadcasts.

    float32 for float32 `a`, float64 for numbers. 0 gives 0; negative `a` and NaN give NaN. Derivatives with respect to
    `a` raise MissingRuleError. The first good one of 16 attempts counts; compiled programs make no more than they need.

    >>> import harp
    >>> harp.random.gamma(harp.random.key(0), 2.5, 3).shape
    (3,)
    """
    return _sample("gamma", key, a, shape, dtype, logarithm=False)


def loggamma(key: object, a: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """The logarithms of the same numbers, also of those that are too small for the dtype.

    >>> import harp
    >>> bool(harp.random.loggamma(harp.random.key(0), 1e-5) < -1000)
    True
    """
    return _sample("loggamma", key, a, shape, dtype, logarithm=True)


def beta(key: object, a: object, b: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of density proportional to x**(a-1) * (1-x)**(b-1) on [0, 1], in the shape to which `a`, `b` broadcast.

    Derivatives with respect to `a` and `b` raise MissingRuleError.

    >>> import harp
    >>> harp.random.beta(harp.random.key(0), 2.0, 3.0, 4).shape
    (4,)
    """
    _, _, (first, second) = parameters("beta", shape, dtype, a, b)
    return sigmoid(subtract(loggamma(derived(key, 1), first), loggamma(derived(key, 2), second)))


def dirichlet(key: object, alpha: object, shape: object = (), dtype: DTypeLike | None = None) -> Array:
    """Vectors of positive numbers whose sum is 1, along a last axis as long as that of `alpha`, after those of `shape`.

    `alpha` has one axis or more; the axes before the last one come after those of `shape`. Derivatives with respect to
    `alpha` raise MissingRuleError.

    >>> import harp
    >>> harp.random.dirichlet(harp.random.key(0), harp.numpy.ones(3), 5).shape
    (5, 3)
    """
    array = as_array(alpha)
    _, _, (given,) = parameters("dirichlet", (*to_shape(shape), *to_shape(array.shape)), dtype, array)
    return softmax(loggamma(key, given), axis=-1)


def _sample(name: str, key: object, a: object, shape: object, dtype: DTypeLike | None, logarithm: bool) -> Array:
    target, sizes = common_float(name, a, dtype=dtype), sample_shape(shape, a)
    given = map_(lambda x: apply(Op.OPAQUE, x), a, to=target)
    d, c = (spread(map_(build, given), target, sizes) for build in (_size, _slope))
    base = accepted(key, sizes, _base(target), LANES[target], _trial(target), _UNIFORM, (d, c), ATTEMPTS)
    power = draw(key, sizes, waiting(target), (_POWER,))
    return map_(_logarithm if logarithm else _value, spread(given, target, sizes), d, base, power)


def _size(a: Expr) -> Expr:
    """d = a - 1/3, for an `a` of at least 1"""
    one = number(1, a)
    return select(a < one, a + one, a) + -1 / 3


def _slope(a: Expr) -> Expr:
    """c = 1 / sqrt(9 d)"""
    return apply(Op.RECIP, 3 * apply(Op.SQRT, _size(a)))


@cache
def _trial(dtype: DType) -> Build:
    """Whether an attempt is accepted."""
    return lambda *given: _accepts(given, dtype)


@cache
def _base(dtype: DType) -> Build:
    """1 + c*x for a normal number x."""
    return lambda *given: 1 + given[-1] * deviate(given[:-2], dtype)


def _accepts(given: tuple[Expr, ...], dtype: DType) -> Expr:
    """u < exp(x**2/2 + d*(1 - v + log v)) for v = (1 + c*x)**3; a v that is not positive has no logarithm."""
    *words, u, w, d, c = given
    x = deviate(words, dtype)
    s = c * x
    # 1 - v = -s*(3 + s*(3 + s)): d may be large, and the sum with log v small
    rest = -(s * (3 + s * (3 + s)))
    bound = rest + 3 * apply(Op.LOG1P, s)
    right = 0.5 * (x * x) + d * bound
    return unit(u, w, dtype) < apply(Op.EXP, right)


def _value(a: Expr, d: Expr, base: Expr, power: Expr) -> Expr:
    larger = d * (base * (base * base))
    smaller = larger * apply(Op.EXP, -(power / a))
    return _of_shape(a, smaller, larger)


def _logarithm(a: Expr, d: Expr, base: Expr, power: Expr) -> Expr:
    larger = apply(Op.LOG, d) + 3 * apply(Op.LOG, base)
    return _of_shape(a, larger - power / a, larger)


def _of_shape(a: Expr, smaller: Expr, larger: Expr) -> Expr:
    """Which of the two counts for this shape; NaN for those that are none."""
    result = select(a < 1, smaller, larger)
    return select(less_equal(number(0, a), a), result, number(math.nan, a))
