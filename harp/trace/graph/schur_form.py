"""Hessenberg and Schur forms of matrices in NumPy, which has no such functions: by reflections, and shifted QR steps.

G. H. Golub, C. F. Van Loan, Matrix Computations (4th edition, 2013), algorithms 7.4.2 and 7.5.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_Matrix = npt.NDArray[Any]


def _reflect(h: _Matrix, q: _Matrix, x: _Matrix, rows: slice) -> None:
    """Change the basis so that x, in these rows, is along the first one."""
    largest = np.abs(x).max(initial=0)
    if largest == 0 or len(x) < 2:
        return
    v = x / largest
    v[0] += np.linalg.norm(v) * (v[0] / np.abs(v[0]) if v[0] != 0 else 1)
    v /= np.linalg.norm(v)
    h[rows] -= 2 * np.outer(v, v.conj() @ h[rows])
    for a in (h, q):
        a[:, rows] -= 2 * np.outer(a[:, rows] @ v, v.conj())


def hessenberg(a: _Matrix) -> tuple[_Matrix, _Matrix]:
    """h, q: a = q @ h @ q.mH, h with zeros below the first diagonal under the main one."""
    h, q, n = a.copy(), np.eye(len(a), dtype=a.dtype), len(a)
    for k in range(n - 2):
        _reflect(h, q, h[k + 1 :, k].copy(), slice(k + 1, n))
        h[k + 2 :, k] = 0
    return h, q


def schur(a: _Matrix) -> tuple[_Matrix, _Matrix]:
    """t, z: a = z @ t @ z.mH, t upper triangular, or of a real matrix with blocks of 2 on the diagonal."""
    largest = float(np.abs(a).max(initial=0))
    scale = a.real.dtype.type(2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1)
    h, q = hessenberg(a / scale)
    eps, high = np.finfo(a.dtype).eps, len(a)
    width = 2 if np.iscomplexobj(a) else 3
    for step in range(100 * len(a)):
        for k in range(1, high):
            if np.abs(h[k, k - 1]) <= eps * (np.abs(h[k - 1, k - 1]) + np.abs(h[k, k])):
                h[k, k - 1] = 0
        low = max((k for k in range(high) if k == 0 or h[k, k - 1] == 0), default=0)
        if high <= 1:
            return h * scale, q
        if high - low == 1:
            high -= 1
        elif high - low == 2 and width == 3:
            _split(h, q, low)
            high -= 2
        else:
            _sweep(h, q, low, high, width, step % 10 == 9)
    if len(a):
        raise np.linalg.LinAlgError
    return h, q


def _sweep(h: _Matrix, q: _Matrix, low: int, high: int, width: int, unusual: bool) -> None:
    """A QR step by the eigenvalues of the last block, or if complex by the one nearest to its last number."""
    last = h[high - 2 : high, high - 2 : high]
    trace, det = last[0, 0] + last[1, 1], last[0, 0] * last[1, 1] - last[0, 1] * last[1, 0]
    if width == 2:
        half = np.sqrt((last[0, 0] - last[1, 1]) ** 2 / 4 + last[0, 1] * last[1, 0])
        shift = min((trace / 2 + half, trace / 2 - half), key=lambda value: np.abs(value - last[1, 1]))
        x = np.array([h[low, low] - (np.abs(last[1, 0]) if unusual else shift), h[low + 1, low]])
    else:
        if unusual:
            size = np.abs(last[1, 0]) + np.abs(h[high - 2, high - 3])
            trace, det = 1.5 * size, size * size
        first = h[low, low] * (h[low, low] - trace) + det + h[low, low + 1] * h[low + 1, low]
        second = h[low + 1, low] * (h[low, low] + h[low + 1, low + 1] - trace)
        x = np.array([first, second, h[low + 1, low] * h[low + 2, low + 1]])
    _reflect(h, q, x, slice(low, low + width))
    for k in range(low, high - 2):
        rows = slice(k + 1, min(k + 1 + width, high))
        _reflect(h, q, h[rows, k].copy(), rows)
        h[k + 2 : rows.stop, k] = 0


def _split(h: _Matrix, q: _Matrix, k: int) -> None:
    """Make a real block of 2 triangular, or if its eigenvalues are complex the numbers on its diagonal equal."""
    rows = slice(k, k + 2)
    (a, b), (c, d) = h[rows, rows]
    half = (a - d) / 2
    square = half * half + b * c
    if square >= 0:
        _reflect(h, q, np.array([half + np.copysign(np.sqrt(square), half), c]), rows)
        h[k + 1, k] = 0
    else:
        angle = np.arctan2(d - a, b + c) / 2
        _reflect(h, q, np.array([np.cos(angle), np.sin(angle)], h.dtype), rows)
        h[k, k] = h[k + 1, k + 1] = (h[k, k] + h[k + 1, k + 1]) / 2
