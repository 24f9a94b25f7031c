"""Arrays of other libraries (torch, JAX, pandas, ...) as NumPy's: by `__array__`, else by DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np

from harp.errors import ArgumentError
from harp.trace.scalar.dtypes import NDArray
from harp.trace.source_locations import kind_of, where


def to_numpy(value: Any, name: str) -> NDArray | None:
    """The numbers of an array of another library; None for what is none. Memory is shared where that is possible.

    Raises ArgumentError, which says how, where the library does not hand them out: on another device, in a dtype that
    NumPy has not, or by an error of its own.
    """
    kind = type(value)
    if issubclass(kind, type) or not (hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")):
        return None
    try:
        return np.asarray(value) if hasattr(kind, "__array__") else np.from_dlpack(value)
    except MemoryError:
        raise
    except Exception as error:  # the code of the library, or of the user, may raise any
        library = kind.__module__.partition(".")[0]
        why = str(error).splitlines()[0].rstrip(". ") if str(error) else type(error).__name__
        raise ArgumentError(
            f"{name} is a {library} {kind.__name__}, of which NumPy gets no array ({why}); "
            f"{_ADVICE.get(library, 'pass its numbers as a NumPy array')}{where()}"
        ) from error


def honest(value: object, name: str) -> object:
    """The value, of which `isinstance` says the truth: proxies and mocks give another class than theirs.

    Of such an array of another library that is an array of NumPy. Raises ArgumentError for others.
    """
    if value.__class__ is type(value):
        return value
    found = to_numpy(value, name)
    if found is None:
        raise ArgumentError(
            f"{name} is {kind_of(value)}, which says that it is of another class; pass its numbers as a NumPy array"
            f"{where()}"
        )
    return found


_ADVICE = {
    "torch": "pass tensor.detach().cpu(), and tensor.float() of a dtype that NumPy does not have",
    "jax": "pass an array with its numbers, from outside of functions that JAX traces",
    "jaxlib": "pass an array with its numbers, from outside of functions that JAX traces",
}
