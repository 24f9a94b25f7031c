"""The number of a step is a position: what is read at places that are counted from it, and chosen by it."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(37)

# Places along an axis of size n in step i; those outside are the nearest, as in JAX. Negative ones count from the end.
PLACES = {
    "its own": lambda i, n: i,
    "from the end": lambda i, n: n - 1 - i,
    "counted from the end": lambda i, n: -1 - i,
    "the one before": lambda i, n: i - 1,
    "behind": lambda i, n: i + 3,
    "every other": lambda i, n: 2 * i,
    "far": lambda i, n: i * i - 5,
    "half": lambda i, n: i // 2,
}


def nearest(place, n):
    return min(max(place + n if place < 0 else place, 0), n - 1)


@pytest.mark.parametrize("bounds", [(0, 0), (1, 0), (0, 1), (2, -1)])
@pytest.mark.parametrize("name", PLACES)
def test_elements_are_read(name, bounds):
    place, (first, less) = PLACES[name], bounds
    run = harp.jit(
        lambda x: harp.fori_loop(first, x.shape[0] + less, lambda i, c: c * 0.5 + x[place(i, x.shape[0])], 0.0)
    )
    for n in (1, 2, 3, 10):
        x, expected = RNG.normal(size=n), 0.0
        for i in range(first, n + less):
            expected = expected * 0.5 + x[nearest(place(i, n), n)]
        npt.assert_allclose(float(run(x)), expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("name", PLACES)
def test_elements_are_set(name):
    """Outside, nothing is."""
    place = PLACES[name]
    run = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c.at[place(i, c.shape[0])].set(c[0] + i), x))
    for n in (1, 2, 3, 10):
        x = RNG.normal(size=n)
        expected = x.copy()
        for i in range(n):
            where = place(i, n)
            if -n <= where < n:
                expected[where] = expected[0] + i
        npt.assert_allclose(np.asarray(run(x)), expected, rtol=1e-12)


def test_rows_are_read_without_a_test():
    lowered = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c + x[i] * x[:, i], x[0])).lower(np.eye(5))
    assert "harp_indirect" not in lowered.source.replace("harp_indirect(int64_t", "")


@pytest.mark.parametrize("reverse", [False, True])
def test_choices_by_the_number(reverse):
    def f(xp, scan, x):
        k = xp.arange(x.shape[0])

        def step(c, i):
            c = xp.where(k > i, c + x[i], xp.where(k == i, 0.0, c * 0.5))
            return c, xp.sum(xp.where(k <= i, c, 0.0))

        return scan(step, x, k, reverse)

    def plain(step, c, numbers, reverse):
        ys = np.zeros(len(numbers))
        for i in numbers[::-1] if reverse else numbers:
            c, ys[i] = step(c, i)
        return c, ys

    run = harp.jit(lambda x: f(hnp, lambda step, c, k, r: harp.scan(step, c, k, reverse=r), x))
    for n in (1, 2, 5, 70, 100):
        x = RNG.normal(size=n)
        for found, expected in zip(run(x), f(np, plain, x), strict=True):
            npt.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-9)


def test_numbers_of_loops_in_each_other():
    """Two loops of the same length have numbers of their own."""

    def f(xp, loop, x):
        n = x.shape[0]
        return loop(n, lambda i, c: loop(n, lambda j, c: put(xp, c, i, j, c[j, i] + i - 2 * j), c), x)

    def put(xp, c, i, j, value):
        if xp is hnp:
            return c.at[i, j].set(value)
        c = c.copy()
        c[i, j] = value
        return c

    def plain(n, step, c):
        for i in range(n):
            c = step(i, c)
        return c

    run = harp.jit(lambda x: f(hnp, lambda n, step, c: harp.fori_loop(0, n, step, c), x))
    for n in (1, 2, 6):
        x = RNG.normal(size=(n, n))
        npt.assert_allclose(np.asarray(run(x)), f(np, plain, x), rtol=1e-12)


def test_elements_of_what_is_counted():
    run = harp.jit(lambda x: harp.scan(lambda c, i: (c * 0.5 + x[i], i * 2), 0.0, hnp.arange(x.shape[0])[::-1]))
    x, expected = RNG.normal(size=9), 0.0
    for i in range(9)[::-1]:
        expected = expected * 0.5 + x[i]
    last, twice = run(x)
    npt.assert_allclose(float(last), expected)
    npt.assert_array_equal(np.asarray(twice), 2 * np.arange(9)[::-1])


@pytest.mark.parametrize(
    "test",
    [
        lambda i: i * 2147483629 * 2147483587 > 0,
        lambda i: ((i * 1103515245 + 12345) * 1103515245 + 12345) * 1103515245 > 0,
        lambda i: (((i + 2**30) * 2**30) * 2**30) >= 0,
    ],
)
def test_hashes_wrap(test):
    """Products that do not fit 64 bits are compared as they are, not as exact numbers."""
    run = harp.jit(lambda x: test(hnp.arange(x.shape[0])))
    steps = harp.jit(lambda x: harp.scan(lambda c, i: (c, test(i)), 0.0, hnp.arange(x.shape[0]))[1])
    for n in (1, 2, 50):
        with np.errstate(over="ignore"):
            expected = test(np.arange(n))
        npt.assert_array_equal(np.asarray(run(np.zeros(n))), expected)
        npt.assert_array_equal(np.asarray(steps(np.zeros(n))), expected)
