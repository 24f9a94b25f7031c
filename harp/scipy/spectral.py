"""SciPy's spectra of signals: the Fourier transforms of windowed segments, and signals back from these."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.complexes import conj, imag, real
from harp.numpy.creation import arange, zeros
from harp.numpy.elementwise import sqrt, square, where
from harp.numpy.fft import Count, fft, fftfreq, ifft, irfft, rfft, rfftfreq
from harp.numpy.joining import concatenate
from harp.numpy.lib.stride_tricks import sliding_window_view
from harp.numpy.linalg.products import promoted
from harp.numpy.manipulation import broadcast_to, moveaxis
from harp.numpy.numerical import as_inexact
from harp.numpy.padding import pad
from harp.numpy.quantiles import median
from harp.numpy.reductions import mean
from harp.numpy.reductions import sum as sum_
from harp.scipy.windows import get_window
from harp.trace.array.arithmetic import astype, in_common
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_flag, as_named, normalize_axis
from harp.trace.scalar.dtypes import computing, real_of
from harp.trace.sizes.size import Size
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place

Detrend = bool | str | Callable[[Array], object]
_BORDERS: dict[str, dict[str, Any]] = {
    "even": {"mode": "reflect"},
    "odd": {"mode": "reflect", "reflect_type": "odd"},
    "constant": {"mode": "edge"},
    "zeros": {"mode": "constant"},
}
_TYPES = {"linear": True, "l": True, "constant": False, "c": False}


class _How(NamedTuple):
    """The arguments of all spectra."""

    fs: object
    window: object
    nperseg: Count | None
    noverlap: Count | None
    nfft: Count | None
    detrend: Detrend = False
    onesided: bool = True
    scaling: str = "spectrum"
    axis: int = -1
    boundary: str | None = None
    padded: bool = False


def detrend(data: object, axis: int = -1, type: str = "linear", bp: Any = 0, overwrite_data: bool = False) -> Array:
    """The data along an axis without the line that fits best by least squares, or with `type` "constant" without the
    mean.

    `bp` are places, numbers or sizes, at which other lines begin. `overwrite_data` changes nothing. Integers give
    float64. Raises ArgumentError for another type and for places outside of the axis, AxisError.

    >>> import numpy as np
    >>> detrend(np.array([1.0, 2.0, 3.0, 3.0])).round(9)
    Array([-0.2,  0.1,  0.4, -0.3])
    """
    if type not in _TYPES:
        raise ArgumentError(f"type of detrend is 'linear' or 'constant', not {type!r}{place()}")
    given = as_inexact(as_named(data, "argument data of detrend"))
    along = normalize_axis(axis, given.ndim)
    rows = moveaxis(in_common(given, computing(given.kind)), along, -1)
    if not _TYPES[type]:
        result = rows - mean(rows, -1, keepdims=True)
        return astype(moveaxis(result, -1, along), given.kind)
    ends = _breaks(bp, rows.shape[-1])
    parts = [_without_line(rows[..., low:high]) for low, high in pairwise(ends)]
    return astype(moveaxis(concatenate(parts, axis=-1), -1, along), given.kind)


def _breaks(bp: Any, n: Any) -> list[Any]:
    """All places at which lines begin, and the end."""
    places: list[Any] = [bp] if isinstance(bp, (int, Size)) else list(bp)
    known = sorted({0, *(int(k) for k in places if not isinstance(k, Size))})
    between: list[Any] = [*known, *(k for k in places if isinstance(k, Size))]
    for before, k in zip(between, [*between[1:], n], strict=True):
        if before < 0 or k < before:
            raise ArgumentError(f"bp of detrend has places from 0 to {n} in ascending order, not {bp!r}{place()}")
    return [*between, n]


def _without_line(rows: Array) -> Array:
    n: Any = rows.shape[-1]
    times = astype(arange(n) - 0.5 * (n - 1), rows.kind)
    centred = rows - mean(rows, -1, keepdims=True) if isinstance(n, Size) or n else rows
    squares = sum_(square(times))
    slope = sum_(centred * times, -1, keepdims=True) / where(squares == 0, 1, squares)
    return centred - slope * times


def csd(
    x: object,
    y: object,
    fs: Any = 1.0,
    window: object = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Frequencies, and the cross spectral density of two signals by Welch's method: the means of the products of the
    Fourier transforms of segments, complex.

    Segments have `nperseg` elements, 256 unless given, or all if there are fewer, of which `noverlap`, by default half,
    are those of the one before. Each is detrended, if that is no False, and multiplied by a `window`, of
    `get_window` or an array, and filled up to `nfft`. The shorter signal is filled up with zeros; axes broadcast. For
    real signals frequencies are from 0 up, unless `return_onesided` is False; for complex ones they are all of
    `fftfreq`. `scaling` "density" is per unit of frequency, "spectrum" is not; `average` "median" takes medians without
    their bias.

    P. D. Welch, The use of the fast Fourier transform for the estimation of power spectra (IEEE Transactions on Audio
    and Electroacoustics 15, 1967). Raises ShapeError for a window that is longer than the signal, ArgumentError for
    numbers that do not fit and for other words, AxisError.

    >>> import numpy as np
    >>> frequencies, density = csd(np.arange(8.0) % 2, np.arange(8.0) % 2, nperseg=4)
    >>> density.real.round(6)
    Array([0.      , 0.333333, 0.666667])
    """
    how = _How(fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    frequencies, _, found = _spectra("csd", x, y, how, "psd")
    return frequencies, found if found.ndim < as_array(x).ndim + 1 else _averaged(found, average)


def welch(
    x: object,
    fs: Any = 1.0,
    window: object = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """Frequencies, and the power spectral density of a signal: `csd` of it and itself, which is real.

    >>> import numpy as np
    >>> welch(np.arange(8.0) % 2, nperseg=4)[1].round(6)
    Array([0.      , 0.333333, 0.666667])
    """
    how = _How(fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis)
    frequencies, _, found = _spectra("welch", x, None, how, "psd")
    return frequencies, found if found.ndim < as_array(x).ndim + 1 else _averaged(found, average)


def stft(
    x: object,
    fs: Any = 1.0,
    window: object = "hann",
    nperseg: Any = 256,
    noverlap: Any = None,
    nfft: Any = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
    scaling: str = "spectrum",
) -> tuple[Array, Array, Array]:
    """Frequencies, the times of segments, and their Fourier transforms, with times last, as `csd` makes them.

    The signal is continued by half a segment at both ends, by `boundary` "zeros", "constant", "even" or "odd", and with
    `padded` by zeros until segments cover all of it. `scaling` is "spectrum" or "psd". Raises as `csd`.

    >>> import numpy as np
    >>> stft(np.ones(6), nperseg=4)[2].real.round(6)
    Array([[ 0.75,  1.  ,  1.  ,  0.25],
           [-0.5 , -0.5 , -0.5 ,  0.  ],
           [ 0.25,  0.  ,  0.  , -0.25]])
    """
    if scaling not in ("spectrum", "psd"):
        raise ArgumentError(f"scaling of stft is 'spectrum' or 'psd', not {scaling!r}{place()}")
    how = _How(fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
               "density" if scaling == "psd" else scaling, axis, boundary, padded)  # fmt: skip
    return _spectra("stft", x, None, how, "stft")


def _averaged(spectra: Array, average: str) -> Array:
    """Over segments, which are the last axis."""
    if average == "mean":
        return mean(spectra, -1)
    if average != "median":
        raise ArgumentError(f"average is 'mean' or 'median', not {average!r}{place()}")
    n: Any = spectra.shape[-1]
    even = 2.0 * (1 + arange((n - 1) // 2))
    bias = astype(1.0 + sum_(1.0 / (even + 1.0) - 1.0 / even), real_of(spectra.kind))
    if spectra.kind.is_complex:
        return (median(real(spectra), -1) + 1j * median(imag(spectra), -1)) / bias
    return median(spectra, -1) / bias


def _segments(name: str, how: _How, n: Any) -> tuple[Array, Any, Any]:
    """The window, the distance of segments, and the length of transforms, for n samples."""
    window, nperseg = how.window, how.nperseg
    size: Any = 256 if nperseg is None else nperseg
    if isinstance(window, (str, tuple, float)):
        if size < 1:
            raise ArgumentError(f"nperseg of {name} is 1 or more, not {size}{place()}")
        size = n if size > n else size
        weights = get_window(window, size)
    else:
        weights = as_array(window)
        size = weights.shape[0] if weights.ndim == 1 else 0
        if weights.kind.is_complex:
            raise DTypeError(f"window of {name} has real numbers, not {weights.dtype}{place()}")
        if weights.ndim != 1 or (nperseg is not None and nperseg != size) or size > n:
            raise ShapeError(f"window of {name} is a vector of nperseg numbers, at most the {n} of the signal{place()}")
    overlap: Any = size // 2 if how.noverlap is None else how.noverlap
    length: Any = size if how.nfft is None else how.nfft
    if overlap >= size or overlap < 0:
        raise ArgumentError(f"noverlap of {name} is less than nperseg, {size}, and at least 0, not {overlap}{place()}")
    if length < size:
        raise ArgumentError(f"nfft of {name} is at least nperseg, {size}, not {length}{place()}")
    return weights, size - overlap, length


def _signals(name: str, x: object, y: object, axis: int) -> tuple[list[Array], int]:
    """One or two signals of the same length along the last axis, and the axis."""
    both = [
        as_inexact(as_named(a, f"argument {label} of {name}")) for a, label in ((x, "x"), (y, "y")) if a is not None
    ]
    both = list(promoted(tuple(both))) if len(both) > 1 else both
    both = [in_common(a, computing(a.kind)) for a in both]
    if both[0].ndim < 1 or both[0].ndim != both[-1].ndim:
        ranks = " and ".join(str(a.ndim) for a in both)
        raise ShapeError(f"{name} takes signals along one of as many axes, not {ranks}{place()}")
    along = normalize_axis(axis, both[0].ndim)
    rows = [moveaxis(a, along, -1) for a in both]
    if len(rows) > 1 and rows[0].shape[-1] != rows[1].shape[-1]:
        sizes: list[Any] = [a.shape[-1] for a in rows]
        longest = sizes[0] if sizes[0] > sizes[1] else sizes[1]
        rows = [_extended(a, 0, longest - size) for a, size in zip(rows, sizes, strict=True)]
    return rows, along


def _extended(a: Array, before: Any, after: Any, **options: Any) -> Array:
    return pad(a, [(0, 0)] * (a.ndim - 1) + [(before, after)], **options)


def _spectra(name: str, x: object, y: object, how: _How, mode: str) -> tuple[Array, Array, Array]:
    """Frequencies, times, and transforms or their products, with frequencies in place of the axis and times last."""
    if how.scaling not in ("density", "spectrum"):
        raise ArgumentError(f"scaling of {name} is 'density' or 'spectrum', not {how.scaling!r}{place()}")
    rows, along = _signals(name, x, y, how.axis)
    n, kind = rows[0].shape[-1], real_of(rows[0].kind)
    if n == 0:  # as in SciPy
        nothing = zeros(rows[0].shape, kind)
        return nothing, nothing, nothing
    weights, step, length = _segments(name, how, n)
    size: Any = weights.shape[0]
    weights, two_sided = astype(weights, kind), rows[0].kind.is_complex or not how.onesided
    found = []
    for signal in rows:
        windows = sliding_window_view(_covered(name, signal, size, step, how), size, -1)[..., ::step, :]
        windowed = weights * _detrended(windows, how.detrend, how.axis)
        found.append(fft(windowed, length) if two_sided else rfft(real(windowed), length))
    fs: Any = how.fs
    total = square(sum_(weights)) if how.scaling == "spectrum" else fs * sum_(square(weights))
    if mode == "stft":
        result = found[0] / astype(sqrt(total), kind)
    else:
        squares = square(real(found[0])) + square(imag(found[0]))
        k: Any = arange(found[0].shape[-1])
        counted = 1 if two_sided else where((k == 0) | (2 * k == length), 1, 2)
        result = (squares if y is None else conj(found[0]) * found[1]) * astype(counted / total, kind)
    start = 0 if how.boundary is not None else size / 2
    times = (start + arange(found[0].shape[-2]) * step) / fs
    frequencies = (fftfreq if two_sided else rfftfreq)(length, 1 / fs)
    return astype(frequencies, kind), astype(times, kind), moveaxis(result, -1, along)


def _covered(name: str, rows: Array, size: Any, step: Any, how: _How) -> Array:
    """The signal, continued at its ends."""
    if how.boundary is not None:
        if how.boundary not in _BORDERS:
            raise ArgumentError(f"boundary of {name} is {', '.join(_BORDERS)} or None, not {how.boundary!r}{place()}")
        rows = _extended(rows, size // 2, size // 2, **_BORDERS[how.boundary])
    if how.padded:
        rows = _extended(rows, 0, (size - rows.shape[-1]) % step % size)
    return rows


def _detrended(segments: Array, kind: Detrend, axis: int) -> Array:
    if callable(kind):  # a function for the axis where it was
        return moveaxis(as_array(kind(moveaxis(segments, -1, axis))), axis, -1)
    if isinstance(kind, str):
        return detrend(segments, -1, kind)
    if kind:
        raise ArgumentError(f"detrend is 'constant', 'linear', a function or False, not {kind!r}{place()}")
    return segments


def istft(
    Zxx: object,
    fs: Any = 1.0,
    window: object = "hann",
    nperseg: Any = None,
    noverlap: Any = None,
    nfft: Any = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
    scaling: str = "spectrum",
) -> tuple[Array, Array]:
    """Times, and the signal of which `Zxx` is the `stft`: the sum of the segments, over that of the squares of the
    window; with `boundary` without the half of a segment at each end. Of segments of an odd length `nperseg` is needed.

    D. W. Griffin, J. S. Lim, Signal estimation from modified short-time Fourier transform (IEEE Transactions on
    Acoustics, Speech, and Signal Processing 32, 1984). Raises as `stft`.

    >>> import numpy as np
    >>> istft(stft(np.arange(6.0), nperseg=4)[2])[1].round(9)
    Array([0., 1., 2., 3., 4., 5.])
    """
    if scaling not in ("spectrum", "psd"):
        raise ArgumentError(f"scaling of istft is 'spectrum' or 'psd', not {scaling!r}{place()}")
    given = as_inexact(as_named(Zxx, "argument Zxx of istft"))
    if given.ndim < 2:
        raise ShapeError(
            f"Zxx of istft has axes of frequencies and of times, not {plural(given.ndim, 'axes')}{place()}"
        )
    times, along = normalize_axis(time_axis, given.ndim), normalize_axis(freq_axis, given.ndim)
    if times == along:
        raise ArgumentError(f"time_axis and freq_axis of istft are two axes, not both {times}{place()}")
    rows = moveaxis(in_common(given, computing(given.kind)), (times, along), (-2, -1))
    one_sided = as_flag("input_onesided of istft", input_onesided)
    usual: Any = 2 * (rows.shape[-1] - 1) if one_sided else rows.shape[-1]
    size = usual if nperseg is None else nperseg
    length = (size if one_sided and size == usual + 1 else usual) if nfft is None else nfft
    weights, step, length = _segments("istft", _How(fs, window, size, noverlap, length), size)
    segments = (irfft(rows, length) if one_sided else ifft(rows, length))[..., :size]
    kind = real_of(segments.kind)
    weights = astype(weights, kind)
    scale = sum_(weights) if scaling == "spectrum" else sqrt(fs * sum_(square(weights)))
    total = _overlapped(segments * (weights * astype(scale, kind)), step)
    norm = _overlapped(broadcast_to(square(weights), segments.shape[-2:]), step)
    half = size // 2 if boundary else 0
    result = (total / where(norm > 1e-10, norm, 1))[..., half : total.shape[-1] - half]
    seconds = astype(arange(result.shape[-1]), kind) / fs
    return astype(seconds, kind), moveaxis(result, -1, times - (along < times))


def _overlapped(segments: Array, step: Any) -> Array:
    """The sum of segments, each of which begins so much later than the one before."""
    *batch, count, size = segments.shape
    index = (arange(count) * step)[:, None] + arange(size)
    return zeros((*batch, (count - 1) * step + size), segments.kind).at[..., index].add(segments)
