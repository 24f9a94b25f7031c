"""Windows of so many points, by which samples are weighed, in float64; the number may be a size: NumPy's."""

from __future__ import annotations

import math

from harp.numpy.creation import arange
from harp.numpy.elementwise import absolute, cos, maximum, sqrt, square
from harp.scipy.special.bessel import i0
from harp.trace.array.arithmetic import divide
from harp.trace.array.array import Array


def _places(M: object) -> Array:
    """From -1 to 1 evenly, and 0 for one point."""
    count = arange(M).shape[0]
    return divide(2.0 * arange(count) - (count - 1), maximum(count - 1, 1))


def bartlett(M: object) -> Array:
    """The triangular window, which is 0 at both ends.

    >>> bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return 1.0 - absolute(_places(M))


def hanning(M: object) -> Array:
    """The raised cosine, which is 0 at both ends.

    >>> hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return 0.5 + 0.5 * cos(math.pi * _places(M))


def hamming(M: object) -> Array:
    """The raised cosine that is 0.08 at both ends.

    >>> hamming(3)
    Array([0.08, 1.  , 0.08])
    """
    return 0.54 + 0.46 * cos(math.pi * _places(M))


def blackman(M: object) -> Array:
    """The window of Blackman, of two cosines.

    >>> blackman(5).round(2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    x = math.pi * _places(M)
    return 0.42 + 0.5 * cos(x) + 0.08 * cos(2.0 * x)


def kaiser(M: object, beta: object) -> Array:
    """The window of Kaiser: i0(beta * sqrt(1 - x**2)) / i0(beta), with x from -1 to 1.

    >>> kaiser(3, 2.0).round(4)
    Array([0.4387, 1.    , 0.4387])
    """
    return divide(i0(sqrt(1.0 - square(_places(M))) * beta), i0(beta))
