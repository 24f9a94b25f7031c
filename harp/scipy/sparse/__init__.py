"""Linear equations whose matrices are functions: see `harp.scipy.sparse.linalg`."""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names({"harp.scipy.sparse.": "linalg"})
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
