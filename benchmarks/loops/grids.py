"""Loops over steps in time and along an axis: stencils, tridiagonal solves, and a dynamic programme by diagonals."""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.blind.spelling import at
from benchmarks.loops import natural
from benchmarks.loops.spelling import Array, Namespace, both, control, forward
from benchmarks.workload import Arguments, Comparison


def _grid(axes: int):
    return lambda rng, n: (rng.standard_normal((n,) * axes),)


def heat(axes: int, steps: int, xp: Namespace, u: Array) -> Array:
    """The heat equation with fixed ends, written with slices."""
    rate, inner = (0.1 if axes == 3 else 0.2), (slice(1, -1),) * axes

    def step(_: Array, u: Array) -> Array:
        around = -2 * axes * u[inner]
        for axis in range(axes):
            for part in (slice(None, -2), slice(2, None)):
                around = around + u[(*inner[:axis], part, *inner[axis + 1 :])]
        return at(xp, u)[inner].add(rate * around)

    return control(xp).fori_loop(0, steps, step, xp.asarray(u))


def _system(rng: np.random.Generator, rows: int, n: int) -> Arguments:
    lower, upper = rng.uniform(-1, 1, (2, n))
    return rng.standard_normal((rows, rows, n)), lower, rng.uniform(3, 4, n), upper


def tridiagonal(xp: Namespace, rhs: Array, lower: Array, diagonal: Array, upper: Array) -> Array:
    """Solutions along the last axis, of one matrix: Thomas' algorithm."""

    def down(state: tuple[Array, Array], row: tuple[Array, ...]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        ratio, y = state
        r, low, middle, up = row
        pivot = middle - low * ratio
        new = up / pivot, (r - low * y) / pivot
        return new, new

    def back(x: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        ratio, y = row
        x = y - ratio * x
        return x, x

    columns = xp.moveaxis(rhs, -1, 0)
    zero = xp.zeros(rhs.shape[:-1], dtype=rhs.dtype)
    _, rows = control(xp).scan(down, (0 * lower[0], zero), (columns, lower, diagonal, upper))
    return xp.moveaxis(control(xp).scan(back, zero, rows, reverse=True)[1], 0, -1)


def _words(rng: np.random.Generator, n: int) -> Arguments:
    return rng.integers(0, 4, n), rng.integers(0, 4, n + 20)


def edit_distance(xp: Namespace, a: Array, b: Array) -> Array:
    """How many letters to change, by diagonals: each element depends only on the two before."""
    n, m = a.shape[0], b.shape[0]
    i = xp.arange(n + 1)
    letters = xp.concatenate([a[:1], a])  # that of row i

    def step(d: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        before, last = state
        j = d - i
        other = b[xp.clip(j - 1, 0, m - 1)]
        left, diagonal = xp.concatenate([last[:1], last[:-1]]), xp.concatenate([before[:1], before[:-1]])
        best = xp.minimum(xp.minimum(last, left) + 1, diagonal + (letters != other))
        return last, xp.where((i == 0) | (j <= 0), d, best)

    return control(xp).fori_loop(1, n + m + 1, step, (0 * i, 0 * i))[1][n]


GRIDS: list[Comparison] = [
    *(
        row
        for axes, n, steps, loop in (
            (1, 1000, 200, natural.heat_1d),
            (2, 128, 50, natural.heat_2d),
            (3, 32, 20, natural.heat_3d),
        )
        for row in both(
            f"stencil/heat-{axes}d", _grid(axes), (n,), (6,), partial(heat, axes, steps), {"numba": loop(steps)}
        )
    ),
    *both(
        "solve/tridiagonal-3d",
        _system,
        (32, 128),
        (3, 5),
        tridiagonal,
        {"numba": natural.tridiagonal},
        argnums=(0, 1, 2, 3),
    ),
    forward(
        "table/edit-distance", _words, (300,), (7,), edit_distance, {"numba": natural.edit_distance}, tolerance=1e-9
    ),
]
