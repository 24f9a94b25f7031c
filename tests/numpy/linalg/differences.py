"""Derivatives by central differences, which the tests of this folder hold derivatives to."""

from __future__ import annotations

import numpy as np


def slope(function, x, step=1e-6):
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        result[index] = (float(function(moved[0])) - float(function(moved[1]))) / (2 * step)
    return result
