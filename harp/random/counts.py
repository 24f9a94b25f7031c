"""Counts: the distributions of Poisson, of Bernoulli's trials (binomial, multinomial) and of waiting for a success.

Below a mean of 10 by the inverse of the distribution function. From there on by algorithm BTRS of W. Hormann: "The
generation of binomial random variates", J. Stat. Comput. Simul. 46 (1993), without its squeeze. Its hat depends on the
number of trials by their mean and variance only, so that of the limit of many trials serves Poisson's distribution. A
binomial probability is a quotient of three of Poisson's, whose logarithms are small beside those of factorials, so
that large counts have all digits.
"""

from __future__ import annotations

import math
from functools import cache, partial

from harp.errors import DTypeError, ShapeError
from harp.numpy.cumulative import cumsum
from harp.numpy.elementwise import exp, floor, log1p, maximum, minimum, where
from harp.numpy.manipulation import flip, moveaxis
from harp.random.eager import Build
from harp.random.floats import require_within, sample_shape, spread, unit, units
from harp.random.gamma import waiting
from harp.random.rejection import accepted
from harp.random.streams import draw, split
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import broadcast_shapes, common_dtype, map_, to_shape
from harp.trace.index.polynomial import Shape
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, f64, i64, integer_limits
from harp.trace.scalar.expr import Expr, apply, cast, less_equal, select
from harp.trace.scalar.formulas import equals, is_nan, number
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where as place
from harp.transforms.control.scan import scan

_LEAST = 10.0  # the mean from which on the hat lies above the probabilities
_TERMS = 48  # of the inverse: a count of Poisson's above them has a probability below 2**-53 for means up to 10
_ATTEMPTS = 32  # one fails with a probability of at most 0.292, all with less than 2**-56
_SECOND, _INVERTED = 1, 2  # lanes
# What Stirling's formula for log(k!), (k + 1/2) log(k + 1) - (k + 1) + log(2 pi)/2, lacks; the series is for more.
_RESTS = [math.lgamma(k + 1) - (k + 0.5) * math.log(k + 1) + k + 1 - 0.5 * math.log(2 * math.pi) for k in range(10)]


def poisson(key: object, lam: object, shape: object = None, dtype: DTypeLike = i64) -> Array:
    """Counts of events of which there are `lam` on average, in an integer or floating-point dtype.

    Exact for all rates. Negative, infinite or NaN elements of an array give NaN, or -1 among integers; a count above
    the largest integer of the dtype gives that. Raises ArgumentError for such numbers, DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.poisson(harp.random.key(0), 2.5, 4).shape
    (4,)
    """
    require_within("poisson", "a rate lam", lam, 0)
    (rate,), sizes = _doubles("poisson", lam), sample_shape(shape, lam)
    few = _inverted(key, sizes, exp(-rate), rate, 0.0)
    many = _rejected(key, sizes, maximum(rate, _LEAST), 0.0, rate < _LEAST, trials=False)
    return _converted("poisson", where(rate < _LEAST, few, where(rate < math.inf, many, math.nan)), rate >= 0, dtype)


def binomial(key: object, n: object, p: object, shape: object = None, dtype: DTypeLike = float) -> Array:
    """How many of `n` trials succeed, each with probability `p`, in a floating-point or integer dtype.

    Exact for all parameters. A fraction of `n` is dropped. Elements of arrays with n < 0, an infinite n, or p outside
    [0, 1] give NaN, or -1 among integers. Raises ArgumentError for such numbers, DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.binomial(harp.random.key(0), 10, harp.numpy.asarray([0.0, 1.0]), dtype=int)
    Array([ 0, 10])
    """
    require_within("binomial", "a number of trials n", n, 0)
    require_within("binomial", "a probability p", p, 0, 1)
    (trials, chance), sizes = _doubles("binomial", n, p), sample_shape(shape, n, p)
    trials, rare = floor(trials), minimum(chance, 1 - chance)
    odds, small = rare / (1 - rare), trials * rare < _LEAST
    few = minimum(_inverted(key, sizes, exp(trials * log1p(-rare)), trials * odds, odds), trials)
    many = _rejected(key, sizes, where(small, 2 * _LEAST, trials), where(small, 0.5, rare), small, trials=True)
    count = where(small, few, many)
    good = (trials >= 0) & (trials < math.inf) & (chance >= 0) & (chance <= 1)
    return _converted("binomial", where(chance > 0.5, trials - count, count), good, dtype)


def multinomial(key: object, n: object, p: object, *, shape: object = None, dtype: DTypeLike = float) -> Array:
    """How many of `n` draws fall into each category of the last axis of `p`, which are weights of any sum.

    `n` broadcasts to the axes before, or to a `shape` in their place. One category after the other is a binomial count
    of the draws that are left. Raises as `binomial` does, and ShapeError for a `p` without axes.

    >>> import harp
    >>> harp.random.multinomial(harp.random.key(0), 6, harp.numpy.asarray([0.0, 2.0, 0.0]))
    Array([0., 6., 0.])
    """
    require_within("multinomial", "a number of draws n", n, 0)
    draws, weights = _doubles("multinomial", n, p)
    if not weights.ndim:
        raise ShapeError(f"multinomial takes weights p along an axis, not one number{place()}")
    categories = node_of(weights).shape[-1]
    batch = broadcast_shapes([node_of(draws).shape, node_of(weights).shape[:-1]]) if shape is None else to_shape(shape)
    weights = moveaxis(spread(weights, f64, (*batch, categories)), -1, 0)
    left = flip(cumsum(flip(weights, 0), axis=0), 0)
    chances = weights / where(left > 0, left, 1.0)

    def step(remaining: Array, given: tuple[Array, Array]) -> tuple[Array, Array]:
        count = binomial(given[1], remaining, given[0])
        return remaining - count, count

    _, counts = scan(step, spread(floor(draws), f64, batch), (chances, split(key, categories)))
    return _converted("multinomial", moveaxis(counts, 0, -1), True, dtype)


def geometric(key: object, p: object, shape: object = None, dtype: DTypeLike = i64) -> Array:
    """The number of the first trial that succeeds, from 1 on, where each does with probability `p`.

    0, and elements of arrays outside of [0, 1], give NaN, or -1 among integers. Raises ArgumentError for such numbers,
    DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.geometric(harp.random.key(0), 1.0, 3)
    Array([1, 1, 1])
    """
    require_within("geometric", "a probability p", p, 0, 1)
    (chance,), sizes = _doubles("geometric", p), sample_shape(shape, p)
    trials = floor(draw(key, sizes, waiting(f64)) / -log1p(-chance)) + 1
    return _converted("geometric", trials, (chance > 0) & (chance <= 1), dtype)


def _doubles(name: str, *values: object) -> list[Array]:
    """The parameters in float64. Raises DTypeError for complex ones."""
    if (common := common_dtype(values)[0]).is_complex:
        raise DTypeError(f"{name} takes real parameters, not {common.numpy}{place()}")
    return [map_(lambda x: x, value, to=f64) for value in values]


def _converted(name: str, count: Array, good: object, dtype: DTypeLike) -> Array:
    """Counts in the dtype that was asked for, where the parameters are good."""
    target, count = as_dtype(dtype), where(good, count, math.nan)
    if target.is_inexact and not target.is_complex:
        return map_(lambda x: cast(x, target), count)
    if not target.is_integer:
        raise DTypeError(f"{name} draws integers or floats, not {target.numpy}{place()}")
    largest = float(min(integer_limits(target).max, 2**63 - 1024))

    def integer(x: Expr) -> Expr:
        known = select(is_nan(x), number(-1, x), apply(Op.MIN, x, number(largest, x)))
        return cast(cast(known, i64), target)

    return map_(integer, count)


def _inverted(key: object, sizes: Shape, none: object, slope: object, odds: object) -> Array:
    """Counts by the inverse of a distribution function in which count k + 1 is (slope - k*odds)/(k + 1) times as likely
    as k, and none has the probability `none`."""
    return map_(_inverse, draw(key, sizes, units(f64), (_INVERTED,)), none, slope, odds, to=f64)


def _inverse(u: Expr, none: Expr, slope: Expr, odds: Expr) -> Expr:
    term = total = none
    count = number(0, u)
    for k in range(_TERMS):
        count = count + select(u < total, number(0, u), number(1, u))
        term = term * ((slope - k * odds) * (1 / (k + 1)))
        total = total + term
    return count


def _rejected(key: object, sizes: Shape, n: Array, p: object, small: Array, trials: bool) -> Array:
    """Counts by rejection: of `n` trials, or of the limit of many, whose mean is `n`. Where `small` any is accepted."""
    mean, mode = (n * p, floor((n + 1) * p)) if trials else (n, floor(n))
    level = where(small, -math.inf, map_(partial(_log, trials=trials), mode, n, mean))
    operands = [spread(value, f64, sizes) for value in (n, p, mean, level)]
    return accepted(key, sizes, _count, (0,), _accepts(trials), _SECOND, operands, _ATTEMPTS)


def _count(*given: Expr) -> Expr:
    return _candidate(*given[:2], *given[-4:-1])[0]


@cache
def _accepts(trials: bool) -> Build:
    """Whether v times the hat is below the probability of the count, both over the largest probability."""

    def build(*given: Expr) -> Expr:
        a, b, c, d, n, p, mean, level = given
        k, hat = _candidate(a, b, n, p, mean)
        possible = less_equal(number(0, k), k)
        if trials:
            possible = possible & less_equal(k, n)
        return possible & (unit(c, d, f64) * hat < apply(Op.EXP, _log(k, n, mean, trials) - level))

    return build


def _candidate(a: Expr, b: Expr, n: Expr, p: Expr, mean: Expr) -> tuple[Expr, Expr]:
    """A count, and the hat above it: the constants are Hormann's."""
    deviation = apply(Op.SQRT, mean * (1 - p))
    width = 2.53 * deviation + 1.15
    tail = 0.0248 * width + 0.01 * p + -0.0873
    u = unit(a, b, f64) + -0.5
    inside = 0.5 - apply(Op.ABS, u)
    k = apply(Op.FLOOR, (2 * tail / inside + width) * u + (mean + 0.5))
    return k, (2.83 + 5.1 / width) * deviation / (tail / (inside * inside) + width)


def _log(k: Expr, n: Expr, mean: Expr, trials: bool) -> Expr:
    """The logarithm of the probability of k, up to a constant."""
    value = _log_poisson(k, mean)
    return value + _log_poisson(n - k, n - mean) if trials else value


def _log_poisson(k: Expr, mean: Expr) -> Expr:
    """k log(mean) - mean - log(k!), up to a constant, by Stirling's series: no term is greater than the deviation."""
    above = (k + 1) - mean
    x = apply(Op.RECIP, k + 1)
    square = x * x
    rest = x * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680))))
    for small, exact in enumerate(_RESTS):
        rest = select(equals(k, small), number(exact, k), rest)
    return above - (k + 0.5) * apply(Op.LOG1P, above / mean) - rest
