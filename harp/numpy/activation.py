"""Functions between the layers of networks, without overflow and with all digits at both ends."""

from __future__ import annotations

from harp.numpy.elementwise import float_map
from harp.trace.array.arithmetic import NUMBERS, require, zero_of
from harp.trace.array.array import Array
from harp.trace.array.primitives import common_dtype, map_
from harp.trace.scalar.expr import Expr, apply
from harp.trace.scalar.expr import less_equal as _less_equal
from harp.trace.scalar.expr import select as _select
from harp.trace.scalar.ops import Op


def relu(x: object) -> Array:
    """Elementwise max(x, 0); NaN stays NaN, and the gradient at 0 is 0. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.relu(hnp.asarray([-1.0, 2.0]))
    Array([0., 2.])
    """
    require(common_dtype((x,))[0], "relu", NUMBERS)
    return map_(lambda a: _select(_less_equal(a, zero_of(a.dtype)), zero_of(a.dtype), a), x)


def sigmoid(x: object) -> Array:
    """Elementwise 1 / (1 + exp(-x)), without overflow and with full relative accuracy on both sides.

    >>> sigmoid(0.0)
    Array(0.5)
    """
    return float_map(_sigmoid, x)


def _minus_magnitude(a: Expr) -> tuple[Expr, Expr]:
    """(a < 0, -|a|)"""
    is_negative = a < zero_of(a.dtype)
    return is_negative, _select(is_negative, a, -a)


def _sigmoid(a: Expr) -> Expr:
    is_negative, n = _minus_magnitude(a)
    t = apply(Op.EXP, n)
    r = apply(Op.RECIP, 1 + t)
    return _select(is_negative, t * r, r)


def softplus(x: object) -> Array:
    """Elementwise log(1 + exp(x)), without overflow and with full relative accuracy on both sides.

    >>> import harp.numpy as hnp
    >>> hnp.softplus(hnp.asarray([-1000.0, 0.0, 1000.0]))
    Array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    return float_map(_softplus, x)


def _softplus(a: Expr) -> Expr:
    is_negative, n = _minus_magnitude(a)
    tail = apply(Op.LOG1P, apply(Op.EXP, n))
    return _select(is_negative, tail, a + tail)
