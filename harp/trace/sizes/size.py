"""`Size`: what a user sees of a size, and the questions that harp itself asks about sizes.

Arithmetic with integers and sizes gives sizes. A comparison answers with a bool and guards the answer. Asking for the
number (`int(n)`, `range(n)`, a set or dict key) pins the size: the program then serves this value only.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from harp.errors import (
    ArgumentError,
    InconclusiveSizeError,
    IntegerRangeError,
    LeakedTracerError,
    ShapeError,
    SizeDivisionError,
)
from harp.lazy import FUNCTIONS
from harp.trace.index import bounds
from harp.trace.index.division import floordiv, mod
from harp.trace.index.polynomial import ONE, ZERO, Index, as_index, product
from harp.trace.sizes.levels import current
from harp.trace.sizes.scope import Relation, Scope
from harp.trace.source_locations import short, where
from harp.trace.trees import leaf_type

_LARGEST_EXPONENT = 64  # 2**64 is no int64


@leaf_type
class Size:
    """A size of the function being traced. Behaves like the integer that it is in the call at hand.

    `+`, `-`, `*`, `//` and `%` give sizes again, which are exact; a question about one (`n > 3`, `int(n)`) is answered
    for the call at hand, and the answer is a guard that later calls check.

    >>> import harp, numpy as np
    >>> f = harp.jit(lambda x: x[: x.shape[0] // 2])
    >>> f(np.ones(5)).shape, f(np.ones(8)).shape, f.compilations
    ((2,), (4,), 1)
    """

    __slots__ = ("_index", "_scope")

    def __init__(self, index: Index, scope: Scope) -> None:
        self._index = index
        self._scope = scope

    @property
    def index(self) -> Index:
        """The exact expression."""
        check_scope(self._scope)
        return self._scope.resolve(self._index)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        return FUNCTIONS["__array_ufunc__"](ufunc, method, inputs, options)

    def __array_function__(self, *call: object) -> object:
        return FUNCTIONS["__array_function__"](*call)

    def __add__(self, other: object) -> object:
        return _combine("add", self, other, lambda a, b: a + b)

    def __radd__(self, other: object) -> object:
        return _combine("add", other, self, lambda a, b: a + b)

    def __sub__(self, other: object) -> object:
        return _combine("subtract", self, other, lambda a, b: a - b)

    def __rsub__(self, other: object) -> object:
        return _combine("subtract", other, self, lambda a, b: a - b)

    def __mul__(self, other: object) -> object:
        return _combine("multiply", self, other, lambda a, b: a * b)

    def __rmul__(self, other: object) -> object:
        return _combine("multiply", other, self, lambda a, b: a * b)

    def __floordiv__(self, other: object) -> object:
        return _combine("floor_divide", self, _nonzero(other), guarded_floordiv)

    def __rfloordiv__(self, other: object) -> object:
        return _combine("floor_divide", other, self, guarded_floordiv)

    def __mod__(self, other: object) -> object:
        return _combine("remainder", self, _nonzero(other), guarded_mod)

    def __rmod__(self, other: object) -> object:
        return _combine("remainder", other, self, guarded_mod)

    def __divmod__(self, other: object) -> tuple[object, object]:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> tuple[object, object]:
        return other // self, other % self

    def __truediv__(self, other: object) -> object:
        return _on_arrays("divide", self, _nonzero(other))

    def __rtruediv__(self, other: object) -> object:
        return _on_arrays("divide", other, self)

    def __pow__(self, other: object) -> object:
        if isinstance(other, (int, np.integer)) and other >= 0:
            return _power(self.index, int(other))
        return _on_arrays("power", self, _real(other))

    def __rpow__(self, other: object) -> object:
        return _on_arrays("power", _real(other), self)

    def __lshift__(self, other: object) -> object:
        return self * 2 ** _shift(other)

    def __rshift__(self, other: object) -> object:
        return self // 2 ** _shift(other)

    # Bits are asked of the number.
    def __and__(self, other: object) -> object:
        return _of_numbers(operator.and_, self, other)

    def __or__(self, other: object) -> object:
        return _of_numbers(operator.or_, self, other)

    def __xor__(self, other: object) -> object:
        return _of_numbers(operator.xor, self, other)

    def __rlshift__(self, other: object) -> object:
        return _of_numbers(operator.lshift, other, self)

    def __rrshift__(self, other: object) -> object:
        return _of_numbers(operator.rshift, other, self)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> object:
        return -self - 1  # type: ignore[operator]

    def __neg__(self) -> object:
        return wrap(-self.index)

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> object:
        return self if self >= 0 else -self

    # A bool for numbers; for an array a traced array, as NumPy's integers do.
    def __eq__(self, other: object) -> Any:
        return _equal(self, other, Relation.ZERO)

    def __ne__(self, other: object) -> Any:
        return _equal(self, other, Relation.NONZERO)

    def __lt__(self, other: object) -> Any:
        return _order(self, other, operator.lt)

    def __le__(self, other: object) -> Any:
        return _order(self, other, operator.le)

    def __gt__(self, other: object) -> Any:
        return _order(self, other, operator.gt)

    def __ge__(self, other: object) -> Any:
        return _order(self, other, operator.ge)

    def __bool__(self) -> bool:
        return ask(Relation.NONZERO, self.index)

    def __int__(self) -> int:
        return pin(self.index)

    __index__ = __int__
    __trunc__ = __int__
    __floor__ = __pos__
    __ceil__ = __pos__

    def __float__(self) -> float:
        return float(int(self))

    def __round__(self, digits: int | None = None) -> object:
        return self if digits is None or digits >= 0 else round(int(self), digits)

    def __hash__(self) -> int:
        return hash(int(self))

    def __format__(self, spec: str) -> str:
        return format(int(self), spec) if spec else str(self)

    def __repr__(self) -> str:
        return repr(self._scope.resolve(self._index))


def check_scope(scope: Scope) -> None:
    """Raise if a size of another trace, or of one that is over, is used."""
    level = current()
    if level is None or level.scope is not scope:
        raise LeakedTracerError(
            "a size of one traced function was used outside it; return what you need from the function "
            f"instead of storing it in a global or an outer variable{where()}"
        )


def _integer(value: object) -> Index | None:
    if isinstance(value, Size):
        return value.index
    return as_index(int(value)) if _is_integer(value) or isinstance(value, np.bool_) else None


def _is_integer(value: object) -> TypeGuard[int]:
    """Whether it is an integer of Python or NumPy, of which a difference of times is a subclass."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)


def _is_number(value: object) -> bool:
    """Whether it is a number of any class."""
    return isinstance(value, numbers.Number) and not isinstance(value, np.timedelta64)


def _whole(number: Any) -> int | None:
    """The integer that a number equals, if it does: of floats, fractions, decimals, complex numbers."""
    if number != number or number.imag != 0:
        return None
    real = number.real
    if real in (math.inf, -math.inf):
        return None
    return int(real) if real == int(real) else None


def _is_array(value: object) -> bool:
    """Whether it is an array of NumPy, of harp, or of another library that has array functions."""
    return hasattr(type(value), "__array_namespace__") and not isinstance(value, np.generic)


def _is_operand(value: object) -> bool:
    """Whether the operators of arrays take it. All others are asked whether they know what to do with a size."""
    if isinstance(value, np.generic):
        return value.dtype.kind in "biufc"
    return isinstance(value, (Size, int, float, complex)) or _is_array(value)


def _equal(size: Size, other: object, relation: Relation) -> object:
    """A bool, which is guarded; for an array a traced array. What is no number is not equal to any size."""
    if _is_array(other):
        return FUNCTIONS["equal" if relation is Relation.ZERO else "not_equal"](size, other)
    p = _integer(other)
    if p is None:
        if not _is_number(other):
            return NotImplemented
        whole = _whole(other)
        if whole is None:
            return relation is Relation.NONZERO
        p = as_index(whole)
    return ask(relation, size.index - p)


def _has_order(value: object) -> bool:
    """Whether it is a number that is no complex one."""
    is_complex = isinstance(value, numbers.Complex) and not isinstance(value, numbers.Real)
    return _is_number(value) and not is_complex


def _nearest(number: Any, whole: Callable[[Any], int]) -> int | None:
    """The number rounded up or down, if it is finite."""
    return None if number != number or number in (math.inf, -math.inf) else whole(number)


_ORDERS = {operator.lt: "less", operator.le: "less_equal", operator.gt: "greater", operator.ge: "greater_equal"}


def _order(size: Size, other: object, compare: Callable[[Any, Any], Any]) -> object:
    """size < other, or another of the four. With a fraction: n < 2.5 is n < 3, and n <= 2.5 is n <= 2."""
    if _is_array(other):
        return FUNCTIONS[_ORDERS[compare]](size, other)
    p = _integer(other)
    if p is None:
        if not _has_order(other):
            return NotImplemented
        whole = _nearest(other, math.ceil if compare in (operator.lt, operator.ge) else math.floor)
        if whole is None:
            return bool(compare(0, other))  # infinite, or NaN: every integer compares so
        p = as_index(whole)
    above = size.index - p if compare in (operator.gt, operator.ge) else p - size.index
    return ask(Relation.NONNEGATIVE, above if compare in (operator.le, operator.ge) else above - 1)


def _of_exact_numbers(function: Callable[[Any, Any], object], a: object, b: object) -> object:
    """Arithmetic with a fraction, a decimal, or a number of the user's own, which no array holds: of the number."""
    return function(*(int(value) if isinstance(value, Size) else value for value in (a, b)))


def _is_exact_number(value: object) -> bool:
    return _is_number(value) and not isinstance(value, (int, float, complex, np.generic))


def _combine(name: str, a: object, b: object, exact: Callable[[Index, Index], Index]) -> object:
    """Exact for integers and sizes; with anything else (a float, an array) the operator of arrays."""
    if all(isinstance(value, Size) or _is_integer(value) for value in (a, b)):
        return wrap(exact(to_index(a), to_index(b)))
    return _on_arrays(name, a, b)


_EXACT: dict[str, Callable[[Any, Any], object]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "divide": operator.truediv,
    "power": operator.pow,
}


def _on_arrays(name: str, a: object, b: object) -> object:
    """What is no integer: an array, or a number that no array holds."""
    if _is_exact_number(a) or _is_exact_number(b):
        return _of_exact_numbers(_EXACT[name], a, b)
    return FUNCTIONS[name](a, b) if _is_operand(a) and _is_operand(b) else NotImplemented


def _power(p: Index, exponent: int) -> Size | int:
    if p.constant is None and exponent > _LARGEST_EXPONENT:
        raise IntegerRangeError(
            f"a size to the power of {short(exponent)} does not fit int64; make floats of it, as in "
            f"x.shape[0] ** 100.0{where()}"
        )
    return wrap(product([p] * exponent))


def _real(value: object) -> object:
    """An integer base or exponent as a float: the power of a size need not be an integer, nor fit one."""
    if isinstance(value, Size):
        return FUNCTIONS["multiply"](value, 1.0)
    if isinstance(value, (int, np.integer)):
        try:
            return float(value)
        except OverflowError:
            raise IntegerRangeError(f"the base or exponent of a power does not fit float64{where()}") from None
    return value


def _shift(count: object) -> int:
    if not isinstance(count, (int, np.integer)) or not 0 <= count < _LARGEST_EXPONENT:
        raise ArgumentError(
            f"a size is shifted by a number of bits from 0 to {_LARGEST_EXPONENT - 1}, not by {count!r}{where()}"
        )
    return int(count)


def _of_numbers(function: Callable[[int, int], int], a: object, b: object) -> object:
    if not all(isinstance(value, (Size, int, np.integer)) for value in (a, b)):
        return NotImplemented
    return function(int(a), int(b))  # type: ignore[call-overload]


def to_index(value: object) -> Index:
    """A size, an integer or an index expression as an index expression."""
    if isinstance(value, Index):
        return value
    if isinstance(value, Size):
        return value.index
    return as_index(value.__index__())  # type: ignore[attr-defined]


def wrap(p: Index) -> Size | int:
    """What the user sees of an index expression: a number if it is one."""
    p = resolve(p)
    if p.constant is not None:
        return p.constant
    level = current()
    assert level is not None, "a symbolic size exists only inside a trace"
    return Size(p, level.scope)


def resolve(p: Index) -> Index:
    """`p` through what the current trace has learnt."""
    level = current()
    return p if level is None else level.scope.resolve(p)


def resolve_all(shape: tuple[Index, ...]) -> tuple[Index, ...]:
    level = current()
    return shape if level is None else tuple(map(level.scope.resolve, shape))


def ask(relation: Relation, p: Index, reason: str = "asked by the function") -> bool:
    """Whether `p` stands in this relation to 0; guarded unless it is certain.

    Raises InconclusiveSizeError where nothing decides it: tracing on declared sizes has no call to look at.
    """
    level = current()
    answer = _ask_without_scope(relation, p) if level is None else level.scope.decide(relation, p, reason)
    if answer is None:
        raise InconclusiveSizeError(
            f"whether {resolve(p)} {relation.value} is not decided by the declared sizes ({reason}); declare it: "
            f"give sizes that must be equal the same name, or a fixed size as a number, as in "
            f"harp.f32['batch', 784]{where()}"
        )
    return answer


def _ask_without_scope(relation: Relation, p: Index) -> bool | None:
    if relation is Relation.NONNEGATIVE:
        return bounds.at_least_zero(p)
    known = bounds.is_zero(p)
    return None if known is None else known is (relation is Relation.ZERO)


def pin(p: Index) -> int:
    """The number that `p` is in the call at hand; the program then serves only calls where it is the same."""
    p = resolve(p)
    if p.constant is not None:
        return p.constant
    level = current()
    value = None if level is None else level.scope.hint(p)
    if value is None:
        raise InconclusiveSizeError(
            f"the number of {p} is not known while tracing on declared sizes; declare it as a number{where()}"
        )
    if level is not None:
        level.scope.pins.append(f"{level.scope.describe(p)}{where()}")
    ask(Relation.ZERO, p - value, "its number was asked for")
    return value


def hint(p: Index) -> int | None:
    """The value in the call at hand, without a guard: for choosing what to guard, never for a result."""
    level = current()
    return p.constant if level is None else level.scope.hint(level.scope.resolve(p))


def describe(p: Index) -> str:
    """A size as an error message names it."""
    level = current()
    return repr(p) if level is None else level.scope.describe(level.scope.resolve(p))


def is_one(p: Index) -> bool:
    """Whether this size is 1 for certain, or by a guard, also one that is not solved. Asks nothing."""
    level, p = current(), resolve(p)
    return p is ONE or (level is not None and level.scope.has_equation(p - 1))


def is_solvable(p: Index) -> bool:
    """Whether the equation `0 == p` would be solved, if the call at hand shows that it holds."""
    level = current()
    return level is None or not level.scope.concrete or hint(p) != 0 or level.scope.is_solvable(p)


def unify(a: Index, b: Index, what: Callable[[], str]) -> Index:
    """Require a == b, by a guard where it is not certain. Raises ShapeError, with `what()`, where it is not so."""
    a, b = resolve(a), resolve(b)
    if a is b:
        return a
    if not ask(Relation.ZERO, a - b, "sizes must be equal"):
        raise ShapeError(f"{what()}: {describe(a)} is not {describe(b)}{where()}")
    return resolve(a)


def is_unreached() -> bool:
    """Whether what is traced is never computed: in a loop of no steps, for a batch of no examples, or in a branch that
    is known not to be taken. The answer becomes a guard."""
    level = current()
    if level is None or level.reach is ONE:
        return False
    return ask(Relation.ZERO, resolve(level.reach), "this is not computed")


def may_miss(size: Index) -> bool:
    """Whether what is traced need not find an element along an axis of this size: it is not computed, or the axis has
    no elements at all, and data decides whether the loop or branch runs."""
    level = current()
    by_data = level is not None and level.by_data
    return is_unreached() or (by_data and ask(Relation.ZERO, resolve(size), "this axis has no elements"))


def require_at_least_one(p: Index, what: Callable[[], str]) -> None:
    """Require p >= 1, by a guard where it is not certain."""
    if not ask(Relation.NONNEGATIVE, resolve(p) - 1, "must not be empty"):
        raise ShapeError(f"{what()}{where()}")


def _by_zero() -> SizeDivisionError:
    return SizeDivisionError(f"a size was divided by zero; test the divisor with `if` before{where()}")


def _nonzero(divisor: object) -> object:
    if (_is_integer(divisor) or isinstance(divisor, (float, np.floating))) and divisor == 0:
        raise _by_zero()
    return divisor


def _is_positive_divisor(b: Index) -> bool:
    if resolve(b) is ZERO or not ask(Relation.NONZERO, resolve(b), "a divisor must not be 0"):
        raise _by_zero()
    return ask(Relation.NONNEGATIVE, resolve(b), "the sign of a divisor")


def guarded_floordiv(a: Index, b: Index) -> Index:
    """a // b, with guards on the divisor: other rules hold for other signs."""
    positive = _is_positive_divisor(b)
    a, b = resolve(a), resolve(b)
    return floordiv(a, b) if positive else floordiv(-a, -b)


def guarded_mod(a: Index, b: Index) -> Index:
    """a % b, which has the sign of b."""
    positive = _is_positive_divisor(b)
    a, b = resolve(a), resolve(b)
    return mod(a, b) if positive else -mod(-a, -b)
