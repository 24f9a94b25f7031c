"""What `harp.jax` has of `jax.experimental`.

>>> from harp.jax.experimental import checkify
>>> checkify.init_error
Error(None)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

__getattr__, __dir__, __all__ = namespace(globals(), Names({"harp.jax.": "checkify"}))
# `ode` is imported by its name: `modules.py` finds it.
__path__: list[str] = []
