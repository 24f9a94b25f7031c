"""Functions of matrices, which are LAPACK on all sides; batches of small ones; and Fourier transforms."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.peers import PEERS
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


def points(rng: np.random.Generator, n: int) -> Arguments:
    """The parameters of a Gaussian process, and what it is to explain."""
    x = np.sort(rng.uniform(-3, 3, n))
    return np.array([0.5, 1.0, -1.0]), x, np.sin(3 * x) + 0.1 * rng.standard_normal(n)


def likelihood(xp: ModuleType, params, x, y):
    """Minus the logarithm of the marginal likelihood, for each point."""
    length, amplitude, noise = params[0], params[1], params[2]
    distance = (x[:, None] - x[None, :]) / xp.exp(length)
    kernel = xp.exp(2 * amplitude) * xp.exp(-0.5 * distance * distance) + xp.exp(2 * noise) * xp.eye(x.shape[0])
    factor = xp.linalg.cholesky(kernel)
    weights = xp.linalg.solve(kernel, y)
    return (0.5 * xp.sum(y * weights) + xp.sum(xp.log(xp.diagonal(factor)))) / x.shape[0]


def _with_gradient(package: str, *args: object) -> object:
    function: Callable[..., object] = importlib.import_module(package).value_and_grad(
        partial(likelihood, PEERS[package].xp())
    )
    return function(*args)


def _by_hand(params, x, y):
    """The same by NumPy, with the gradient by its formula: half the trace of (inv(K) - w w.T) dK."""
    length, amplitude, noise = np.exp(params)
    square = ((x[:, None] - x) / length) ** 2
    signal, eye = amplitude**2 * np.exp(-0.5 * square), np.eye(len(x))
    kernel = signal + noise**2 * eye
    weights = np.linalg.solve(kernel, y)
    inner = np.linalg.inv(kernel) - np.outer(weights, weights)
    slopes = (signal * square, 2 * signal, 2 * noise**2 * eye)
    gradient = np.array([0.5 * np.sum(inner * slope) for slope in slopes]) / len(x)
    half = np.sum(np.log(np.diagonal(np.linalg.cholesky(kernel))))
    return (0.5 * (y @ weights) + half) / len(x), gradient


def _of(name: str, function, make, sizes: tuple[int, ...], small: tuple[int, ...], goal: float) -> Comparison:
    return Comparison(f"linalg/{name}", Goal(goal), make, sizes, small, function, peers=LINEAR, tolerance=1e-8)


WORKLOADS = (
    *(_of(f"{f.__name__}-{n}", f, positive, (n,), (4,), 1) for f in (cholesky, solve, eigh, svd) for n in (8, 64, 512)),
    *(_of(f"{f.__name__}-10000x3", f, positive, (10_000, 3), (4, 3), 3) for f in (solve, eigh)),
    *(_of(f"fft-{n}", fft, waves, (n,), (7,), 1) for n in (1 << 10, 1 << 15, 1 << 20, 10_007)),
    _of("fft-columns-512x1000", fft_of_columns, waves, (512, 1000), (6, 5), 1),
    Comparison(
        "linalg/gaussian-process-200",
        Goal(1.2),
        points,
        (200,),
        (6,),
        own={"harp": partial(_with_gradient, "harp"), "jax": partial(_with_gradient, "jax"), "numpy": _by_hand},
        peers=LINEAR,
        tolerance=1e-7,
    ),
)
