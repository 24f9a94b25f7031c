"""SciPy's cosine transforms, by the Fourier transform: J. Makhoul, A fast cosine transform in one and two dimensions
(IEEE Transactions on Acoustics, Speech, and Signal Processing 28, 1980).

>>> import numpy as np
>>> idct(dct(np.array([1.0, 2.0, 4.0]))).round(12)
Array([1., 2., 4.])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from harp.errors import ArgumentError
from harp.numpy.complexes import imag, real
from harp.numpy.creation import arange
from harp.numpy.elementwise import cos, sin, where
from harp.numpy.fft import Count, fft, ifft, rfft, sized
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import flip, moveaxis
from harp.trace.array.arithmetic import astype, in_common
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_named, normalize_axis
from harp.trace.scalar.dtypes import computing, f64, real_of
from harp.trace.sizes.size import require_at_least_one, resolve, to_index
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place

__all__ = ["dct", "dctn", "idct", "idctn"]

_INVERSE = {1: 1, 2: 3, 3: 2, 4: 4}
_NORMS = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def dct(
    x: object,
    type: int = 2,
    n: Count | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Array:
    """The discrete cosine transform of a type from 1 to 4 along an axis; of type 2
    `y[k] = 2 * sum(x[j] * cos(pi * k * (2*j + 1) / (2*n)))`.

    `n` is the length of the transform: the axis is cut, or filled up with zeros. `norm` is "backward" (the same as
    None), "forward", by which the result is divided by 2*n, or for type 1 by 2*(n - 1), or "ortho", by its root; that
    makes the matrix of the transform orthogonal, unless `orthogonalize` is False, which may be True for other norms as
    well. `overwrite_x` and `workers` change nothing. Integers give float64, and of complex numbers both parts are
    transformed.

    Raises ArgumentError for other types and norms, for an `n` below 1, and for type 1 below 2, AxisError.

    >>> import numpy as np
    >>> dct(np.array([1.0, 2.0, 4.0]))
    Array([14.        , -5.19615242,  1.        ])
    """
    return _transformed("dct", x, type, n, axis, norm, orthogonalize)


def idct(
    x: object,
    type: int = 2,
    n: Count | None = None,
    axis: int = -1,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dct`, with the same arguments: of type 2 it is type 3, divided.

    >>> import numpy as np
    >>> idct(np.array([6.0, 0.0, 0.0]))
    Array([1., 1., 1.])
    """
    return _inverse("idct", x, type, n, axis, norm, orthogonalize)


def dctn(
    x: object,
    type: int = 2,
    s: Sequence[Count] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The `dct` along several axes, all if `axes` is None; `s` has the length for each.

    Raises as `dct`, and ArgumentError if `s` and `axes` have not the same length.

    >>> import numpy as np
    >>> dctn(np.ones((2, 2)))
    Array([[16.,  0.],
           [ 0.,  0.]])
    """
    for count, axis in _pairs("dctn", x, s, axes):
        x = _transformed("dctn", x, type, count, axis, norm, orthogonalize)
    return as_named(x, "argument x of dctn")


def idctn(
    x: object,
    type: int = 2,
    s: Sequence[Count] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
    overwrite_x: bool = False,
    workers: int | None = None,
    *,
    orthogonalize: bool | None = None,
) -> Array:
    """The inverse of `dctn`, with the same arguments.

    >>> import numpy as np
    >>> idctn(np.array([[16.0, 0.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [1., 1.]])
    """
    for count, axis in _pairs("idctn", x, s, axes):
        x = _inverse("idctn", x, type, count, axis, norm, orthogonalize)
    return as_named(x, "argument x of idctn")


def _pairs(name: str, x: object, s: Any, axes: Any) -> list[tuple[Any, int]]:
    rank = as_named(x, f"argument x of {name}").ndim
    axes = (range(rank) if s is None else range(-len(s), 0)) if axes is None else axes
    counts = (None,) * len(axes) if s is None else tuple(s)
    if len(counts) != len(axes):
        raise ArgumentError(
            f"s of {name} has {plural(len(counts), 'lengths')} for {plural(len(axes), 'axes')}{place()}"
        )
    return list(zip(counts, axes, strict=True))


def _inverse(name: str, x: object, type: int, n: Count | None, axis: int, norm: Any, ortho: bool | None) -> Array:
    _check(name, type, norm)
    return _transformed(name, x, _INVERSE[type], n, axis, _NORMS[norm], ortho)


def _check(name: str, type: int, norm: Any) -> None:
    if type not in _TYPES:
        raise ArgumentError(f"type of {name} is 1, 2, 3 or 4, not {type!r}{place()}")
    if norm not in _NORMS:
        raise ArgumentError(f"norm of {name} is 'backward', 'ortho' or 'forward', not {norm!r}{place()}")


def _transformed(name: str, x: object, type: int, n: Any, axis: int, norm: Any, ortho: bool | None) -> Array:
    _check(name, type, norm)
    array = as_named(x, f"argument x of {name}")
    result = array.kind if array.kind.is_inexact else f64
    along = normalize_axis(axis, array.ndim)
    if n is None:
        require_at_least_one(
            resolve(to_index(array.shape[along])), lambda: f"{name} takes an element along axis {along}"
        )
    else:
        array = sized(name, array, along, n)
    array = moveaxis(in_common(array, computing(result)), along, -1)
    parts = [real(array), imag(array)] if result.is_complex else [array]
    parts = [_of_real(name, part, type, norm, norm == "ortho" if ortho is None else ortho) for part in parts]
    whole = parts[0] + 1j * parts[1] if result.is_complex else parts[0]
    return moveaxis(astype(whole, result), -1, along)


class _Type(NamedTuple):
    """A transform along the last axis; how much shorter than n is the one by whose double `norm` divides; and at which
    ends of arguments and results roots of 2 make it orthogonal: 0 for none, 1 for the first one, 2 for both."""

    transform: Callable[[Array], Array]
    shorter: int
    before: int
    after: int


def _of_real(name: str, x: Array, type: int, norm: Any, ortho: bool) -> Array:
    n, row = x.shape[-1], _TYPES[type]
    if type == 1:
        require_at_least_one(resolve(to_index(n)) - 1, lambda: f"{name} of type 1 takes two elements at least")
    x = _at_ends(x, row.before, math.sqrt(2)) if ortho else x
    y = row.transform(x)
    y = _at_ends(y, row.after, math.sqrt(0.5)) if ortho else y
    length = 2 * (n - row.shorter)
    return y if norm in (None, "backward") else y / (length if norm == "forward" else length**0.5)


def _at_ends(x: Array, ends: int, factor: float) -> Array:
    """Times a factor at so many ends."""
    if not ends:
        return x
    k, last = arange(x.shape[-1]), x.shape[-1] - 1
    chosen = (k == 0) | (k == last) if ends > 1 else k == 0
    return where(chosen, factor, 1.0) * x


def _turned(n: Any, steps: Array, of: Array) -> Array:
    """exp(-1j * pi * steps / (2*n)), in the dtype of the transform of an array."""
    angle = astype(steps * (math.pi / 2) / n, real_of(of.kind))
    return cos(angle) - 1j * sin(angle)


def _first(x: Array) -> Array:
    """By the transform of the numbers and their mirror image."""
    return real(rfft(concatenate((x, flip(x[..., 1:-1], -1)), axis=-1)))


def _second(x: Array) -> Array:
    """By that of the even ones, and then the odd ones backwards."""
    n = x.shape[-1]
    y = fft(concatenate((x[..., ::2], flip(x[..., 1::2], -1)), axis=-1))
    return 2 * real(y * _turned(n, arange(n), y))


def _third(x: Array) -> Array:
    """The transpose of the second one, times n its inverse."""
    n = x.shape[-1]
    k = arange(n)
    mirror = where(k == 0, 0, x[..., (n - k) % n])
    turned = (x - 1j * mirror) / _turned(n, k, x)
    y = n * real(ifft(turned))
    return where(k % 2 == 0, y[..., k // 2], y[..., n - 1 - k // 2])


def _fourth(x: Array) -> Array:
    """By that of twice as many, for angles are odd multiples of pi / (4*n)."""
    n = x.shape[-1]
    y = fft(x * _turned(n, arange(n), x), 2 * n)[..., :n]
    return 2 * real(y * _turned(n, arange(n) + 0.5, x))


_TYPES = {
    1: _Type(_first, 1, 2, 2),
    2: _Type(_second, 0, 0, 1),
    3: _Type(_third, 0, 1, 0),
    4: _Type(_fourth, 0, 0, 0),
}
