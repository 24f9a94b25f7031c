"""The incomplete gamma and beta functions, with derivatives by all arguments.

Both are a power series or a continued fraction, whichever converges fast: NIST Handbook of Mathematical Functions,
8.7, 8.9 and 8.17, in the forms of DiDonato and Morris (ACM TOMS 12, 1986, and Algorithm 708, ACM TOMS 18, 1992). Where
a is large and near x it is Temme's expansion ("The asymptotic expansion of the incomplete gamma functions", SIAM
Journal on Mathematical Analysis 10, 1979). What is close to 1 is 1 less the other side, and no digit of that is lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from typing import Any

from harp.numpy.creation import ones_like
from harp.numpy.elementwise import abs, maximum
from harp.numpy.reductions import any
from harp.scipy.special.entropy import times_log
from harp.scipy.special.formulas import log1p_ratio, log_less, named, number, of_doubles, polynomial
from harp.scipy.special.gamma_functions import (
    FAR,
    log_beta,
    log_gamma,
    log_gamma1p,
    log_quotient,
    ordered,
    stirling_rest,
)
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import add, equals, is_nan
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp
from harp.transforms.autodiff.forward import jvp
from harp.transforms.control.conditional import while_loop

_TEMME = 64  # from which a on, for x between 0.7 and 1.3 times a
_TINY = 2.0**-54
_EASY = 1000.0  # an end, or one over it, for which loops are over soon: that of elements that need none


@custom_jvp
def _gamma_sides(a: Array, x: Array) -> tuple[Array, Array]:
    return _plain_gamma_sides(a, x)


@_gamma_sides.defjvp
def _gamma_tangents(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> Any:
    (a, x), (t, by_x) = primals, tangents
    (_, by_a) = jvp(lambda a: _plain_gamma_sides(a, x), (a,), (t,))
    step = map_(_gamma_density, a, x) * by_x
    return _gamma_sides(a, x), (by_a[0] + step, by_a[1] - step)


@custom_jvp
def _beta(a: Array, b: Array, x: Array) -> Array:
    return _plain_beta(a, b, x)


@_beta.defjvp
def _beta_tangent(primals: tuple[Array, Array, Array], tangents: tuple[Array, Array, Array]) -> Any:
    a, b, x = primals
    _, tangent = jvp(lambda a, b: _plain_beta(a, b, x), (a, b), tangents[:2])
    return _beta(a, b, x), tangent + map_(_beta_density, a, b, x) * tangents[2]


def _continued(first: Array, step: Callable[[Array], tuple[Array, Array, Array]]) -> Array:
    """1 / (b0 + a1 / (b1 + a2 / (b2 + ...))) by Steed's method; `step` of k gives the factors of a, and b."""

    def body(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, inverse, bound, term, total = carry
        scale, factor, below = step(k)
        after = 1 / (below + scale * factor * inverse)
        grown = -(scale * inverse * after)
        return k + 1, after, abs(bound * grown) * _away(factor), term * grown * factor, total + term * grown * factor

    start = 1 / first
    return _summed(body, (1.0, start, abs(start), start, start), 0.0)


def _series(scale: Array, factor: Array, ratio: Callable[[Array], tuple[Array, Array]]) -> Array:
    """t + t r1 + t r1 r2 + ...; the factors of t are given, and those of the ratios by k."""

    def body(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        k, bound, term, total = carry
        scale, factor = ratio(k)
        return k + 1, bound * abs(scale) * _away(factor), term * (scale * factor), total + term * (scale * factor)

    first, bound = scale * factor, abs(scale) * _away(factor)
    return _summed(body, (1.0, bound, first, first), bound)


def _away(factor: Array) -> Array:
    """At least 1/2: where a factor is 0, a series ends, but not that of its derivatives."""
    return maximum(abs(factor), 0.5)


def _summed(body: Callable[..., Any], start: tuple[Any, ...], scale: Array | float) -> Array:
    """The last of what a loop carries, which ends when the bound of all terms changes no sum."""

    def goes_on(carry: tuple[Array, ...]) -> Array:
        return any(carry[-3] > _TINY * (abs(carry[-1]) + scale))

    result: Array = while_loop(goes_on, body, start)[-1]
    return result


def upper_fraction(a: Array, x: Array) -> Array:
    """The integral of exp(-t) * t**(a - 1) from x on, over exp(-x) * x**a."""
    first = x - a + 1
    return _continued(first, lambda k: (k, a - k, first + 2 * k))


# --- the incomplete gamma function


def _gamma_regions(a: Expr, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Whether both are positive and finite; Temme's expansion; the power series in x; that of x / a."""
    inside = (a > 0) & (x > 0) & (a < math.inf) & (x < math.inf)
    temme = inside & ~(a < _TEMME) & (apply(Op.ABS, x - a) < 0.3 * a)
    return inside, temme, inside & (x < 1), inside & ~temme & ~(x < 1) & (x < a)


def _plain_gamma_sides(a: Array, x: Array) -> tuple[Array, Array]:
    def ratio(a: Expr, x: Expr) -> Expr:
        return select(_gamma_regions(a, x)[3], x, number(0))

    def fraction(a: Expr, x: Expr) -> Expr:
        inside, temme, _, low = _gamma_regions(a, x)
        return inside & ~temme & ~low & ~(x < 1)

    small = map_(ratio, a, x)
    base = map_(lambda a, x: select(_gamma_regions(a, x)[3], a, number(1)), a, x)
    one = ones_like(base)
    series = _series(one, one, lambda k: (small / (base + k), one))
    high = (
        map_(lambda a, x, v=v: select(fraction(a, x), a if v else x, number(1 if v else _EASY)), a, x)
        for v in (True, False)
    )
    rest = upper_fraction(*high)
    lower, upper = (map_(partial(_gamma_side, upper), a, x, series, rest) for upper in (False, True))
    return lower, upper


def _gamma_side(upper: bool, a: Expr, x: Expr, series: Expr, fraction: Expr) -> Expr:
    inside, temme, tiny, low = _gamma_regions(a, x)
    shape, end = select(inside, a, number(1)), select(inside, x, number(1))
    power = _gamma_power(select(tiny, number(1), shape), select(tiny, number(1), end))
    below, above = power * series, power * shape * fraction
    value = select(low, 1 - below, above) if upper else select(low, below, 1 - above)
    value = select(tiny, _below_one(select(tiny, shape, number(1)), select(tiny, end, number(0.5)), upper), value)
    ends = select(temme, shape, number(_TEMME)), select(temme, end, number(_TEMME))
    value = select(temme, _expansion(*ends, upper), value)
    # at the ends: x is 0, or a is infinite; or the other way round
    known = ~(a < 0) & ~(x < 0) & ~is_nan(a + x) & ~(equals(a, 0) & equals(x, 0))
    known = known & ~(equals(a, math.inf) & equals(x, math.inf))
    left = equals(x, 0) | equals(a, math.inf)
    edge = select(left, number(float(upper)), number(float(not upper)))
    return select(inside, value, select(known, edge, number(math.nan)))


def _gamma_power(a: Expr, x: Expr) -> Expr:
    """x**a * exp(-x) / Gamma(a + 1)"""
    far = ~(a < FAR)
    large, small = select(far, a, number(FAR)), select(far, number(1), a)
    end = select(far, x, number(FAR))
    exponent = large * log_less((end - large) / large, end / large) - stirling_rest(large)
    outside = apply(Op.EXP, exponent) * apply(Op.SQRT, apply(Op.RECIP, (2 * math.pi) * large))
    return select(far, outside, apply(Op.EXP, small * apply(Op.LOG, x) - x - log_gamma1p(small)))


def _gamma_density(a: Expr, x: Expr) -> Expr:
    inside = (a > 0) & (x > 0)
    p, y = select(inside, a, number(1)), select(inside, x, number(1))
    edge = apply(Op.EXP, times_log(Op.LOG, a - 1, x) - log_gamma(select(a > 0, a, number(1))))
    return select(inside, _gamma_power(p, y) * (p / y), select(a > 0, edge, number(0)))


def _below_one(a: Expr, x: Expr, upper: bool) -> Expr:
    """By the power series, for x < 1."""
    total, power = number(0), number(1)
    for k in range(1, 19):
        power = power * (-x / k)
        total = total + power / (a + k)
    log = a * apply(Op.LOG, x) - log_gamma1p(a)
    power = apply(Op.EXP, log)
    return -apply(Op.EXPM1, log) - power * (a * total) if upper else power * (1 + a * total)


@cache
def _temme() -> list[list[float]]:
    """The coefficients of Temme's expansion, by powers of 1/a and of eta, from those of x/a as a series in eta."""
    alpha = [Fraction(1), Fraction(1)]
    for n in range(2, 42):
        rest = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - rest) / (n + 1))
    first = [(n + 2) * alpha[n + 2] - (n == 0) for n in range(40)]
    rows, stirling = [first], Fraction(1)
    for k in range(1, 10):
        stirling = alpha[2 * k + 1] * math.prod(range(1, 2 * k + 2, 2))
        before = rows[-1]
        rows.append([(-1) ** k * stirling * first[n] + (n + 2) * before[n + 2] for n in range(len(before) - 2)])
    return [[float(c) for c in row[: 20 - 2 * k]] for k, row in enumerate(rows)]


def _expansion(a: Expr, x: Expr, upper: bool) -> Expr:
    ratio = (x - a) / a
    half_square = -log1p_ratio(ratio, 12)
    eta = ratio * apply(Op.SQRT, 2 * half_square)
    inverse = apply(Op.RECIP, a)
    rows = [polynomial(eta, row[::-1]) for row in _temme()]
    series = number(0)
    for row in reversed(rows):
        series = series * inverse + row
    exponential = apply(Op.EXP, -(a * (ratio * ratio * half_square)))
    rest = exponential * apply(Op.SQRT, inverse * (0.5 / math.pi)) * series
    argument = eta * apply(Op.SQRT, 0.5 * a)
    return 0.5 * apply(Op.ERFC, argument) + rest if upper else 0.5 * apply(Op.ERFC, -argument) - rest


# --- the incomplete beta function


def _turned(a: Expr, b: Expr, x: Expr) -> tuple[Expr, Expr, Expr, Expr, Expr]:
    """Whether all are inside; whether 1 less the other side is smaller; the parameters and the end of that side."""
    inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
    a, b, x = (select(inside, e, number(d)) for e, d in ((a, 1), (b, 1), (x, 0.5)))
    turned = a + 1 < x * (a + b + 2)
    return inside, turned, select(turned, b, a), select(turned, a, b), select(turned, 1 - x, x)


def _is_near_one(a: Expr, b: Expr, x: Expr) -> Expr:
    """Whether the other side is close to 1 for all ends."""
    inside, turned, p, _, _ = _turned(a, b, x)
    return inside & turned & ~(p > 1)


def _plain_beta(a: Array, b: Array, x: Array) -> Array:
    def parameter(k: int, near: bool, otherwise: float) -> Array:
        def build(*given: Expr) -> Expr:
            is_near = _is_near_one(*given)
            return select(is_near if near else ~is_near, _turned(*given)[k], number(otherwise))

        return map_(build, a, b, x)

    p, q, u = (parameter(k, False, d) for k, d in ((2, 1), (3, 1), (4, 1 / _EASY)))

    def step(m: Array) -> tuple[Array, Array, Array]:
        before, after, middle = p + 2 * m - 1, p + 2 * m + 1, m * (q - m) * u
        scale = (p + (m - 1)) * (p + q + (m - 1)) * m * (u * u) / (before * before)
        return scale, q - m, m + middle / before + (p + m) * (p - (p + q) * u + 1 + m * (2 - u)) / after

    fraction = _continued(p * (p - (p + q) * u + 1) / (p + 1), step)
    p, q, u = (parameter(k, True, d) for k, d in ((2, 1), (3, 1), (4, 1 / _EASY)))
    series = _series(u * p / (1 + p), 1 - q, lambda k: (u / (k + 1) * ((p + k) / (p + k + 1)), k + 1 - q))
    return map_(_beta_side, a, b, x, fraction, series)


def _beta_side(a: Expr, b: Expr, x: Expr, fraction: Expr, series: Expr) -> Expr:
    inside, turned, p, q, u = _turned(a, b, x)
    near, edges = _is_near_one(a, b, x), _beta_edges(a, b, x)
    p, q, u = (select(near, e, number(0.5)) for e in (p, q, u))
    log = p * apply(Op.LOG, u) + _log_rise(p, q) - log_gamma1p(p)
    close = -apply(Op.EXPM1, log) - apply(Op.EXP, log) * series
    a, b, x = (select(inside, e, number(d)) for e, d in ((a, 1), (b, 1), (x, 0.5)))
    small = _beta_power(a, b, x) * fraction
    value = select(near, close, select(turned, 1 - small, small))
    return select(inside, value, edges)


def _beta_edges(a: Expr, b: Expr, x: Expr) -> Expr:
    """All is at one end where the other parameter is 0 or this one infinite."""
    known = ~(a < 0) & ~(b < 0) & ~(x < 0) & ~(x > 1) & ~is_nan(a + b + x)
    for end in (0, math.inf):
        known = known & ~(equals(a, end) & equals(b, end))
    one = equals(x, 1) | ~equals(x, 0) & (equals(a, 0) | equals(b, math.inf))
    return select(known, select(one, number(1), number(0)), number(math.nan))


def _log_rise(p: Expr, q: Expr) -> Expr:
    """log(Gamma(p + q) / Gamma(q)) for 0 < p <= 1, accurate for small p"""
    far = ~(q < FAR)
    small = select(far, number(FAR), q)
    steps = add(*(apply(Op.LOG1P, p / (small + k)) for k in range(FAR)))
    return -log_quotient(p, select(far, q, q + FAR)) - select(far, number(0), steps)


def _beta_power(a: Expr, b: Expr, x: Expr) -> Expr:
    """x**a * (1 - x)**b / B(a, b)"""
    far = ~((a < FAR) | (b < FAR))
    p, q = (select(far, e, number(FAR)) for e in (a, b))
    less = p * (1 - x) - q * x
    total = p + q
    exponent = p * log_less(-less / p, x * (total / p)) + q * log_less(less / q, (1 - x) * (total / q))
    exponent = exponent - (stirling_rest(p) + stirling_rest(q) - stirling_rest(total))
    outside = apply(Op.EXP, exponent) * apply(Op.SQRT, (0.5 / math.pi) * p * (q / total))
    p, q = (select(far, number(1), e) for e in (a, b))
    log = p * apply(Op.LOG, x) + q * apply(Op.LOG1P, -x) - log_beta(*ordered(p, q))
    return select(far, outside, apply(Op.EXP, log))


def _beta_density(a: Expr, b: Expr, x: Expr) -> Expr:
    inside, *_ = _turned(a, b, x)
    p, q, y = (select(inside, e, number(d)) for e, d in ((a, 1), (b, 1), (x, 0.5)))
    positive = (a > 0) & (b > 0)
    log = log_beta(*ordered(*(select(positive, e, number(1)) for e in (a, b))))
    edge = times_log(Op.LOG, a - 1, x) + times_log(Op.LOG1P, b - 1, -x) - log
    outside = select(positive, apply(Op.EXP, edge), number(0))
    return select(inside, _beta_power(p, q, y) / (y * (1 - y)), outside)


_GAMMA = "incomplete gamma function: the integral of exp(-t) * t**(a - 1) / Gamma(a)"
_DERIVATIVES = "Derivatives by all arguments are there."
gammainc = named(
    *("gammainc", "a x", partial(of_doubles, lambda a, x: _gamma_sides(a, x)[0])),
    f"Elementwise regularised lower {_GAMMA} from 0 to x; NaN for negative a or x. {_DERIVATIVES}",
    *("2.0, 1.0", "0.26424112"),
)
gammaincc = named(
    *("gammaincc", "a x", partial(of_doubles, lambda a, x: _gamma_sides(a, x)[1])),
    f"Elementwise regularised upper {_GAMMA} from x on, accurate where it is tiny. {_DERIVATIVES}",
    *("2.0, 100.0", "3.75727674e-42"),
)
betainc = named(
    *("betainc", "a b x", partial(of_doubles, _beta)),
    "Elementwise regularised incomplete beta function: the integral of t**(a - 1) * (1 - t)**(b - 1) / B(a, b) from 0\n"
    f"to x; NaN for negative a or b, and for x outside of 0 to 1. {_DERIVATIVES}",
    *("2.0, 3.0, 0.5", "0.6875"),
)
