"""Scalar expressions over complex numbers, by real and imaginary parts: one row for each operation.

A complex operand is read by `real` and `imag`, and a complex result is built by `complex`. Elementary functions are in
`harp.lower.graph.complex_math`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harp.lower.graph import complex_math
from harp.lower.graph.complex_math import Parts, hypot
from harp.trace.scalar.dtypes import DType, bool_, computing, real_of
from harp.trace.scalar.expr import Apply, Const, Expr, apply, cast, const, select, walk
from harp.trace.scalar.ops import Op

Value = Expr | Parts


def split(e: Expr) -> Expr:
    """The same value without complex operations."""
    if not any(x.dtype.is_complex for x in walk((e,))):
        return e
    new: dict[Expr, Value] = {}
    for x in walk((e,)):
        if isinstance(x, Apply):
            new[x] = _apply(x, [new[a] for a in x.operands])
        else:
            new[x] = _leaf(x)
    return _joined(new[e])


def _joined(value: Value) -> Expr:
    return value if isinstance(value, Expr) else apply(Op.COMPLEX, *value)


def _leaf(e: Expr) -> Value:
    if not e.dtype.is_complex:
        return e
    if isinstance(e, Const):
        real = real_of(e.dtype)
        return const(e.value.real, real), const(e.value.imag, real)
    return apply(Op.REAL, e), apply(Op.IMAG, e)


def _apply(e: Apply, args: list[Value]) -> Value:
    if not e.dtype.is_complex and not any(a.dtype.is_complex for a in e.operands):
        return apply(e.op, *map(_joined, args), cast_to=e.dtype)
    return _cast(e, args[0]) if e.op is Op.CAST else ROWS[e.op](*args)


def _cast(e: Apply, value: Value) -> Value:
    real = real_of(e.dtype)
    if isinstance(value, Expr):
        return cast(value, real), const(0, real)
    if e.dtype is bool_:
        return cast(value[0], bool_) | cast(value[1], bool_)
    return cast(value[0], real), cast(value[1], real)


def _equal(a: Parts, b: Parts) -> Expr:
    return apply(Op.EQ, a[0], b[0]) & apply(Op.EQ, a[1], b[1])


def _select(condition: Expr, yes: Parts, no: Parts) -> Parts:
    return select(condition, yes[0], no[0]), select(condition, yes[1], no[1])


def _complex(real: Expr, imag: Expr) -> Parts:
    return cast(real, _part_of(real)), cast(imag, _part_of(imag))


def _part_of(e: Expr) -> DType:
    return computing(e.dtype)


ROWS: Mapping[Op, Callable[..., Value]] = {
    Op.COMPLEX: _complex,
    Op.REAL: lambda z: z[0],
    Op.IMAG: lambda z: z[1],
    Op.ADD: complex_math.sum_of,
    Op.NEG: complex_math.negative,
    Op.MUL: complex_math.product,
    Op.DIV: complex_math.quotient,
    Op.RECIP: complex_math.reciprocal,
    Op.EQ: _equal,
    Op.SELECT: _select,
    Op.STOP: lambda z: (apply(Op.STOP, z[0]), apply(Op.STOP, z[1])),
    Op.ABS: hypot,
    Op.SQRT: complex_math.sqrt,
    Op.EXP: complex_math.exp,
    Op.EXPM1: complex_math.expm1,
    Op.LOG: complex_math.log,
    Op.LOG1P: complex_math.log1p,
    Op.SIN: complex_math.sin,
    Op.COS: complex_math.cos,
    Op.TAN: complex_math.tan,
    Op.TANH: complex_math.tanh,
    Op.SINH: complex_math.sinh,
    Op.COSH: complex_math.cosh,
    Op.ASIN: complex_math.asin,
    Op.ACOS: complex_math.acos,
    Op.ATAN: complex_math.atan,
    Op.ASINH: complex_math.asinh,
    Op.ACOSH: complex_math.acosh,
    Op.ATANH: complex_math.atanh,
    Op.POW: complex_math.power,
}
