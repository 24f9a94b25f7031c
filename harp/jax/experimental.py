"""What `harp.jax` has of `jax.experimental`.

>>> from harp.jax.experimental import checkify
>>> checkify.init_error
Error(None)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import harp.jax.checkify as checkify
from harp.numpy.missing import no_such_name

__all__ = ["checkify"]
# `ode` is imported by its name: `modules.py` finds it.
__path__: list[str] = []

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name, __all__)
