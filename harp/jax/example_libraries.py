"""What `harp.jax` has of `jax.example_libraries`."""

from __future__ import annotations

import harp.jax.optimizers as optimizers

__all__ = ["optimizers"]
