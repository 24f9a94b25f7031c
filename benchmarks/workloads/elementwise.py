"""Elementwise functions: fusion, and the speed of tanh and exp."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison
from benchmarks.workloads.loops import COEFFICIENTS, A, B


def vectors(rng: np.random.Generator, count: int) -> Arguments:
    """Two arrays of float32 around 0."""
    return tuple(rng.standard_normal(count, np.float32) for _ in range(2))


def _points(rng: np.random.Generator, count: int) -> Arguments:
    return (rng.uniform(-1, 1, count),)


def tanh_exp(xp: ModuleType, x, w):
    """Two transcendental functions and four operations."""
    return xp.tanh(x) * w + xp.exp(-x * x)


def axpby(xp: ModuleType, x, z):
    """Limited by memory only."""
    return A * x + B * z


def _crossed(rng: np.random.Generator, rows: int, columns: int) -> Arguments:
    return tuple(rng.standard_normal(shape, np.float32) for shape in ((rows, columns), (columns, rows)))


def transposed(xp: ModuleType, x, y):
    """A matrix, and one that lies across it."""
    return x.T * A + y


def horner(xp: ModuleType, x):
    """A polynomial of 200 terms: 398 operations on each element."""
    total = x * COEFFICIENTS[0] + COEFFICIENTS[1]
    for coefficient in COEFFICIENTS[2:]:
        total = total * x + coefficient
    return total


def _numexpr(text: str, *names: str):
    def function(*arrays):
        import numexpr

        return numexpr.evaluate(text, dict(zip(names, arrays, strict=True)), {})

    return function


# numexpr takes Python numbers as float64 unless they are given as arrays of float32
TANH = {"numba": "tanh_exp", "numexpr": _numexpr("tanh(x) * w + exp(-x * x)", "x", "w")}


def _axpby_numexpr(x, z):
    import numexpr

    names = {"a": np.asarray(A, x.dtype), "b": np.asarray(B, x.dtype), "x": x, "z": z}
    return numexpr.evaluate("a * x + b * z", names, {})


AXPBY = {"numba": "axpby", "numexpr": _axpby_numexpr}

WORKLOADS = (
    Comparison("elementwise/tanh-10M", Goal(1.5), vectors, (10_000_000,), (1000,), tanh_exp, TANH),
    Comparison("elementwise/tanh-1M", Goal(1.5), vectors, (1_000_000,), (1000,), tanh_exp, TANH),
    Comparison("elementwise/axpby-10M", Goal(1.5), vectors, (10_000_000,), (1000,), axpby, AXPBY),
    Comparison("elementwise/axpby-1M", Goal(1.5), vectors, (1_000_000,), (1000,), axpby, AXPBY),
    Comparison("elementwise/transposed-1M", Goal(1.5), _crossed, (1024, 1024), (33, 17), transposed, {}),
    Comparison("elementwise/polynomial-1M", Goal(1.5), _points, (1_000_000,), (1000,), horner, {"numba": "horner"}),
)
