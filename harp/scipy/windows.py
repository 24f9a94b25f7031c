"""Windows of so many points, by which samples are weighed, computed in float64 and rounded to the default dtype; the
number may be a size: NumPy's, and SciPy's by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from harp.errors import ArgumentError
from harp.numpy.creation import arange, asarray
from harp.numpy.elementwise import absolute, cos, exp, maximum, minimum, sin, sqrt, square, where
from harp.numpy.mathematical import sinc
from harp.scipy.special.bessel import i0
from harp.trace.array.arithmetic import astype, divide
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import Kind, default_of, f64
from harp.trace.source_locations import where as place


def _places(M: object) -> Array:
    """From -1 to 1 evenly, and 0 for one point."""
    count = arange(M).shape[0]
    return divide(2.0 * arange(count) - (count - 1), maximum(count - 1, 1))


def _rounded(window: Array) -> Array:
    return astype(window, default_of(Kind.FLOAT))


def bartlett(M: object) -> Array:
    """The triangular window, which is 0 at both ends.

    >>> bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _rounded(1.0 - absolute(_places(M)))


def hanning(M: object) -> Array:
    """The raised cosine, which is 0 at both ends.

    >>> hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _rounded(0.5 + 0.5 * cos(math.pi * _places(M)))


def hamming(M: object) -> Array:
    """The raised cosine that is 0.08 at both ends.

    >>> hamming(3)
    Array([0.08, 1.  , 0.08])
    """
    return _rounded(0.54 + 0.46 * cos(math.pi * _places(M)))


def blackman(M: object) -> Array:
    """The window of Blackman, of two cosines.

    >>> blackman(5).round(2)
    Array([-0.  ,  0.34,  1.  ,  0.34, -0.  ])
    """
    x = math.pi * _places(M)
    return _rounded(0.42 + 0.5 * cos(x) + 0.08 * cos(2.0 * x))


def kaiser(M: object, beta: object) -> Array:
    """The window of Kaiser: i0(beta * sqrt(1 - x**2)) / i0(beta), with x from -1 to 1.

    >>> kaiser(3, 2.0).round(4)
    Array([0.4387, 1.    , 0.4387])
    """
    return _rounded(divide(i0(sqrt(1.0 - square(_places(M))) * beta), i0(beta)))


# -- SciPy's windows by name ---------------------------------------------------------------------------------------


def _cosines(p: _Points, *weights: float) -> Array:
    """Of general_cosine: sums of cosines of multiples of the angle, which is 0 in the middle."""
    return sum((w * cos((k * math.pi) * p.place) for k, w in enumerate(weights[1:], 1)), weights[0] + 0 * p.place)


def _parzen(p: _Points) -> Array:
    size = absolute(p.from_middle) / (0.5 * p.total)
    inside = 1.0 - 6.0 * square(size) * (1.0 - size)
    return where(absolute(p.from_middle) <= 0.25 * (p.total - 1), inside, 2.0 * (1.0 - size) ** 3)


def _bohman(p: _Points) -> Array:
    size = absolute(p.place)
    values = (1.0 - size) * cos(math.pi * size) + sin(math.pi * size) / math.pi
    return where(size == 1.0, 0.0, values)


def _barthann(p: _Points) -> Array:
    half = 0.5 * absolute(p.place)
    return 0.62 - 0.48 * half + 0.38 * cos((2 * math.pi) * half)


def _tukey(p: _Points, alpha: float = 0.5) -> Array:
    if alpha <= 0:
        return 1.0 + 0.0 * p.place
    outside = (1.0 - absolute(p.place)) / min(alpha, 1.0)  # the share of the slope that is behind
    return where(outside < 1.0, 0.5 - 0.5 * cos(math.pi * outside), 1.0)


def _exponential(p: _Points, center: float | None = None, tau: float = 1.0) -> Array:
    away = p.from_middle if center is None else p.number - center
    return exp(-absolute(away) / tau)


def _triang(p: _Points) -> Array:
    odd = p.total % 2
    nearest = minimum(p.number + 1, p.total - p.number)
    return divide(2.0 * nearest - 1.0 + odd, p.total + odd)


_COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "flattop": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
}
_WINDOWS: dict[str, Callable[..., Array]] = {
    **{name: partial(lambda weights, p: _cosines(p, *weights), weights) for name, weights in _COSINES.items()},
    "barthann": _barthann,
    "bartlett": lambda p: 1.0 - absolute(p.place),
    "bohman": _bohman,
    "cosine": lambda p: sin(math.pi * divide(p.number + 0.5, p.total)),
    "exponential": _exponential,
    "gaussian": lambda p, std: exp(-0.5 * square(p.from_middle / std)),
    "general_cosine": lambda p, a: _cosines(p, *a),
    "general_gaussian": lambda p, power, sig: exp(-0.5 * absolute(p.from_middle / sig) ** (2 * power)),
    "general_hamming": lambda p, alpha: _cosines(p, alpha, 1.0 - alpha),
    "kaiser": lambda p, beta: divide(i0(sqrt(maximum(1.0 - square(p.place), 0.0)) * beta), i0(beta)),
    "lanczos": lambda p: sinc(p.place),
    "parzen": _parzen,
    "triang": _triang,
    "tukey": _tukey,
}


class _Points(NamedTuple):
    """The numbers of the points of a window; how many there are, one more in a period; and their places: from -1 to 1
    evenly, and by how many points they are away from the middle."""

    number: Array
    total: Array
    place: Array
    from_middle: Array


def get_window(window: object, Nx: object, fftbins: bool = True) -> Array:
    """A window of Nx points by its name, or by a tuple of its name and parameters; a number is the `beta` of "kaiser".

    It is one period, as for the Fourier transform, or symmetric without `fftbins`. Names are "boxcar", "hann",
    "hamming", "blackman", "nuttall", "blackmanharris", "flattop", "barthann", "bartlett", "bohman", "cosine",
    "exponential", "lanczos", "parzen", "triang", "tukey" (0.5, unless given), ("kaiser", beta), ("gaussian", std),
    ("general_cosine", weights), ("general_gaussian", p, sig), ("general_hamming", alpha). Raises ArgumentError for
    others, and for parameters that do not fit.

    >>> get_window("hann", 4)
    Array([0. , 0.5, 1. , 0.5])
    """
    name, *parameters = (
        ("kaiser", window) if isinstance(window, float) else window if isinstance(window, tuple) else (window,)
    )
    if name not in _WINDOWS:
        raise ArgumentError(f"window is one of {', '.join(_WINDOWS)}, or an array, not {window!r}{place()}")
    number = astype(arange(Nx), f64)
    size: Any = number.shape[0]
    count = asarray(size + 1 if fftbins else size) * 1.0
    from_middle = number - 0.5 * (count - 1.0)
    points = _Points(number, count, divide(from_middle, maximum(0.5 * (count - 1.0), 0.5)), from_middle)
    try:
        values = _WINDOWS[name](points, *parameters)
    except TypeError:
        raise ArgumentError(f"window {name!r} has other parameters than {tuple(parameters)}{place()}") from None
    return _rounded(where(asarray(size) <= 1, 1.0, values))
