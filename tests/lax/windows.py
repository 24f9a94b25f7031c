"""Convolutions and pools, one window after the other, by NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import numpy as np

Pairs = Sequence[tuple[int, int]]


def same(sizes, windows, strides, dilations=None, lower: bool = False) -> list[tuple[int, int]]:
    """What "SAME" puts before and behind each axis."""
    pairs = []
    for size, window, stride, dilation in zip(sizes, windows, strides, dilations or [1] * len(sizes), strict=True):
        total = max((-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size, 0)
        pairs.append((total - total // 2, total // 2) if lower else (total // 2, total - total // 2))
    return pairs


def spaced(x: np.ndarray, pads: Pairs, bases: Sequence[int], fill) -> np.ndarray:
    """The last axes with `fill` between, before and behind elements; negative numbers take some away."""
    first = x.ndim - len(pads)
    for axis, ((low, high), base) in enumerate(zip(pads, bases, strict=True), first):
        rows = np.moveaxis(x, axis, 0)
        wide = np.full((max((len(rows) - 1) * base + 1, 0), *rows.shape[1:]), fill, x.dtype)
        wide[::base] = rows
        around = [np.full((max(width, 0), *rows.shape[1:]), fill, x.dtype) for width in (low, high)]
        wide = np.concatenate([around[0], wide, around[1]])
        x = np.moveaxis(wide[max(-low, 0) : max(len(wide) - max(-high, 0), 0)], 0, axis)
    return x


def shown(x: np.ndarray, window, strides, pads: Pairs, bases, dilations, fill) -> dict[tuple[int, ...], np.ndarray]:
    """For each place in a window, what all windows along the last axes have there."""
    x = spaced(x, pads, bases, fill)
    covered = [(size - 1) * dilation + 1 for size, dilation in zip(window, dilations, strict=True)]
    sizes = x.shape[x.ndim - len(covered) :]
    counts = [max((n - k) // s + 1, 0) if n >= k else 0 for n, k, s in zip(sizes, covered, strides, strict=True)]
    found = {}
    for place in itertools.product(*map(range, window)):
        ranges = zip(place, dilations, counts, strides, strict=True)
        rows = [np.arange(count) * stride + i * dilation for i, dilation, count, stride in ranges]
        found[place] = x[(..., *np.ix_(*rows))] if rows else x
    return found


def convolved(x, w, strides, pads, bases=None, dilations=None, groups: int = 1, batches: int = 1) -> np.ndarray:
    """Of x[n, c, ...] and w[o, c, ...]."""
    one = [1] * (x.ndim - 2)
    outputs = []
    for number in range(groups * batches):
        part = w.reshape(groups * batches, -1, *w.shape[1:])[number]
        rows = x.reshape(batches, -1, *x.shape[1:])[number] if batches > 1 else x
        rows = rows[:, number * w.shape[1] : (number + 1) * w.shape[1]] if groups > 1 else rows
        windows = shown(rows, w.shape[2:], strides, pads, bases or one, dilations or one, 0)
        outputs.append(sum(np.einsum("nc...,oc->no...", v, part[(..., *place)]) for place, v in windows.items()))
    return np.concatenate(outputs, 1)


def pooled(function: Callable[..., np.ndarray], start, x, window, strides, pads, bases=None, dilations=None):
    """The function of `start`, and of all that a window shows."""
    one = [1] * x.ndim
    windows = shown(x, window, strides, pads, bases or one, dilations or one, start)
    result = np.full_like(next(iter(windows.values())), start)
    for part in windows.values():
        result = function(result, part)
    return result
