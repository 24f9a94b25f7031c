"""Complex numbers: their parts, angle and conjugate, and functions that real numbers have other formulas for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from harp.locks import importing
from harp.trace.array import arithmetic
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.primitives import as_array, common_dtype, emit, fold, map_
from harp.trace.graph import view
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import DType, computing, f32, f64, real_of
from harp.trace.scalar.expr import Expr, apply, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.levels import current


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


def angle(z: object, deg: bool = False) -> Array:
    """The angle in radians, from -pi to pi, or in degrees; 0 or pi for real numbers.

    >>> angle(1j)
    Array(1.57079633)
    """
    dtype, weak = common_dtype((z,))
    factor = 180 / math.pi
    return marked(map_(lambda a: _angle(a) * factor if deg else _angle(a), z, to=dtypes.inexact(dtype)), weak)


def iscomplexobj(x: object) -> bool:
    """Whether the dtype of an array, or a dtype, is complex, whatever the numbers are.

    >>> import harp.numpy as hnp
    >>> hnp.iscomplexobj(hnp.asarray([1.0])), hnp.iscomplexobj(hnp.asarray([1j]))
    (False, True)
    """
    return x.is_complex if isinstance(x, DType) else common_dtype((x,))[0].is_complex


def isrealobj(x: object) -> bool:
    """Whether the dtype is not complex, whatever the numbers are.

    >>> isrealobj(1.0), isrealobj(1j)
    (True, False)
    """
    return not iscomplexobj(x)


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
    and the result has the bits of the plain formula. The derivative is given: it is the scaled elements over their own
    root, for a product of the factor and other numbers may leave the range.
    """

    def root(x: Array) -> Array:
        scaled, total = _scaled(x, axes, keepdims)
        own = _plain_root(scaled, axes, keepdims, count)
        root = map_(lambda r, t: r * _factor(t, -1), own, total)
        return root if root.kind is real_of(x.kind) else map_(lambda e: e, root, to=real_of(x.kind))

    if current() is None:
        return marked(root(array), array.weak)

    counts = count  # for elements with all axes
    if isinstance(count, Array) and count.ndim and not keepdims:
        counts = emit(view.insert_axes(node_of(count), sorted(axes)))

    def tangent(x: Array, t: Array) -> Array:
        scaled, _ = _scaled(x, axes, keepdims)
        along = _along(scaled, _with_rule(scaled, axes, counts), t, axes, keepdims, counts)
        return arithmetic.astype(along, real_of(x.kind))

    return marked(_given(root, tangent)(array), array.weak)


def _scaled(array: Array, axes: Sequence[int], keepdims: bool) -> tuple[Array, Array]:
    """The elements in the dtype of the computation, times a factor; and the sum of the squares without it."""
    dtype = computing(array.kind)
    x = array if dtype is array.kind else map_(lambda e: e, array, to=dtype)
    total = fold(square_of_magnitude, x, Reduce.SUM, axes, True)
    factor = map_(lambda total: _factor(total, 1), total)
    scaled = map_(lambda e, f: of_parts(lambda part: part * f, e), x, factor, to=(x.kind, factor.kind))
    return scaled, total if keepdims else fold(square_of_magnitude, x, Reduce.SUM, axes)


def _plain_root(x: Array, axes: Sequence[int], keepdims: bool, count: object) -> Array:
    squares = fold(square_of_magnitude, x, Reduce.SUM, axes, keepdims)
    mean = squares if count is None else map_(lambda s, n: s / n, squares, count, to=squares.kind)
    return map_(lambda s: apply(Op.SQRT, s), mean)


def _with_rule(x: Array, axes: Sequence[int], count: object) -> Array:
    """The root of elements whose squares are in range, with all of its derivatives."""

    def tangent(x: Array, t: Array) -> Array:
        return _along(x, _with_rule(x, axes, count), t, axes, True, count)

    return _given(lambda x: _plain_root(x, axes, True, count), tangent)(x)


def _given(function: Callable[[Array], Array], tangent: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """The function with a rule for its tangent, given the argument and that of the argument."""
    with importing:
        given: Any = import_module("harp.transforms.autodiff.custom").custom_jvp(function)
    given.defjvp(lambda primals, tangents: (given(*primals), tangent(*primals, *tangents)))
    result: Callable[[Array], Array] = given
    return result


def _along(x: Array, root: Array, tangent: Array, axes: Sequence[int], keepdims: bool, count: object) -> Array:
    """The tangent of a root of squares: the sum of the real parts of conj(x)*tangent, over the root and the count."""
    unit = map_(lambda e, r: of_parts(lambda part: part / r, e), x, root, to=(x.kind, root.kind))
    if count is not None:
        unit = map_(lambda e, n: of_parts(lambda part: part / n, e), unit, count, to=(unit.kind, root.kind))
    return fold(lambda e: e, map_(_real_product, unit, tangent, to=unit.kind), Reduce.SUM, axes, keepdims)


def _real_product(a: Expr, b: Expr) -> Expr:
    """The real part of conj(a)*b."""
    if not a.dtype.is_complex:
        return a * b
    return apply(Op.REAL, a) * apply(Op.REAL, b) + apply(Op.IMAG, a) * apply(Op.IMAG, b)


def _factor(total: Expr, sign: int) -> Expr:
    """The factor of the elements for a sum of squares; with sign -1, its inverse."""
    low, high, scale = _SAFE[total.dtype]
    down, up, one = (const(2.0 ** (sign * power), total.dtype) for power in (-scale, scale, 0))
    small, large = (total < const(2.0**low, total.dtype)), (const(2.0**high, total.dtype) < total)
    return select(small, up, select(large, down, one))
