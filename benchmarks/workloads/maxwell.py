"""A step of Maxwell's equations on Yee's grid: curls by slices, and updates of boxes for absorbing layers and walls."""

from __future__ import annotations

import numpy as np

from benchmarks.blind.spelling import Array, Namespace, at
from benchmarks.harness import Goal
from benchmarks.workload import Comparison, Workload

COURANT, LAYER = 0.5, 8


def _fields(dtype: str):
    def make(rng: np.random.Generator, n: int) -> tuple[object, ...]:
        fields = [rng.standard_normal((n, n, n)).astype(dtype) for _ in range(6)]
        return (*fields, (1 - 0.3 * np.linspace(1, 0, LAYER) ** 3).astype(dtype))

    return make


def _difference(a: Array, axis: int) -> Array:
    """Of neighbours along an axis."""
    after, before = [slice(None)] * 3, [slice(None)] * 3
    after[axis], before[axis] = slice(1, None), slice(None, -1)
    return a[tuple(after)] - a[tuple(before)]


def step(
    xp: Namespace, ex: Array, ey: Array, ez: Array, hx: Array, hy: Array, hz: Array, damping: Array
) -> tuple[Array, ...]:
    """The fields half a step and a step later: 20 updates of boxes."""
    ex, ey, ez, hx, hy, hz = map(xp.asarray, (ex, ey, ez, hx, hy, hz))
    hx = at(xp, hx)[:, :-1, :-1].add(COURANT * (_difference(ey, 2)[:, :-1] - _difference(ez, 1)[:, :, :-1]))
    hy = at(xp, hy)[:-1, :, :-1].add(COURANT * (_difference(ez, 0)[:, :, :-1] - _difference(ex, 2)[:-1]))
    hz = at(xp, hz)[:-1, :-1, :].add(COURANT * (_difference(ex, 1)[:-1] - _difference(ey, 0)[:, :-1]))
    ex = at(xp, ex)[:, 1:, 1:].add(COURANT * (_difference(hz, 1)[:, :, 1:] - _difference(hy, 2)[:, 1:]))
    ey = at(xp, ey)[1:, :, 1:].add(COURANT * (_difference(hx, 2)[1:] - _difference(hz, 0)[:, :, 1:]))
    ez = at(xp, ez)[1:, 1:, :].add(COURANT * (_difference(hy, 0)[:, 1:] - _difference(hx, 1)[1:]))
    # Absorbing layers at both ends of the first axis.
    low, high = damping[:, None, None], damping[::-1, None, None]
    ex, ey, ez = (at(xp, at(xp, e)[:LAYER].multiply(low))[-LAYER:].multiply(high) for e in (ex, ey, ez))
    # Walls at the ends of the other axes: no field along them.
    ex, ez = (at(xp, at(xp, e)[:, 0].set(0))[:, -1].set(0) for e in (ex, ez))
    ex, ey = (at(xp, at(xp, e)[:, :, 0].set(0))[:, :, -1].set(0) for e in (ex, ey))
    return ex, ey, ez, hx, hy, hz


WORKLOADS: tuple[Workload, ...] = (
    Comparison(
        "stencil/maxwell-65k", Goal(1.25), _fields("float32"), (40,), (20,), step, {"numba": "maxwell"}, tolerance=1e-4
    ),
    Comparison(
        "stencil/maxwell-1M", Goal(1.25), _fields("float32"), (100,), (20,), step, {"numba": "maxwell"}, tolerance=1e-4
    ),
)
