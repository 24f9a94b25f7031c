"""SciPy's names: special functions and distributions, with derivatives of all orders.

>>> import harp
>>> harp.scipy.stats.norm.cdf(0.0) == harp.scipy.special.ndtr(0.0)
Array(True)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names({"harp.scipy.": "cluster fft integrate interpolate linalg ndimage optimize signal sparse special stats"})
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
