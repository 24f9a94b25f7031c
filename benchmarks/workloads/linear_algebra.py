"""Functions of matrices, which are LAPACK on all sides; batches of small ones; and Fourier transforms."""

from __future__ import annotations

from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison

LINEAR = ("jax", "numpy")


def positive(rng: np.random.Generator, *sizes: int) -> Arguments:
    """Positive definite matrices, and a column for each."""
    a = rng.standard_normal((*sizes, sizes[-1]))
    return a @ np.swapaxes(a, -1, -2) / sizes[-1] + np.eye(sizes[-1]), rng.standard_normal((*sizes, 1))


def waves(rng: np.random.Generator, *sizes: int) -> Arguments:
    """Complex numbers of double precision."""
    return (rng.standard_normal(sizes) + 1j * rng.standard_normal(sizes),)


def cholesky(xp: ModuleType, a, b):
    """The lower factor."""
    return xp.linalg.cholesky(a)


def solve(xp: ModuleType, a, b):
    """One column."""
    return xp.linalg.solve(a, b)


def eigh(xp: ModuleType, a, b):
    """The values: vectors are determined up to their signs."""
    return xp.linalg.eigh(a)[0]


def svd(xp: ModuleType, a, b):
    """The values of what also has its vectors computed."""
    return xp.linalg.svd(a)[1]


def fft(xp: ModuleType, x):
    """Along the last axis."""
    return xp.fft.fft(x)


def fft_of_columns(xp: ModuleType, x):
    """Along the first axis of a matrix."""
    return xp.fft.fft(x, axis=0)


def _of(name: str, function, make, sizes: tuple[int, ...], small: tuple[int, ...], goal: float) -> Comparison:
    return Comparison(f"linalg/{name}", Goal(goal), make, sizes, small, function, peers=LINEAR, tolerance=1e-8)


WORKLOADS = (
    *(_of(f"{f.__name__}-{n}", f, positive, (n,), (4,), 1) for f in (cholesky, solve, eigh, svd) for n in (8, 64, 512)),
    *(_of(f"{f.__name__}-10000x3", f, positive, (10_000, 3), (4, 3), 3) for f in (solve, eigh)),
    *(_of(f"fft-{n}", fft, waves, (n,), (7,), 1) for n in (1 << 10, 1 << 15, 1 << 20, 10_007)),
    _of("fft-columns-512x1000", fft_of_columns, waves, (512, 1000), (6, 5), 1),
)
