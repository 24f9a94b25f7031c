"""Owen's function, of two normal distributions.

By Gauss's and Legendre's quadrature with 48 points as far as the integrand counts; for slopes above 1 by the function
of the inverse slope (D. B. Owen: "Tables for computing bivariate normal probabilities", Annals of Mathematical
Statistics 27, 1956).
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from harp.numpy.elementwise import exp
from harp.scipy.special.errors import below, erf
from harp.scipy.special.formulas import named, number, of_doubles
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_
from harp.trace.scalar.expr import Expr, apply, select
from harp.trace.scalar.formulas import absolute, is_infinite, is_nan
from harp.trace.scalar.ops import Op
from harp.transforms.autodiff.custom import custom_jvp

_POINTS = 48
_REACH = 9.0  # standard deviations, beyond which nothing counts
_LAST = 60.0  # a number of them whose probability is 0


def _owens_t(h: Expr, a: Expr) -> Expr:
    place, slope, vertical = apply(Op.MIN, absolute(h), number(_LAST)), absolute(a), is_infinite(a)
    slope = select(vertical, number(0), slope)
    steep = slope > 1
    product = apply(Op.MIN, place * slope, number(_LAST))
    along = select(steep, product, place)
    flat = select(steep, apply(Op.RECIP, select(steep, slope, number(1))), slope)
    end = apply(Op.MIN, flat, _REACH / apply(Op.MAX, along, number(1)))
    total, reach = number(0), along * end
    for node, weight in zip(*np.polynomial.legendre.leggauss(_POINTS), strict=True):
        if node > 0:
            x = end * float(node)
            total = total + float(weight) * apply(Op.EXP, -0.5 * (float(node) ** 2 * (reach * reach))) / (1 + x * x)
    value = apply(Op.EXP, -0.5 * (along * along)) * (end * total) * (0.5 / math.pi)
    one, other = below(-place), below(-product)
    value = select(steep, 0.5 * (one + other) - one * other - value, value)
    value = apply(Op.COPYSIGN, select(vertical, 0.5 * one, value), a)
    return select(is_nan(h) | is_nan(a), h + a, value)


@custom_jvp
def _value(h: Array, a: Array) -> Array:
    return map_(_owens_t, h, a)


_value.defjvps(
    lambda t, _, h, a: t * (-0.5 / math.sqrt(2 * math.pi)) * exp(-0.5 * h * h) * erf(a * h * math.sqrt(0.5)),
    lambda t, _, h, a: t * (0.5 / math.pi) * exp(-0.5 * h * h * (1 + a * a)) / (1 + a * a),
)
owens_t = named(
    *("owens_t", "h a", partial(of_doubles, _value)),
    "Elementwise probability that a standard normal number is above h and another one between 0 and a times it.",
    *("1.0, 0.5", "0.04306469"),
)
