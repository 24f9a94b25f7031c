"""The functions of `jax.image`."""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names({"harp.nn.resizing": "ResizeMethod resize scale_and_translate"})
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
