"""The scalar operations: one row each, with what they accept, what they give, and what NumPy calls them.

All behaviour at the edges is NumPy's: integers wrap; x // 0 and x % 0 are 0 for integers; a shift by the width or more
gives 0 (or -1); maximum and minimum hand NaN on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs
import numpy as np

from harp.errors import DTypeError
from harp.trace.scalar import special
from harp.trace.scalar.dtypes import (
    CONVERTED_BY,
    DType,
    Kind,
    NDArray,
    as_dtype,
    bool_,
    complex_of,
    format_of,
    integer_limits,
    real_of,
)
from harp.trace.source_locations import where

_BOOL, _INTS, _FLOAT, _COMPLEX = {Kind.BOOL}, {Kind.INT, Kind.UINT}, {Kind.FLOAT}, {Kind.COMPLEX}
_NUMBERS = _INTS | _FLOAT
_ALL = _BOOL | _NUMBERS
_INEXACT = _FLOAT | _COMPLEX


class Result(enum.Enum):
    """How the dtype of the result follows."""

    SAME = "that of the operands, which agree"
    BOOL = "bool; the operands agree"
    CHOICE = "that of the last two operands; the first is bool"
    CAST = "given"
    REAL = "the real one of the operand"
    COMPLEX = "the complex one of the operands, which agree"


class Op(enum.Enum):
    """The closed set of scalar operations. The value is the name in printed graphs."""

    ADD = "add"
    MUL = "mul"
    DIV = "div"
    FLOORDIV = "floordiv"
    MOD = "mod"
    MAX = "max"
    MIN = "min"
    POW = "pow"
    LT = "lt"
    EQ = "eq"
    SELECT = "select"
    CAST = "cast"
    BITCAST = "bitcast"
    AND = "and"
    OR = "or"
    XOR = "xor"
    NOT = "not"
    SHL = "shl"
    SHR = "shr"
    NEG = "neg"
    ABS = "abs"
    RECIP = "recip"
    SQRT = "sqrt"
    EXP = "exp"
    EXP2 = "exp2"
    EXPM1 = "expm1"
    LOG = "log"
    LOG2 = "log2"
    LOG10 = "log10"
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    TANH = "tanh"
    ASIN = "asin"
    ACOS = "acos"
    ATAN = "atan"
    SINH = "sinh"
    COSH = "cosh"
    ASINH = "asinh"
    ACOSH = "acosh"
    ATANH = "atanh"
    CBRT = "cbrt"
    ERF = "erf"
    ERFC = "erfc"
    ERFINV = "erfinv"
    ATAN2 = "atan2"
    HYPOT = "hypot"
    COPYSIGN = "copysign"
    NEXTAFTER = "nextafter"
    FLOOR = "floor"
    RINT = "rint"
    STOP = "stop_gradient"
    OPAQUE = "opaque"
    FMA = "fma"
    COMPLEX = "complex"
    REAL = "real"
    IMAG = "imag"

    __hash__ = object.__hash__  # members are unique; Enum's own, in Python, is most of a look-up


@attrs.frozen
class OpInfo:
    """One row: operand count, accepted kinds, dtype of the result, NumPy's function, and a rough cost (add is 1)."""

    arity: int
    kinds: set[Kind]
    result: Result
    numpy: Callable[..., NDArray]
    weight: int = 1


def _power(a: NDArray, b: NDArray) -> NDArray:
    """a ** b. Integers to a negative power truncate the exact quotient (NumPy raises, which a program cannot)."""
    if a.dtype.kind not in "iu":
        result = np.asarray(np.power(a, b))
        halves = np.equal(b, 0.5)
        if a.dtype.kind == "f" and halves.any():  # NumPy can take the root instead: of -inf NaN, of -0.0 itself
            root = np.where(np.equal(a, -np.inf), np.inf, result + 0.0)
            result = np.where(halves, root, result).astype(result.dtype)
        return result
    negative = np.less(b, 0)
    positive = np.asarray(np.power(a, np.where(negative, 0, b).astype(b.dtype)))
    sign = np.where(np.equal(b % 2, 0), 1, a).astype(a.dtype)
    unit = np.equal(a, 1) | (np.equal(a + 1, 0) if a.dtype.kind == "i" else False)
    return np.where(negative, np.where(unit, sign, 0), positive).astype(a.dtype)


def _reciprocal(a: NDArray) -> NDArray:
    """1 / a; of complex numbers NumPy's own, which has other signs of zeros, but for that of 0, which is NaN there."""
    quotient = np.asarray(np.divide(np.ones_like(a), a))
    return np.where(np.equal(a, 0), quotient, np.reciprocal(a)) if a.dtype.kind == "c" else quotient


def _log10(a: NDArray) -> NDArray:
    """By way of float64: NumPy's own of float32 can be two units in the last place away."""
    return np.asarray(np.log10(a.astype(np.float64)).astype(a.dtype))


def _fma(a: NDArray, b: NDArray, c: NDArray) -> NDArray:
    """Rounded once for float32 (through float64, where the product is exact); twice for float64, which has no wider."""
    if a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return np.asarray(wide.astype(np.float32))
    return np.asarray(a * b + c)  # type: ignore[operator]


def _complex(real: NDArray, imag: NDArray) -> NDArray:
    """real + 1j*imag, where no infinity meets a zero."""
    result = np.empty(np.broadcast(real, imag).shape, complex_of(as_dtype(real.dtype)).numpy)
    result.real, result.imag = real, imag
    return result


def convert(a: NDArray, to: np.dtype[np.generic]) -> NDArray:
    """a.astype(to), the same on all machines: a float out of an integer's range is first truncated to int64 (for narrow
    targets to int32), where it becomes the lowest number, and then wraps; in uint64 what is too large becomes 0."""
    if a.dtype == to:
        return a
    wide = a.astype(CONVERTED_BY.get(a.dtype, a.dtype), copy=False)
    return _converted(wide, CONVERTED_BY.get(to, to)).astype(to, copy=False)


def _seen(a: NDArray, to: np.dtype[np.generic]) -> NDArray:
    return np.asarray(a).view(to)


def _converted(a: NDArray, to: np.dtype[np.generic]) -> NDArray:
    if a.dtype.kind != "f" or to.kind not in "iu":
        return a.astype(to, copy=False)
    bits = 63 if to.itemsize == 8 or to == np.uint32 else 31
    whole = np.trunc(a.astype(np.float64))
    inside = (whole >= -(2.0**bits)) & (whole < 2.0**bits)
    result = np.where(inside, np.where(inside, whole, 0).astype(np.int64), -(2**bits)).astype(to)
    if to == np.uint64:
        high = (whole >= 2.0**63) & (whole < 2.0**64)
        result = np.where(whole >= 2.0**63, np.where(high, whole, 0).astype(np.uint64), result)
    return np.asarray(result)


def _identity(a: NDArray) -> NDArray:
    return a


def _cast(a: NDArray) -> NDArray:
    raise AssertionError("a cast needs its dtype: the evaluator handles it")


INFO: dict[Op, OpInfo] = {
    Op.ADD: OpInfo(2, _NUMBERS | _COMPLEX, Result.SAME, np.add),
    Op.MUL: OpInfo(2, _NUMBERS | _COMPLEX, Result.SAME, np.multiply),
    Op.DIV: OpInfo(2, _INEXACT, Result.SAME, np.divide, 4),
    Op.FLOORDIV: OpInfo(2, _NUMBERS, Result.SAME, np.floor_divide, 8),
    Op.MOD: OpInfo(2, _NUMBERS, Result.SAME, np.remainder, 8),
    Op.MAX: OpInfo(2, _ALL, Result.SAME, np.maximum),
    Op.MIN: OpInfo(2, _ALL, Result.SAME, np.minimum),
    Op.POW: OpInfo(2, _NUMBERS | _COMPLEX, Result.SAME, _power, 16),
    Op.LT: OpInfo(2, _ALL, Result.BOOL, np.less),
    Op.EQ: OpInfo(2, _ALL | _COMPLEX, Result.BOOL, np.equal),
    Op.SELECT: OpInfo(3, _ALL | _COMPLEX, Result.CHOICE, np.where),
    Op.CAST: OpInfo(1, _ALL | _COMPLEX, Result.CAST, _cast),
    Op.BITCAST: OpInfo(1, _INTS | _FLOAT, Result.CAST, _cast, 0),
    Op.AND: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_and),
    Op.OR: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_or),
    Op.XOR: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_xor),
    Op.NOT: OpInfo(1, _BOOL | _INTS, Result.SAME, np.bitwise_not),
    Op.SHL: OpInfo(2, _INTS, Result.SAME, np.left_shift),
    Op.SHR: OpInfo(2, _INTS, Result.SAME, np.right_shift),
    Op.NEG: OpInfo(1, _NUMBERS | _COMPLEX, Result.SAME, np.negative),
    Op.ABS: OpInfo(1, _NUMBERS | _COMPLEX, Result.REAL, np.absolute),
    Op.RECIP: OpInfo(1, _INEXACT, Result.SAME, _reciprocal, 4),
    Op.SQRT: OpInfo(1, _INEXACT, Result.SAME, np.sqrt, 4),
    Op.EXP: OpInfo(1, _INEXACT, Result.SAME, np.exp, 12),
    Op.EXP2: OpInfo(1, _FLOAT, Result.SAME, np.exp2, 12),
    Op.EXPM1: OpInfo(1, _INEXACT, Result.SAME, special.expm1, 12),
    Op.LOG: OpInfo(1, _INEXACT, Result.SAME, np.log, 12),
    Op.LOG2: OpInfo(1, _FLOAT, Result.SAME, np.log2, 12),
    Op.LOG10: OpInfo(1, _FLOAT, Result.SAME, _log10, 12),
    Op.LOG1P: OpInfo(1, _INEXACT, Result.SAME, special.log1p, 12),
    Op.SIN: OpInfo(1, _INEXACT, Result.SAME, np.sin, 12),
    Op.COS: OpInfo(1, _INEXACT, Result.SAME, np.cos, 12),
    Op.TAN: OpInfo(1, _INEXACT, Result.SAME, np.tan, 12),
    Op.TANH: OpInfo(1, _INEXACT, Result.SAME, np.tanh, 12),
    Op.ASIN: OpInfo(1, _INEXACT, Result.SAME, np.arcsin, 24),
    Op.ACOS: OpInfo(1, _INEXACT, Result.SAME, np.arccos, 24),
    Op.ATAN: OpInfo(1, _INEXACT, Result.SAME, np.arctan, 24),
    Op.SINH: OpInfo(1, _INEXACT, Result.SAME, np.sinh, 24),
    Op.COSH: OpInfo(1, _INEXACT, Result.SAME, np.cosh, 24),
    Op.ASINH: OpInfo(1, _INEXACT, Result.SAME, np.arcsinh, 24),
    Op.ACOSH: OpInfo(1, _INEXACT, Result.SAME, np.arccosh, 24),
    Op.ATANH: OpInfo(1, _INEXACT, Result.SAME, np.arctanh, 24),
    Op.CBRT: OpInfo(1, _FLOAT, Result.SAME, np.cbrt, 24),
    Op.ERF: OpInfo(1, _FLOAT, Result.SAME, special.erf, 48),
    Op.ERFC: OpInfo(1, _FLOAT, Result.SAME, special.erfc, 48),
    Op.ERFINV: OpInfo(1, _FLOAT, Result.SAME, special.erfinv, 96),
    Op.ATAN2: OpInfo(2, _FLOAT, Result.SAME, np.arctan2, 24),
    Op.HYPOT: OpInfo(2, _FLOAT, Result.SAME, np.hypot, 12),
    Op.COPYSIGN: OpInfo(2, _FLOAT, Result.SAME, np.copysign),
    Op.NEXTAFTER: OpInfo(2, _FLOAT, Result.SAME, np.nextafter, 6),
    Op.FLOOR: OpInfo(1, _FLOAT, Result.SAME, np.floor),
    Op.RINT: OpInfo(1, _FLOAT, Result.SAME, np.rint),
    Op.STOP: OpInfo(1, _ALL | _COMPLEX, Result.SAME, _identity, 0),
    Op.OPAQUE: OpInfo(1, _FLOAT, Result.SAME, _identity, 0),
    Op.FMA: OpInfo(3, _NUMBERS, Result.SAME, _fma),
    Op.COMPLEX: OpInfo(2, _FLOAT, Result.COMPLEX, _complex, 0),
    Op.REAL: OpInfo(1, _COMPLEX, Result.REAL, lambda a: np.asarray(np.real(a)), 0),
    Op.IMAG: OpInfo(1, _COMPLEX, Result.REAL, lambda a: np.asarray(np.imag(a)), 0),
}


# The operations whose dtype is given, with that dtype.
GIVEN: dict[Op, Callable[..., NDArray]] = {Op.CAST: convert, Op.BITCAST: _seen}


def result_dtype(op: Op, operands: tuple[DType, ...], cast_to: DType | None = None) -> DType:
    """The dtype rule. Raises DTypeError where the operation is not defined for the kind of its operands.

    An AssertionError here is a bug in the caller.
    """
    info = INFO[op]
    assert len(operands) == info.arity, (op, operands)
    if info.result is Result.CAST:
        assert cast_to is not None
        if operands[0].is_complex and not (cast_to.is_complex or cast_to is bool_):
            raise DTypeError(
                f"{operands[0].numpy} does not become {cast_to.numpy}, for its imaginary part would be lost; take "
                f"harp.numpy.real, imag or abs{where()}"
            )
        return cast_to
    if operands[-1].kind not in info.kinds:
        way_out = "take harp.numpy.real, imag or abs first" if operands[-1].is_complex else "convert with .astype"
        raise DTypeError(f"{op.value} is not defined for {operands[-1].numpy}; {way_out}{where()}")
    if info.result is Result.CHOICE:
        assert operands[0] is bool_ and operands[1] is operands[2], (op, operands)
        return operands[1]
    assert all(d is operands[0] for d in operands), (op, operands)
    return _OF_FIRST[info.result](operands[0])


_OF_FIRST: dict[Result, Callable[[DType], DType]] = {
    Result.SAME: lambda dtype: dtype,
    Result.BOOL: lambda dtype: bool_,
    Result.REAL: real_of,
    Result.COMPLEX: complex_of,
}


class Reduce(enum.Enum):
    """The reductions, each the fold of a scalar operation."""

    SUM = Op.ADD
    PROD = Op.MUL
    MAX = Op.MAX
    MIN = Op.MIN

    __hash__ = object.__hash__  # by C, as keys of nodes need it

    @property
    def ufunc(self) -> np.ufunc:
        return _UFUNCS[self]

    def identity(self, dtype: DType) -> NDArray:
        """The value that an empty reduction has, and that accumulation starts from."""
        if self is Reduce.SUM or self is Reduce.PROD:
            return np.asarray(self is Reduce.PROD, dtype.numpy)
        lowest = self is Reduce.MAX
        if dtype.kind is Kind.BOOL:
            return np.asarray(not lowest)
        if dtype.kind not in _INTS:
            end = np.inf if dtype.is_complex or not format_of(dtype).not_finite else format_of(dtype).max
            return np.asarray(-end if lowest else end, dtype.numpy)
        limits = integer_limits(dtype)
        return np.asarray(limits.min if lowest else limits.max, dtype.numpy)


_UFUNCS = {Reduce.SUM: np.add, Reduce.PROD: np.multiply, Reduce.MAX: np.maximum, Reduce.MIN: np.minimum}
