"""Sorting: values, and positions by a stable sort."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison


def numbers(rng: np.random.Generator, count: int) -> Arguments:
    """Around 0, of all magnitudes that a normal distribution has."""
    return (rng.standard_normal(count, np.float32),)


def sort(xp: ModuleType, x):
    """The values in order."""
    return xp.sort(x)


def _sort_torch(x):
    return x.sort().values


def argsort(xp: ModuleType, x):
    """The positions, of which those of equal values keep their order."""
    return xp.argsort(x, stable=True)


LINE, SMALL = (1_000_000,), (50,)

WORKLOADS = (
    Comparison("sorting/sort-1M", Goal(0.8), numbers, LINE, SMALL, sort, {"torch": _sort_torch}, needs="sort"),
    Comparison("sorting/argsort-1M", Goal(2), numbers, LINE, SMALL, argsort, needs="argsort"),
)
