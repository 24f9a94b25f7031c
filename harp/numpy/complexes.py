"""Complex numbers: their parts, angle and conjugate, and functions that real numbers have other formulas for."""

from __future__ import annotations

from harp.trace import arithmetic, dtypes
from harp.trace.array import Array, marked
from harp.trace.dtypes import real_of
from harp.trace.expr import Expr, apply, const, select
from harp.trace.ops import Op
from harp.trace.primitives import as_array, common_dtype, map_


def real(x: object) -> Array:
    """The real parts, of the real dtype; what is not complex is its own.

    >>> real(1 + 2j)
    Array(1.)
    """
    return arithmetic.real(x)


def imag(x: object) -> Array:
    """The imaginary parts, of the real dtype; zeros for what is not complex.

    >>> imag(1 + 2j)
    Array(2.)
    """
    return arithmetic.imag(x)


def conj(x: object) -> Array:
    """The complex conjugate; what is not complex is its own.

    >>> conj(1 + 2j)
    Array(1.-2.j)
    """
    return map_(_conj, x) if common_dtype((x,))[0].is_complex else as_array(x)


def angle(x: object) -> Array:
    """The angle in radians, from -pi to pi; 0 or pi for real numbers.

    >>> angle(1j)
    Array(1.57079633)
    """
    dtype, weak = common_dtype((x,))
    return marked(map_(_angle, x, to=dtypes.inexact(dtype)), weak)


def iscomplexobj(x: object) -> bool:
    """Whether the dtype is complex, whatever the numbers are."""
    return common_dtype((x,))[0].is_complex


def _conj(z: Expr) -> Expr:
    return apply(Op.COMPLEX, apply(Op.REAL, z), apply(Op.NEG, apply(Op.IMAG, z)))


def _angle(z: Expr) -> Expr:
    if z.dtype.is_complex:
        return apply(Op.ATAN2, apply(Op.IMAG, z), apply(Op.REAL, z))
    return apply(Op.ATAN2, const(0, z.dtype), z)


def scaled(z: Expr, factor: Expr) -> Expr:
    """A complex number times a real one."""
    return _by_parts(Op.MUL, z, factor)


def divided(z: Expr, divisor: Expr) -> Expr:
    """A complex number over a real one."""
    return _by_parts(Op.DIV, z, divisor)


def _by_parts(op: Op, z: Expr, real_number: Expr) -> Expr:
    return apply(Op.COMPLEX, *(apply(op, apply(part, z), real_number) for part in (Op.REAL, Op.IMAG)))


def sign(z: Expr) -> Expr:
    """z/|z|, and 0 for 0."""
    size = apply(Op.ABS, z)
    is_zero = apply(Op.EQ, size, const(0, real_of(z.dtype)))
    return select(is_zero, const(0, z.dtype), divided(z, size))


def square_of_magnitude(z: Expr) -> Expr:
    """|z|**2, of the real dtype; x*x for real x."""
    if not z.dtype.is_complex:
        return apply(Op.MUL, z, z)
    re, im = apply(Op.REAL, z), apply(Op.IMAG, z)
    return apply(Op.ADD, apply(Op.MUL, re, re), apply(Op.MUL, im, im))
