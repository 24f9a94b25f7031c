"""Programs that others have reported as slow, in harp or elsewhere, each beside the best of NumPy and JAX."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.costs.case import Case, Maker, forward, gradient, integers, normal, uniform

LIBRARIES = {"harp": "harp.jax", "jax": "jax"}  # where functions have the names of JAX


def _library(name: str, function: Callable[..., object], *arguments: object) -> object:
    lib = importlib.import_module(LIBRARIES[name])
    return function(lib.numpy, lib.lax, *arguments)


def looping(name: str, n: int, arguments: Sequence[Maker], function: Callable[..., object], numpy: Callable[..., Any]):
    """A program with loops: `function` takes `jax.numpy`, `jax.lax` and the arguments."""
    own = {library: partial(_library, library, function) for library in LIBRARIES}
    return [Case(f"report/{name}", n, tuple(arguments), function, {**own, "numpy": numpy})]


def report(name: str, n: int, arguments: Sequence[Maker], function: Callable[..., object], **more: object):
    """A program that all libraries spell alike."""
    return forward(f"report/{name}", n, arguments, function, **more)


# Loops ----------------------------------------------------------------------------------------------------------------


def _decayed_sums(xp, lax, x):
    return lax.scan(lambda c, v: (0.9 * c + v, 0.9 * c + v), xp.zeros(x.shape[1:]), x)[1]


def _decayed_sums_numpy(x):
    result, c = np.empty_like(x), np.zeros(x.shape[1:])
    for k, v in enumerate(x):
        result[k] = c = 0.9 * c + v
    return result


def _grid(xp, side):
    return xp.linspace(-2, 0.5, side)[None] + 1j * xp.linspace(-1.25, 1.25, side)[:, None]


def _mandelbrot(xp, lax, x):
    c = _grid(xp, x.shape[0])

    def step(i, state):
        z, count = state
        inside = xp.abs(z) < 2
        return xp.where(inside, z * z + c, z), count + inside

    return lax.fori_loop(0, 30, step, (xp.zeros_like(c), xp.zeros(c.shape, "int64")))[1]


def _mandelbrot_numpy(x):
    c = _grid(np, len(x))
    z, count = np.zeros_like(c), np.zeros(c.shape, "int64")
    for _ in range(30):
        inside = np.abs(z) < 2
        z[inside] = z[inside] * z[inside] + c[inside]
        count += inside
    return count


def _jacobi(xp, lax, x):
    def step(i, p):
        return p.at[1:-1, 1:-1].set(0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]))

    return lax.fori_loop(0, 20, step, x)


def _jacobi_numpy(x):
    p = x.copy()
    for _ in range(20):
        p[1:-1, 1:-1] = 0.25 * (p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2])
    return p


def _outer_products(xp, lax, x):
    return lax.fori_loop(0, x.shape[1], lambda k, c: c + xp.tril(x[:, k][:, None] * x[:, k][None]), xp.zeros(x.shape))


def _windows_in_scans(xp, lax, x, w):
    """A convolution that takes each window on its own."""
    count, size = x.shape[1] - w.shape[0] + 1, w.shape[0]

    def one(i, j):
        window = lax.dynamic_slice(x, (0, i, j), (x.shape[0], size, size))
        return xp.sum(window[..., None] * w[None], axis=(1, 2))

    def row(_, i):
        return 0.0, lax.scan(lambda _, j: (0.0, one(i, j)), 0.0, xp.arange(count))[1]

    return lax.scan(row, 0.0, xp.arange(count))[1]


def _windows_numpy(x, w):
    shown = np.lib.stride_tricks.sliding_window_view(x, w.shape[:2], axis=(1, 2))
    return np.einsum("bijpq,pqo->ijbo", shown, w, optimize=True)


def _masked_rows(xp, lax, values, columns, ends, x):
    """A sparse product, of which each row is a mask."""
    places = xp.arange(values.shape[0])

    def step(i, y):
        inside = (places >= ends[i]) & (places < ends[i + 1])
        return y.at[i].set(xp.where(inside, values, 0) @ x[xp.where(inside, columns, 0)])

    return lax.fori_loop(0, x.shape[0], step, xp.zeros(x.shape[0]))


def _rows_numpy(values, columns, ends, x):
    return np.array([values[a:b] @ x[columns[a:b]] for a, b in pairwise(ends)])


def _row_ends(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.concatenate([[0], np.sort(rng.integers(0, 8 * n, n - 1)), [8 * n]])


LOOPS = [
    *looping("decayed-sums", 10_000, [normal("n", 4)], _decayed_sums, _decayed_sums_numpy),
    *looping("mandelbrot-by-masks", 100, [normal("n")], _mandelbrot, _mandelbrot_numpy),
    *looping("jacobi-2d", 100, [normal("n", "n")], _jacobi, _jacobi_numpy),
    *looping("outer-products", 64, [normal("n", "n")], _outer_products, lambda x: np.tril(x @ x.T)),
    *looping("windows-in-scans", 8, [normal("n", 32, 32), normal(20, 20, 4)], _windows_in_scans, _windows_numpy),
    *looping(
        "rows-of-a-sparse-matrix",
        64,
        [normal("8n"), lambda rng, n: rng.integers(0, n, 8 * n), _row_ends, normal("n")],
        _masked_rows,
        _rows_numpy,
    ),
]

# Searches, counts, sorts ----------------------------------------------------------------------------------------------

EDGES = np.array([-3, -1, -0.5, 0, 0.3, 1, 3.0])

COUNTS = [
    *report(
        "counts-by-comparing",
        20_000,
        [integers(0, 50, "n")],
        lambda xp, x: xp.sum(x[:, None] == xp.arange(50)[None], axis=0),
    ),
    *report(
        "bincount",
        200_000,
        [integers(0, 50, "n")],
        lambda xp, x: xp.bincount(x, length=50),
        numpy=lambda x: np.bincount(x, minlength=50),
    ),
    *report(
        "bincount-weights",
        200_000,
        [integers(0, 50, "n"), normal("n")],
        lambda xp, x, w: xp.bincount(x, w, length=50),
        numpy=lambda x, w: np.bincount(x, w, 50),
    ),
    *report("histogram-by-edges", 200_000, [normal("n")], lambda xp, x: xp.histogram(x, EDGES)[0]),
    *report("sort-rows", 250, [normal("n", 1000, dtype="float32")], lambda xp, x: xp.sort(x, axis=1)),
    *report("argmax-float32", 250_000, [normal("n", dtype="float32")], lambda xp, x: xp.argmax(x)),
]


def _scattered(kind: str, xp, index, values):
    return getattr(xp.zeros(10_000, "float32").at[index], kind)(values)


def _scattered_numpy(kind: str, index, values):
    result = np.zeros(10_000, "float32")
    {"add": np.add.at, "max": np.maximum.at, "set": np.ndarray.__setitem__}[kind](result, index, values)
    return result


SCATTERS = [
    case
    for kind in ("add", "max", "set")
    for case in report(
        f"scatter-{kind}",
        50_000,
        [integers(0, 10_000, "n"), normal("n", dtype="float32")],
        partial(_scattered, kind),
        numpy=partial(_scattered_numpy, kind),
    )
]

# Elementwise work, transposes, small matrices -------------------------------------------------------------------------

NUMBERS = [
    *report("transpose-ijk-kji", 32, [normal("n", 96, 64, dtype="float32")], lambda xp, x: xp.einsum("ijk->kji", x)),
    *report("channels-first", 8, [normal("n", 64, 64, 3, dtype="float32")], lambda xp, x: xp.moveaxis(x, 3, 1)),
    *gradient("report/prod-axis0", 250, [uniform(1, 2, 100, "n")], lambda xp, x: xp.prod(x, axis=0)),
    *report("integer-powers", 250_000, [integers(0, 9, "n"), integers(0, 9, "n")], lambda xp, x, y: x**y),
    *report("reversed-strides", 400, [normal("n", "n", dtype="float32")], lambda xp, x: x[::-2, ::-2] + 1),
    *report(
        "windows-of-5-by-slices",
        256,
        [lambda rng, n: rng.standard_normal((n + 4, n + 4)).astype("float32")],
        lambda xp, x: sum(x[i : len(x) - 4 + i, j : len(x) - 4 + j] for i in range(5) for j in range(5)),
    ),
    *report("exp-complex64", 100_000, [normal("n", dtype="complex64")], lambda xp, x: xp.exp(x)),
    *report("trace-of-a-product", 250, [normal("n", "n")] * 2, lambda xp, x, y: xp.einsum("ij,ji->", x, y)),
    *report("tall-times-its-transpose", 500, [normal("n", 32, dtype="float32")], lambda xp, x: x @ x.T),
    *report("transpose-times-tall", 5000, [normal("n", 32, dtype="float32")], lambda xp, x: x.T @ x),
    *report("det-of-3x3", 5000, [normal("n", 3, 3)], lambda xp, x: xp.linalg.det(x)),
    *report("solve-3x3", 5000, [normal("n", 3, 3), normal("n", 3, 1)], lambda xp, x, y: xp.linalg.solve(x, y)),
    *report("inverses-of-complex", 50, [normal("n", 40, 40, dtype="complex128")], lambda xp, x: xp.linalg.inv(x)),
    *report(
        "products-of-blocks",
        10_000,
        [normal("n", 3, 3), normal("n", 3, 3)],
        lambda xp, x, y: xp.sum(xp.einsum("aij,bjk->abik", x[:40], y[:40]), axis=0) + xp.sum(x @ y, axis=0),
    ),
]

REPORTS = [*LOOPS, *COUNTS, *SCATTERS, *NUMBERS]
