"""Sums that a step of a loop makes for elements that it does not read are left out."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def from_here_on(j, k, column):
    return hnp.where(k >= j, column / column[j], 0.0)


def behind_here(j, k, column):
    return hnp.where(j < k, column, 0.0) + column[j]


def up_to_here(j, k, column):
    return hnp.where(k <= j, column * column[j], 1.0)


def not_below_here(j, k, column):
    return hnp.where(~(k < j), hnp.exp(column), 1.0) * column[j]


def near_here(j, k, column):
    return hnp.where((k >= j) & (k < 5), column, 0.0) * column[j]


NEEDED = [from_here_on, behind_here, up_to_here, not_below_here, near_here]


def everywhere(j, k, column):
    return hnp.where(k >= j, column, 0.0) * hnp.sum(column)


def on_both_sides(j, k, column):
    return hnp.where(k >= j, column, -column) * column[j]


def of_a_product(j, k, column):
    return hnp.where(k >= j, 1.0, 0.0) * column


WHOLE = [everywhere, on_both_sides, of_a_product]


def repeated(change, reverse=False):
    """A column of x after the other is changed by the products of the rows with one of them."""

    def run(x):
        n = x.shape[0]
        k = hnp.arange(n)

        def step(x, j):
            return x.at[:, j].set(0.1 * change(j, k, x @ x[j])), None

        return harp.scan(step, x, k, reverse=reverse)[0]

    return run


def expected(change, x, reverse=False):
    x, k = x.copy(), np.arange(len(x))
    for j in k[::-1] if reverse else k:
        x[:, j] = 0.1 * np.asarray(change(j, k, x @ x[j]))
    return x


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [1, 2, 7, 40])
@pytest.mark.parametrize("change", NEEDED + WHOLE, ids=lambda f: f.__name__)
def test_same_as_numpy(change, n, reverse):
    x = RNG.normal(size=(n, n)) / (n + 1)
    np.testing.assert_allclose(
        harp.jit(repeated(change, reverse))(x), expected(change, x, reverse), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("change", [*NEEDED, everywhere, on_both_sides], ids=lambda f: f.__name__)
def test_rows_that_are_not_read_are_left_out(change):
    loops = harp.jit(repeated(change)).lower(np.ones((40, 40))).loops
    head = next(line for line in loops.split("repeat i0")[1].splitlines() if "+ 3)//4" in line or "//4)" in line)
    assert ("i0" in head) == (change in NEEDED)


def test_rows_that_are_multiplied_by_zero_are_computed():
    """For they may have a NaN."""
    x = RNG.normal(size=(40, 40)) / 40
    x[3, 20:] = np.nan
    assert harp.jit(repeated(of_a_product)).lower(x).loops.count("call row dots") == 2, "above and below"
    np.testing.assert_allclose(harp.jit(repeated(of_a_product))(x), expected(of_a_product, x), rtol=1e-9, atol=1e-12)


def test_nan_in_rows_that_are_not_read_stays_there():
    x = RNG.normal(size=(40, 40)) / 40
    x[3, 20:] = np.nan
    found = np.asarray(harp.jit(repeated(from_here_on))(x))
    np.testing.assert_allclose(found, expected(from_here_on, x), rtol=1e-9, atol=1e-12)
