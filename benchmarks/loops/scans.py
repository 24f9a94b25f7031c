"""Long loops whose steps are short: few numbers, small matrices, recurrent cells, many leaves, Newton's method."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Goal
from benchmarks.loops import natural
from benchmarks.loops.spelling import Array, Namespace, both, control, forward, gradient, loss
from benchmarks.workload import Arguments, Comparison

LEAVES, MOST_STEPS = 30, 20


def _lorenz_arguments(rng: np.random.Generator, steps: int) -> Arguments:
    return rng.uniform(0.5, 1.5, 3), rng.standard_normal(steps)


def lorenz_scalars(xp: Namespace, start: Array, pushes: Array) -> Array:
    """Euler's steps of Lorenz' equations with a push in each; a carry of three scalars."""

    def step(state: tuple[Array, Array, Array], push: Array) -> tuple[tuple[Array, Array, Array], Array]:
        x, y, z = state
        new = x + 0.001 * (10 * (y - x) + push), y + 0.001 * (x * (28 - z) - y), z + 0.001 * (x * y - 2.5 * z)
        return new, new[0]

    return control(xp).scan(step, (start[0], start[1], start[2]), pushes)[1]


def lorenz_vector(xp: Namespace, start: Array, pushes: Array) -> Array:
    """The same with a carry that is one vector."""

    def step(state: Array, push: Array) -> tuple[Array, Array]:
        x, y, z = state[0], state[1], state[2]
        new = state + 0.001 * xp.stack([10 * (y - x) + push, x * (28 - z) - y, x * y - 2.5 * z])
        return new, new[0]

    return control(xp).scan(step, start, pushes)[1]


def _matrices(rng: np.random.Generator, steps: int) -> Arguments:
    return (np.eye(4) + 0.02 * rng.standard_normal((steps, 4, 4)),)


def matrix_chain(xp: Namespace, matrices: Array) -> Array:
    """The product of all of them."""
    return control(xp).scan(lambda made, m: (made @ m, None), xp.eye(4, dtype=matrices.dtype), matrices)[0]


def _cell(rng: np.random.Generator, steps: int, batch: int) -> Arguments:
    # Weights with which cotangents neither vanish nor grow over a thousand steps: most would be 0 or subnormal, and JAX
    # takes subnormal numbers for 0, which other libraries compute with, slowly on some processors.
    w = rng.standard_normal((64, 64), np.float32) * np.float32(1.75 / 8)
    return w, rng.standard_normal((steps, batch, 64), np.float32)


def recurrent(xp: Namespace, w: Array, xs: Array) -> Array:
    """The last state of a cell with 64 units."""

    def step(h: Array, x: Array) -> tuple[Array, None]:
        return xp.tanh(h @ w + x), None

    return control(xp).scan(step, xp.zeros(xs.shape[1:], dtype=xs.dtype), xs)[0]


def _ring_arguments(rng: np.random.Generator, steps: int) -> Arguments:
    return rng.uniform(0.5, 1.5, LEAVES), rng.standard_normal(steps)


def ring(xp: Namespace, start: Array, pushes: Array) -> Array:
    """Thirty numbers in a ring, each pulled by its neighbours; each is a leaf of the carry."""

    def step(state: tuple[Array, ...], push: Array) -> tuple[tuple[Array, ...], None]:
        first, *others = (state[k] + 0.001 * (state[(k + 1) % LEAVES] - state[k]) * state[k - 1] for k in range(LEAVES))
        return (first + 0.001 * push, *others), None

    return xp.stack(control(xp).scan(step, tuple(start[k] for k in range(LEAVES)), pushes)[0])


def _targets(rng: np.random.Generator, count: int) -> Arguments:
    return (rng.uniform(0.5, 3, count),)


def _newton_step(xp: Namespace, x: Array, c: Array) -> Array:
    return x - (x * xp.exp(x) - c) / ((x + 1) * xp.exp(x))


def newton(xp: Namespace, c: Array) -> Array:
    """Solutions of x*exp(x) = c."""
    return control(xp).while_loop(
        lambda x: xp.max(xp.abs(x * xp.exp(x) - c)) > 1e-12,
        lambda x: _newton_step(xp, x, c),
        xp.ones_like(c),
    )


def newton_bounded(xp: Namespace, c: Array) -> Array:
    """The same with as many steps as are ever needed: JAX has no gradient of a loop that data ends."""
    return control(xp).fori_loop(0, MOST_STEPS, lambda _, x: _newton_step(xp, x, c), xp.ones_like(c))


def _newton_slope(c: Array) -> tuple[Array]:
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda c: loss(jnp, newton_bounded(jnp, c)), (0,))(c)


def _numba(function: object) -> dict[str, object]:
    return {"numba": function}


SMALL = 12
SCANS: list[Comparison] = [
    *both(
        "scan/3-scalars", _lorenz_arguments, (1000,), (SMALL,), lorenz_scalars, _numba(natural.lorenz), argnums=(0, 1)
    ),
    *both(
        "scan/vector-of-3", _lorenz_arguments, (1000,), (SMALL,), lorenz_vector, _numba(natural.lorenz), argnums=(0, 1)
    ),
    *both("scan/4x4-products", _matrices, (1000,), (SMALL,), matrix_chain, _numba(natural.matrix_chain)),
    *(
        row
        for batch in (1, 32)
        for row in both(
            f"scan/cell-batch-{batch}",
            _cell,
            (1000, batch),
            (SMALL, batch),
            recurrent,
            _numba(natural.recurrent),
            tolerance=1e-3,
        )
    ),
    *both(
        "scan/carry-of-30", _ring_arguments, (1000,), (SMALL,), ring, _numba(natural.ring), goal=Goal(3), argnums=(0, 1)
    ),
    forward("while/newton-10", _targets, (10,), (4,), newton, _numba(natural.newton)),
    gradient("while/newton-10", _targets, (10,), (4,), newton, own={"jax": _newton_slope}),
]
