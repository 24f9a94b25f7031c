"""Ways to run a program, by name: `c` compiles it, `numpy` needs no compiler."""

from __future__ import annotations

from collections.abc import Mapping

from harp.backends.c.backend import CBackend
from harp.backends.numpy import NumpyBackend
from harp.backends.protocol import Backend
from harp.errors import HarpError

_BACKENDS: Mapping[str, Backend] = {backend.name: backend for backend in (CBackend(), NumpyBackend())}


def get(name: str) -> Backend:
    """The backend of this name."""
    found = _BACKENDS.get(name)
    if found is None:
        raise HarpError(f"there is no backend {name!r}; there are {', '.join(sorted(_BACKENDS))}")
    return found
