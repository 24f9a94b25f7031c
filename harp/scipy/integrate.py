"""SciPy's integral of samples.

>>> import numpy as np
>>> trapezoid(np.array([1.0, 2.0, 4.0]), dx=2.0)
Array(9.)
"""

from __future__ import annotations

from harp.numpy.numerical import trapezoid

__all__ = ["trapezoid"]
