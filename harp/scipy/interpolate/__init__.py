"""SciPy's interpolation: functions through given points, as objects that are called; they are trees.

>>> import numpy as np
>>> from harp.scipy.interpolate import CubicSpline
>>> CubicSpline(np.arange(4.0), np.arange(4.0) ** 3)(1.5).round(6)
Array(3.375)
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.scipy.interpolate.grids": "RegularGridInterpolator",
        "harp.scipy.interpolate.piecewise": "PPoly",
        "harp.scipy.interpolate.splines": "Akima1DInterpolator CubicHermiteSpline CubicSpline PchipInterpolator",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
