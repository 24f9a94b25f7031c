"""The hypergeometric functions of real numbers, with one and two parameters above.

Power series are summed in pairs of doubles, for their terms may be many times as large as the sum; where even so no
digits are left the result is NaN. Arguments are made positive by the transformations of Kummer, Pfaff and Euler. Large
arguments of the one are by its asymptotic series; from 1/2 to 1 the other one is continued by Taylor series of its
differential equation, each of which halves the distance from 1 (NIST Handbook of Mathematical Functions, 13.2, 13.7,
15.8 and 15.10; J. W. Pearson, S. Olver, M. A. Porter: "Numerical methods for the computation of the confluent and Gauss
hypergeometric functions", Numerical Algorithms 74, 2017).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from harp.numpy.creation import ones_like, zeros_like
from harp.numpy.elementwise import abs, exp, floor, isfinite, isnan, log, maximum, minimum, where
from harp.numpy.reductions import any
from harp.scipy.special.doubles import Two, added, over, plus, times
from harp.scipy.special.formulas import named, of_doubles
from harp.scipy.special.gamma_functions import gammaln, gammasgn
from harp.trace.array.array import Array
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.forward import jvp
from harp.transforms.autodiff.grad import stop_gradient
from harp.transforms.control.conditional import while_loop

_TINY = 2.0**-56
_MOST = 20000.0  # terms
_LARGE = 100.0  # from where the asymptotic series may be good


def _is_pole(b: Array) -> Array:
    return (b <= 0) & (floor(b) == b)


def _ends_first(a: Array, b: Array) -> Array:
    """Whether a series ends by its parameter a before b, a negative integer or 0, divides by 0."""
    return _is_pole(a) & (a >= b)


def _series(above: Sequence[Array], below: Array, x: Array) -> Array:
    """The sum over k of the rising factorials of those above, over that of the one below and k!, times x**k; NaN where
    it has no digits, or too many terms."""
    zero, one = zeros_like(x), ones_like(x)

    def goes_on(state: Any) -> Any:
        k, bound, _, _, total = state
        return any((bound > _TINY * abs(total.high)) | (k < -below) & (bound > 0)) & (k < _MOST)

    def step(state: Any) -> Any:
        k, bound, largest, term, total = state
        lower = added(below, k + zero)
        safe = where(lower.high == 0, 1.0, lower.high)
        factor = Two(x, zero)
        for a in above:
            factor = times(factor, added(a, k + zero))
            bound = bound * maximum(abs(stop_gradient(a) + k), 0.5)  # where a series ends that of derivatives does not
        term = over(over(times(term, factor), Two(safe, lower.low)), Two(k + 1 + zero, zero))
        bound = stop_gradient(bound * abs(x) / (abs(safe) * (k + 1)))
        total = plus(total, term)
        return k + 1, bound, maximum(largest, abs(stop_gradient(term.high))), term, total

    first = Two(one, zero)
    _, bound, largest, _, total = while_loop(goes_on, step, (0.0, stop_gradient(one), one, first, first))
    size = abs(total.high)
    lost = (size > 0) & (largest * 2.0**-98 > 1e-9 * size) | (bound > 1e-9 * size)
    return where(lost, math.nan, total.high)


# -- one parameter above -------------------------------------------------------------------------------------------


@custom_jvp
def _confluent(a: Array, b: Array, x: Array) -> Array:
    return _plain_confluent(a, b, x)


@_confluent.defjvp
def _confluent_tangent(primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]) -> Any:
    a, b, x = primals
    _, tangent = jvp(lambda a, b: _plain_confluent(a, b, x), (a, b), tangents[:2])
    return _confluent(a, b, x), tangent + a / b * _confluent(a + 1, b + 1, x) * tangents[2]


def _plain_confluent(a: Array, b: Array, x: Array) -> Array:
    """exp(x) times the function of b - a and -x, where x is negative."""
    turned = x < 0
    size, upper = abs(x), where(turned, b - a, a)
    ends = _ends_first(a, b)
    pole = _is_pole(b) & ~ends
    usual = ~pole & (size < math.inf)
    size, upper, lower = where(usual, size, 1.0), where(usual, upper, 1.0), where(usual, b, 1.0)
    far, asymptotic = _far(upper, lower, size, turned)
    series = _series((upper,), lower, where(far, 0.0, minimum(size, 700.0)))
    near = where(turned, exp(-size), 1.0) * series
    near = where((size > 700) | isnan(series) | ~isfinite(series) & turned, math.nan, near)
    value = where(far, asymptotic, near)
    return where(isnan(a + b + x), a + b + x, where(pole, math.inf, where(usual, value, math.nan)))


def _far(a: Array, b: Array, x: Array, turned: Array) -> tuple[Array, Array]:
    """Whether the asymptotic series has all digits, and what it gives: Gamma(b)/Gamma(a) x**(a - b) times a series in
    1/x, and exp(x), unless it is divided by that."""
    tried = (x >= _LARGE) & ~_is_pole(a)
    large, upper, lower = where(tried, x, 1e6), where(tried, a, 1.0), where(tried, b, 1.0)

    def goes_on(state: Any) -> Any:
        return any(~state[-1]) & (state[0] < 400)

    def step(state: Any) -> Any:
        k, bound, largest, term, total, done = state
        rises = lower - upper + k, 1 - upper + k
        term = where(done, 0.0, term * (rises[0] * rises[1]) / ((k + 1) * large))
        # where the series ends that of derivatives does not
        sizes = (maximum(abs(stop_gradient(rise)), 0.5) for rise in rises)
        next_bound = bound * math.prod(sizes) / ((k + 1) * stop_gradient(large))
        diverges = (next_bound > bound) & (k > abs(lower - upper) + abs(upper))
        done = done | diverges
        total = where(done, total, total + term)
        bound = where(done, bound, next_bound)
        largest = maximum(largest, where(done, 0.0, abs(stop_gradient(term))))
        return k + 1, bound, largest, term, total, done | (bound <= 2.0**-80 * abs(stop_gradient(total)))

    one = ones_like(x)
    start = (0.0, stop_gradient(one), stop_gradient(one), one, one, stop_gradient(one) < 0)
    _, bound, largest, _, total, _ = while_loop(goes_on, step, start)
    size = abs(total)
    # what grows less, in comparison: Gamma(a)/Gamma(b - a) exp(-x) x**(b - 2a)
    other = gammaln(upper) - gammaln(lower - upper) - large + (lower - 2 * upper) * log(large)
    good = tried & (bound <= 8 * _TINY * size) & (largest <= 64 * size) & (other < log(_TINY * size))
    exponent = gammaln(lower) - gammaln(upper) + (upper - lower) * log(large) + where(turned, 0.0, large)
    return good, gammasgn(lower) * gammasgn(upper) * exp(exponent) * total


# -- two parameters above ------------------------------------------------------------------------------------------


@custom_jvp
def _gauss(a: Array, b: Array, c: Array, x: Array) -> Array:
    return _plain_gauss(a, b, c, x)


@_gauss.defjvp
def _gauss_tangent(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> Any:
    a, b, c, x = primals
    _, tangent = jvp(lambda a, b, c: _plain_gauss(a, b, c, x), (a, b, c), tangents[:3])
    return _gauss(a, b, c, x), tangent + a * b / c * _gauss(a + 1, b + 1, c + 1, x) * tangents[3]


def _plain_gauss(a: Array, b: Array, c: Array, x: Array) -> Array:
    a, b = minimum(a, b), maximum(a, b)
    pole = _is_pole(c) & ~_ends_first(a, c) & ~_ends_first(b, c)
    usual = ~pole & (x < 1) & (x > -math.inf)
    z, p, q, r = (where(usual, e, d) for e, d in ((x, 0.25), (a, 1.0), (b, 1.0), (c, 1.0)))
    # Pfaff: below 0 it is (1 - x)**-a times the function of c - b and x/(x - 1)
    left = z < 0
    far = 1 - z
    distance = where(left, 1 / far, far)  # from 1
    scale = where(left, exp(-p * log(far)), 1.0)
    q, z = where(left, r - q, q), where(left, -z / far, z)
    # Euler: near 1 (1 - x)**(c - a - b) times that of c - a and c - b, if it grows there
    power = where(left, b - p, r - p - q)
    grows = (z > 0.5) & (power < 0)
    scale = where(grows, scale * exp(power * log(distance)), scale)
    p, q = where(grows, r - p, p), where(grows, r - q, q)
    start = minimum(z, 0.5)
    value = _series((p, q), r, start)
    slope = p * q / where(r == 0, 1.0, r) * _series((p + 1, q + 1), r + 1, where(z > 0.5, start, 0.0))
    value = scale * _continued(p, q, r, value, slope, distance)
    return where(isnan(a + b + c + x), a + b + c + x, where(pole, math.inf, where(usual, value, _at_one(a, b, c, x))))


def _at_one(a: Array, b: Array, c: Array, x: Array) -> Array:
    """Gauss's sum; NaN beyond 1, where the function is complex."""
    power = c - a - b
    sums = (x == 1) & (power > 0)
    a, b, c = (where(sums, e, d) for e, d in ((a, 1.0), (b, 1.0), (c, 3.0)))
    none = _is_pole(c - a) | _is_pole(c - b)
    tops, bottoms = (c, c - a - b), tuple(where(none, 1.0, e) for e in (c - a, c - b))
    value = exp(gammaln(tops[0]) + gammaln(tops[1]) - gammaln(bottoms[0]) - gammaln(bottoms[1]))
    for e in (*tops, *bottoms):
        value = gammasgn(e) * value
    return where(sums, where(none, 0.0, value), where((x == 1) & (power <= 0), math.inf, math.nan))


def _continued(a: Array, b: Array, c: Array, value: Array, slope: Array, distance: Array) -> Array:
    """The solution of the differential equation at a distance from 1, given what it is at 1/2; beyond, that."""

    def goes_on(state: Any) -> Any:
        return any(state[0] > distance)

    def step(state: Any) -> Any:
        here, value, slope, error = state
        length = maximum(minimum(share * here, here - distance), 0.0)
        value, slope, size = _taylor(a, b, c, here, length, value, slope)
        moved = (1 - here + length) / (1 - here)
        error = where(length > 0, error * moved**growth + _TINY * size, error)
        return where(here > distance, maximum(here - length, distance), here), value, slope, error

    # terms of other solutions: (1 - x)**(c - a - b) alternate, and x**(1 - c) may grow
    growth = stop_gradient(maximum(1 - c, 0.0))
    share = stop_gradient(minimum(0.5, 12 / maximum(abs(c - a - b), 1.0)))
    none = zeros_like(stop_gradient(value))
    _, value, _, error = while_loop(goes_on, step, (0.5 + none, value, slope, _TINY * abs(stop_gradient(value))))
    return where(error > 1e-10 * abs(value), math.nan, value)


def _taylor(a: Array, b: Array, c: Array, here: Array, t: Array, value: Array, slope: Array) -> tuple[Array, ...]:
    """The solution and its slope, t to the right, by its coefficients times t**(k - 1), of the powers k from 1 on, and
    the sum of the magnitudes of its terms."""
    x = 1 - here
    scale = 1 / (x * here)

    def goes_on(state: Any) -> Any:
        k, one, two, _, _, size = state
        return any(abs(one) + abs(two) > _TINY * size) & (k < 1000)

    def step(state: Any) -> Any:
        k, one, two, total, slopes, size = state  # u[k] and u[k + 1]
        rise = ((1 - 2 * x) * k + (c - (a + b + 1) * x)) * (k + 1) * t
        after = ((k + a) * (k + b) * (t * t) * one - rise * two) * (scale / ((k + 2) * (k + 1)))
        size = size + abs(stop_gradient(after))
        return k + 1, two, after, total + after, slopes + (k + 2) * after, size

    second = (a * b * value - (c - (a + b + 1) * x) * slope) * (0.5 * scale * t)
    size = stop_gradient(abs(slope) + abs(second))
    start = (1.0, slope, second, slope + second, slope + 2 * second, size)
    _, _, _, total, slopes, size = while_loop(goes_on, step, start)
    return value + t * total, slopes, abs(stop_gradient(value)) + t * size


_LOST = "and where no digits are left it is NaN. Derivatives by all arguments are there."
hyp1f1 = named(
    *("hyp1f1", "a b x", partial(of_doubles, _confluent)),
    "Elementwise Kummer's function, the sum of (a)_k / (b)_k * x**k / k! with rising factorials. It is infinite for\n"
    f"b = 0, -1, ..., unless the series ends before, {_LOST}",
    *("1.0, 2.0, 1.0", "1.71828183"),
)
hyp2f1 = named(
    *("hyp2f1", "a b c x", partial(of_doubles, _gauss)),
    "Elementwise Gauss's function, the sum of (a)_k * (b)_k / (c)_k * x**k / k! with rising factorials, continued to\n"
    f"all x below 1; where it is complex, for x above 1, {_LOST}",
    *("1.0, 1.0, 2.0, 0.5", "1.38629436"),
)
