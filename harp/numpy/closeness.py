"""Comparison up to a tolerance, steps, and replacements of what is no number."""

from __future__ import annotations

import math

from harp.errors import ArgumentError
from harp.numpy.complexes import of_parts
from harp.numpy.elementwise import abs as _abs
from harp.numpy.elementwise import isfinite, isnan, logical_and, logical_or
from harp.numpy.reductions import all as _all
from harp.numpy.types import finfo
from harp.trace.array.arithmetic import NUMBERS, add, equal, less_equal_, multiply, require, subtract
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, common_dtype, map_
from harp.trace.scalar.dtypes import Kind
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.expr import select as _select
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where

__all__ = ["allclose", "fmod", "heaviside", "isclose", "nan_to_num"]


def isclose(a: object, b: object, rtol: object = 1e-5, atol: object = 1e-8, equal_nan: bool = False) -> Array:
    """Elementwise |a - b| <= atol + rtol*|b|, as bool; infinities only if equal, NaN with NaN only if `equal_nan`.

    >>> isclose(1.0, 1.0 + 1e-9)
    Array(True)
    """
    dtype, _ = common_dtype((a, b))
    x, y = as_array(a), as_array(b)
    if not dtype.is_inexact:
        x, y = x.astype("float64"), y.astype("float64")
    near = less_equal_(_abs(subtract(x, y)), add(atol, multiply(rtol, _abs(y))))
    found = logical_or(logical_and(near, isfinite(y)), equal(x, y))
    return logical_or(found, logical_and(isnan(x), isnan(y))) if equal_nan else found


def allclose(a: object, b: object, rtol: object = 1e-5, atol: object = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all of `isclose` holds, as a 0-d bool.

    >>> import harp.numpy as hnp
    >>> hnp.allclose(hnp.asarray([1.0, 2.0]), hnp.asarray([1.0, 2.0 + 1e-9]))
    Array(True)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


def nan_to_num(
    x: object, copy: bool = True, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Array:
    """NaN becomes `nan`, the infinities `posinf` and `neginf`: by default the largest and the lowest number.

    Complex numbers by their parts. `copy` is NumPy's, and changes nothing. Gradients flow through what is kept.

    >>> import harp.numpy as hnp
    >>> hnp.nan_to_num(hnp.asarray([1.0, hnp.nan, hnp.inf]), posinf=9.0)
    Array([1., 0., 9.])
    """
    if not isinstance(copy, bool):
        raise ArgumentError(f"copy of nan_to_num is a bool, not {copy!r}; write nan={copy!r}{where()}")
    array = as_array(x)
    if not array.kind.is_inexact:
        return array
    limits = finfo(array.kind)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf

    def replaced(e: Expr) -> Expr:
        to_nan, to_high, to_low = (const(number, e.dtype) for number in (nan, high, low))
        kept = _select(apply(Op.EQ, e, e), e, to_nan)
        upper = _select(apply(Op.EQ, e, const(math.inf, e.dtype)), to_high, kept)
        return _select(apply(Op.EQ, e, const(-math.inf, e.dtype)), to_low, upper)

    return map_(lambda e: of_parts(replaced, e), array)


def heaviside(x: object, h: object) -> Array:
    """Elementwise 0 below 0, 1 above, `h` at 0; NaN for NaN. The gradient by x is 0. Raises DTypeError for bool.

    >>> import harp.numpy as hnp
    >>> hnp.heaviside(hnp.asarray([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ])
    """
    require(common_dtype((x, h))[0], "heaviside", NUMBERS)
    return map_(_heaviside, x, h)


def _heaviside(x: Expr, h: Expr) -> Expr:
    zero, one = const(0, x.dtype), const(1, x.dtype)
    step = _select(x < zero, zero, _select(apply(Op.EQ, x, zero), h, one))
    unknown = ~apply(Op.EQ, x, x)
    return _select(unknown, apply(Op.STOP, x), step) if x.dtype.is_float else step


def fmod(a: object, b: object) -> Array:
    """Elementwise remainder of a / b with the sign of a, exact; an integer modulo 0 gives 0.

    Raises DTypeError for bool.

    >>> fmod(-5.5, 2.0)
    Array(-1.5)
    """
    dtype, _ = common_dtype((a, b))
    require(dtype, "fmod", NUMBERS)
    if dtype.kind is Kind.FLOAT:
        return map_(_fmod, a, b)
    return map_(_truncated_remainder if dtype.kind is Kind.INT else lambda x, y: x % y, a, b)


def _magnitude(x: Expr) -> Expr:
    """|x|, whose derivative at 0 is 1."""
    return _select(x < 0, -x, x)


def _fmod(x: Expr, y: Expr) -> Expr:
    zero = const(0, x.dtype)
    size = _magnitude(x) % _magnitude(y)
    signed = _select(x < zero, -size, size)
    stays = apply(Op.EQ, x, zero) & ~apply(Op.EQ, y, zero)
    return _select(stays & apply(Op.EQ, y, y), x, signed)  # -0.0


def _truncated_remainder(x: Expr, y: Expr) -> Expr:
    zero = const(0, x.dtype)
    floored = x % y
    opposite = (x < zero) ^ (y < zero)
    moved = opposite & ~apply(Op.EQ, floored, zero)
    return _select(moved, floored - y, floored)
