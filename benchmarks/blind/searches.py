"""Gathers, scatters, histograms, searches."""

from __future__ import annotations

from benchmarks.blind.spelling import (
    Array,
    Namespace,
    at,
    bincount,
    both,
    forward,
    increasing,
    integers,
    normal,
    uniform,
)
from benchmarks.costs.case import counting


def largest(xp: Namespace, x: Array) -> Array:
    """The largest element of each row, twice, and its position."""
    i = xp.argmax(x, axis=1)
    return xp.take_along_axis(x, i[:, None], axis=1)[:, 0] * 2 + i


def nearest(xp: Namespace, x: Array, centres: Array) -> Array:
    """The position of the nearest of twelve centres."""
    return xp.argmin(((x[None, :, :] - centres[:, None, :]) ** 2).sum(axis=-1), axis=0)


def segment_sums(xp: Namespace, x: Array, segments: Array) -> Array:
    """Of the squares of rows."""
    return at(xp, xp.zeros((40, x.shape[1]), dtype=x.dtype))[segments].add(x * x)


def segment_maxima(xp: Namespace, x: Array, segments: Array) -> Array:
    """Of the elements of 300 segments."""
    return at(xp, xp.full(300, -10.0, dtype=x.dtype))[segments].max(x)


SEARCHES = [
    *both(
        "search/interp",
        5000,
        [normal(64), uniform(-1, 65, "n"), counting(64)],
        lambda xp, values, x, points: xp.interp(x, points, values),
    ),
    *forward(
        "search/searchsorted",
        4000,
        [increasing(200), uniform(0, 1, "n")],
        lambda xp, points, x: xp.searchsorted(points, x, side="right"),
    ),
    *forward("search/histogram", 8000, [normal("n")], lambda xp, x: xp.histogram(x, bins=20, range=(-3.0, 3.0))[0]),
    *both("search/argmax", 400, [normal("n", 64)], largest),
    *forward("search/nearest-centre", 1500, [normal("n", 2), normal(12, 2)], nearest),
    *both(
        "scatter/bincount",
        32_000,
        [normal("n"), integers(0, 64, "n")],
        lambda xp, weights, places: bincount(xp, places, weights, 64),
        tolerance=1e-3,
    ),
    *both("scatter/segment-sums", 6000, [normal("n", 16), integers(0, 40, "n")], segment_sums, tolerance=1e-3),
    *both("scatter/segment-maxima", 20_000, [normal("n"), integers(0, 300, "n")], segment_maxima),
    *both(
        "gather/rows",
        3000,
        [normal(500, 24), integers(0, 500, "n"), normal("n", 24)],
        lambda xp, table, i, y: table[i] * y,
    ),
    *both("gather/columns", 500, [normal("n", 80), integers(0, 80, 100)], lambda xp, x, j: x[:, j] + 1),
]
