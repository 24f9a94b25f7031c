"""Loops that change arrays in place: which steps may go in any order, and what is known of where they reach."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def loops_of(function, *args):
    return harp.jit(function).lower(*args).loops


# --- arrays of other sizes than the number of steps


def times(x, y):
    return harp.fori_loop(0, x.shape[0], lambda i, z: z.at[i].set(x[i] * y[i]), hnp.zeros_like(y))


def test_what_reaches_all_steps_is_a_guard():
    """One program for all arrays that reach as far as the steps; where they do not, an index means the last element,
    and an update outside is dropped."""
    compiled = harp.jit(times)
    for n, m in [(5, 7), (0, 0), (1, 1), (2, 2), (33, 33), (0, 3), (4, 9)]:
        x, y = RNG.normal(size=n), RNG.normal(size=m)
        npt.assert_array_equal(np.asarray(compiled(x, y)), np.concatenate([x * y[:n], np.zeros(m - n)]))
    assert compiled.compilations == 1
    x, y = RNG.normal(size=5), RNG.normal(size=3)
    npt.assert_array_equal(np.asarray(compiled(x, y)), x[:3] * y)
    assert compiled.compilations == 2
    assert "i64" not in loops_of(times, np.ones(5), np.ones(7))


def test_sizes_that_are_equal_after_all():
    """First one reaches as far as the other, then both are the same."""

    def both(x, y):
        return times(x, y) + x * y

    compiled = harp.jit(harp.value_and_grad(lambda x, y: hnp.sum(hnp.sin(both(x, y))), (0, 1)))
    for n in (3, 0, 1, 2, 33):
        x, y = RNG.normal(size=n), RNG.normal(size=n)
        value, (dx, dy) = compiled(x, y)
        npt.assert_allclose(float(value), np.sin(2 * x * y).sum())
        npt.assert_allclose(np.asarray(dx), 2 * y * np.cos(2 * x * y))
        npt.assert_allclose(np.asarray(dy), 2 * x * np.cos(2 * x * y))
    assert compiled.compilations == 1
    with pytest.raises(harp.errors.ShapeError, match=r"x\.shape\[0\] = 3"):
        compiled(np.ones(3), np.ones(4))


# --- which steps may go in any order


def below(i, a):
    """Row by row of those below: each step reads row i, and changes one of the others."""
    n = a.shape[0]
    return harp.fori_loop(i + 1, n, lambda j, a: a.at[j].add(-a[j, i] / a[i, i] * a[i]), a)


def test_steps_that_change_other_rows_than_they_read():
    def eliminated(a):
        return harp.fori_loop(0, a.shape[0], below, a)

    a = RNG.normal(size=(7, 7)) + 7 * np.eye(7)
    expected = a.copy()
    for i in range(7):
        for j in range(i + 1, 7):
            expected[j] -= expected[j, i] / expected[i, i] * expected[i]
    npt.assert_allclose(np.asarray(harp.jit(eliminated)(a)), expected, rtol=1e-12, atol=1e-12)


def by_elements(a):
    def column(i, a):
        def row(j, a):
            factor = a[j, i] / a[i, i]
            return harp.fori_loop(i + 1, a.shape[1], lambda k, a: a.at[j, k].add(-factor * a[i, k]), a)

        return harp.fori_loop(i + 1, a.shape[0], row, a)

    return harp.fori_loop(0, a.shape[0], column, a)


def test_triangular_loops_run_along_vectors():
    text = loops_of(by_elements, np.ones((4, 6)))
    assert text.count("repeat i") == 1 and "for simd" in text.split("repeat i")[1]


offsets = st.integers(-2, 2)
slopes = st.sampled_from([-1, 0, 1, 2])


@st.composite
def accesses(draw):
    """Where a step of number i, in a loop of number o, stores, and where it reads: slope*i + other*o + offset."""
    place = st.tuples(slopes, st.integers(0, 2), offsets)
    return draw(place), draw(st.lists(place, min_size=1, max_size=2))


@given(accesses(), st.integers(0, 4), st.booleans())
@example(((1, 0, 1), [(1, 0, 0)]), 4, False)  # each step reads what the one before has stored
@example(((1, 0, 0), [(1, 0, 1)]), 4, False)  # each step stores what the one before has read
@example(((1, 1, 1), [(0, 1, 0)]), 4, False)
@example(((-1, 1, 2), [(0, 1, 0)]), 4, True)
def test_steps_in_their_order(access, n, rows):
    store, reads = access
    size = 3 * n + 14

    def place(at, i, o):
        return at[0] * i + at[1] * o + at[2] + n + 4

    def function(c):
        def outer(o, c):
            def inner(i, c):
                value = 0.5
                for number, at in enumerate(reads):
                    value = value + (number + 1.5) * c[place(at, i, o)]
                return c.at[place(store, i, o)].set(value)

            return harp.fori_loop(0, n, inner, c)

        return harp.fori_loop(0, 3, outer, c)

    c = RNG.normal(size=(size, 2) if rows else size)
    expected = c.copy()
    for o in range(3):
        for i in range(n):
            expected[place(store, i, o)] = 0.5 + sum(
                (k + 1.5) * expected[place(at, i, o)] for k, at in enumerate(reads)
            )
    npt.assert_allclose(np.asarray(harp.jit(function)(c)), expected, rtol=1e-12)


# --- steps that change a part of what they read


def test_a_column_of_sums_over_rows_changes_in_place():
    def step(i, c):
        return c.at[:, i].add(c @ c[i])

    compiled = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], step, x + x.T))
    for n in (40, 0, 1, 2, 5):
        x = RNG.normal(size=(n, n)) / max(n, 1)
        expected = x + x.T
        for i in range(n):
            expected[:, i] += expected @ expected[i]
        npt.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-9, atol=1e-12)
    assert compiled.lower(np.ones((100, 100))).memory().scratch < 8 * 100 * 100


def test_loops_that_begin_later():
    """The loop does not run where there is no element, so no element is asked for."""

    def run(x, y):
        return harp.fori_loop(1, x.shape[0], lambda i, z: z.at[i].set(x[i] * y[i] + y[i - 1]), hnp.zeros_like(y))

    compiled = harp.jit(run)
    for n in (5, 0, 1, 2, 33):
        x, y = RNG.normal(size=n), RNG.normal(size=n)
        expected = np.zeros(n)
        expected[1:] = x[1:] * y[1:] + y[:-1]
        npt.assert_array_equal(np.asarray(compiled(x, y)), expected)
    assert compiled.compilations == 1
    assert "repeat i" not in loops_of(run, np.ones(5), np.ones(5))
