"""Integrals of exponentials and logarithms: Ei, E1, En, and the dilogarithm.

En is up to 1/2 a power series, and beyond a continued fraction (NIST Handbook of Mathematical Functions, 8.19.8 and
8.9.2). Ei of positive numbers is a power series up to 40, and beyond an asymptotic one (6.6.2 and 6.12.2). The
dilogarithm is Debye's series in the logarithm, whose coefficients are Bernoulli's numbers.
"""

from __future__ import annotations

import math
from functools import partial

from harp.numpy.elementwise import exp, where
from harp.scipy.special.entropy import times_log
from harp.scipy.special.formulas import mapped, named, number, of_doubles, polynomial
from harp.scipy.special.gamma_functions import BERNOULLI, gamma_value, psi
from harp.scipy.special.incomplete import upper_fraction
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import equals
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp

_EULER = 0.5772156649015329


@custom_jvp
def _expn(n: Array, x: Array) -> Array:
    near = map_(lambda n, x: (x < 0.5) | (n < 1), n, x)
    fraction = upper_fraction(where(near, 1.0, 1 - n), where(near, 1000.0, x))
    return map_(_order_n, n, x, fraction)


_expn.defjvps(None, lambda t, _, n, x: -t * _order_below(n, x))


def _order_below(n: Array, x: Array) -> Array:
    """`expn` of n - 1, also for n = 0."""
    return where(n > 0.5, _expn(where(n > 0.5, n - 1, 0.0), x), exp(-x) * (1 + x) / (x * x))


def _order_n(n: Expr, x: Expr, fraction: Expr) -> Expr:
    near = x < 0.5
    small = select(near, x, number(0.25))
    # the term of the power n - 1 has a logarithm
    total = power = number(1)
    total = select(equals(n, 1), number(0), -apply(Op.RECIP, 1 - n))
    for k in range(1, 17):
        power = power * (-small / k)
        total = select(equals(n, k + 1), total, total - power / (k + 1 - n))
    whole = select(n < 1, number(1), n)
    own = apply(Op.POW, small, whole - 1) / gamma_value(whole)
    half = 0.5 * (whole - 1)
    own = select(apply(Op.EQ, apply(Op.FLOOR, half), half), own, -own)
    series = total + own * (psi(whole) - apply(Op.LOG, small))
    value = select(near, series, apply(Op.EXP, -x) * fraction)
    at_zero = select(n < 1.5, number(math.inf), apply(Op.RECIP, n - 1))
    value = select(equals(x, 0), at_zero, select(equals(n, 0), apply(Op.EXP, -x) / x, value))
    known = ~(x < 0) & ~(n < 0) & apply(Op.EQ, apply(Op.FLOOR, n), n)
    return select(known, value, number(math.nan))


@custom_jvp
def _expi(x: Array) -> Array:
    return where(x < 0, -_expn(1.0, where(x < 0, -x, 1.0)), map_(_expi_above, x))


_expi.defjvps(lambda t, _, x: t * exp(x) / x)


def _expi_above(x: Expr) -> Expr:
    near = x < 40
    small, large = select(near, x, number(1)), apply(Op.MIN, select(near, number(40), x), number(800))
    series = small * polynomial(small, [1 / (k * math.factorial(k)) for k in range(110, 0, -1)])
    root, inverse = apply(Op.EXP, 0.5 * large), apply(Op.RECIP, large)
    far = root * (inverse * polynomial(inverse, [float(math.factorial(k)) for k in range(40, -1, -1)])) * root
    return select(near, series + (apply(Op.LOG, small) + _EULER), far)


def _spence(x: Expr) -> Expr:
    high = x > 2
    y = select(high, apply(Op.RECIP, x), x)
    low = y < 0.5
    log = select(low, apply(Op.LOG1P, -select(low, y, number(0))), apply(Op.LOG, select(low, number(1), y)))
    terms = [b / math.factorial(2 * k + 1) for k, b in enumerate(BERNOULLI[:10], 1)]
    square = log * log
    series = -(log * (1 + 0.25 * log + square * polynomial(square, terms[::-1])))
    mirrored = math.pi**2 / 6 - series - times_log(Op.LOG, log, select(low, y, number(1)))
    value = select(low, mirrored, series)
    log = apply(Op.LOG, select(high, x, number(2)))
    return select(high, -0.5 * (log * log) - value, value)


expn = named(
    *("expn", "n x", partial(of_doubles, _expn)),
    "Elementwise integral of exp(-x * t) / t**n from t = 1 on, for integers n >= 0 and x >= 0; else NaN.",
    *("2, 1.0", "0.14849551"),
)
exp1 = named("exp1", "x", lambda x: expn(1, x), "Elementwise `expn` of order 1.", "1.0", "0.21938393")
expi = named(
    *("expi", "x", partial(of_doubles, _expi)),
    "Elementwise principal value of the integral of exp(t) / t from -inf to x; -inf at 0.",
    *("1.0", "1.89511782"),
)
spence = mapped(
    *("spence", "z", _spence),
    "Elementwise dilogarithm of 1 - z: the integral of log(t) / (1 - t) from 1 to z; NaN below 0.",
    *("0.0", "1.64493407"),
)
