"""What `harp.jax` has of `jax.experimental`.

>>> from harp.jax.experimental import checkify
>>> checkify.init_error
Error(None)
"""

from __future__ import annotations

import harp.jax.checkify as checkify
import harp.jax.ode as ode

__all__ = ["checkify", "ode"]
# Its modules are found by name.
__path__: list[str] = []
