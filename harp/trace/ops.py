"""The scalar operations: one row each, with what they accept, what they give, and what NumPy calls them.

All behaviour at the edges is NumPy's: integers wrap; x // 0 and x % 0 are 0 for integers; a shift by the width or more
gives 0 (or -1); maximum and minimum hand NaN on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

import attrs
import numpy as np

from harp.trace.dtypes import Buffer, DType, Kind, bool_

_BOOL, _INTS, _FLOAT = {Kind.BOOL}, {Kind.INT, Kind.UINT}, {Kind.FLOAT}
_NUMBERS = _INTS | _FLOAT
_ALL = _BOOL | _NUMBERS


class Result(enum.Enum):
    """How the dtype of the result follows."""

    SAME = "that of the operands, which agree"
    BOOL = "bool; the operands agree"
    CHOICE = "that of the last two operands; the first is bool"
    CAST = "given"


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
    LOG1P = "log1p"
    SIN = "sin"
    COS = "cos"
    TAN = "tan"
    TANH = "tanh"
    FLOOR = "floor"
    STOP = "stop_gradient"
    FMA = "fma"

    __hash__ = object.__hash__  # members are unique; Enum's own, in Python, is most of a look-up


@attrs.frozen
class OpInfo:
    """One row: operand count, accepted kinds, dtype of the result, NumPy's function, and a rough cost (add is 1)."""

    arity: int
    kinds: set[Kind]
    result: Result
    numpy: Callable[..., Buffer]
    weight: int = 1


def _power(a: Buffer, b: Buffer) -> Buffer:
    """a ** b. Integers to a negative power truncate the exact quotient (NumPy raises, which a program cannot)."""
    if a.dtype.kind == "f":
        return np.asarray(np.power(a, b))
    negative = np.less(b, 0)
    positive = np.asarray(np.power(a, np.where(negative, 0, b).astype(b.dtype)))
    sign = np.where(np.equal(b % 2, 0), 1, a).astype(a.dtype)
    unit = np.equal(a, 1) | (np.equal(a + 1, 0) if a.dtype.kind == "i" else False)
    return np.where(negative, np.where(unit, sign, 0), positive).astype(a.dtype)


def _fma(a: Buffer, b: Buffer, c: Buffer) -> Buffer:
    """Rounded once for float32 (through float64, where the product is exact); twice for float64, which has no wider."""
    if a.dtype == np.float32:
        wide = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
        return np.asarray(wide.astype(np.float32))
    return np.asarray(a * b + c)  # type: ignore[operator]


def convert(a: Buffer, to: np.dtype[np.generic]) -> Buffer:
    """a.astype(to), the same on all machines: a float out of an integer's range is first truncated to int64 (for narrow
    targets to int32), where it becomes the lowest number, and then wraps."""
    if a.dtype.kind != "f" or to.kind not in "iu":
        return a.astype(to, copy=False)
    bits = 63 if to.itemsize == 8 or to == np.uint32 else 31
    whole = np.trunc(a.astype(np.float64))
    inside = (whole >= -(2.0**bits)) & (whole < 2.0**bits)
    result = np.where(inside, np.where(inside, whole, 0).astype(np.int64), -(2**bits)).astype(to)
    if to == np.uint64:
        high = (whole >= 2.0**63) & (whole < 2.0**64)
        result = np.where(high, np.where(high, whole, 0).astype(np.uint64), result)
    return np.asarray(result)


def _identity(a: Buffer) -> Buffer:
    return a


def _cast(a: Buffer) -> Buffer:
    raise AssertionError("a cast needs its dtype: the evaluator handles it")


INFO: dict[Op, OpInfo] = {
    Op.ADD: OpInfo(2, _NUMBERS, Result.SAME, np.add),
    Op.MUL: OpInfo(2, _NUMBERS, Result.SAME, np.multiply),
    Op.DIV: OpInfo(2, _FLOAT, Result.SAME, np.divide, 4),
    Op.FLOORDIV: OpInfo(2, _NUMBERS, Result.SAME, np.floor_divide, 8),
    Op.MOD: OpInfo(2, _NUMBERS, Result.SAME, np.remainder, 8),
    Op.MAX: OpInfo(2, _ALL, Result.SAME, np.maximum),
    Op.MIN: OpInfo(2, _ALL, Result.SAME, np.minimum),
    Op.POW: OpInfo(2, _NUMBERS, Result.SAME, _power, 16),
    Op.LT: OpInfo(2, _ALL, Result.BOOL, np.less),
    Op.EQ: OpInfo(2, _ALL, Result.BOOL, np.equal),
    Op.SELECT: OpInfo(3, _ALL, Result.CHOICE, np.where),
    Op.CAST: OpInfo(1, _ALL, Result.CAST, _cast),
    Op.AND: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_and),
    Op.OR: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_or),
    Op.XOR: OpInfo(2, _BOOL | _INTS, Result.SAME, np.bitwise_xor),
    Op.NOT: OpInfo(1, _BOOL | _INTS, Result.SAME, np.bitwise_not),
    Op.SHL: OpInfo(2, _INTS, Result.SAME, np.left_shift),
    Op.SHR: OpInfo(2, _INTS, Result.SAME, np.right_shift),
    Op.NEG: OpInfo(1, _NUMBERS, Result.SAME, np.negative),
    Op.ABS: OpInfo(1, _NUMBERS, Result.SAME, np.absolute),
    Op.RECIP: OpInfo(1, _FLOAT, Result.SAME, lambda a: np.asarray(np.divide(np.ones_like(a), a)), 4),
    Op.SQRT: OpInfo(1, _FLOAT, Result.SAME, np.sqrt, 4),
    Op.EXP: OpInfo(1, _FLOAT, Result.SAME, np.exp, 12),
    Op.EXP2: OpInfo(1, _FLOAT, Result.SAME, np.exp2, 12),
    Op.EXPM1: OpInfo(1, _FLOAT, Result.SAME, np.expm1, 12),
    Op.LOG: OpInfo(1, _FLOAT, Result.SAME, np.log, 12),
    Op.LOG2: OpInfo(1, _FLOAT, Result.SAME, np.log2, 12),
    Op.LOG1P: OpInfo(1, _FLOAT, Result.SAME, np.log1p, 12),
    Op.SIN: OpInfo(1, _FLOAT, Result.SAME, np.sin, 12),
    Op.COS: OpInfo(1, _FLOAT, Result.SAME, np.cos, 12),
    Op.TAN: OpInfo(1, _FLOAT, Result.SAME, np.tan, 12),
    Op.TANH: OpInfo(1, _FLOAT, Result.SAME, np.tanh, 12),
    Op.FLOOR: OpInfo(1, _FLOAT, Result.SAME, np.floor),
    Op.STOP: OpInfo(1, _ALL, Result.SAME, _identity, 0),
    Op.FMA: OpInfo(3, _FLOAT, Result.SAME, _fma),
}


def result_dtype(op: Op, operands: tuple[DType, ...], cast_to: DType | None = None) -> DType:
    """The dtype rule; an AssertionError here is a bug in the caller, for user input is checked before."""
    info = INFO[op]
    assert len(operands) == info.arity, (op, operands)
    if info.result is Result.CAST:
        assert cast_to is not None
        return cast_to
    if info.result is Result.CHOICE:
        assert operands[0] is bool_ and operands[1] is operands[2], (op, operands)
        return operands[1]
    assert all(d is operands[0] for d in operands) and operands[0].kind in info.kinds, (op, operands)
    return bool_ if info.result is Result.BOOL else operands[0]


class Reduce(enum.Enum):
    """The reductions, each the fold of a scalar operation."""

    SUM = Op.ADD
    PROD = Op.MUL
    MAX = Op.MAX
    MIN = Op.MIN

    @property
    def ufunc(self) -> np.ufunc:
        return _UFUNCS[self]

    def identity(self, dtype: DType) -> Buffer:
        """The value that an empty reduction has, and that accumulation starts from."""
        if self is Reduce.SUM or self is Reduce.PROD:
            return np.asarray(self is Reduce.PROD, dtype.numpy)
        lowest = self is Reduce.MAX
        if dtype.kind is Kind.BOOL:
            return np.asarray(not lowest)
        if dtype.is_float:
            return np.asarray(-np.inf if lowest else np.inf, dtype.numpy)
        limits = np.iinfo(dtype.numpy.name)
        return np.asarray(limits.min if lowest else limits.max, dtype.numpy)


_UFUNCS = {Reduce.SUM: np.add, Reduce.PROD: np.multiply, Reduce.MAX: np.maximum, Reduce.MIN: np.minimum}
