"""Distributions that are functions of uniform, exponential, normal and gamma numbers.

Derivatives flow to locations, scales and exponents; those with respect to parameters of gamma numbers raise
MissingRuleError. What is drawn is float64 or float32; of functions with parameters their dtype, float64 for numbers,
unless a `dtype` is given, and the shape to which they broadcast, unless a `shape` is. Others raise DTypeError and
ShapeError. Parameters for which there is no distribution give NaN, or numbers without a meaning.
"""

from __future__ import annotations

import math
from functools import cache

from harp.numpy.elementwise import exp, log, sqrt
from harp.random.eager import Build
from harp.random.floats import float_dtype, halves, parameters, units
from harp.random.gamma import exponential, gamma, loggamma
from harp.random.normal import normal
from harp.random.streams import derived, draw
from harp.random.uniform import rademacher
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_, to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.ops import Op


def laplace(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Numbers of density exp(-abs(x)) / 2, up to 44.4.

    >>> import harp
    >>> harp.random.laplace(harp.random.key(0), 3).shape
    (3,)
    """
    return _two_sided("laplace", key, shape, dtype)


def logistic(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Numbers of the distribution function 1 / (1 + exp(-x)), up to 45.1.

    >>> import harp
    >>> harp.random.logistic(harp.random.key(0), 3).shape
    (3,)
    """
    return _two_sided("logistic", key, shape, dtype)


def cauchy(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Numbers of density 1 / (pi (1 + x**2)), up to 1.2e19.

    >>> import harp
    >>> harp.random.cauchy(harp.random.key(0), 3).shape
    (3,)
    """
    return _two_sided("cauchy", key, shape, dtype)


# The upper half of each distribution: the number above which there is the probability v.
_ABOVE = {
    "laplace": lambda v: -apply(Op.LOG, v + v),
    "logistic": lambda v: apply(Op.LOG1P, -v) - apply(Op.LOG, v),
    "cauchy": lambda v: apply(Op.RECIP, apply(Op.TAN, math.pi * v)),
}


def _two_sided(name: str, key: object, shape: object, dtype: DTypeLike) -> Array:
    return draw(key, to_shape(shape), _signed(name, float_dtype(name, dtype)))


@cache
def _signed(name: str, dtype: DType) -> Build:
    def build(a: Expr, b: Expr) -> Expr:
        coin, v = halves(a, b, dtype)
        x = _ABOVE[name](v)
        return select(coin, -x, x)

    return build


def maxwell(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Lengths of vectors of three standard normal numbers: of density sqrt(2/pi) x**2 exp(-x**2 / 2).

    >>> import harp
    >>> harp.random.maxwell(harp.random.key(0), 3).shape
    (3,)
    """
    target = float_dtype("maxwell", dtype)
    one, two = normal(derived(key, 1), shape, target), exponential(derived(key, 2), shape, target)
    return sqrt(one * one + 2 * two)


def double_sided_maxwell(
    key: object, loc: object, scale: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """`loc` plus or minus `scale` times numbers of Maxwell's distribution.

    >>> import harp
    >>> harp.random.double_sided_maxwell(harp.random.key(0), 0.0, 2.0, 3).shape
    (3,)
    """
    target, sizes, (middle, width) = parameters("double_sided_maxwell", shape, dtype, loc, scale)
    return middle + width * (rademacher(key, sizes, target) * maxwell(key, sizes, target))


def lognormal(key: object, sigma: object = 1.0, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """exp(sigma * x) for standard normal numbers x.

    >>> import harp
    >>> harp.random.lognormal(harp.random.key(0), 0.5, 3).shape
    (3,)
    """
    target, sizes, (deviation,) = parameters("lognormal", shape, dtype, sigma)
    return exp(deviation * normal(key, sizes, target))


def rayleigh(key: object, scale: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Lengths of vectors of two normal numbers: of density proportional to x exp(-(x/scale)**2 / 2).

    >>> import harp
    >>> harp.random.rayleigh(harp.random.key(0), 2.0, 3).shape
    (3,)
    """
    target, sizes, (width,) = parameters("rayleigh", shape, dtype, scale)
    return width * sqrt(2 * exponential(key, sizes, target))


def weibull_min(
    key: object, scale: object, concentration: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Positive numbers of the distribution function 1 - exp(-(x/scale)**concentration).

    >>> import harp
    >>> harp.random.weibull_min(harp.random.key(0), 1.0, 2.0, 3).shape
    (3,)
    """
    target, sizes, (width, power) = parameters("weibull_min", shape, dtype, scale, concentration)
    return width * exponential(key, sizes, target) ** (1 / power)


def pareto(key: object, b: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers from 1 on, of density b / x**(b + 1).

    >>> import harp
    >>> harp.random.pareto(harp.random.key(0), 3.0, 4).shape
    (4,)
    """
    target, sizes, (power,) = parameters("pareto", shape, dtype, b)
    return exp(exponential(key, sizes, target) / power)


def triangular(
    key: object, left: object, mode: object, right: object, shape: object = None, dtype: DTypeLike | None = None
) -> Array:
    """Numbers from `left` to `right`, whose density grows linearly up to `mode` and falls linearly from there.

    >>> import harp
    >>> harp.random.triangular(harp.random.key(0), 0.0, 1.0, 4.0, 3).shape
    (3,)
    """
    target, sizes, ends = parameters("triangular", shape, dtype, left, mode, right)
    return map_(_triangle, draw(key, sizes, units(target)), *ends)


def _triangle(u: Expr, left: Expr, mode: Expr, right: Expr) -> Expr:
    """The inverse of the distribution function; the root of `u` apart, which may be 0, where a root has no slope."""
    share = (mode - left) / (right - left)
    below = u < share
    part = apply(Op.SQRT, select(below, share, 1 - share)) * apply(Op.SQRT, select(below, u, 1 - u))
    return select(below, left, right) + (right - left) * select(below, part, -part)


def wald(key: object, mean: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Positive numbers of density sqrt(1 / (2 pi x**3)) exp(-(x - mean)**2 / (2 mean**2 x)): inverse Gaussian.

    By J. R. Michael, W. R. Schucany, R. W. Haas: "Generating random variates using transformations with multiple
    roots", Amer. Statist. 30 (1976). Derivatives with respect to `mean` raise MissingRuleError.

    >>> import harp
    >>> harp.random.wald(harp.random.key(0), 2.0, 3).shape
    (3,)
    """
    target, sizes, (middle,) = parameters("wald", shape, dtype, mean)
    return map_(_root, normal(derived(key, 1), sizes, target), draw(key, sizes, units(target)), middle)


def _root(x: Expr, u: Expr, mean: Expr) -> Expr:
    """One of two roots, whose product is mean**2: which one is chosen depends on the mean."""
    middle = apply(Op.OPAQUE, mean)
    w = middle * (x * x)
    smaller = 2 / (2 + w + apply(Op.SQRT, w * (w + 4)))
    return middle * select(u * (1 + smaller) < 1, smaller, apply(Op.RECIP, smaller))


def chisquare(key: object, df: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Sums of squares of `df` standard normal numbers: of density proportional to x**(df/2 - 1) exp(-x/2).

    >>> import harp
    >>> harp.random.chisquare(harp.random.key(0), 3.0, 4).shape
    (4,)
    """
    _, _, (freedom,) = parameters("chisquare", shape, dtype, df)
    return 2 * gamma(key, freedom / 2)


def t(key: object, df: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Student's distribution with `df` degrees of freedom.

    >>> import harp
    >>> harp.random.t(harp.random.key(0), 3.0, 4).shape
    (4,)
    """
    target, sizes, (freedom,) = parameters("t", shape, dtype, df)
    half = freedom / 2
    return normal(derived(key, 1), sizes, target) * exp((log(half) - loggamma(derived(key, 2), half)) / 2)


def f(key: object, dfnum: object, dfden: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Fisher's distribution: the quotient of two chi-square numbers, each over its degrees of freedom.

    >>> import harp
    >>> harp.random.f(harp.random.key(0), 3.0, 5.0, 4).shape
    (4,)
    """
    _, _, halves = parameters("f", shape, dtype, dfnum, dfden)
    above, below = (loggamma(derived(key, k), half / 2) - log(half) for k, half in enumerate(halves, 1))
    return exp(above - below)


def generalized_normal(key: object, p: object, shape: object = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of density proportional to exp(-abs(x)**p).

    >>> import harp
    >>> harp.random.generalized_normal(harp.random.key(0), 4.0, 3).shape
    (3,)
    """
    target, sizes, (power,) = parameters("generalized_normal", shape, dtype, p)
    return rademacher(derived(key, 1), sizes, target) * exp(loggamma(key, 1 / power) / power)
