"""The scalar language as C: how each dtype is spelled, literals, and one row for each operation.

Every row gives NumPy's value. Where C's own operator differs (promotion of small integers, division, shifts) the row
says so; what takes more than an operator is a function of the library, whose header `headers` names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from harp.trace.scalar.dtypes import (
    ALL,
    DType,
    Kind,
    NotFinite,
    complex_of,
    computing,
    f32,
    f64,
    format_of,
    i4,
    i32,
    i64,
    real_of,
    u4,
    u32,
    u64,
)
from harp.trace.scalar.expr import Apply, Const, const
from harp.trace.scalar.ops import INFO, Op

TYPES: Mapping[DType, str] = {
    **{dtype: f"int{8 * dtype.itemsize}_t" for dtype in ALL if dtype.kind is Kind.INT},
    # Halves and float8 are held as their bits, and computed with by casts only.
    **{d: f"uint{8 * d.itemsize}_t" for d in ALL if d.kind in (Kind.BOOL, Kind.UINT) or (d.is_float and d.is_stored)},
    **{dtype: f"harp_{dtype.name}" for dtype in ALL if dtype.is_complex},
    f32: "float",
    f64: "double",
}

_BOOL, _SIGNED, _UNSIGNED, _FLOAT = (Kind.BOOL,), (Kind.INT,), (Kind.UINT,), (Kind.FLOAT,)
_COMPLEX = (Kind.COMPLEX,)
_INTS = _SIGNED + _UNSIGNED
_NUMBERS = _INTS + _FLOAT
_ALL = _BOOL + _NUMBERS

Row = dict[Kind, str]


def _on(kinds: Iterable[Kind], text: str) -> Row:
    return dict.fromkeys(kinds, text)


# The functions of floats that harp implements, by the header that declares them.
MATH: Mapping[str, tuple[Op, ...]] = {
    "math/exp_{s}.h": (Op.EXP, Op.EXP2, Op.EXPM1),
    "math/log_{s}.h": (Op.LOG, Op.LOG2, Op.LOG10, Op.LOG1P),
    "math/trig_{s}.h": (Op.SIN, Op.COS, Op.TAN),
    "math/angles_{s}.h": (Op.ASIN, Op.ACOS, Op.ATAN, Op.ATAN2),
    "math/hyperbolic_{s}.h": (Op.SINH, Op.COSH, Op.ASINH, Op.ACOSH, Op.ATANH),
    "math/erf_{s}.h": (Op.ERF, Op.ERFC, Op.ERFINV),
    "math/roots_{s}.h": (Op.CBRT, Op.HYPOT),
    "math/basics.h": (Op.RINT, Op.NEXTAFTER),
    "math/tanh_{s}.h": (Op.TANH,),
    "math/pow_{s}.h": (Op.POW,),
}
_HEADERS: Mapping[Op, str] = {op: name for name, ops in MATH.items() for op in ops}
_ARGUMENTS = {1: "{a}", 2: "{a}, {b}"}

# {a} {b} {c} are the operands, {T} is the C type, {s} the dtype's name, {t} that of complex numbers of it, {f} the
# suffix of libm's float functions. Rows are chosen by the kind of the last operand (the first one of a select is bool).
# For complex numbers there is what reductions and fills need; the rest is computed by parts
# (`harp.lower.graph.legalise`).
ROWS: Mapping[Op, Row] = {
    **{op: _on(_FLOAT, f"harp_{op.name.lower()}_{{s}}({_ARGUMENTS[INFO[op].arity]})") for op in _HEADERS},
    Op.ADD: _on(_NUMBERS + _COMPLEX, "({a} + {b})"),
    Op.MUL: _on(_NUMBERS, "({a}*{b})") | _on(_COMPLEX, "harp_mul_{s}({a}, {b})"),
    Op.DIV: _on(_FLOAT, "({a}/{b})"),
    Op.FLOORDIV: _on(_NUMBERS, "harp_floordiv_{s}({a}, {b})"),
    Op.MOD: _on(_NUMBERS, "harp_mod_{s}({a}, {b})"),
    Op.MAX: _on(_NUMBERS, "harp_max_{s}({a}, {b})") | _on(_BOOL, "({a} | {b})"),
    Op.MIN: _on(_NUMBERS, "harp_min_{s}({a}, {b})") | _on(_BOOL, "({a} & {b})"),
    Op.POW: _on(_NUMBERS, "harp_pow_{s}({a}, {b})"),
    Op.LT: _on(_ALL, "({a} < {b})"),
    Op.EQ: _on(_ALL, "({a} == {b})"),
    Op.SELECT: _on(_ALL + _COMPLEX, "({a} ? {b} : {c})"),
    Op.AND: _on(_BOOL + _INTS, "({a} & {b})"),
    Op.OR: _on(_BOOL + _INTS, "({a} | {b})"),
    Op.XOR: _on(_BOOL + _INTS, "({a} ^ {b})"),
    Op.NOT: _on(_BOOL, "(!{a})") | _on(_INTS, "(~{a})"),
    Op.SHL: _on(_INTS, "harp_shl_{s}({a}, {b})"),
    Op.SHR: _on(_INTS, "harp_shr_{s}({a}, {b})"),
    Op.NEG: _on(_NUMBERS, "(-{a})"),
    Op.ABS: _on(_SIGNED, "harp_abs_{s}({a})") | _on(_UNSIGNED, "{a}") | _on(_FLOAT, "fabs{f}({a})"),
    Op.RECIP: _on(_FLOAT, "(1.0{f}/{a})"),
    Op.SQRT: _on(_FLOAT, "sqrt{f}({a})"),
    Op.COPYSIGN: _on(_FLOAT, "copysign{f}({a}, {b})"),
    Op.FLOOR: _on(_FLOAT, "floor{f}({a})"),
    Op.STOP: _on(_ALL, "{a}"),
    Op.OPAQUE: _on(_FLOAT, "{a}"),
    Op.FMA: _on(_INTS, "({a}*{b} + {c})") | _on(_FLOAT, "__builtin_fma{f}({a}, {b}, {c})"),
    Op.COMPLEX: {Kind.FLOAT: "harp_complex_{t}({a}, {b})"},
    Op.REAL: _on(_COMPLEX, "harp_real_{s}({a})"),
    Op.IMAG: _on(_COMPLEX, "harp_imag_{s}({a})"),
}

# The same for casts, by the kinds of source and target; {t} is the target's name.
CASTS: Mapping[tuple[Kind, Kind], str] = {
    **{(source, target): "({T}){a}" for source in Kind for target in Kind},
    **{(source, Kind.BOOL): "({a} != 0)" for source in Kind},
    **{(Kind.FLOAT, target): "harp_{s}_to_{t}({a})" for target in _INTS},
}

# The headers with the other functions of each kind. The one that all units include has those of indices.
GENERATED = "generated.h"
_ELEMENTS: Mapping[Kind, str] = {
    Kind.INT: "elements/signed.h",
    Kind.UINT: "elements/unsigned.h",
    Kind.FLOAT: "elements/floats.h",
    Kind.COMPLEX: "elements/complex.h",
}
HALVES = "elements/halves.h"
# Of int4 the low bits count, and others are stored as 0.
_FROM_LOW_BITS = {i4: "(int8_t)((({a} & 15) ^ 8) - 8)", u4: "(uint8_t)({a} & 15)"}

# C computes these in `int` for narrower types, where the result may not fit: the cast back wraps it.
_WIDENED = {Op.ADD, Op.MUL, Op.NEG, Op.NOT, Op.FMA}


def headers(e: Apply) -> tuple[str, ...]:
    """The files of the library with the functions that `application` calls."""
    if e.op is Op.BITCAST:
        return ("math/basics.h",) if {e.operands[0].dtype, e.dtype} & {f32, f64} else ()
    if e.op is not Op.CAST:
        return operation_headers(e.op, e.operands[-1].dtype)
    source, target = e.operands[0].dtype, e.dtype
    halves = (HALVES,) if any(d.is_stored and d.is_float for d in (source, target)) else ()
    if source.kind is not Kind.FLOAT or not target.is_integer:
        return halves
    return (*halves, _ELEMENTS[Kind.FLOAT])


def operation_headers(op: Op, dtype: DType) -> tuple[str, ...]:
    """The same for an operation on operands of this dtype."""
    if "harp_" not in ROWS[op][dtype.kind]:
        return ()
    other = _ELEMENTS[dtype.kind] if dtype is not i64 else GENERATED
    return (_HEADERS.get(op, other).format(s=dtype.name) if dtype.kind is Kind.FLOAT else other,)


def operation(op: Op, dtype: DType, args: Sequence[str]) -> str:
    """op(*args) for operands of this dtype; the arguments and the result bind tighter than any binary operator."""
    names = dict(zip("abc", args, strict=False))
    whole = complex_of(dtype).name if op is Op.COMPLEX else ""
    text = ROWS[op][dtype.kind].format(T=TYPES[dtype], s=dtype.name, t=whole, f=_suffix(dtype), **names)
    narrow = op in _WIDENED and dtype.is_integer and dtype.itemsize < 4
    return f"({TYPES[dtype]}){text}" if narrow else text


def accumulation(op: Op, dtype: DType, accumulator: str, value: str) -> str:
    """The operation of a reduction step. A product of complex numbers starts from its first factor."""
    if op is Op.MUL and dtype.is_complex:
        return f"harp_prod_{dtype.name}({accumulator}, {value})"
    return operation(op, dtype, (accumulator, value))


def conversion(source: DType, target: DType, arg: str) -> str:
    """The cast, NumPy's where that is defined."""
    for stored in (d for d in (source, target) if d.is_stored):
        wide = computing(stored)
        if wide not in (source, target) and (source, stored.is_tiny) != (f64, False):
            return conversion(wide, target, conversion(source, wide, arg))
        if stored.is_integer:
            return (_FROM_LOW_BITS[stored] if stored is source else "({T})({a} & 15)").format(a=arg, T=TYPES[stored])
        if stored.is_tiny:
            form = format_of(stored)
            names = ("f8", "f32") if stored is source else ("f32", "f8")
            numbers = (form.fraction, form.bias, form.limit, int(form.not_finite is NotFinite.IEEE))
            return f"harp_{'_to_'.join(names)}({arg}, {', '.join(map(str, numbers))})"
        return f"harp_{source.name}_to_{target.name}({arg})"
    template = CASTS[source.kind, target.kind]
    return template.format(a=arg, T=TYPES[target], s=source.name, t=target.name)


def application(e: Apply, args: Sequence[str]) -> str:
    """An operation of the scalar language over the texts of its operands."""
    if e.op is Op.CAST:
        return conversion(e.operands[0].dtype, e.dtype, args[0])
    if e.op is Op.BITCAST:
        source, target = e.operands[0].dtype, e.dtype
        if source in (f32, f64):
            return f"harp_bits_{source.name}({args[0]})"
        return f"harp_from_bits_{target.name}({args[0]})" if target in (f32, f64) else args[0]
    power = known_power(e)
    if power is not None:
        return f"harp_pow_{power[0]}_{e.dtype.name}({args[0]}, {power[1]})"
    return operation(e.op, e.operands[-1].dtype, args)


# The largest exponents that are expanded into products, integers and half-integers: for float64 only the root.
_LARGEST_WHOLE = 15
_LARGEST_HALF = {f32: 3.5, f64: 0.5}


def known_power(e: Apply) -> tuple[str, int] | None:
    """A power with a constant exponent that products compute faster than a logarithm does: the function, for integers
    or half-integers, and the exponent."""
    if e.op is not Op.POW or not e.dtype.is_float or not isinstance(e.operands[1], Const):
        return None
    exponent = float(e.operands[1].value)
    if exponent.is_integer() and 1 <= abs(exponent) <= _LARGEST_WHOLE:
        return "whole", int(exponent)
    if (2 * exponent).is_integer() and abs(exponent) <= _LARGEST_HALF[e.dtype] and exponent != 0:
        return "half", int(2 * exponent)
    return None


def _suffix(dtype: DType) -> str:
    return "f" if dtype is f32 else ""


def literal(e: Const) -> str:
    """The number, exactly, as a primary expression of its C type (`int` for narrower types)."""
    if e.dtype.is_stored:
        return str(int.from_bytes(e.bits, sys.byteorder))
    value = e.value.item()
    if isinstance(value, complex):
        parts = (literal(const(part, real_of(e.dtype))) for part in (value.real, value.imag))
        return f"harp_complex_{e.dtype.name}({', '.join(parts)})"
    if isinstance(value, float):
        return _float(value, e.dtype)
    text = _integer(int(value), e.dtype)
    return f"({text})" if value < 0 else text


def _integer(value: int, dtype: DType) -> str:
    if value == np.iinfo(np.int64).min:
        return "INT64_MIN"
    if value == np.iinfo(np.int32).min and dtype is i32:
        return "INT32_MIN"
    wrapper = {i64: "INT64_C({})", u64: "UINT64_C({})", u32: "{}u"}.get(dtype, "{}")
    return wrapper.format(value)


def _float(value: float, dtype: DType) -> str:
    suffix = _suffix(dtype)
    if value != value:
        return f'__builtin_nan{suffix}("")'
    negative = np.signbit(value)
    size = abs(value)
    if size == float("inf"):
        text = f"__builtin_inf{suffix}()"
    else:
        short = size < 1e6 and size * 16 == int(size * 16)  # few digits in decimal, and those are exact
        mantissa, _, exponent = size.hex().partition("p")
        text = (repr(size) if short else f"{mantissa.rstrip('0').rstrip('.')}p{exponent}") + suffix
    return f"(-{text})" if negative else text
