"""The types of transformed functions, for type checkers: parameters stay, and arrays may be anything like one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from harp.trace.array.array import Array
from harp.trace.sizes.size import Size

P = ParamSpec("P")
R = TypeVar("R")
_Result = TypeVar("_Result", covariant=True)

# What a parameter may be given that the function itself declares as an array, or as a static value.
ArrayLike: TypeAlias = (
    Array
    | np.ndarray[Any, Any]
    | np.generic
    | complex
    | Size
    | list[Any]
    | tuple[Any, ...]
    | dict[Any, Any]
    | str
    | None
)
# One array, which a loop or a branch gets as an Array; and a tree, which may have numbers in the place of arrays.
AnArray: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | complex | Size
Container: TypeAlias = tuple[Any, ...] | list[Any] | dict[Any, Any]
Pullback: TypeAlias = Callable[[Any], tuple[Any, ...]]


class Transformed(Protocol[P, _Result]):
    """A function with the parameters of another one. Each of them also takes arrays of NumPy, numbers and trees."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> _Result: ...

    @overload
    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> _Result: ...
