"""Windows of so many points, by which samples are weighed, in float64; the number may be a size. And `i0`."""

from __future__ import annotations

import math

from harp.numpy.creation import arange
from harp.numpy.elementwise import absolute, cos, float_map, maximum, sqrt, square
from harp.trace.array.arithmetic import divide
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import Expr, apply, cast, const, select
from harp.trace.scalar.ops import Op

# Of the power series of I0 in x**2 / 4, and of its asymptotic series in 1/x, the highest power first.
_NEAR = tuple(1 / math.factorial(k) ** 2 for k in range(46, -1, -1))
_FAR = tuple(math.prod((2 * j - 1) ** 2 / (8 * j) for j in range(1, k + 1)) for k in range(26, -1, -1))
_FROM = 20.0  # the asymptotic series is good to 1e-16


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


def i0(x: object) -> Array:
    """Elementwise the modified Bessel function of the first kind and order 0, to a few units in the last place.

    >>> i0(1.0)
    Array(1.26606588)
    """

    def build(a: Expr) -> Expr:
        size = apply(Op.ABS, cast(a, f64))
        near = size < _FROM
        small, large = (select(near, size, const(0, f64)), select(near, const(_FROM, f64), size))
        quarter, inverse, root = 0.25 * small * small, apply(Op.RECIP, large), apply(Op.EXP, 0.5 * large)
        sums = []
        for variable, coefficients in ((quarter, _NEAR), (inverse, _FAR)):
            value: Expr = const(coefficients[0], f64)
            for c in coefficients[1:]:
                value = value * variable + c
            sums.append(value)
        far = root * (root * (sums[1] / apply(Op.SQRT, 2 * math.pi * large)))
        return cast(select(near, sums[0], far), a.dtype)

    return float_map(build, x)
