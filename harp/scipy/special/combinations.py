"""Box and Cox's powers, and numbers of combinations."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, partial
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.creation import arange, asarray
from harp.numpy.elementwise import minimum, where
from harp.scipy.special.formulas import in_double, mapped, number, polynomial
from harp.scipy.special.gamma_functions import beta_value
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_integer
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import absolute, equals, is_nan
from harp.trace.scalar.ops import Op
from harp.trace.sizes.size import Size
from harp.trace.source_locations import where as place


def _boxcox(log: Expr, power: Expr) -> Expr:
    """(exp(power * log) - 1) / power: near 0 by its series in the exponent, for derivatives of all orders."""
    exponent = power * log
    near = absolute(exponent) < 1
    none = equals(power, 0) & ~(absolute(log) < math.inf)
    small = select(near, exponent, number(0))
    series = polynomial(small, [1 / math.factorial(k + 1) for k in reversed(range(19))])
    # exp(exponent) / power may be finite where exp(exponent) is not
    large, by = select(near | none, number(1), exponent), select(near | none, number(1), power)
    high = large > 700
    usual = apply(Op.EXPM1, select(high, number(1), large)) / by
    half = apply(Op.EXP, 0.5 * select(high, large, number(0)))
    value = select(high, half / by * half, usual)
    return select(none, log, select(near, select(near, log, number(0)) * series, value))


def _comb(repetition: bool, n: Expr, k: Expr) -> Expr:
    """By the beta function of `first` and k + 1, whose sum is `total`."""
    first, total = (n, n + k) if repetition else (n - k + 1, n + 1)
    inside = ((n > 0) if repetition else ~(n < k) & ~(n < 0)) & ~(k < 0)
    usual = inside & (n < math.inf) & (k < math.inf)
    low, high, whole = (select(usual, e, number(d)) for e, d in ((first, 1), (k + 1, 1), (total, 2)))
    # the beta function underflows where its inverse does not overflow: that of `high` less 12
    shifted = (whole > 900) & (apply(Op.MIN, low, high) > 20)
    factor = number(1)
    for j in range(1, 13):
        factor = factor * select(shifted, (whole - j) / (select(shifted, high, number(20)) - j), number(1))
    steps = select(shifted, number(12), number(0))
    value = apply(Op.RECIP, (whole - steps) * beta_value(low, high - steps)) * factor
    # of integers below 2**49 it is exact
    exact = equals(n - apply(Op.FLOOR, n), 0) & equals(k - apply(Op.FLOOR, k), 0) & (value < 2.0**49)
    value = value + apply(Op.STOP, select(exact, apply(Op.RINT, value) - value, number(0)))
    none = select(equals(k, 0) & equals(n, 0), number(1), number(0))
    endless = select(equals(k, 0), number(1), number(math.inf))
    return select(is_nan(n + k), n + k, select(usual, value, select(inside, endless, none)))


def comb(N: object, k: object, *, exact: bool = False, repetition: bool = False) -> Array:
    """Elementwise the number of ways to take k of N, with `repetition` of the same ones again; 0 where there is none.

    Of integers it is exact below 2**49. Raises ArgumentError for `exact`: results are floats.

    >>> comb(5, 2)
    Array(10.)
    """
    if exact:
        raise ArgumentError(f"comb of arrays is a float; for exact integers use math.comb{place()}")
    return in_double(partial(_comb, bool(repetition)), N, k)


@cache
def _bernoulli() -> list[float]:
    """All that are finite in float64, by tangent numbers.

    R. P. Brent, D. Harvey, Fast computation of Bernoulli, tangent and secant numbers (2013).
    """
    count = 130
    tangents = [math.factorial(k) for k in range(count)]
    for k in range(1, count):
        for j in range(k, count):
            tangents[j] = (j - k) * tangents[j - 1] + (j - k + 2) * tangents[j]
    numbers = [1.0, -0.5]
    for k, tangent in enumerate(tangents, 1):
        scale = 4**k * (4**k - 1)
        try:
            numbers.append(float(Fraction((-1) ** (k - 1) * 2 * k * tangent, scale)))
        except OverflowError:
            break
        numbers.append(0.0)
    return numbers


def bernoulli(n: int | Size) -> Array:
    """The Bernoulli numbers from 0 to n, which may be a size; B(1) is -1/2. Those above 258 are infinite.

    Raises ArgumentError for negative numbers.

    >>> bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333333])
    """
    last: Any = n if isinstance(n, Size) else as_integer("n of bernoulli", n)
    if not isinstance(last, Size) and last < 0:
        raise ArgumentError(f"n of bernoulli is 0 or more, not {last}{place()}")
    numbers = _bernoulli()
    k = arange(last + 1)
    found = asarray(numbers)[minimum(k, len(numbers) - 1)]
    beyond = where(k % 2 == 1, 0.0, where(k % 4 == 0, -math.inf, math.inf))
    return where(k < len(numbers), found, beyond)


boxcox = mapped(
    *("boxcox", "x lmbda", lambda x, power: _boxcox(apply(Op.LOG, x), power)),
    "Elementwise (x**lmbda - 1) / lmbda, and log(x) where lmbda is 0; NaN for negative x.",
    *("2.0, 0.5", "0.82842712"),
)
boxcox1p = mapped(
    *("boxcox1p", "x lmbda", lambda x, power: _boxcox(apply(Op.LOG1P, x), power)),
    "Elementwise `boxcox` of 1 + x, accurate near 0.",
    *("1e-10, 0.5", "1.e-10"),
)
