"""Groups of points: see `harp.scipy.cluster.vq`."""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names({"harp.scipy.cluster.": "vq"})
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
