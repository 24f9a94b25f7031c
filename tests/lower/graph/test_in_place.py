"""Arrays that are made and then changed are changed in place, unless somebody still wants the old ones."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(23)


def column_of_itself(xp, x, i):
    y = xp.sin(x)
    return put(xp, y, i, y[:, i] * 2)


def column_of_a_row(xp, x, i):
    y = xp.sin(x)
    return put(xp, y, i, y[i] + xp.sum(y * y, axis=1))


def two_columns(xp, x, i):
    y = xp.sin(x)
    y = put(xp, y, i, y[:, 0] * 2)
    return put(xp, y, 0, y[:, i] + y[:, -1])


def the_old_one_is_a_result(xp, x, i):
    y = xp.sin(x)
    return put(xp, y, i, y[:, i] * 2), y


def the_old_one_is_read_later(xp, x, i):
    y = xp.sin(x)
    z = put(xp, y, i, y[:, i] * 2)
    return z + y.T


def the_update_is_read_later(xp, x, i):
    y = xp.sin(x)
    column = y[:, i] * 2
    z = put(xp, y, i, column)
    return z * column, xp.sum(z) * column


def what_the_update_reads_is_read_later(xp, x, i):
    y = xp.sin(x)
    rows = xp.sum(y, axis=1)
    z = put(xp, y, i, rows * 3)
    return z @ rows


def put(xp, y, i, column):
    if xp is hnp:
        return y.at[:, i].set(column)
    y = y.copy()
    y[:, i] = column
    return y


CASES = (
    column_of_itself,
    column_of_a_row,
    two_columns,
    the_old_one_is_a_result,
    the_old_one_is_read_later,
    the_update_is_read_later,
    what_the_update_reads_is_read_later,
)


@pytest.mark.parametrize("f", CASES)
def test_columns_that_data_names(f):
    compiled = harp.jit(lambda x, i: f(hnp, x, i))
    for n in (1, 2, 7, 40):
        x, i = RNG.normal(size=(n, n)), int(RNG.integers(n))
        for found, expected in zip(parts(compiled(x, i)), parts(f(np, x, i)), strict=True):
            npt.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


def parts(tree):
    return tree if isinstance(tree, tuple) else (tree,)


@pytest.mark.parametrize("f", [column_of_itself, column_of_a_row])
def test_nothing_is_copied_where_nobody_wants_the_old_array(f):
    lowered = harp.jit(lambda x, i: f(hnp, x, i)).lower(np.ones((50, 50)), 3)
    assert lowered.memory().scratch < 8 * 50 * 50


def test_in_a_loop_too():
    """The updates of a step read what the step has made."""

    def step(xp, i, x):
        return put(xp, *(lambda y: (y, i, y[:, i] + y[i] * 0.5))(x * 0.9 + 0.1 * x[:, i][:, None]))

    compiled = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda i, x: step(hnp, i, x), x))
    for n in (0, 1, 2, 9):
        x = RNG.normal(size=(n, n))
        expected = x
        for i in range(n):
            expected = step(np, i, expected)
        npt.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-12, atol=1e-12)
