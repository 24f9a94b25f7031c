"""The integrals of sin(t)/t and cos(t)/t.

Up to 4 power series; beyond by two integrals that do not oscillate, of exp(-t) / (x**2 + t**2) times x and t (NIST
Handbook of Mathematical Functions, 6.7.13 and 6.2.17 to 6.2.20), by Gauss's and Laguerre's quadrature with 44 points,
of which the last ones do not count.
"""

from __future__ import annotations

import math
from typing import Any

from harp.numpy.elementwise import cos, where
from harp.numpy.mathematical import sinc
from harp.scipy.special.formulas import number, parts_of_doubles, polynomial
from harp.trace.array.arithmetic import equal
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import absolute, equals, is_nan
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp

_NODES = (
    *("0x1.0a2ac7916438bp-5", "0x1.5eb21ee77ee82p-3", "0x1.af243c5f0b318p-2", "0x1.9083b7d1b457dp-1"),
    *("0x1.415eebddf2defp+0", "0x1.d747ac9f33a29p+0", "0x1.4516a1d93a8a0p+1", "0x1.ad257ac9c95dbp+1"),
    *("0x1.11f9a60836a75p+2", "0x1.54d4465f50ca8p+2", "0x1.9f39c7df3a366p+2", "0x1.f14470c8655d9p+2"),
    *("0x1.2588ed823f7e2p+3", "0x1.56619a1698874p+3", "0x1.8b3ec412c09efp+3", "0x1.c4350bffc1caap+3"),
    *("0x1.00adafd328036p+4", "0x1.21659a9d5c286p+4", "0x1.44506855d6b76p+4", "0x1.697dca8d25988p+4"),
    *("0x1.90ff3283a99a3p+4", "0x1.bae80a3832294p+4", "0x1.e74df87f6b3f1p+4", "0x1.0b249967a35c1p+5"),
    *("0x1.23fa701d3464ap+5", "0x1.3e37c91b11040p+5"),
)
_WEIGHTS = (
    *("0x1.4aa31081cc8b4p-4", "0x1.4f2612bfa8a66p-3", "0x1.9a964f1ad686ap-3", "0x1.86abaa30f8d26p-3"),
    *("0x1.34df783521a24p-3", "0x1.a147b6793f26dp-4", "0x1.e85f1eabe75d5p-5", "0x1.f2f3a9a691b88p-6"),
    *("0x1.beee38ea1619ap-7", "0x1.5fd6fbc851afcp-8", "0x1.e76df9e0726f5p-10", "0x1.292c3c05a8f03p-11"),
    *("0x1.3ed02dfc6033bp-13", "0x1.2ca7e57c75d34p-15", "0x1.f1c94d2174b66p-18", "0x1.691710ad8c874p-20"),
    *("0x1.ca06adba7ad26p-23", "0x1.faa52ce5b1a42p-26", "0x1.e73d961865fd8p-29", "0x1.95fb0c29f2eccp-32"),
    *("0x1.23ee9e9520ae4p-35", "0x1.68b89c715932dp-39", "0x1.7d08f3ae4524ap-43", "0x1.56239db774a1ep-47"),
    *("0x1.037ba7f209d67p-51", "0x1.4a0b4eae2db93p-56"),
)
_EULER = 0.5772156649015329
_NEAR = 4  # up to where the power series lose few digits


def _parts(x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """Whether x is small, x itself if it is, and the integrals that do not oscillate times sines and cosines."""
    size = absolute(x)
    near, endless = size < _NEAR, ~(size < 1e150)
    large = select(near | endless, number(_NEAR), size)
    square, f, g = large * large, number(0), number(0)
    for node, weight in zip(map(float.fromhex, _NODES), map(float.fromhex, _WEIGHTS), strict=True):
        share = weight / (square + node * node)
        f, g = f + share, g + node * share
    f, g = select(endless, apply(Op.RECIP, size), large * f), select(endless, number(0), g)
    angle = select(size < math.inf, size, number(0))
    sine, cosine = apply(Op.SIN, angle), apply(Op.COS, angle)
    return near, select(near, x, number(1)), f * cosine + g * sine, f * sine - g * cosine


def _si(x: Expr) -> Expr:
    near, small, outside, _ = _parts(x)
    terms = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in reversed(range(17))]
    far = apply(Op.COPYSIGN, 0.5 * math.pi - outside, x)
    return select(is_nan(x), x, select(near, small * polynomial(small * small, terms), far))


def _ci(x: Expr) -> Expr:
    near, small, _, outside = _parts(x)
    square = small * small
    terms = [(-1) ** k / (2 * k * math.factorial(2 * k)) for k in reversed(range(1, 18))]
    inside = square * polynomial(square, terms) + (apply(Op.LOG, absolute(small)) + _EULER)
    none = is_nan(x) | equals(x, -math.inf)
    return select(none, number(math.nan), select(near, inside, outside))


@custom_jvp
def _sici(x: Array) -> tuple[Array, Array]:
    return map_(_si, x), map_(_ci, x)


@_sici.defjvp
def _tangents(primals: tuple[Array], tangents: tuple[Array]) -> Any:
    (x,), (t,) = primals, tangents
    return _sici(x), (sinc(x / math.pi) * t, cos(x) / where(equal(x, 0), 0.0, x) * t)


def sici(x: object) -> tuple[Array, ...]:
    """Elementwise the integral of sin(t) / t from 0 to x, and that of (cos(t) - 1) / t, plus log(|x|) and Euler's
    constant. Raises DTypeError for complex numbers.

    >>> sici(1.0)
    (Array(0.94608307), Array(0.33740392))
    """
    return parts_of_doubles(_sici, x)
