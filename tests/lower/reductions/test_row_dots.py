"""Sums of products along rows, several rows at once."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

LENGTHS = (0, 1, 31, 32, 33, 40, 64, 70, 100, 129)


def dots(x, y):
    return hnp.sum(x * y, axis=-1)


def loops(f, *arguments):
    return harp.jit(f).lower(*arguments).loops


def test_rows_are_calls_of_the_library():
    rows, vector = np.ones((5, 50)), np.ones(50)
    assert "call row dots" in loops(dots, rows, vector)
    assert "call row dots" in loops(dots, rows, rows)
    assert "call dot" in loops(dots, vector, vector)
    assert "dot" not in loops(lambda x, y: hnp.sum(x * y, axis=0), rows, rows)
    assert "dot" not in loops(dots, rows.astype(np.complex128), vector)


def test_rows_of_several_variables_and_of_lengths_that_a_loop_says():
    """Forward substitution of several columns: a row less products with the rows before."""

    def solve(a, b):
        k = hnp.arange(a.shape[0])

        def step(i, x):
            each = lambda j, x: x.at[j, i].set((b[j, i] - hnp.sum(hnp.where(k < i, a[i] * x[j], 0))) / a[i, i])
            return harp.fori_loop(0, b.shape[0], each, x)

        return harp.fori_loop(0, a.shape[0], step, hnp.zeros_like(b))

    rng, compiled = np.random.default_rng(0), harp.jit(solve)
    assert "call row dots" in compiled.lower(np.eye(5), np.ones((3, 5))).loops
    for n, columns in ((70, 9), (33, 4), (1, 1), (2, 0), (0, 3)):
        a, b = np.tril(rng.normal(size=(n, n))) / (n + 1) + np.eye(n), rng.normal(size=(columns, n))
        np.testing.assert_allclose(compiled(a, b) @ a.T, b, rtol=1e-10, atol=1e-12)


def test_short_products_are_written_out():
    small = np.ones((4, 2, 2))
    assert "call dot" not in loops(harp.grad(lambda a, b: hnp.sum((a @ b) ** 2)), small, small)
    assert (
        "dot" not in harp.jit(dots, signature=(harp.f64["n", 20],) * 2).lower(np.ones((3, 20)), np.ones((3, 20))).loops
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 9])
def test_same_as_numpy(dtype, length, rows):
    rng = np.random.default_rng(length)
    x, y, v = (rng.normal(size=shape).astype(dtype) for shape in ((rows, length), (rows, length), (length,)))
    for a, b in ((x, y), (x, v), (v, x), (v, v), (x, x)):
        expected = np.sum(a.astype(np.float64) * b, axis=-1)
        tolerance = {"rtol": 1e-5, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
        np.testing.assert_allclose(harp.jit(dots)(a, b), expected, **tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("length", [33, 50, 100, 1000])
def test_a_row_has_the_same_bits_in_every_batch(dtype, length):
    x = np.random.default_rng(0).normal(size=(23, length)).astype(dtype)
    f = harp.jit(dots)
    whole, shared = np.asarray(f(x, x)), np.asarray(f(x, x[3]))
    for start, stop in ((0, 1), (2, 5), (5, 11), (20, 23)):
        np.testing.assert_array_equal(np.asarray(f(x[start:stop], x[start:stop])), whole[start:stop])
        np.testing.assert_array_equal(np.asarray(f(x[start:stop], x[3])), shared[start:stop])


def test_what_stands_behind_a_row_is_not_read():
    x = np.full((6, 90), np.nan)
    x[:, 7:45] = 2.0
    f = harp.jit(lambda x, n: hnp.sum(x[:, 7:n] * x[:, 7:n], axis=1), static_argnums=1)
    np.testing.assert_array_equal(f(x, 45), np.full(6, 4.0 * 38))


def test_special_values_stay_in_their_row():
    x = np.ones((6, 50))
    x[1, 49], x[2, 3], x[3, 40] = np.nan, np.inf, -np.inf
    y = np.asarray(harp.jit(dots)(x, np.ones(50)))
    assert np.isnan(y[1]) and y[2] == np.inf and y[3] == -np.inf
    np.testing.assert_array_equal(y[[0, 4, 5]], 50.0)


def test_rows_that_change_each_other_stay_in_order():
    """Row i is changed by those above it: no row may be summed before they are done."""

    def step(i, q):
        return q.at[i].add(-hnp.sum(q * q[i], axis=1)[i] * q[0])

    x = np.random.default_rng(1).normal(size=(9, 40)) / 9
    expected = x.copy()
    for i in range(9):
        expected[i] -= (expected @ expected[i])[i] * expected[0]
    np.testing.assert_allclose(harp.jit(lambda x: harp.fori_loop(0, 9, step, x))(x), expected, rtol=1e-10)


def masked(A):
    return hnp.sum(hnp.sin(hnp.tril(A).sum(1)[:, None] * A.sum(0)[None, :]))


def masked_gradient(A):
    """By hand: of sin(r c^T), where r is the sum of the rows of the triangle and c that of the columns."""
    r, c = np.tril(A).sum(1), A.sum(0)
    outer = np.cos(r[:, None] * c)
    return np.tril(np.tile((outer @ c)[:, None], A.shape[1])) + outer.T @ r


@pytest.mark.parametrize("shape", [(0, 3), (1, 1), (3, 0), (5, 2), (4, 70), (70, 4), (9, 40), (41, 41)])
def test_rows_whose_masks_follow_the_sum(shape):
    """The loops that store a row are as long as the mask says, which depends on the row."""
    A = np.random.default_rng(0).normal(size=shape)
    inside = lambda A: harp.fori_loop(0, 2, lambda i, s: s + harp.cond(i >= 0, masked, lambda A: A[0, 0], A), 0.0)
    for f, times in ((masked, 1), *([(inside, 2)] if A.size else [])):
        np.testing.assert_allclose(harp.jit(harp.grad(f))(A), times * masked_gradient(A), rtol=1e-10, atol=1e-10)
