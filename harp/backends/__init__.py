"""A program comes in; a kernel that runs it goes out, from `c`, which compiles it, or `numpy`, which interprets it.

Backends have names, and each is loaded when it is asked for.
Read `protocol.py` first, then `c/backend.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harp.errors import HarpError

if TYPE_CHECKING:
    from harp.backends.protocol import Backend

# The module of each backend; it has one `BACKEND`.
_MODULES: Mapping[str, str] = {"c": "harp.backends.c.backend", "numpy": "harp.backends.numpy"}


def get(name: str) -> Backend:
    """The backend of this name."""
    module = _MODULES.get(name)
    if module is None:
        raise HarpError(f"there is no backend {name!r}; there are {', '.join(sorted(_MODULES))}")
    found: Backend = importlib.import_module(module).BACKEND
    return found
