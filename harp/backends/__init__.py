"""A program comes in; an executable goes out, from `c`, which compiles the program, `opencl`, which runs it on a
device, or `numpy`, which interprets its graph.

A backend is named by a string, and loaded when it is first asked for; the name of an OpenCL backend ends with the
number of its device. What C and OpenCL C have in common is printed by `c_family`.
Read `protocol.py` first, then `c/backend.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from harp.errors import HarpError
from harp.locks import importing

if TYPE_CHECKING:
    from harp.backends.protocol import Backend

# The module of each backend; its function `backend` takes the number of a device.
_MODULES: Mapping[str, str] = {
    "c": "harp.backends.c.backend",
    "numpy": "harp.backends.numpy",
    "opencl": "harp.backends.opencl.backend",
}


def get(name: str) -> Backend:
    """The backend of this name, as in "c" or "opencl:0"."""
    stem, _, number = name.partition(":")
    module = _MODULES.get(stem)
    if module is None:
        raise HarpError(f"there is no backend {name!r}; there are {', '.join(sorted(_MODULES))}")
    with importing:
        loaded = importlib.import_module(module)
    backend: Backend = loaded.backend(int(number or 0))
    return backend
