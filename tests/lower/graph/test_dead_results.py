"""Loops compute what is read of them, and what that is computed of."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(31)


def scratch(f, *args):
    return harp.jit(f).lower(*args).memory().scratch


def test_arrays_that_nobody_reads_are_not_made():
    def f(x):
        last, states = harp.scan(lambda c, v: (c * 0.5 + v, hnp.sin(c)), x, hnp.arange(1.0, 1001.0))
        return last + states.shape[0]

    x = expected = RNG.normal(size=300)
    assert scratch(f, x) <= 8 * 300 * 4
    for v in range(1, 1001):
        expected = expected * 0.5 + v
    npt.assert_allclose(np.asarray(harp.jit(f)(x)), expected + 1000, rtol=1e-12)


def test_what_only_they_need_is_not_carried():
    def f(x):
        def step(i, state):
            a, b, c = state
            return a + 1.0, hnp.tanh(b @ b.T) @ b + a[:, None], c + b

        return harp.fori_loop(0, 7, step, (x[0], x, x))[0]

    x = RNG.normal(size=(40, 40))
    npt.assert_allclose(np.asarray(harp.jit(f)(x)), x[0] + 7)
    assert harp.jit(f).lower(x).cost().steps.degree == 1


def test_what_another_step_reads_stays():
    def f(x):
        def step(i, state):
            a, b, c = state
            return a + b, b + c, c * 2.0

        return harp.fori_loop(0, 5, step, (x, x, x))[0]

    x = RNG.normal(size=100)
    a, b, c = x, x, x
    for _ in range(5):
        a, b, c = a + b, b + c, c * 2.0
    npt.assert_allclose(np.asarray(harp.jit(f)(x)), a)


def test_the_test_of_a_loop_stays():
    def f(x):
        count, _ = harp.while_loop(lambda s: hnp.sum(s[1]) < 100.0, lambda s: (s[0] + 1, s[1] * 2.0), (0, x))
        return count

    assert int(harp.jit(f)(np.full(100, 0.3))) == 2


def test_loops_in_loops():
    """What a loop inside makes for results of the loop outside that nobody reads."""

    def f(x):
        def outer(c, v):
            total, history = harp.scan(lambda s, w: (s + w, hnp.exp(s)), v, x)
            return c + total, history

        return harp.scan(outer, 0.0, x)[0]

    x = RNG.normal(size=50)
    npt.assert_allclose(np.asarray(harp.jit(f)(x)), np.sum(x + np.sum(x)), rtol=1e-9)
    text = harp.jit(f).lower(x).source
    assert "exp" not in text.replace("EXPORT", "").replace("export", "")


def test_the_gradient_of_linear_steps_keeps_no_states():
    def f(u):
        smooth = lambda _, u: u.at[1:-1].add(0.1 * (u[2:] + u[:-2] - 2 * u[1:-1]))
        return hnp.sum(harp.fori_loop(0, 60, smooth, u) ** 2)

    assert scratch(harp.grad(f), RNG.normal(size=300)) <= 8 * 300 * 6


def test_elements_that_no_step_reads():
    found = harp.jit(lambda x, y: harp.scan(lambda c, e: (c + e[0], None), 0.0, (x, hnp.exp(y)))[0])
    x = RNG.normal(size=20)
    npt.assert_allclose(float(found(x, x)), np.sum(x))
    assert "exp" not in found.lower(x, x).loops
