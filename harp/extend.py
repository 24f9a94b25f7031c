"""What other libraries are told about harp's arrays, where they know arrays only by the names of libraries.

>>> import harp
>>> told = harp.extend.array_api_compat()
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

import harp.numpy as hnp
from harp.errors import MutationError
from harp.trace.array.array import Array
from harp.trace.source_locations import where

__all__ = ["array_api_compat", "einops"]


def array_api_compat() -> list[str]:
    """Tell the copies of array-api-compat and array-api-extra in this process that harp's arrays do not change.

    Both take arrays of a library that they do not know for writeable, and array-api-extra then assigns to elements.
    After this call `is_writeable_array(x)` is False, and `at(x)[index].set(value)` is `x.at[index].set(value)`, with a
    MutationError for `copy=False`. SciPy and scikit-learn carry copies of their own: call it after they are imported,
    and again where more of them is imported later. Takes nothing, and returns the names of the modules that were told.

    >>> import array_api_compat, harp
    >>> "array_api_compat.common._helpers" in harp.extend.array_api_compat()
    True
    >>> array_api_compat.is_writeable_array(harp.numpy.ones(3))
    False
    """
    told = []
    for name, module in list(sys.modules.items()):
        for suffix, tell in _PLACES.items():
            if name.endswith(suffix) and tell(module):
                told.append(name)
    return sorted(told)


def einops() -> None:
    """Let einops take harp's arrays, traced ones too, wherever it takes NumPy's. Takes and returns nothing.

    Raises ImportError where einops is not installed.

    >>> import einops, harp
    >>> harp.extend.einops()
    >>> einops.rearrange(harp.numpy.ones((2, 3)), "a b -> b a").shape
    (3, 2)
    """
    backends = importlib.import_module("einops._backends")
    if any(kind.framework_name == "harp" for kind in backends.AbstractBackend.__subclasses__()):
        return

    class HarpBackend(backends.AbstractBackend):  # type: ignore[misc, name-defined]
        """Which einops finds among the subclasses."""

        framework_name = "harp"
        from_numpy = staticmethod(hnp.asarray)
        to_numpy = staticmethod(np.asarray)
        arange = staticmethod(hnp.arange)
        stack_on_zeroth_dimension = staticmethod(hnp.stack)
        add_axis = staticmethod(hnp.expand_dims)
        tile = staticmethod(hnp.tile)
        concat = staticmethod(hnp.concatenate)
        einsum = staticmethod(hnp.einsum)

        def is_appropriate_type(self, tensor: object) -> bool:
            return isinstance(tensor, Array)

        def shape(self, x: Array) -> list[object]:
            """A list, for which einops remembers no plan: it would ask for the numbers of symbolic sizes."""
            return list(x.shape)

        def is_float_type(self, x: Array) -> bool:
            return x.kind.is_inexact

    _KEPT.append(HarpBackend)


def _tell_compat(module: ModuleType) -> bool:
    """Its question whether arrays of a class are writeable is a function of the class: True, False, or unknown."""
    asked: Callable[[type], bool | None] | None = getattr(module, "_is_writeable_cls", None)
    if asked is None:
        return False

    def is_writeable(cls: type) -> bool | None:
        return False if issubclass(cls, Array) else asked(cls)

    _replace(module, "_is_writeable_cls", asked, is_writeable)
    return True


def _tell_extra(module: ModuleType) -> bool:
    """All of its updates are one method, of an object that holds the array and an index."""
    at = getattr(module, "at", None)
    updates: Callable[..., Any] | None = getattr(at, "_op", None)
    if updates is None:
        return False

    def updated(self: Any, kind: Any, in_place: Any, elsewhere: Any, y: Any, /, copy: Any, xp: Any) -> Any:
        x = self._x
        if not isinstance(x, Array):
            return updates(self, kind, in_place, elsewhere, y, copy=copy, xp=xp)
        if copy is False:
            raise MutationError(f"arrays do not change: leave out copy=False{where()}")
        return getattr(x.at[self._idx], kind.value)(y).astype(x.dtype)

    _replace(at, "_op", updates, updated)
    return True


def _replace(owner: Any, name: str, old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Once: a function that replaces another one is not replaced again."""
    if old.__module__ != __name__:
        setattr(owner, name, new)


_KEPT: list[type] = []  # subclasses are found for as long as they live
_PLACES: dict[str, Callable[[ModuleType], bool]] = {
    "array_api_compat.common._helpers": _tell_compat,
    "array_api_extra._at": _tell_extra,
    "array_api_extra._lib._at": _tell_extra,
}
