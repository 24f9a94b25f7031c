"""What `harp.jax` has of `jax.example_libraries`."""

from __future__ import annotations

from harp.lazy import Names, namespace

__getattr__, __dir__, __all__ = namespace(globals(), Names({"harp.jax.": "optimizers"}))
__path__: list[str] = []
