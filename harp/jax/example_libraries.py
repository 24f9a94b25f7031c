"""What `harp.jax` has of `jax.example_libraries`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import harp.jax.optimizers as optimizers
from harp.numpy.missing import no_such_name

__all__ = ["optimizers"]
__path__: list[str] = []

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise no_such_name(__name__, name, __all__)
