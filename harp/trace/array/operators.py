"""The operators and methods of arrays, looked up by name when they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, SupportsIndex, TypeAlias

import numpy as np

from harp.errors import ArgumentError
from harp.lazy import FUNCTIONS
from harp.trace.scalar.dtypes import DTypeLike
from harp.trace.sizes.size import Size
from harp.trace.source_locations import where

Axis: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None  # one or several axes, None for all of them


class HasArray(Protocol):
    """An array of any library: NumPy asks for its numbers in this way."""

    def __array__(self) -> np.ndarray[Any, Any]: ...


Operand: TypeAlias = HasArray | complex | Size  # an array or a number, but no list of numbers


class Operators:
    """Python's operators, each a function that is looked up by name."""

    __slots__ = ()

    def _binary(self, name: str, other: object) -> Self:
        result: Self = FUNCTIONS[name](self, other) if is_operand(other) or is_foreign(other) else NotImplemented
        return result

    def _reflected(self, name: str, other: object) -> Self:
        result: Self = FUNCTIONS[name](other, self) if is_operand(other) or is_foreign(other) else NotImplemented
        return result

    def _method(self, name: str, *args: object, **kwargs: object) -> Self:
        result: Self = FUNCTIONS[name](self, *args, **kwargs)
        return result

    def __add__(self, other: object) -> Self:
        return self._binary("add", other)

    def __radd__(self, other: object) -> Self:
        return self._reflected("add", other)

    def __sub__(self, other: object) -> Self:
        return self._binary("subtract", other)

    def __rsub__(self, other: object) -> Self:
        return self._reflected("subtract", other)

    def __mul__(self, other: object) -> Self:
        return self._binary("multiply", other)

    def __rmul__(self, other: object) -> Self:
        return self._reflected("multiply", other)

    def __truediv__(self, other: object) -> Self:
        return self._binary("divide", other)

    def __rtruediv__(self, other: object) -> Self:
        return self._reflected("divide", other)

    def __floordiv__(self, other: object) -> Self:
        return self._binary("floor_divide", other)

    def __rfloordiv__(self, other: object) -> Self:
        return self._reflected("floor_divide", other)

    def __mod__(self, other: object) -> Self:
        return self._binary("remainder", other)

    def __rmod__(self, other: object) -> Self:
        return self._reflected("remainder", other)

    def __pow__(self, other: object) -> Self:
        return self._binary("power", other)

    def __rpow__(self, other: object) -> Self:
        return self._reflected("power", other)

    def __matmul__(self, other: object) -> Self:
        return self._binary("matmul", other)

    def __rmatmul__(self, other: object) -> Self:
        return self._reflected("matmul", other)

    def __and__(self, other: object) -> Self:
        return self._binary("bitwise_and", other)

    def __rand__(self, other: object) -> Self:
        return self._reflected("bitwise_and", other)

    def __or__(self, other: object) -> Self:
        return self._binary("bitwise_or", other)

    def __ror__(self, other: object) -> Self:
        return self._reflected("bitwise_or", other)

    def __xor__(self, other: object) -> Self:
        return self._binary("bitwise_xor", other)

    def __rxor__(self, other: object) -> Self:
        return self._reflected("bitwise_xor", other)

    def __lshift__(self, other: object) -> Self:
        return self._binary("bitwise_left_shift", other)

    def __rlshift__(self, other: object) -> Self:
        return self._reflected("bitwise_left_shift", other)

    def __rshift__(self, other: object) -> Self:
        return self._binary("bitwise_right_shift", other)

    def __rrshift__(self, other: object) -> Self:
        return self._reflected("bitwise_right_shift", other)

    def __divmod__(self, other: object) -> tuple[Self, Self]:
        return self // other, self % other

    def __rdivmod__(self, other: object) -> tuple[Self, Self]:
        return other // self, other % self

    def __round__(self, digits: int | None = None) -> Self:
        return self._method("round", digits or 0)

    def round(self, decimals: int = 0) -> Self:
        """Elements rounded to so many decimals, halves to the even number."""
        return self._method("round", decimals)

    def __eq__(self, other: object) -> Self:  # type: ignore[override]
        return self._binary("equal", other)

    def __ne__(self, other: object) -> Self:  # type: ignore[override]
        return self._binary("not_equal", other)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: object) -> Self:
        return self._binary("less", other)

    def __le__(self, other: object) -> Self:
        return self._binary("less_equal", other)

    def __gt__(self, other: object) -> Self:
        return self._binary("greater", other)

    def __ge__(self, other: object) -> Self:
        return self._binary("greater_equal", other)

    def __neg__(self) -> Self:
        return self._method("negative")

    def __pos__(self) -> Self:
        return self._method("positive")

    def __abs__(self) -> Self:
        return self._method("abs")

    def __invert__(self) -> Self:
        return self._method("bitwise_invert")

    if TYPE_CHECKING:  # made from the table below

        def max(
            self, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
        ) -> Self: ...
        def min(
            self, axis: Axis = None, keepdims: bool = False, *, initial: object = None, where: object = None
        ) -> Self: ...
        def any(self, axis: Axis = None, keepdims: bool = False, *, where: object = None) -> Self: ...
        def all(self, axis: Axis = None, keepdims: bool = False, *, where: object = None) -> Self: ...
        def argmax(self, axis: Axis = None, keepdims: bool = False) -> Self: ...
        def argmin(self, axis: Axis = None, keepdims: bool = False) -> Self: ...
        def cumsum(self, axis: Axis = None, dtype: DTypeLike | None = None) -> Self: ...
        def cumprod(self, axis: Axis = None, dtype: DTypeLike | None = None) -> Self: ...
        def sum(
            self, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *, initial: object = None,
            where: object = None,
        ) -> Self: ...  # fmt: skip
        def prod(
            self, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *, initial: object = None,
            where: object = None,
        ) -> Self: ...  # fmt: skip
        def mean(
            self, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False, *, where: object = None
        ) -> Self: ...
        def var(
            self, axis: Axis = None, dtype: DTypeLike | None = None, ddof: float = 0, keepdims: bool = False, *,
            correction: float | None = None, where: object = None,
        ) -> Self: ...  # fmt: skip
        def std(
            self, axis: Axis = None, dtype: DTypeLike | None = None, ddof: float = 0, keepdims: bool = False, *,
            correction: float | None = None, where: object = None,
        ) -> Self: ...  # fmt: skip

    def squeeze(self, *args: object, **kwargs: object) -> Self:
        """Without axes of one element."""
        return self._method("squeeze", *args, **kwargs)

    def clip(self, *args: object, **kwargs: object) -> Self:
        """Elements limited to an interval."""
        return self._method("clip", *args, **known_options("clip", kwargs))

    def dot(self, *args: object, **kwargs: object) -> Self:
        """Matrix product, as `@` for one or two axes."""
        return self._method("dot", *args, **kwargs)


_REDUCTIONS = {
    "sum": "Sum of elements over some axes, or all.",
    "prod": "Product of elements over some axes, or all.",
    "max": "Largest element over some axes, or all.",
    "min": "Smallest element over some axes, or all.",
    "mean": "Mean over some axes, or all.",
    "var": "Variance over some axes, or all.",
    "std": "Standard deviation over some axes, or all.",
    "any": "Whether any element is true, over some axes, or all.",
    "all": "Whether all elements are true, over some axes, or all.",
    "argmax": "Position of the first largest element.",
    "argmin": "Position of the first smallest element.",
    "cumsum": "Sums of the elements up to each one along an axis, or of all.",
    "cumprod": "Products of the elements up to each one along an axis, or of all.",
}


def _reduction(name: str, doc: str) -> Callable[..., object]:
    def method(self: Operators, *args: object, **kwargs: object) -> object:
        return self._method(name, *args, **known_options(name, kwargs))

    method.__name__, method.__qualname__, method.__doc__ = name, f"Operators.{name}", doc
    return method


for _name, _doc in _REDUCTIONS.items():
    setattr(Operators, _name, _reduction(_name, _doc))


def known_options(name: str, options: dict[str, object]) -> dict[str, object]:
    """The options without those that NumPy's functions hand on to methods and that ask for nothing.

    `np.sum(x)` is `x.sum(axis=None, dtype=None, out=None)`. Raises ArgumentError where they ask for something.
    """
    kept = {}
    for option, value in options.items():
        asks = value is not None and value is not True and value is not np._NoValue
        if (option not in _FOREIGN and option not in OF_TORCH) or (asks and name in _HAVE.get(option, ())):
            kept[option] = value
        elif option in OF_TORCH or asks:
            raise ArgumentError(f"{name} of a harp array has no {option}; {(_FOREIGN | OF_TORCH)[option]}{where()}")
    return kept


_FOREIGN = {
    "out": "arrays do not change, so use the result",
    "where": "use harp.numpy.where first",
    "initial": "combine it with the result",
}
# The methods that have options which others have not.
_HAVE = {
    "where": ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all"),
    "initial": ("sum", "prod", "max", "min"),
}
# Options that PyTorch calls otherwise.
OF_TORCH = {"dim": "write axis", "keepdim": "write keepdims"}


def is_operand(value: object) -> bool:
    """Whether an operator accepts this at all; otherwise Python asks the other operand.

    It takes lists and tuples, to raise what their operators would not: `x == [1, 2]` would be False.
    """
    return isinstance(value, (Operators, np.ndarray, np.generic, int, float, complex, Size)) or type(value) in (
        list,
        tuple,
    )


def is_foreign(value: object) -> bool:
    """Whether it is an array of another library, such as a tensor of PyTorch, whose operators know nothing of ours.

    pandas' objects, which have no DLPack, compute with our arrays themselves.
    """
    return hasattr(type(value), "__dlpack__")
