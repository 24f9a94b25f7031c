"""The gamma function, its logarithm and the derivatives of that, the beta and the zeta function.

From 8 on Stirling's series, between 0 and 8 a polynomial about 2 and the recurrence Gamma(x + 1) = x Gamma(x), below 0
the reflection Gamma(x) Gamma(1 - x) = pi / sin(pi x) (NIST Handbook of Mathematical Functions, 5.5 and 5.11). The
beta function takes differences of Stirling's series term by term, as DiDonato and Morris do (Algorithm 708, ACM
Transactions on Mathematical Software 18, 1992), for its logarithm is small beside those of the gamma functions. The
zeta function is Euler and Maclaurin's sum. All are smooth, so derivatives of all orders are as accurate as the
functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from harp.errors import ArgumentError
from harp.scipy.special.formulas import in_double, mapped, number, polynomial, with_slope
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_integer
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import add, equals, is_nan
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where

# log(Gamma(2 + d)) / d for |d| <= 1/2, the highest power first: near-minimax, by interpolation at Chebyshev's points.
_NEAR_TWO = (
    *("0x1.01127da9788f9p-26", "-0x1.0cfcd77c3ec5fp-25", "0x1.8367966486352p-25", "-0x1.98152dabaf411p-24"),
    *("0x1.c959188a8539dp-23", "-0x1.e46267845840ap-22", "0x1.0057bc58baf67p-20", "-0x1.11a54bc3cfe3cp-19"),
    *("0x1.259814c96e3bdp-18", "-0x1.3cbd0c34c2671p-17", "0x1.580dcc735f957p-16", "-0x1.78de594a1f5d8p-15"),
    *("0x1.a127b0f9ee692p-14", "-0x1.d3fd4c7f9fa26p-13", "0x1.0b36af8630f5fp-11", "-0x1.38ac5c2bf00bfp-10"),
    *("0x1.7add6eadb6cbbp-9", "-0x1.e404fc218f683p-8", "0x1.51322ac7d8483p-6", "-0x1.13e001a557606p-4"),
    *("0x1.4a34cc4a60fa6p-2", "0x1.b0ee6072093cep-2"),
)
# The Bernoulli numbers B(2k) / (2k (2k - 1)) of Stirling's series, the highest power of 1/x**2 first.
BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330),
    854513 / 138,
)
STIRLING = tuple(b / ((2 * k) * (2 * k - 1)) for k, b in reversed(list(enumerate(BERNOULLI, 1))))
_SLOPES = tuple(b / (2 * k) for k, b in reversed(list(enumerate(BERNOULLI, 1))))
FAR = 8  # from where the series is good
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def gammaln(x: object) -> Array:
    """Elementwise log(|Gamma(x)|); infinite at 0, -1, -2, ... Its gradient is `digamma`.

    The error is a few units in the last place for positive x; below 0, where there are zeros, of the larger of 1 and
    the result. Raises DTypeError for complex numbers.

    >>> gammaln(5.0)
    Array(3.17805383)
    """
    return _gammaln(as_array(x))


def digamma(x: object) -> Array:
    """Elementwise the derivative of log(Gamma(x)); NaN at 0, -1, -2, ... Its gradient is the trigamma function.

    The error is a few units in the last place of the larger of 1 and the result. Raises DTypeError for complex numbers.

    >>> digamma(1.0)
    Array(-0.57721566)
    """
    return in_double(psi, x)


_gammaln = with_slope(lambda x: log_gamma(x), digamma)


def betaln(a: object, b: object) -> Array:
    """Elementwise the logarithm of the beta function, gammaln(a) + gammaln(b) - gammaln(a + b).

    The error is a few units in the last place of the larger of 1 and the result, where both are positive. Raises
    DTypeError for complex numbers.

    >>> betaln(2.0, 3.0)
    Array(-2.48490665)
    """

    return in_double(lambda p, q: log_beta(*ordered(p, q)), a, b)


def factorial(n: object, exact: bool = False) -> Array:
    """Elementwise gamma(n + 1), and 0 for negative numbers. Raises ArgumentError for `exact`: results are floats.

    >>> factorial(5)
    Array(120.)
    """
    if exact:
        raise ArgumentError(f"factorial of arrays is a float; for exact integers use math.factorial{where()}")
    return in_double(lambda a: select(a < 0, number(0), gamma_value(select(a < 0, number(0), a) + 1)), n)


def beta_value(p: Expr, q: Expr) -> Expr:
    """The beta function."""
    low, high = ordered(p, q)
    total = low + high
    far = ~((high < FAR) | (total < FAR))
    x, y, z = (select(far, number(1), e) for e in (low, high, total))
    quotient = apply(Op.EXP, log_quotient(select(far, low, number(1)), select(far, high, number(FAR))))
    near = gamma_value(x) * (gamma_value(y) / gamma_value(z))
    far_value = select(low < FAR, gamma_value(low) * quotient, apply(Op.EXP, log_beta(low, high)))
    return select(far, far_value, near)


def _poch(x: Expr, steps: Expr) -> Expr:
    total = x + steps
    far = ~((x < FAR) | (total < FAR))
    big = (x > 150) | (total > 150)
    a, b = select(far, x, number(FAR)), select(far, steps, number(1))
    log = select(far, -log_quotient(b, a), log_gamma(total) - log_gamma(x))
    near, above = select(big, number(1), x), select(big, number(1), total)
    signs = _sign(x) * _sign(total)
    close = big | far & (apply(Op.ABS, steps) < 2)
    value = select(close, signs * apply(Op.EXP, log), gamma_value(above) / gamma_value(near))
    return select(equals(steps, 0), 1 + 0 * total, value)


def multigammaln(a: object, d: object) -> Array:
    """Elementwise logarithm of the gamma function of matrices with d rows, a number of Python.

    >>> multigammaln(3.0, 1) == gammaln(3.0)
    Array(True)
    """
    rows = as_integer("d", d)
    constant = rows * (rows - 1) / 4 * math.log(math.pi)
    return in_double(lambda x: add(*(log_gamma(x - k / 2) for k in range(rows)), number(constant)), a)


def _polygamma(order: Expr, a: Expr) -> Expr:
    order = apply(Op.STOP, order)
    even = _is_even(order)
    value = gamma_value(order + 1) * _zeta(order + 1, a)
    known = ~(order < 0) & equals(order - apply(Op.FLOOR, order), 0)
    value = select(known, select(even, -value, value), number(math.nan))
    return select(equals(order, 0), psi(a), value)


def zeta(x: object, q: object = 1.0) -> Array:
    """Elementwise sum of (q + k)**-x over k = 0, 1, ..., for x >= 1; infinite for q = 0, -1, ...
    and x = 1, NaN for others below.

    >>> zeta(2.0)
    Array(1.64493407)
    """
    return in_double(_zeta, x, q)


def ordered(p: Expr, q: Expr) -> tuple[Expr, Expr]:
    """The smaller one first."""
    swapped = q < p
    return select(swapped, q, p), select(swapped, p, q)


def log_beta(low: Expr, high: Expr) -> Expr:
    """Of arguments in order."""
    total = low + high
    far = ~((high < FAR) | (total < FAR))
    endless = apply(Op.EQ, high, number(math.inf))
    far = far & ~endless
    both = far & ~(low < FAR)
    a, b = select(far, low, number(1)), select(far, high, number(FAR))
    skipped = far | endless
    one, other = select(skipped, number(1), high), select(skipped, number(1), total)
    plain = log_gamma(one) - log_gamma(other)
    value = log_gamma(select(both | endless, number(1), low)) + select(far, log_quotient(a, b), plain)
    value = select(both, _both_far(select(both, a, number(FAR)), b), value)
    # B(a, b) goes as b**-a, whose derivative by a is the same infinity
    return select(endless, -(low * apply(Op.STOP, high)), value)


def log_quotient(a: Expr, b: Expr) -> Expr:
    """gammaln(b) - gammaln(a + b), for b and a + b from 8 on."""
    total = a + b
    grown = (total - 0.5) * apply(Op.LOG1P, a / b)
    main = grown + a * (apply(Op.LOG, b) - 1)
    return stirling_rest(b) - stirling_rest(total) - main


def _both_far(a: Expr, b: Expr) -> Expr:
    """The logarithm of the beta function for 8 <= a <= b: all large terms are negative."""
    large = (a - 0.5) * apply(Op.LOG1P, b / a) + b * apply(Op.LOG1P, a / b) + 0.5 * apply(Op.LOG, b)
    rest = stirling_rest(a) + stirling_rest(b) - stirling_rest(a + b)
    return _HALF_LOG_TWO_PI + rest - large


def stirling_rest(x: Expr) -> Expr:
    """1/(12x) - ...: what Stirling's series adds to the logarithms."""
    inverse = apply(Op.RECIP, x)
    return inverse * polynomial(inverse * inverse, STIRLING)


def _reflected(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Whether x is below 0, x or 1 - x, and how far x is above the nearest integer, exactly."""
    down = x - apply(Op.FLOOR, x)
    up = x + apply(Op.FLOOR, -x)  # less the integer above
    below = x < 0
    return below, select(below, 1 - x, x), select(down < 0.5, down, up)


def log_gamma(x: Expr) -> Expr:
    """`gammaln`"""
    endless = apply(Op.EQ, apply(Op.ABS, x), number(math.inf))
    below, size, fraction = _reflected(select(endless, number(1), x))
    value = _positive(size)
    # |sin(pi x)| by the distance from the nearest integer
    distance = apply(Op.ABS, fraction)
    sine = apply(Op.SIN, math.pi * select(below, distance, number(0.5)))
    mirrored = number(math.log(math.pi)) - apply(Op.LOG, sine) - value
    # Its derivative at infinity is x itself, of which there is none.
    return select(endless, x * apply(Op.STOP, x), select(below, mirrored, value))


def _positive(x: Expr) -> Expr:
    far = ~(x < FAR)
    value, divides, factor = _near(select(far, number(2), x))
    large = select(far, x, number(FAR))
    log = apply(Op.LOG, select(far, large, factor))
    # (x - 1/2) (log x - 1) + log(2 pi)/2 - 1/2 + 1/(12x) - ...
    stirling = (large - 0.5) * (log - 1) + (number(_HALF_LOG_TWO_PI - 0.5) + stirling_rest(large))
    return select(far, stirling, value + select(divides, -log, log))


def _near(x: Expr) -> tuple[Expr, Expr, Expr]:
    """For 0 <= x < 8: log(Gamma(2 + d)) for the d that x is away from an integer, and the factors between, by which
    Gamma(2 + d) is divided or multiplied."""
    up = number(1)
    rest = x
    for _ in range(FAR - 2):  # 7.9 -> 1.9
        above = ~(rest < 2.5)
        lower = rest - 1
        up, rest = select(above, up * lower, up), select(above, lower, rest)
    least, less_than_most = x < 0.5, x < 1.5
    distance = select(least, x, select(less_than_most, x - 1, rest - 2))
    down = select(least, x * (x + 1), select(less_than_most, x, number(1)))
    return _about_two(distance), less_than_most, select(less_than_most, down, up)


def _about_two(distance: Expr) -> Expr:
    """log(Gamma(2 + distance))"""
    return distance * polynomial(distance, [float.fromhex(c) for c in _NEAR_TWO])


def log_gamma1p(x: Expr) -> Expr:
    """log(Gamma(1 + x)) for x >= 0, accurate near 0 and 1."""
    least, near = x < 0.5, x < 1.5
    a, b = select(least, x, number(0)), select(near, x, number(1))
    return select(least, _about_two(a) - apply(Op.LOG1P, a), select(near, _about_two(b - 1), log_gamma(1 + x)))


def gamma_value(x: Expr) -> Expr:
    """Infinite at -1, -2, ..."""
    below, size, fraction = _reflected(x)
    far = ~(size < FAR)
    value, divides, factor = _near(select(far, number(2), size))
    near = apply(Op.EXP, value)
    near = select(divides, near / factor, near * factor)
    # x**(x - 1/2) in two halves: alone it overflows before the product with exp(-x)
    large = select(far, select(size < 200, size, number(200)), number(FAR))
    half = apply(Op.POW, large, 0.5 * large + (-0.25))
    rest = math.sqrt(2 * math.pi) * apply(Op.EXP, stirling_rest(large)) * apply(Op.EXP, -large)
    sine = apply(Op.SIN, math.pi * select(below, apply(Op.ABS, fraction), number(0.5)))
    mirrored = _sign(x) * (math.pi / sine)
    mirrored = select(far, mirrored / (half * rest) / half, mirrored / near)
    value = select(below, mirrored, select(far, half * rest * half, near))
    return select(is_nan(x), x, value)


def _sign(x: Expr) -> Expr:
    """That of the gamma function, for numbers other than -1, -2, ..."""
    odd = (x < 0) & ~_is_even(apply(Op.FLOOR, x))
    return select(odd, number(-1), apply(Op.COPYSIGN, number(1), select(equals(x, 0), x, number(1))))


def _is_even(x: Expr) -> Expr:
    half = 0.5 * x
    return apply(Op.EQ, apply(Op.FLOOR, half), half)


def _is_pole(x: Expr) -> Expr:
    return (x < 0) & apply(Op.EQ, apply(Op.FLOOR, x), x)


_SUMMED = 10  # terms of the zeta function before those that Euler and Maclaurin estimate
_MACLAURIN = tuple(b / math.factorial(2 * k) for k, b in enumerate(BERNOULLI[:10], 1))


def _zeta(x: Expr, q: Expr) -> Expr:
    inside = (x > 1) & (q > 0)
    s, first = select(inside, x, number(2)), select(inside, q, number(1))
    end = first + _SUMMED
    inverse = apply(Op.RECIP, end)
    rises = select(s < 5 * end, s, number(2))  # beyond, powers of `end` are nothing beside those of `first`
    series = number(0)
    for k in range(len(_MACLAURIN), 0, -1):
        steps = (rises + (2 * k - 1)) * inverse * ((rises + 2 * k) * inverse)
        series = series * steps + _MACLAURIN[k - 1]
    tail = apply(Op.RECIP, s - 1) + inverse * (0.5 + series * (rises * inverse))
    total = apply(Op.POW, end, 1 - s) * tail
    for k in reversed(range(_SUMMED)):
        total = total + apply(Op.POW, first + k, -s)
    pole = equals(x, 1) | (x > 1) & (equals(q, 0) | _is_pole(q))
    outside = select(pole, number(math.inf), number(math.nan))
    return select(inside, total, outside)


def psi(x: Expr) -> Expr:
    """`digamma`"""
    below, size, fraction = _reflected(x)
    near = size < FAR
    small = select(near, size, number(1))
    shifted = select(near, size + FAR, size)
    inverse = apply(Op.RECIP, shifted)
    square = inverse * inverse
    series = square * polynomial(square, _SLOPES)
    value = apply(Op.LOG, shifted) - 0.5 * inverse - series
    steps = add(*(apply(Op.RECIP, small + k) for k in range(FAR)))
    value = select(near, value - steps, value)
    # pi / tan(pi x), by the distance from the nearest integer
    angle = math.pi * select(below, fraction, number(0.25))
    tangent = apply(Op.TAN, angle)
    mirrored = value - math.pi / tangent
    pole = apply(Op.EQ, fraction, number(0)) & (x < 0.5)
    return select(pole, number(math.nan), select(below, mirrored, value))


def _but_poles(build: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    return lambda x: select(_is_pole(x) | is_nan(x), number(math.nan), build(x))


gamma = mapped(
    "gamma",
    "x",
    _but_poles(gamma_value),
    "Elementwise gamma function; NaN at -1, -2, ..., infinite at 0.",
    "5.0",
    "24.",
)
gammasgn = mapped(
    "gammasgn", "x", _but_poles(_sign), "Elementwise sign of the gamma function; NaN at -1, -2, ...", "-0.5", "-1."
)
beta = mapped(
    "beta",
    "a b",
    beta_value,
    "Elementwise gamma(a) * gamma(b) / gamma(a + b), the beta function.",
    "2.0, 3.0",
    "0.08333333",
)
poch = mapped("poch", "z m", _poch, "Elementwise gamma(z + m) / gamma(z), the rising factorial.", "3.0, 2", "12.")
polygamma = mapped(
    *("polygamma", "n x", _polygamma),
    "Elementwise derivative of order n of `digamma`, for integers n >= 0 and, from n = 1 on, positive x; else NaN.",
    *("1, 1.0", "1.64493407"),
)
