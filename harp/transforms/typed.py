"""The types of transformed functions, for type checkers: the same parameters, which also take all kinds of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np

from harp.trace.array.array import Array
from harp.trace.sizes.size import Size

P = ParamSpec("P")
R = TypeVar("R")
_Result = TypeVar("_Result", covariant=True)

# The types that a parameter may be given besides the declared one.
ArrayLike: TypeAlias = (
    Array | np.ndarray[Any, Any] | np.generic | complex | Size | list[Any] | tuple[Any, ...] | dict[Any, Any] | None
)
# The types of one array for a loop or a branch; and of a tree, which may have numbers in the place of arrays.
AnArray: TypeAlias = Array | np.ndarray[Any, Any] | np.generic | complex | Size
Container: TypeAlias = tuple[Any, ...] | list[Any] | dict[Any, Any]
Pullback: TypeAlias = Callable[[Any], tuple[Any, ...]]


class Transformed(Protocol[P, _Result]):
    """A function with the parameters of another one. Each of them also takes arrays of NumPy, numbers and trees."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> _Result: ...

    @overload
    def __call__(self, *args: ArrayLike, **kwargs: ArrayLike) -> _Result: ...
