"""`x.at[index]`: the names under which elements are changed. What they do is in `harp.trace.array.updates`."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

import attrs

from harp.errors import ArgumentError, DTypeError, MutationError
from harp.lazy import FUNCTIONS
from harp.trace.source_locations import is_ignored, user_site, where

T = TypeVar("T")


@attrs.frozen
class At(Generic[T]):
    """`x.at`: takes an index, as `x` itself does."""

    array: T

    def __getitem__(self, key: object) -> Updates[T]:
        return Updates(self.array, key)

    if not TYPE_CHECKING:  # there it is a mistake already

        def __setitem__(self, key, value):
            raise MutationError(f"arrays do not change; write x = x.at[index].set(value){where()}")

        def __call__(self, *index):
            raise ArgumentError(f"x.at is not called; write x.at[index].set(value){where()}")

        def __getattr__(self, name):
            raise AttributeError(
                f"x.at has no {name}: it takes an index first, as in x.at[index].set(value)", name=name
            )


def _as_elements(self: object, *other: object) -> object:
    """The error for x.at[index] + 1 and its like."""
    raise ArgumentError(f"x.at[index] is no array: write x[index] for its elements, or x.at[index].set(value){where()}")


def _in_place(method: str) -> Callable[[object, object], object]:
    """The error for x.at[index] += value and its like."""

    def refuse(self: object, other: object) -> object:
        raise MutationError(f"arrays do not change; write x = x.at[index].{method}(value){where()}")

    return refuse


@attrs.frozen(repr=False)
class Updates(Generic[T]):
    """`x.at[index]`: what can be done with the elements that the index selects. The array itself does not change.

    Where an index stands several times, updates are made in the order of the indices: sums are the same for every
    number of threads, and of values that are set the last one stays. `mode` says what an index outside its axis does:
    "drop" or "fill" (nothing), or "clip" (it means the nearest element). By default it is an error where the indices
    are known, and dropped in traced functions. `unique_indices=True` promises that no element is meant twice, which
    makes some gradients faster.
    """

    array: T
    key: object

    def __repr__(self) -> str:
        return "x.at[index], which nothing was done with, such as .set(value)"

    if not TYPE_CHECKING:  # there these are mistakes already
        __iadd__, __isub__, __imul__ = map(_in_place, ("add", "subtract", "multiply"))
        __itruediv__, __ipow__ = map(_in_place, ("divide", "power"))
        __add__, __sub__, __mul__, __truediv__, __pow__, __neg__ = (_as_elements,) * 6
        __radd__, __rsub__, __rmul__, __rtruediv__, __rpow__ = (_as_elements,) * 5

        def __call__(self, *values):
            raise MutationError(f"x.at[index] is not called itself; write x.at[index].set(value), or .add{where()}")

        def __getattr__(self, name):
            public = [k for k in dir(Updates) if not k.startswith("_")]
            nearest = difflib.get_close_matches(name, public, n=1, cutoff=0.4)
            hint = f"; the nearest name is {nearest[0]!r}" if nearest else ""
            raise AttributeError(f"x.at[index] has no {name!r}{hint}", name=name)

    def get(self, mode: str | None = None, fill_value: object = None) -> T:
        """The elements, `x[index]`; by "fill" or "drop" those outside are `fill_value`: by default NaN, the lowest
        signed or the highest unsigned integer, True."""
        result: T = FUNCTIONS["at_get"](self.array, self.key, mode, fill_value)
        return result

    def set(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with these values in place of the elements.

        >>> import harp.numpy as hnp
        >>> hnp.zeros(4).at[1:3].set(5.0)
        Array([0., 5., 5., 0.])
        """
        return self._put("set", values, mode, unique_indices)

    def add(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with these values added; an element that is meant several times takes all of them.

        >>> import harp.numpy as hnp
        >>> hnp.zeros(3).at[hnp.asarray([0, 0, 2])].add(1.0)
        Array([2., 0., 1.])
        """
        return self._put("add", values, mode, unique_indices)

    def subtract(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with these values subtracted."""
        return self._put("subtract", values, mode, unique_indices)

    def multiply(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with the elements multiplied. Gradients are exact beside zeros."""
        return self._put("multiply", values, mode, unique_indices)

    def mul(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The same as `multiply`."""
        return self.multiply(values, mode, unique_indices)

    def divide(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with the elements divided; of a floating-point dtype. Raises DTypeError for others."""
        return self._with_factors("divide", values, mode, unique_indices)

    def power(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with the elements raised to powers.

        >>> import harp.numpy as hnp
        >>> hnp.asarray([1.0, 2.0, 3.0]).at[1:].power(2)
        Array([1., 4., 9.])
        """
        return self._with_factors("power", values, mode, unique_indices)

    def apply(self, function: Callable[[T], object], mode: str | None = None) -> T:
        """The array with a function of the selected elements in their place: once, where an index stands twice.

        >>> import harp.numpy as hnp
        >>> hnp.asarray([1.0, 4.0, 9.0]).at[1:].apply(hnp.sqrt)
        Array([1., 2., 3.])
        """
        return self.set(function(self.get(mode)), mode)

    def min(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with the lesser of each element and its values."""
        return self._put("min", values, mode, unique_indices)

    def max(self, values: object, mode: str | None = None, unique_indices: bool = False) -> T:
        """The array with the greater of each element and its values."""
        return self._put("max", values, mode, unique_indices)

    def _with_factors(self, name: str, values: object, mode: str | None, unique: bool) -> T:
        """Of elements and the products of their values, which are 1 for the elements that stay."""
        kept: T = FUNCTIONS["numpy"].ones_like(self.array)
        result: T = FUNCTIONS[name](self.array, Updates(kept, self.key).multiply(values, mode, unique))
        if result.dtype != self.array.dtype:  # type: ignore[attr-defined]
            dtype = self.array.dtype  # type: ignore[attr-defined]
            raise DTypeError(f".{name} does not accept {dtype} arrays; convert with astype{where()}")
        return result

    def _put(self, how: str, values: object, mode: str | None, unique: bool) -> T:
        if is_ignored(sys._getframe(2)):
            file, line = user_site() or ("", 0)
            text = (
                f"the result of x.at[index].{how} is dropped, and x does not change; write x = x.at[index].{how}(...)"
            )
            warnings.warn_explicit(text, RuntimeWarning, file, line)
        result: T = FUNCTIONS["at_put"](self.array, self.key, values, how, mode, unique)
        return result
