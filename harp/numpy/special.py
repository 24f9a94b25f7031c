"""`harp.numpy.special`, under SciPy's names: the error function and the gamma function, and their kin.

>>> import harp.numpy as hnp
>>> hnp.special.erf(0.5)
Array(0.52049988)

The logarithm of the gamma function and its derivative are computed in float64 whatever the dtype, and rounded once.
From 8 on Stirling's series, between 0 and 8 a polynomial about 2 and the recurrence Gamma(x + 1) = x Gamma(x), below 0
the reflection Gamma(x) Gamma(1 - x) = pi / sin(pi x) (NIST Handbook of Mathematical Functions, 5.5 and 5.11). The
beta function takes differences of Stirling's series term by term, as DiDonato and Morris do (Algorithm 708, ACM
Transactions on Mathematical Software 18, 1992), for its logarithm is small beside those of the gamma functions. All
are smooth, so derivatives of all orders are as accurate as the functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from harp.numpy.activation import sigmoid
from harp.numpy.elementwise import float_map
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import Expr, apply, cast, const, select
from harp.trace.scalar.formulas import add
from harp.trace.scalar.ops import Op

__all__ = ["betaln", "digamma", "erf", "erfc", "erfinv", "expit", "gammaln", "logit", "xlog1py", "xlogy"]

expit = sigmoid


def erf(x: object) -> Array:
    """Elementwise error function, 2/sqrt(pi) times the integral of exp(-t**2) from 0 to x.

    >>> import harp.numpy as hnp
    >>> hnp.special.erf(0.5)
    Array(0.52049988)
    """
    return float_map(lambda a: apply(Op.ERF, a), x)


def erfc(x: object) -> Array:
    """Elementwise 1 - erf(x), accurate for large x down to the smallest number.

    >>> erfc(10.0)
    Array(2.08848758e-45)
    """
    return float_map(lambda a: apply(Op.ERFC, a), x)


def erfinv(x: object) -> Array:
    """Elementwise inverse of erf; infinite at -1 and 1, NaN beyond.

    >>> import harp.numpy as hnp
    >>> hnp.special.erfinv(0.5)
    Array(0.47693628)
    """
    return float_map(lambda a: apply(Op.ERFINV, a), x)


def logit(x: object) -> Array:
    """Elementwise log(x / (1 - x)), the inverse of `expit`; infinite at 0 and 1, NaN outside of them.

    >>> logit(0.5)
    Array(0.)
    """

    def build(a: Expr) -> Expr:
        # near 1/2 by 1 - 2x, of which the result is an odd function: 2 atanh(2x - 1)
        distance = a + (-0.5) + (a + (-0.5))
        near = apply(Op.ABS, distance) < 0.5
        middle = 2 * apply(Op.ATANH, select(near, distance, const(0, a.dtype)))
        outside = select(near, const(0.25, a.dtype), a)
        ends = apply(Op.LOG, outside) - apply(Op.LOG1P, -outside)
        return select(near, middle, ends)

    return float_map(build, x)


def _times_log(log: Op, x: Expr, y: Expr) -> Expr:
    """x * log(y), and 0 where x is 0 and y a number; the derivative by x is log(y), there 0 if that is not finite."""
    zero, one = const(0, x.dtype), const(1, x.dtype)
    edge = zero if log is Op.LOG else const(-1, x.dtype)
    finite = (edge < y) & (y < math.inf)
    lost = apply(Op.EQ, x, zero) & ~finite
    lost = lost & apply(Op.EQ, y, y)
    return select(lost, zero, x * apply(log, select(lost, one, y)))


def xlogy(x: object, y: object) -> Array:
    """Elementwise x * log(y), and 0 where x is 0, unless y is NaN.

    >>> xlogy(0.0, 0.0)
    Array(0.)
    """
    return float_map(lambda a, b: _times_log(Op.LOG, a, b), x, y)


def xlog1py(x: object, y: object) -> Array:
    """Elementwise x * log(1 + y), and 0 where x is 0, unless y is NaN.

    >>> import harp.numpy as hnp
    >>> hnp.special.xlog1py(0.0, -1.0)
    Array(0.)
    """
    return float_map(lambda a, b: _times_log(Op.LOG1P, a, b), x, y)


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
_BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330),
    854513 / 138,
)
_STIRLING = tuple(b / ((2 * k) * (2 * k - 1)) for k, b in reversed(list(enumerate(_BERNOULLI, 1))))
_SLOPES = tuple(b / (2 * k) for k, b in reversed(list(enumerate(_BERNOULLI, 1))))
_FAR = 8  # from where the series is good
_HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)


def _number(value: float) -> Expr:
    return const(value, f64)


def _polynomial(x: Expr, coefficients: Sequence[float]) -> Expr:
    value = _number(coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value


def _in_double(build: Callable[[Expr], Expr], x: object) -> Array:
    return float_map(lambda a: cast(build(cast(a, f64)), a.dtype), x)


def gammaln(x: object) -> Array:
    """Elementwise log(|Gamma(x)|); infinite at 0, -1, -2, ... Its gradient is `digamma`.

    The error is a few units in the last place for positive x; below 0, where there are zeros, of the larger of 1 and
    the result. Raises DTypeError for complex numbers.

    >>> gammaln(5.0)
    Array(3.17805383)
    """
    return _in_double(_gammaln, x)


def digamma(x: object) -> Array:
    """Elementwise the derivative of log(Gamma(x)); NaN at 0, -1, -2, ... Its gradient is the trigamma function.

    The error is a few units in the last place of the larger of 1 and the result. Raises DTypeError for complex numbers.

    >>> digamma(1.0)
    Array(-0.57721566)
    """
    return _in_double(_digamma, x)


def betaln(a: object, b: object) -> Array:
    """Elementwise the logarithm of the beta function, gammaln(a) + gammaln(b) - gammaln(a + b).

    The error is a few units in the last place of the larger of 1 and the result, where both are positive. Raises
    DTypeError for complex numbers.

    >>> betaln(2.0, 3.0)
    Array(-2.48490665)
    """

    def build(x: Expr, y: Expr) -> Expr:
        p, q = cast(x, f64), cast(y, f64)
        turned = q < p
        return cast(_betaln(select(turned, q, p), select(turned, p, q)), x.dtype)

    return float_map(build, a, b)


def _betaln(low: Expr, high: Expr) -> Expr:
    """Of arguments in order."""
    total = low + high
    far = ~((high < _FAR) | (total < _FAR))
    endless = apply(Op.EQ, high, _number(math.inf))
    far = far & ~endless
    both = far & ~(low < _FAR)
    a, b = select(far, low, _number(1)), select(far, high, _number(_FAR))
    skipped = far | endless
    one, other = select(skipped, _number(1), high), select(skipped, _number(1), total)
    plain = _gammaln(one) - _gammaln(other)
    value = _gammaln(select(both | endless, _number(1), low)) + select(far, _difference(a, b), plain)
    value = select(both, _both_far(select(both, a, _number(_FAR)), b), value)
    # B(a, b) goes as b**-a, whose derivative by a is the same infinity
    return select(endless, -(low * apply(Op.STOP, high)), value)


def _difference(a: Expr, b: Expr) -> Expr:
    """gammaln(b) - gammaln(a + b), for b and a + b from 8 on."""
    total = a + b
    grown = (total - 0.5) * apply(Op.LOG1P, a / b)
    main = grown + a * (apply(Op.LOG, b) - 1)
    return _rest(b) - _rest(total) - main


def _both_far(a: Expr, b: Expr) -> Expr:
    """The logarithm of the beta function for 8 <= a <= b: all large terms are negative."""
    large = (a - 0.5) * apply(Op.LOG1P, b / a) + b * apply(Op.LOG1P, a / b) + 0.5 * apply(Op.LOG, b)
    rest = _rest(a) + _rest(b) - _rest(a + b)
    return _HALF_LOG_TWO_PI + rest - large


def _rest(x: Expr) -> Expr:
    """1/(12x) - ...: what Stirling's series adds to the logarithms."""
    inverse = apply(Op.RECIP, x)
    return inverse * _polynomial(inverse * inverse, _STIRLING)


def _reflected(x: Expr) -> tuple[Expr, Expr, Expr]:
    """Whether x is below 0, x or 1 - x, and how far x is above the nearest integer, exactly."""
    down = x - apply(Op.FLOOR, x)
    up = x + apply(Op.FLOOR, -x)  # less the integer above
    below = x < 0
    return below, select(below, 1 - x, x), select(down < 0.5, down, up)


def _gammaln(x: Expr) -> Expr:
    endless = apply(Op.EQ, apply(Op.ABS, x), _number(math.inf))
    below, size, fraction = _reflected(select(endless, _number(1), x))
    value = _positive(size)
    # |sin(pi x)| by the distance from the nearest integer
    distance = apply(Op.ABS, fraction)
    sine = apply(Op.SIN, math.pi * select(below, distance, _number(0.5)))
    mirrored = _number(math.log(math.pi)) - apply(Op.LOG, sine) - value
    # Its derivative at infinity is x itself, of which there is none.
    return select(endless, x * apply(Op.STOP, x), select(below, mirrored, value))


def _positive(x: Expr) -> Expr:
    far = ~(x < _FAR)
    return select(far, _stirling(select(far, x, _number(_FAR))), _near(select(far, _number(2), x)))


def _stirling(x: Expr) -> Expr:
    """(x - 1/2) (log x - 1) + log(2 pi)/2 - 1/2 + 1/(12x) - ..."""
    main = (x - 0.5) * (apply(Op.LOG, x) - 1)
    return main + (_number(_HALF_LOG_TWO_PI - 0.5) + _rest(x))


def _near(x: Expr) -> Expr:
    """For 0 <= x < 8: log(Gamma(2 + d)) for the d that x is away from an integer, and the factors between."""
    up = _number(1)
    rest = x
    for _ in range(_FAR - 2):  # 7.9 -> 1.9
        above = ~(rest < 2.5)
        lower = rest - 1
        up, rest = select(above, up * lower, up), select(above, lower, rest)
    least, less_than_most = x < 0.5, x < 1.5
    distance = select(least, x, select(less_than_most, x - 1, rest - 2))
    down = select(least, x * (x + 1), select(less_than_most, x, _number(1)))
    value = distance * _polynomial(distance, [float.fromhex(c) for c in _NEAR_TWO])
    return value + select(less_than_most, -apply(Op.LOG, down), apply(Op.LOG, up))


def _digamma(x: Expr) -> Expr:
    below, size, fraction = _reflected(x)
    near = size < _FAR
    small = select(near, size, _number(1))
    shifted = select(near, size + _FAR, size)
    inverse = apply(Op.RECIP, shifted)
    square = inverse * inverse
    series = square * _polynomial(square, _SLOPES)
    value = apply(Op.LOG, shifted) - 0.5 * inverse - series
    steps = add(*(apply(Op.RECIP, small + k) for k in range(_FAR)))
    value = select(near, value - steps, value)
    # pi / tan(pi x), by the distance from the nearest integer
    angle = math.pi * select(below, fraction, _number(0.25))
    tangent = apply(Op.TAN, angle)
    mirrored = value - math.pi / tangent
    pole = apply(Op.EQ, fraction, _number(0)) & (x < 0.5)
    return select(pole, _number(math.nan), select(below, mirrored, value))
