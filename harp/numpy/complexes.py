"""Complex numbers: their parts, angle and conjugate, and functions that real numbers have other formulas for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from harp.trace.array import arithmetic
from harp.trace.array.array import Array, marked
from harp.trace.array.primitives import as_array, common_dtype, fold, map_
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, computing, f32, f64, real_of
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.ops import Op, Reduce


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
    """Whether the dtype is complex, whatever the numbers are.

    >>> import harp.numpy as hnp
    >>> hnp.iscomplexobj(hnp.asarray([1.0])), hnp.iscomplexobj(hnp.asarray([1j]))
    (False, True)
    """
    return common_dtype((x,))[0].is_complex


def _conj(z: Expr) -> Expr:
    return apply(Op.COMPLEX, apply(Op.REAL, z), -apply(Op.IMAG, z))


def _angle(z: Expr) -> Expr:
    if z.dtype.is_complex:
        return apply(Op.ATAN2, apply(Op.IMAG, z), apply(Op.REAL, z))
    return apply(Op.ATAN2, const(0, z.dtype), z)


def of_parts(build: Callable[[Expr], Expr], z: Expr) -> Expr:
    """A function of real numbers, applied to both parts; to a real number, itself."""
    if not z.dtype.is_complex:
        return build(z)
    return apply(Op.COMPLEX, *(build(apply(part, z)) for part in (Op.REAL, Op.IMAG)))


def scaled(z: Expr, factor: Expr) -> Expr:
    """A complex number times a real one."""
    return _by_parts(Op.MUL, z, factor)


def divided(z: Expr, divisor: Expr) -> Expr:
    """A complex number over a real one."""
    return _by_parts(Op.DIV, z, divisor)


def _by_parts(op: Op, z: Expr, real_number: Expr) -> Expr:
    return apply(Op.COMPLEX, *(apply(op, apply(part, z), real_number) for part in (Op.REAL, Op.IMAG)))


def sign(z: Expr) -> Expr:
    """z/|z|, and 0 for 0; 1, -1, i or -i where one part is infinite, as NumPy has it."""
    zero, one, quarter = (const(number, real_of(z.dtype)) for number in (0, 1, 0.25))
    parts = [apply(part, z) for part in (Op.REAL, Op.IMAG)]
    infinite = [apply(Op.EQ, apply(Op.ABS, part), const(math.inf, zero.dtype)) for part in parts]
    units = [select(part < zero, const(-1, zero.dtype), const(1, zero.dtype)) for part in parts]
    far = apply(Op.COMPLEX, *(select(test, unit, zero) for test, unit in zip(infinite, units, strict=True)))
    both, either = apply(Op.AND, *infinite), apply(Op.OR, *infinite)
    unknown = select(either, both, ~apply(Op.EQ, z, z))
    far = select(unknown, const(complex(math.nan, math.nan), z.dtype), far)
    largest = apply(Op.MAX, *(apply(Op.ABS, part) for part in parts))
    small = scaled(z, select(one < largest, quarter, one))  # the magnitude of z may overflow
    near = select(apply(Op.EQ, largest, zero), const(0, z.dtype), divided(small, apply(Op.ABS, small)))
    return select(unknown | either, far, near)


def square_of_magnitude(z: Expr) -> Expr:
    """|z|**2, of the real dtype; x*x for real x."""
    if not z.dtype.is_complex:
        return z * z
    re, im = apply(Op.REAL, z), apply(Op.IMAG, z)
    return re * re + im * im


# Sums of squares below 2**low or above 2**high are computed again, of elements times 2**scale or 2**-scale.
_SAFE: dict[DType, tuple[int, int, int]] = {f32: (-80, 100, 98), f64: (-600, 600, 600)}


def root_of_squares(array: Array, axes: Sequence[int], keepdims: bool, count: object = None) -> Array:
    """sqrt(sum(|x|**2) / count) over axes, without overflow or underflow of the squares, also in its derivatives.

    The elements are scaled by a power of two where the sum of squares is very small or large. Else the factor is 1,
    and the result has the bits of the plain formula. No derivative flows through the factor, which cancels.
    """
    dtype = array.kind
    x = array if computing(dtype) is dtype else map_(lambda e: e, array, to=computing(dtype))
    plain = fold(square_of_magnitude, x, Reduce.SUM, axes, True)
    factor = map_(lambda total: _factor(total, 1), plain)
    multiplied = map_(lambda e, f: of_parts(lambda part: part * f, e), x, factor, to=(x.kind, factor.kind))
    squares = fold(square_of_magnitude, multiplied, Reduce.SUM, axes, keepdims)
    total = plain if keepdims else fold(square_of_magnitude, x, Reduce.SUM, axes)
    mean = squares if count is None else map_(lambda s, n: s / n, squares, count, to=squares.kind)
    root = map_(lambda s, t: apply(Op.SQRT, s) * _factor(t, -1), mean, total)
    return marked(root if root.kind is real_of(dtype) else map_(lambda e: e, root, to=real_of(dtype)), array.weak)


def _factor(total: Expr, sign: int) -> Expr:
    """The factor of the elements for a sum of squares; with sign -1, its inverse."""
    low, high, scale = _SAFE[total.dtype]
    down, up, one = (const(2.0 ** (sign * power), total.dtype) for power in (-scale, scale, 0))
    small, large = (total < const(2.0**low, total.dtype)), (const(2.0**high, total.dtype) < total)
    return select(small, up, select(large, down, one))
