"""The error function of complex numbers, scaled, with Dawson's and Fresnel's integrals.

By the trapezoidal rule for the integral of the scaled function, with the residue of its pole (M. Al Azah, S. N.
Chandler-Wilde: "Computation of the complex error function using modified trapezoidal rules", SIAM Journal on Numerical
Analysis 59, 2021): the points are such that none is near the pole. Far away it is the first terms of the asymptotic
series.
"""

from __future__ import annotations

import math
from typing import Any

from harp.numpy.elementwise import cos, sin
from harp.scipy.special.formulas import mapped, number, of_complex, parts_of_doubles, polynomial
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Expr, apply, cast, select
from harp.trace.scalar.formulas import absolute, add, is_infinite, is_nan
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp

_POINTS = 12
_STEP = math.sqrt(math.pi / _POINTS)
_FAR = 1e4  # from where the series has all digits
_ROOT_PI = math.sqrt(math.pi)


def _nodes(x: Expr) -> tuple[Expr, list[tuple[Expr, Expr]]]:
    """Whether the points are the multiples of the step, and not the middles between them; each with its weight."""
    steps = absolute(x) * (1 / _STEP)
    part = steps - apply(Op.FLOOR, steps)
    multiples = apply(Op.STOP, cast((part < 0.25) | (part > 0.75), f64)) < 0.5
    pairs = []
    for k in range(_POINTS):
        at, between = k * _STEP, (k + 0.5) * _STEP
        weight = select(multiples, number(math.exp(-at * at) * (1 if k else 0.5)), number(math.exp(-between * between)))
        pairs.append((select(multiples, number(at), number(between)), weight))
    return multiples, pairs


def _upper(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Real and imaginary part, for y >= 0."""
    size = apply(Op.HYPOT, x, y)
    far = ~(size < _FAR)
    near_x, near_y = select(far, number(1), x), select(far, number(1), y)
    real, imag = _by_points(near_x, near_y)
    # i z / (sqrt(pi) (z**2 - 1/2)), by the direction of z, for squares may overflow
    inverse = apply(Op.RECIP, select(far, size, number(_FAR)))
    c, s = select(far, x, number(_FAR)) * inverse, select(far, y, number(0)) * inverse
    t = math.sqrt(0.5) * inverse
    scale = (1 / _ROOT_PI) * inverse / (((c - t) * (c - t) + s * s) * ((c + t) * (c + t) + s * s))
    endless = apply(Op.EQ, size, number(math.inf))
    far_parts = (select(endless, number(0), scale * p) for p in (s * (1 + t * t), c * (1 - t * t)))
    return tuple(select(far, one, other) for one, other in zip(far_parts, (real, imag), strict=True))  # type: ignore


def _by_points(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    multiples, points = _nodes(select(y < absolute(x), x, number(0)))
    square, rest = x * x + y * y, y * y
    real = imag = number(0)
    for t, weight in points:
        share = weight / (((x - t) * (x - t) + rest) * ((x + t) * (x + t) + rest))
        real, imag = real + share * (square + t * t), imag + share * (square - t * t)
    real, imag = (2 * _STEP / math.pi) * (y * real), (2 * _STEP / math.pi) * (x * imag)
    # 2 exp(-z**2) / (1 + exp(-2 pi i z / step)), or with a minus, where the pole is not far above the points
    above = ~(y < math.pi / _STEP) & ~(y < absolute(x))
    height = select(above, number(1), y)
    fade, angle = apply(Op.EXP, (-2 * math.pi / _STEP) * height), (2 * math.pi / _STEP) * x
    sign = select(multiples, number(-1), number(1))
    c, s = fade + sign * apply(Op.COS, angle), -(sign * apply(Op.SIN, angle))
    scale = 2 * fade * apply(Op.EXP, (height - x) * (height + x)) / (c * c + s * s)
    turn = 2 * x * height
    cosine, sine = apply(Op.COS, turn), -apply(Op.SIN, turn)
    pole = scale * (cosine * c + sine * s), scale * (sine * c - cosine * s)
    return tuple(select(above, part, part + more) for part, more in zip((real, imag), pole, strict=True))  # type: ignore


def _wofz(x: Expr, y: Expr) -> tuple[Expr, Expr]:
    """Below the real axis it is 2 exp(-z**2) - w(-z)."""
    below = y < 0
    real, imag = _upper(select(below, -x, x), select(below, -y, y))
    height = select(below, y, number(0))
    scale = 2 * apply(Op.EXP, (height - x) * (height + x))
    turn = 2 * x * height
    mirrored = scale * apply(Op.COS, turn) - real, -(scale * apply(Op.SIN, turn)) - imag
    return select(below, mirrored[0], real), select(below, mirrored[1], imag)


def _dawsn(x: Expr) -> Expr:
    least, far = absolute(x) < 1, ~(absolute(x) < 1e5)
    small, near = select(least, x, number(0)), select(least | far, number(1), x)
    series = small * polynomial(
        small * small, [(-2) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in reversed(range(21))]
    )
    multiples, points = _nodes(near)
    total = add(*(weight / ((near - t) * (near + t)) for t, weight in points))
    angle = (math.pi / _STEP) * near
    sine, cosine = apply(Op.SIN, angle), apply(Op.COS, angle)
    quotient = select(multiples, -cosine, sine) / select(multiples, sine, cosine)
    value = (_STEP / _ROOT_PI) * (near * total) + (0.5 * _ROOT_PI) * (apply(Op.EXP, -(near * near)) * quotient)
    inverse = apply(Op.RECIP, select(far, x, number(1e5)))
    return select(least, series, select(far, inverse * (0.5 + 0.25 * (inverse * inverse)), value))


_SERIES = 1.5  # up to where the power series lose no digits
_TERMS = 14


def _turns(x: Expr) -> Expr:
    """x**2 less a multiple of 4, where x is below 2**52: of the square, and of what rounding takes from it."""
    high = cast(cast(x, f32), f64)
    low = x - high
    square = x * x
    lost = ((high * high - square) + 2 * (high * low)) + low * low
    return sum((part - 4 * apply(Op.FLOOR, 0.25 * part) for part in (square, lost)), number(0))


def _fresnel(cosine: bool, x: Expr) -> Expr:
    size = absolute(x)
    near, endless = size < _SERIES, ~(size < 2.0**52)
    small = select(near, x, number(0))
    first = 0 if cosine else 1
    powers = [(-1) ** k * (math.pi / 2) ** (2 * k + first) / (math.factorial(2 * k + first) * (4 * k + 1 + 2 * first))
              for k in reversed(range(_TERMS))]  # fmt: skip
    square = small * small
    inside = small * polynomial(square * square, powers) * (number(1) if cosine else square)
    large = select(near | endless, number(2), size)
    along = (0.5 * _ROOT_PI) * large
    u, v = _upper(along, along)
    angle = (0.5 * math.pi) * apply(Op.STOP, _turns(large))
    c, s = apply(Op.COS, angle), apply(Op.SIN, angle)
    real, imag = c * u - s * v, c * v + s * u
    outside = 0.5 * (1 - real + imag if cosine else 1 - real - imag)
    outside = apply(Op.COPYSIGN, select(endless, number(0.5), outside), x)
    return select(is_nan(x), x, select(near, inside, outside))


@custom_jvp
def _fresnels(x: Array) -> tuple[Array, Array]:
    return map_(lambda a: _fresnel(False, a), x), map_(lambda a: _fresnel(True, a), x)


@_fresnels.defjvp
def _fresnel_tangents(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    (x,), (t,) = primals, tangents
    angle = _angle(x)
    return _fresnels(x), (sin(angle) * t, cos(angle) * t)


@custom_jvp
def _angle(x: Array) -> Array:
    """pi/2 times the square, up to whole turns."""
    return map_(lambda a: (0.5 * math.pi) * _turns(select(is_infinite(a), number(0), a)), x)


_angle.defjvps(lambda t, _, x: math.pi * x * t)


def wofz(z: object) -> Array:
    """Elementwise the Faddeeva function exp(-z**2) * erfc(-1j * z) of complex numbers.

    >>> wofz(1.0 + 1j)
    Array(0.30474421+0.20821894j)
    """
    return of_complex(_wofz, z)


def fresnel(x: object) -> tuple[Array, ...]:
    """Elementwise Fresnel's integrals, those of sin(pi * t**2 / 2) and of cos(pi * t**2 / 2) from 0 to x.

    Raises DTypeError for complex numbers.

    >>> fresnel(1.0)
    (Array(0.43825915), Array(0.7798934))
    """
    return parts_of_doubles(_fresnels, x)


dawsn = mapped(
    *("dawsn", "x", _dawsn), "Elementwise Dawson's integral, exp(-x**2) times the integral of exp(t**2) from 0 to x.",
    *("1.0", "0.53807951"),
)  # fmt: skip
