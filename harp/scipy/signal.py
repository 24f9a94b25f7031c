"""SciPy's convolutions and correlations of arrays, along all of their axes, and spectra of signals.

>>> import numpy as np
>>> convolve(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5]))
Array([0. , 1. , 2.5, 4. , 1.5])
"""

from __future__ import annotations

from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.numpy.complexes import conj, real
from harp.numpy.fft import fftn, ifftn
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import flip, shape_of
from harp.numpy.padding import pad
from harp.numpy.sliding import correlate_windows, plan
from harp.scipy.spectral import csd, detrend, istft, stft, welch
from harp.scipy.windows import get_window
from harp.trace.array.arithmetic import multiply
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, normalize_axes
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, require_at_least_one, resolve, wrap
from harp.trace.source_locations import plural, where

__all__ = [
    "convolve",
    "convolve2d",
    "correlate",
    "correlate2d",
    "csd",
    "detrend",
    "fftconvolve",
    "get_window",
    "istft",
    "stft",
    "welch",
]

_BORDERS = {"fill": "constant", "wrap": "wrap", "symm": "symmetric"}


def convolve(in1: object, in2: object, mode: str = "full", method: str = "auto", precision: object = None) -> Array:
    """The convolution of two arrays with as many axes: sums of in1[j] * in2[i - j], where both are.

    "full" is all of it, "same" the middle, of the size of `in1`, "valid" where one array is inside of the other.
    `method` "fft" computes it by `fftconvolve`, others by the sums; `precision` changes nothing.

    Raises ShapeError for other numbers of axes, for no elements, and where neither array is the larger one along all
    axes for "valid", ArgumentError for other modes.

    >>> import numpy as np
    >>> convolve(np.ones((3, 3)), np.ones((2, 2)), "valid")
    Array([[4., 4.],
           [4., 4.]])
    """
    if method not in ("auto", "direct", "fft"):
        raise ArgumentError(f"method of convolve is 'auto', 'direct' or 'fft', not {method!r}{where()}")
    return fftconvolve(in1, in2, mode) if method == "fft" else _convolved("convolve", in1, in2, mode)


def correlate(in1: object, in2: object, mode: str = "full", method: str = "auto", precision: object = None) -> Array:
    """The cross-correlation of two arrays: sums of in1[i + j] * conj(in2[j]); modes and methods as in `convolve`.

    >>> import numpy as np
    >>> correlate(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5]), "valid")
    Array([3.5])
    """
    return convolve(in1, flip(conj(in2)), mode, method)


def convolve2d(
    in1: object,
    in2: object,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: object = 0,
    precision: object = None,
) -> Array:
    """The convolution of two matrices, as `convolve`; around `in1` is by `boundary` "fill" `fillvalue`, by "wrap"
    itself again, by "symm" its mirror image.

    >>> import numpy as np
    >>> convolve2d(np.ones((2, 2)), np.ones((1, 2)), "same", "wrap")
    Array([[2., 2.],
           [2., 2.]])
    """
    return _bordered("convolve2d", in1, in2, mode, boundary, fillvalue)


def correlate2d(
    in1: object,
    in2: object,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: object = 0,
    precision: object = None,
) -> Array:
    """The cross-correlation of two matrices, as `convolve2d`.

    >>> import numpy as np
    >>> correlate2d(np.eye(3), np.array([[1.0, 2.0]]), "valid")
    Array([[1., 0.],
           [2., 1.],
           [0., 2.]])
    """
    return _bordered("correlate2d", in1, flip(conj(in2)), mode, boundary, fillvalue, 1)


def fftconvolve(in1: object, in2: object, mode: str = "full", axes: object = None) -> Array:
    """`convolve` by Fourier transforms, along some axes; the others broadcast. Integers give float64.

    >>> import numpy as np
    >>> fftconvolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.5])).round(12)
    Array([1. , 3. , 5.5, 4. , 1.5])
    """
    x, y = _pair("fftconvolve", in1, in2)
    along = normalize_axes(axes, x.ndim)
    x, y = _valid_order("fftconvolve", x, y, mode, along)
    sizes = [(a.shape[k], b.shape[k]) for a, b in ((x, y),) for k in along]
    full: list[Any] = [a + b - 1 for a, b in sizes]
    result = ifftn(multiply(fftn(x, full, along), fftn(y, full, along)), full, along)
    result = result if x.kind.is_complex else real(result)
    wanted = x.kind if x.kind.is_inexact else result.kind
    part: list[Any] = [slice(None)] * x.ndim
    for k, (n, m) in zip(along, sizes, strict=True):
        start, length = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
        part[k] = slice(start, start + length)
    return result[tuple(part)].astype(wanted)


def _pair(name: str, in1: object, in2: object) -> tuple[Array, Array]:
    x, y = promoted((as_array(in1), as_array(in2)))
    if x.ndim != y.ndim:
        raise ShapeError(f"{name} takes two arrays with as many axes, not {x.ndim} and {y.ndim}{where()}")
    for size in (*node_of(x).shape, *node_of(y).shape):
        require_at_least_one(size, lambda: f"{name} needs arrays with elements")
    return x, y


def _valid_order(name: str, x: Array, y: Array, mode: str, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """The array inside of which the other one is comes first, for "valid"."""
    if mode not in ("full", "same", "valid"):
        raise ArgumentError(f"the mode of {name} is 'full', 'same' or 'valid', not {mode!r}{where()}")
    if mode != "valid":
        return x, y
    for a, b in ((x, y), (y, x)):
        rooms = [resolve(node_of(a).shape[k]) - resolve(node_of(b).shape[k]) for k in axes]
        if all(ask(Relation.NONNEGATIVE, room, "which array is larger") for room in rooms):
            return a, b
    raise ShapeError(f"{name} in mode 'valid' takes arrays of which one is the larger along all axes{where()}")


def _around(mode: str, size: Index, earlier: int = 0) -> tuple[Index, Index]:
    """How much of the border a mode wants, of a window of this size; of "same", the even ones may begin later."""
    less = floordiv(size - earlier, 2)
    return {"full": (size - 1, size - 1), "same": (less, size - 1 - less), "valid": (ZERO, ZERO)}[mode]


def _convolved(name: str, in1: object, in2: object, mode: str, earlier: int = 0) -> Array:
    x, y = _pair(name, in1, in2)
    x, y = _valid_order(name, x, y, mode, tuple(range(x.ndim)))
    pairs = [_around(mode, resolve(size), earlier) for size in node_of(y).shape]
    return _slid(x, y, [(wrap(low), wrap(high)) for low, high in pairs])


def _slid(x: Array, y: Array, padding: object) -> Array:
    axes = range(x.ndim)
    windows = plan(shape_of(x), axes, shape_of(y), 1, padding)
    places = tuple(f"y{k}" for k in axes)
    return correlate_windows(x, flip(y), windows, (places, tuple(f"i{k}" for k in axes)), places)


def _bordered(
    name: str, in1: object, in2: object, mode: str, boundary: str, fillvalue: object, earlier: int = 0
) -> Array:
    x, y = _pair(name, in1, in2)
    if x.ndim != 2:
        raise ShapeError(f"{name} takes matrices, not {plural(x.ndim, 'axes')}{where()}")
    if boundary not in _BORDERS:
        raise ArgumentError(f"boundary of {name} is 'fill', 'wrap' or 'symm', not {boundary!r}{where()}")
    if mode == "valid" or (boundary == "fill" and isinstance(fillvalue, (int, float)) and fillvalue == 0):
        return _convolved(name, x, y, mode, earlier)
    widths = [tuple(map(wrap, _around(mode, resolve(size), earlier))) for size in node_of(y).shape]
    options = {"constant_values": fillvalue} if boundary == "fill" else {}
    return _slid(pad(x, widths, mode=_BORDERS[boundary], **options), y, "valid")
