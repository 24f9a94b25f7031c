"""What a function that is written for both harp and NumPy is called with, where the two differ.

The text of this module is part of each finding that is saved, so it stands alone.
"""

from types import SimpleNamespace

import numpy as np

import harp
import harp.numpy as hnp


def _inside(i, size):
    """Positions as harp takes those that are data: from the end if negative, then the nearest."""
    i = np.asarray(i)
    if size == 0 and i.size:
        raise IndexError("there are positions, but no elements")
    return np.clip(np.where(i < 0, i + size, i), 0, max(size - 1, 0))


def _gather(x, i):
    if not np.ndim(x):
        raise IndexError("a number has no positions")
    return x[_inside(i, len(x))]


def _put(x, key, values):
    result = np.array(x)
    result[key] = values
    return result


def _add(x, key, values):
    result = np.array(x)
    result[key] += values
    return result


def _scatter(x, i, values):
    """Adds at positions that are data; those outside are dropped."""
    result, i = np.array(x), np.asarray(i)
    if not result.ndim:
        raise IndexError("a number has no positions")
    values = np.broadcast_to(values, i.shape + result.shape[1:])
    i = np.where(i < 0, i + len(x), i)
    kept = (i >= 0) & (i < len(x))
    np.add.at(result, i[kept], values[kept])
    return result


def _grad(function, x):
    """Central differences, which are exact for polynomials of degree two."""
    x = np.asarray(x)
    function(x)
    result = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        step = np.zeros(x.shape)
        step[place] = 1.0
        result[place] = (function(x + step) - function(x - step)) / 2
    return result


NUMPY = SimpleNamespace(
    xp=np, gather=_gather, put=_put, add=_add, scatter=_scatter, grad=_grad, jit=lambda function: function
)
HARP = SimpleNamespace(
    xp=hnp,
    gather=lambda x, i: x[i],
    put=lambda x, key, values: x.at[key].set(values),
    add=lambda x, key, values: x.at[key].add(values),
    scatter=lambda x, i, values: x.at[i].add(values),
    grad=lambda function, x: harp.grad(function)(x),
    jit=harp.jit,
)
