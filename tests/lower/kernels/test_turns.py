"""What a loop carries and cannot change in place takes turns in two places: nothing is copied in each step."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(29)


def smooth(xp, u):
    return xp.concatenate([u[:1], 0.5 * u[1:-1] + 0.25 * (u[2:] + u[:-2]), u[-1:]])


@pytest.mark.parametrize("steps", range(6))
@pytest.mark.parametrize("size", [2, 3, 200])
def test_any_number_of_steps(steps, size):
    run = harp.jit(lambda u, steps: harp.fori_loop(0, steps, lambda _, u: smooth(hnp, u), u))
    u = expected = RNG.normal(size=size)
    for _ in range(steps):
        expected = smooth(np, expected)
    npt.assert_allclose(np.asarray(run(u, steps)), expected, rtol=1e-12, atol=1e-12)
    fixed = harp.jit(lambda u: harp.fori_loop(0, steps, lambda _, u: smooth(hnp, u), u))
    npt.assert_allclose(np.asarray(fixed(u)), expected, rtol=1e-12, atol=1e-12)


def test_each_step_writes_once():
    lowered = harp.jit(lambda u: harp.fori_loop(0, 1000, lambda _, u: smooth(hnp, u), u)).lower(np.ones(500))
    ((times, sizes), *_) = lowered.cost().bytes_written.terms
    assert len(sizes) == 1 and times < 1.01 * 8 * 1000


def two_that_change(xp, i, state):
    u, v = state
    return smooth(xp, u) + 0.1 * v[::-1], smooth(xp, v) - 0.1 * u[::-1]


def rotating(xp, i, state):
    """The wave equation: the new one of the last two."""
    before, last = state
    return last, 2 * smooth(xp, last) - before[::-1]


def three(xp, i, state):
    a, b, c = state
    return b, c, smooth(xp, a) + 0.5 * b[::-1]


def exchanged(xp, i, state):
    a, b = state
    return b, a


def exchanged_and_changed(xp, i, state):
    a, b, c = state
    return b, a, smooth(xp, c) + a - b


def one_of_the_other(xp, i, state):
    _, b = state
    return b, b + 1.0


@pytest.mark.parametrize("step", [two_that_change, rotating, three, exchanged, exchanged_and_changed, one_of_the_other])
def test_several_take_turns(step):
    count = 3 if step in (three, exchanged_and_changed) else 2
    run = harp.jit(lambda state, n: harp.fori_loop(0, n, lambda i, s: step(hnp, i, s), state))
    for steps in range(8):
        state = expected = tuple(RNG.normal(size=(count, 150)))
        for i in range(steps):
            expected = step(np, i, expected)
        for found, right in zip(run(state, steps), expected, strict=True):
            npt.assert_allclose(np.asarray(found), right, rtol=1e-9, atol=1e-9)


def test_loops_in_loops():
    """The inner loop's arrays are elements of what the outer one makes."""

    def outer(u, x):
        u = harp.fori_loop(0, 3, lambda i, u: smooth(hnp, u) + x, u)
        return u, harp.fori_loop(0, 2, lambda i, u: smooth(hnp, u) * x, u)

    u, xs = RNG.normal(size=130), RNG.normal(size=5)
    last, ys = harp.jit(lambda u, xs: harp.scan(outer, u, xs))(u, xs)
    for k, x in enumerate(xs):
        for _ in range(3):
            u = smooth(np, u) + x
        y = u
        for _ in range(2):
            y = smooth(np, y) * x
        npt.assert_allclose(np.asarray(ys[k]), y, rtol=1e-9, atol=1e-9)
    npt.assert_allclose(np.asarray(last), u, rtol=1e-9, atol=1e-9)


def test_until_data_ends_it():
    run = harp.jit(lambda u: harp.while_loop(lambda u: hnp.max(hnp.abs(u)) > 1.0, lambda u: 0.9 * smooth(hnp, u), u))
    for scale in (0.5, 2.0, 3.0, 10.0):
        u = scale * RNG.uniform(-1, 1, 300)
        found = np.asarray(run(u))
        while np.max(np.abs(u)) > 1.0:
            u = 0.9 * smooth(np, u)
        npt.assert_allclose(found, u, rtol=1e-9)


def test_a_donated_argument():
    run = harp.jit(lambda u: harp.fori_loop(0, 5, lambda _, u: smooth(hnp, u), u), donate_argnums=0)
    u = RNG.normal(size=300)
    expected = u.copy()
    for _ in range(5):
        expected = smooth(np, expected)
    npt.assert_allclose(np.asarray(run(harp.asarray(u) if hasattr(harp, "asarray") else u.copy())), expected, rtol=1e-9)
