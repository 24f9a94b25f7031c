"""Arrays are made where loops go on with them, and loops in loops change them in place."""

import numpy as np
import numpy.testing as npt

import harp
import harp.numpy as hnp


def lu(a):
    """Three loops; the middle one changes an element before the inner one goes on with the matrix."""
    n = a.shape[0]

    def column(i, a):
        def row(j, a):
            factor = a[j, i] / a[i, i]

            def element(k, a):
                return a.at[j, k].add(-factor * a[i, k])

            return harp.fori_loop(i + 1, n, element, a.at[j, i].set(factor))

        return harp.fori_loop(i + 1, n, row, a)

    return harp.fori_loop(0, n, column, a)


def test_three_loops_change_one_matrix():
    compiled = harp.jit(lu)
    for n in (6, 0, 1, 2):
        a = np.random.default_rng(n).normal(size=(n, n)) + 4 * np.eye(n)
        packed = np.asarray(compiled(a))
        npt.assert_allclose((np.tril(packed, -1) + np.eye(n)) @ np.triu(packed), a, rtol=1e-12, atol=1e-12)
    assert compiled.lower(np.eye(3)).memory().scratch == 0
    assert compiled.lower(np.eye(3)).loops.count("call copy") == 1  # of the argument


def test_what_a_loop_begins_with_is_computed_in_its_place():
    compiled = harp.jit(lambda x: harp.fori_loop(0, 5, lambda i, c: c.at[i].add(1.0), hnp.sqrt(x)))
    x = np.random.default_rng(0).uniform(size=9)
    npt.assert_allclose(np.asarray(compiled(x)), np.sqrt(x) + (np.arange(9) < 5))
    lowered = compiled.lower(x)
    assert lowered.memory().scratch == 0 and "call copy" not in lowered.loops


def test_what_others_read_as_well_stays():
    def both(x):
        start = hnp.sqrt(x)
        first = harp.fori_loop(0, 5, lambda i, c: c.at[i].add(1.0), start)
        second = harp.fori_loop(0, 4, lambda i, c: c.at[i].multiply(3.0), start)
        return first, second, hnp.sum(start)

    x = np.random.default_rng(0).uniform(size=9)
    first, second, total = harp.jit(both)(x)
    npt.assert_allclose(np.asarray(first), np.sqrt(x) + (np.arange(9) < 5))
    npt.assert_allclose(np.asarray(second), np.sqrt(x) * np.where(np.arange(9) < 4, 3, 1))
    npt.assert_allclose(float(total), np.sqrt(x).sum())


def test_readers_go_before_an_update_unless_they_need_it():
    def step(i, state):
        x, total = state
        changed = x.at[i].set(total)
        return changed, total + changed[0] * x[i] - x[i] * hnp.sum(changed)

    x, total = np.random.default_rng(0).uniform(size=5), 0.5
    found = harp.jit(lambda x, total: harp.fori_loop(0, 5, step, (x, total)))(x, total)
    for i in range(5):
        before, x[i] = x[i], total
        total = total + x[0] * before - before * x.sum()
    npt.assert_allclose(np.asarray(found[0]), x)
    npt.assert_allclose(float(found[1]), total)


def test_parts_that_are_read_behind_a_loop_which_goes_on_with_the_array_are_copied():
    def program(start):
        def step(i, state):
            c, total = state
            c = c.at[i].set(c[i] * 0.5 + total)
            later = harp.fori_loop(0, 7, lambda k, later: later.at[k].add(c[i]), c)
            return later, total + c[i] * c[0]

        return harp.fori_loop(0, start.shape[0], step, (start, 0.0))

    compiled = harp.jit(program)
    for n in (40, 7, 1, 2):
        start = np.random.default_rng(n).uniform(size=n)
        found, total = compiled(start)
        c, expected = start.copy(), 0.0
        for i in range(n):
            c[i] = c[i] * 0.5 + expected
            one, first = c[i], c[0]
            c[:7] += one
            expected += one * first
        npt.assert_allclose(np.asarray(found), c)
        npt.assert_allclose(float(total), expected)
    assert compiled.lower(np.ones(40)).memory().scratch < 40 * 8
