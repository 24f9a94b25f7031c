"""NumPy's `lib`, of which there is `stride_tricks`."""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names({"harp.numpy.lib.": "stride_tricks"})
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
