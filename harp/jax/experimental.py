"""What `harp.jax` has of `jax.experimental`.

>>> from harp.jax.experimental import checkify
>>> checkify.init_error
Error(None)
"""

from __future__ import annotations

import harp.jax.checkify as checkify

__all__ = ["checkify"]
# `ode` is imported by its name: `modules.py` finds it.
__path__: list[str] = []
