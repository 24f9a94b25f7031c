"""Updates of a part of a matrix in a loop, beside the same steps on copies in NumPy: a step costs what it changes."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import IndexOutOfRangeError

RNG = np.random.default_rng(0)


class Plain:
    """NumPy's array with harp's updates, each of which makes a copy."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __getitem__(self, key):
        return self.array[key]

    @property
    def at(self):
        return Keys(self.array)


class Keys:
    def __init__(self, array, key=None):
        self.array, self.key = array, key

    def __getitem__(self, key):
        return Keys(self.array, key)

    def set(self, values):
        made = self.array.copy()
        made[self.key] = values
        return Plain(made)

    def add(self, values):
        return self.set(self.array[self.key] + values)


def largest(xp, column):
    return xp.argmax(xp.abs(column))


# What a step does: the module of arrays, its number (from 1 on, the last one is n - 2), a square matrix, and a vector.
STEPS = {
    "a column": lambda xp, i, c, b: c.at[:, i].set(b * c[:, 0]),
    "the next column": lambda xp, i, c, b: c.at[:, i].set(b * c[:, i - 1]),
    "the same column": lambda xp, i, c, b: c.at[:, i].set(b * c[:, i] + c[:, i + 1]),
    "more of a column": lambda xp, i, c, b: c.at[:, i].add(b * c[:, i - 1]),
    "a slice": lambda xp, i, c, b: c.at[:, i : i + 1].set(b[:, None] * c[:, 0:1]),
    "slices that overlap": lambda xp, i, c, b: c.at[:, i : i + 2].set(c[:, i - 1 : i + 1] * b[:, None]),
    "a row": lambda xp, i, c, b: c.at[i].set(c[0] * 2),
    "part of a row": lambda xp, i, c, b: c.at[i, 1:].set(c[i - 1, :-1] * 2),
    "the inner part of a row": lambda xp, i, c, b: c.at[i, 1:-1].set(c[i - 1, 2:] + c[i - 1, :-2] - c[i, 1:-1]),
    "every other of a row": lambda xp, i, c, b: c.at[i, ::2].set(0.5),
    "a row backward": lambda xp, i, c, b: c.at[i, ::-1].set(c[i]),
    "part of a column": lambda xp, i, c, b: c.at[1:, i].set(c[:-1, i - 1] * 2),
    "part of a column backward": lambda xp, i, c, b: c.at[:0:-1, i].add(b[1:]),
    "a column backward": lambda xp, i, c, b: c.at[:, i].set(c[::-1, 0]),
    "a column and its sum": lambda xp, i, c, b: c.at[:, i].set(c[:, i - 1] + xp.sum(c[:, 0])),
    "a column of norm 1": lambda xp, i, c, b: c.at[:, i].set(c[:, i] / xp.sqrt(xp.sum(c[:, i] ** 2))),
    "a column less its product with another": lambda xp, i, c, b: c.at[:, i].add(-c[:, 0] * xp.sum(c[:, 0] * c[:, i])),
    "two columns": lambda xp, i, c, b: c.at[:, i].set(c[:, i] - c[:, i - 1]).at[:, 0].set(b),
    "columns that are exchanged": lambda xp, i, c, b: c.at[:, i].set(c[:, 0]).at[:, 0].set(c[:, i]),
    "rows that are exchanged": lambda xp, i, c, b: (lambda p: c.at[i].set(c[p]).at[p].set(c[i]))(largest(xp, c[:, i])),
    "an element": lambda xp, i, c, b: c.at[i, i].set(c[i, 0]),
    "an element of each row, of its sum": lambda xp, i, c, b: c.at[i, xp.minimum(2 * i, 4)].set(xp.sum(c[i])),
    "part of a row that is data": lambda xp, i, c, b: (lambda p: c.at[p, 1:].set(c[i, :-1]))(largest(xp, c[:, i])),
    "part of a column that is data": lambda xp, i, c, b: (lambda p: c.at[:-2, p].add(c[2:, i]))(largest(xp, c[i])),
}


def in_a_loop(step):
    return lambda c, b: harp.fori_loop(1, c.shape[0] - 1, lambda i, c: step(hnp, i, c, b), c)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_costs_what_it_changes(name):
    compiled = harp.jit(in_a_loop(STEPS[name]))
    for n in (2, 3, 5, 33):
        c, b = RNG.normal(size=(n, n)), RNG.normal(size=n)
        expected = Plain(c)
        for i in range(1, n - 1):
            expected = STEPS[name](np, i, expected, b)
        npt.assert_allclose(np.asarray(compiled(c, b)), expected[:], rtol=1e-10)
    cost = compiled.lower(c, b).cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (100, 200))
    assert large.bytes_written < 5 * small.bytes_written and large.bytes_read < 5 * small.bytes_read, cost


@pytest.mark.parametrize("name", ["a column", "part of a row", "part of a column", "columns that are exchanged"])
def test_gradients_of_such_loops(name):
    n = 5
    c, b, weights = RNG.normal(size=(n, n)), RNG.normal(size=n), RNG.normal(size=(n, n))
    loss = lambda c, b: hnp.sum(weights * in_a_loop(STEPS[name])(c, b))
    found = harp.jit(harp.grad(loss, (0, 1)))(c, b)
    step = 1e-6
    for k, given in enumerate((c, b)):
        for at in np.ndindex(given.shape):
            moved = np.zeros_like(given)
            moved[at] = step
            ends = [loss(*((c + s * moved, b) if k == 0 else (c, b + s * moved))) for s in (1, -1)]
            slope = (float(ends[0]) - float(ends[1])) / (2 * step)
            npt.assert_allclose(np.asarray(found[k])[at], slope, rtol=1e-6, atol=1e-7)


def test_steps_that_change_nothing():
    steps = {
        "nothing": lambda i, c: c,
        "itself": lambda i, c: c.at[:].set(c[:]),
        "an element": lambda i, c: c.at[i].set(c[i]),
        "in a loop": lambda i, c: harp.fori_loop(0, i, lambda j, c: c.at[j].set(c[j]), c),
        "a number": lambda i, c: (c[0], c[1]),
    }
    for name, step in steps.items():

        def start(x, name=name):
            return (x, 1.0) if name == "a number" else x

        def counted(x, step=step, start=start):
            return harp.fori_loop(0, x.shape[0], step, start(x))

        def scanned(x, step=step, start=start):
            return harp.scan(lambda c, i: (step(i, c), None), start(x), hnp.arange(x.shape[0]))[0]

        for compiled in (harp.jit(counted), harp.jit(scanned)):
            for n in (5, 0, 1):
                x = RNG.normal(size=n)
                found = compiled(x)
                npt.assert_array_equal(np.asarray(found[0] if name == "a number" else found), x)


def test_of_three_axes():
    keys = {
        "first": lambda i: (i, slice(1, None), slice(None)),
        "middle": lambda i: (slice(1, -1), i, slice(None, None, 2)),
        "last": lambda i: (slice(None), slice(2), i),
        "two": lambda i: (i, slice(1, None), i),
        "one and a number": lambda i: (slice(1, None), i, -1),
        "a number first": lambda i: (0, slice(1, None), i),
    }
    for key in keys.values():
        step = lambda i, c, key=key: c.at[key(i)].set(c[key(i - 1)] * 2 + c[0, 0, 0])
        compiled = harp.jit(lambda c, step=step: harp.fori_loop(1, c.shape[0], step, c))
        for n in (2, 4):
            c = RNG.normal(size=(n, n, n))
            expected = Plain(c)
            for i in range(1, n):
                expected = step(i, expected)
            npt.assert_allclose(np.asarray(compiled(c)), expected[:], rtol=1e-12)
        assert compiled.lower(c).cost().bytes_written.degree == 3
        assert compiled.compilations == 1


def test_batches_of_such_loops():
    c, b = RNG.normal(size=(3, 5, 5)), RNG.normal(size=5)
    for name in ("a column", "part of a row", "rows that are exchanged"):
        found = harp.jit(harp.vmap(in_a_loop(STEPS[name]), (0, None)))(c, b)
        for one, given in zip(np.asarray(found), c, strict=True):
            expected = Plain(given)
            for i in range(1, 4):
                expected = STEPS[name](np, i, expected, b)
            npt.assert_allclose(one, expected[:], rtol=1e-12)


def test_an_index_outside_is_dropped_and_one_that_is_known_an_error():
    """As of whole rows and columns."""
    c = RNG.normal(size=(3, 4))
    put = harp.jit(lambda c, k: c.at[k, 1:].set(7.0).at[1:, k].add(1.0))
    expected = c.copy()
    npt.assert_array_equal(np.asarray(put(c, np.int64(9))), expected)
    expected[2, 1:] = 7
    expected[1:, 2] += 1
    npt.assert_array_equal(np.asarray(put(c, np.int64(2))), expected)
    with pytest.raises(IndexOutOfRangeError):
        harp.jit(lambda c: c.at[3, 1:].set(7.0))(c)
    empty = np.empty((0, 4))
    assert np.asarray(put(empty, np.int64(0))).shape == (0, 4)


@pytest.mark.parametrize("column", [0, -1, 2])
def test_an_element_of_a_fixed_column(column):
    """One element changes, and not the column."""

    def step(i, c):
        return c.at[i, column].set(c[i, column] * 2 + c[i - 1, 0])

    compiled = harp.jit(lambda c: harp.fori_loop(1, c.shape[0], step, c))
    for n in (4, 1, 7):
        c = RNG.normal(size=(n, 3))
        expected = Plain(c.copy())
        for i in range(1, n):
            expected = step(i, expected)
        npt.assert_allclose(np.asarray(compiled(c)), expected[:], rtol=1e-12)
    small, large = (compiled.lower(c).cost().at(n, 3) for n in (100, 200))
    assert large.bytes_written < 2.2 * small.bytes_written


@pytest.mark.parametrize("key", [slice(None, 3), slice(-3, None), slice(1, 4), slice(4, 1, -1), slice(None, 5, 2)])
def test_slices_of_a_few_elements(key):
    """They are cut off at the end of an array; a step costs what it changes."""
    step = lambda i, c: c.at[key].set(c[key] * 2 + i).at[key].add(1.0)
    compiled = harp.jit(lambda c: harp.fori_loop(0, 4, step, c))
    for shape in ((9,), (5,), (3,), (1,), (0,), (6, 2)):
        c = RNG.normal(size=shape)
        expected = c.copy()
        for i in range(4):
            expected[key] = expected[key] * 2 + i + 1
        npt.assert_allclose(np.asarray(compiled(c)), expected, rtol=1e-12)
    assert compiled.compilations == 2  # one for each rank
    cost = harp.jit(lambda c: harp.fori_loop(0, c.shape[0], step, c)).lower(np.ones(9)).cost()
    small, large = (cost.at(*[n] * len(cost.names)) for n in (200, 400))
    assert large.bytes_read < 2.5 * small.bytes_read and large.bytes_written < 2.5 * small.bytes_written
