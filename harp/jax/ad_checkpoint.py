"""What `harp.jax` has of `jax.ad_checkpoint`."""

from __future__ import annotations

import harp.transforms.autodiff.checkpoint_policies as checkpoint_policies
from harp.transforms.autodiff.checkpoint import checkpoint
from harp.transforms.autodiff.checkpoint_policies import checkpoint_name

__all__ = ["checkpoint", "checkpoint_name", "checkpoint_policies"]
