"""Bessel functions of order 0 and 1.

The modified ones are power series up to 20, where all terms are positive; the others are the trapezoidal rule for
Bessel's integral, whose error of 28 points is J(56, x) (L. N. Trefethen and J. A. C. Weideman: "The exponentially
convergent trapezoidal rule", SIAM Review 56, 2014). From there on both are Hankel's expansions (NIST Handbook of
Mathematical Functions, 10.17 and 10.40).
"""

from __future__ import annotations

import math
from functools import partial

from harp.scipy.special.formulas import mapped, named, number, polynomial, with_slope
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import absolute, add, is_infinite
from harp.trace.scalar.ops import Op

_FAR = 20
_POINTS = 28


def _hankel(order: int) -> list[float]:
    """The numbers a of Hankel's expansions: (4 n**2 - 1) (4 n**2 - 9) ... / (8**k k!)"""
    values = [1.0]
    for k in range(1, 28):
        values.append(values[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return values


def _modified(order: int, scaled: bool, x: Expr) -> Expr:
    size = absolute(x)
    near = size < _FAR
    small, large = select(near, x, number(0)), select(near, number(_FAR), size)
    powers = [0.25**k / (math.factorial(k) * math.factorial(k + order)) for k in reversed(range(37))]
    inside = polynomial(small * small, powers)
    if order:
        inside = inside * (0.5 * small)
    if scaled:
        inside = inside * apply(Op.EXP, -absolute(small))
    else:
        large = apply(Op.MIN, large, number(720))  # from where results are infinite
    inverse = apply(Op.RECIP, large)
    outside = polynomial(inverse, [a * (-1) ** k for k, a in enumerate(_hankel(order))][::-1])
    outside = outside * apply(Op.SQRT, inverse * (0.5 / math.pi))
    if not scaled:
        root = apply(Op.EXP, 0.5 * large)
        outside = root * outside * root
    if order:
        outside = apply(Op.COPYSIGN, outside, x)
    return select(near, inside, outside)


def _first_kind(order: int, x: Expr) -> Expr:
    size = absolute(x)
    near = size < _FAR
    small, large = select(near, x, number(0)), select(near | is_infinite(x), number(_FAR), size)
    sines = [math.sin((k + 0.5) * math.pi / _POINTS) for k in range(_POINTS // 2)]
    waves = [s * apply(Op.SIN, s * small) if order else apply(Op.COS, s * small) for s in sines]
    inside = add(*waves) * (2 / _POINTS)
    inverse = apply(Op.RECIP, large)
    square, hankel = inverse * inverse, _hankel(order)
    p, q = (polynomial(square, [a * (-1) ** k for k, a in enumerate(hankel[i::2])][::-1]) for i in (0, 1))
    q = q * inverse
    # the cosine and sine, times sqrt(2), of x - pi/4; those of order 1 are a quarter of a turn behind
    sine, cosine = apply(Op.SIN, large), apply(Op.COS, large)
    both = sine - cosine, sine + cosine
    wave = both[0] * p + both[1] * q if order else both[1] * p - both[0] * q
    outside = apply(Op.SQRT, inverse * (1 / math.pi)) * wave
    outside = select(is_infinite(x), number(0), outside)
    if order:
        outside = select(x < 0, -outside, outside)
    return select(near, inside, outside)


_I, _I_SCALED = "Elementwise modified Bessel function of order", "Elementwise exp(-|x|) times the function"
i1 = mapped("i1", "x", partial(_modified, 1, False), f"{_I} 1, the derivative of `i0`.", "1.0", "0.5651591")
i1e = mapped("i1e", "x", partial(_modified, 1, True), f"{_I_SCALED} `i1`, without overflow.", "1000.0", "0.01261093")
_i0 = with_slope(partial(_modified, 0, False), i1)
i0 = named("i0", "x", _i0, f"{_I} 0.", "1.0", "1.26606588")
i0e = mapped("i0e", "x", partial(_modified, 0, True), f"{_I_SCALED} `i0`, without overflow.", "1000.0", "0.01261724")
_J = "Elementwise Bessel function of the first kind of order"
j1 = mapped("j1", "x", partial(_first_kind, 1), f"{_J} 1, the derivative of -`j0`.", "1.0", "0.44005059")
_j0 = with_slope(partial(_first_kind, 0), lambda x: -j1(x))
j0 = named("j0", "x", _j0, f"{_J} 0.", "1.0", "0.76519769")
