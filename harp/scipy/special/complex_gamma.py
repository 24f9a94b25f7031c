"""The logarithm of the gamma function of complex numbers, continued from positive ones.

On the right Stirling's series, after 8 steps of the recurrence where it is near; on the left the reflection, whose sine
is written as an exponential, of which the logarithm is smooth above the real axis (NIST Handbook of Mathematical
Functions, 5.5 and 5.11).
"""

from __future__ import annotations

import math

from harp.scipy.special.formulas import in_double, number, of_complex
from harp.scipy.special.gamma_functions import FAR, STIRLING, log_gamma
from harp.trace.array.array import Array
from harp.trace.array.primitives import common_dtype
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import equals
from harp.trace.scalar.ops import Op

_Parts = tuple[Expr, Expr]


def _times(a: _Parts, b: _Parts) -> _Parts:
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _chosen(condition: Expr, yes: _Parts, no: _Parts) -> _Parts:
    return select(condition, yes[0], no[0]), select(condition, yes[1], no[1])


def _log(z: _Parts) -> _Parts:
    return apply(Op.LOG, apply(Op.HYPOT, *z)), apply(Op.ATAN2, z[1], z[0])


def _stirling(z: _Parts) -> _Parts:
    """(z - 1/2) (log z - 1) + log(2 pi)/2 - 1/2 + 1/(12z) - ..."""
    log = _log(z)
    main = _times((z[0] - 0.5, z[1]), (log[0] - 1, log[1]))
    inverse_size = apply(Op.RECIP, apply(Op.HYPOT, *z))
    inverse = z[0] * inverse_size * inverse_size, -(z[1] * inverse_size) * inverse_size
    square, rest = _times(inverse, inverse), (number(STIRLING[0]), number(0))
    for c in STIRLING[1:]:
        real, imag = _times(rest, square)
        rest = real + c, imag
    real, imag = _times(rest, inverse)
    return main[0] + (real + (0.5 * math.log(2 * math.pi) - 0.5)), main[1] + imag


def _right(z: _Parts) -> _Parts:
    """For real parts from 1/2 on, and imaginary ones that are not negative."""
    near = (z[0] < FAR) & (z[1] < FAR + 2)
    small = _chosen(near, z, (number(1), number(0)))
    real = imag = number(0)
    for k in range(0, FAR, 2):  # the angle of a product of two is below pi
        log = _log(_times((small[0] + k, small[1]), (small[0] + (k + 1), small[1])))
        real, imag = real + log[0], imag + log[1]
    value = _stirling(_chosen(near, (z[0] + FAR, z[1]), z))
    return _chosen(near, (value[0] - real, value[1] - imag), value)


def _loggamma(x: Expr, y: Expr) -> _Parts:
    mirrored = apply(Op.COPYSIGN, number(1), y) < 0
    height, left = select(mirrored, -y, y), x < 0.5
    right = _right((select(left, 1 - x, x), height))
    # sin(pi z) = exp(-i pi z) (1 - exp(2 i pi z)) i/2
    part = select(left, x - apply(Op.RINT, x), number(0.5))
    depth = select(left, height, number(1))
    fade, sine = apply(Op.EXP, (-2 * math.pi) * depth), apply(Op.SIN, math.pi * part)
    turn = (2 * math.pi) * part
    less = 2 * (sine * sine) - apply(Op.EXPM1, (-2 * math.pi) * depth) * apply(Op.COS, turn)
    log = _log((less, -(fade * apply(Op.SIN, turn))))
    real = (math.log(2 * math.pi) - math.pi * depth) - log[0] - right[0]
    imag = math.pi * (select(left, x, number(0)) - 0.5) - log[1] + right[1]
    value = _chosen(left, (real, imag), right)
    pole = left & equals(part, 0) & equals(height, 0)
    value = _chosen(pole, (number(math.nan), number(math.nan)), value)
    return value[0], select(mirrored, -value[1], value[1])


def loggamma(z: object) -> Array:
    """Elementwise the logarithm of the gamma function, real for real numbers, of which negative ones have NaN; for
    complex ones continued from the positive ones, with a cut along the negative ones, and NaN at 0, -1, -2, ...

    The error is at most some 20 units in the last place of the larger of 1 and the result.

    >>> loggamma(-0.5 + 0j)
    Array(1.26551212-3.14159265j)
    """
    if common_dtype((z,))[0].is_complex:
        return of_complex(_loggamma, z)
    return in_double(lambda x: select(x < 0, number(math.nan), log_gamma(x)), z)
