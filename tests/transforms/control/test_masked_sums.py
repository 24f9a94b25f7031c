"""Sums of which the number of a loop says how far they go."""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

SIZES = (0, 1, 2, 33, 70)
MASKS = {
    "before": lambda k, i: k < i,
    "behind": lambda k, i: k > i,
    "from": lambda k, i: k >= i,
    "own": lambda k, i: k == i,
    "band": lambda k, i: (k > i - 3) & (k < i + 2),
    "others": lambda k, i: k != i,
    "twice": lambda k, i: k < 2 * i,
    "backwards": lambda k, i: k + i < 40,
}
REDUCTIONS = ("sum", "max", "min")


def data(n, dtype, seed=0):
    x = np.random.default_rng(seed).normal(size=(n, n)) * 9
    return x.astype(dtype)


def of_nothing(reduce, dtype):
    """What the reduction of no elements is, which a mask puts in place of those that it leaves out."""
    low, high = (np.iinfo("i4").min, np.iinfo("i4").max) if dtype == "i4" else (-np.inf, np.inf)
    return np.asarray({"sum": 0, "max": low, "min": high}[reduce], dtype)


def of_rows(np, mask, reduce, products, x, i, other):
    """One number for each row, and one for each column, of what the mask lets through."""
    k = np.arange(x.shape[1])
    values = x * x[i] if products else x + 1
    along = np.where(mask(k, i), values, other)
    down = np.where(mask(k, i)[:, None], values, other)
    return getattr(np, reduce)(along, axis=1) + getattr(np, reduce)(down, axis=0)


# Each mask with each reduction, of products or not, and with each dtype.
CASES = [
    (name, reduce, products, ("f4", "f8", "i4")[(number + place) % 3])
    for number, name in enumerate(MASKS)
    for place, (reduce, products) in enumerate(product(REDUCTIONS, (False, True)))
]


@pytest.mark.parametrize(("name", "reduce", "products", "dtype"), CASES)
def test_each_step_reduces_what_its_number_says(name, reduce, products, dtype):
    mask, other = MASKS[name], of_nothing(reduce, dtype)

    def each(x):
        rows = hnp.zeros_like(x)
        step = lambda i, rows: rows.at[i].set(of_rows(hnp, mask, reduce, products, x, i, other))
        return harp.fori_loop(0, x.shape[0], step, rows)

    compiled = harp.jit(each)
    for n in SIZES if reduce == "sum" else SIZES[1:]:
        x = data(n, dtype)
        expected = [of_rows(np, mask, reduce, products, x, i, other) for i in range(n)]
        tolerance = {"f4": 1e-4, "f8": 1e-12, "i4": 0}[dtype]
        npt.assert_allclose(compiled(x), np.reshape(expected, (n, n)), rtol=tolerance, atol=900 * tolerance)


@pytest.mark.parametrize("dtype", ["c8", "c16"])
def test_sums_of_complex_values(dtype):
    """gcc reads parts of complex numbers, which only some iterations read, in another order: it must not make one load
    of them."""

    def each(np, loop, put, x):
        k = np.arange(x.shape[1])
        step = lambda i, c: put(c, i, np.sum(np.where((k < i) ^ (k < 3), x, np.zeros((), dtype)), axis=1))
        return loop(0, x.shape[0], step, np.zeros_like(x))

    def by_python(start, stop, step, c):
        for i in range(start, stop):
            c = step(i, c)
        return c

    def put(c, i, row):
        c = c.copy()
        c[i] = row
        return c

    compiled = harp.jit(lambda x: each(hnp, harp.fori_loop, lambda c, i, row: c.at[i].set(row), x))
    for n in (0, 1, 2, 3, 4, 20, 40):
        x = data(n, dtype) + 1j * data(n, dtype, 1)
        expected = each(np, by_python, put, x.astype("c16"))
        npt.assert_allclose(compiled(x.astype(dtype)), expected, rtol=1e-5, atol=1e-3 if dtype == "c8" else 1e-10)


def cholesky(np, set_column, loop, a):
    """A column is what is left of it less products of what stands left of it."""
    k = np.arange(a.shape[0])

    def step(j, root):
        column = a[:, j] - np.sum(np.where(k < j, root * root[j], 0), axis=1)
        return set_column(root, j, np.where(k >= j, column / np.sqrt(column[j]), 0))

    return loop(0, a.shape[0], step, np.zeros_like(a))


def by_harp(a):
    return cholesky(hnp, lambda c, j, v: c.at[:, j].set(v), harp.fori_loop, a)


def positive(n):
    a = np.random.default_rng(n).normal(size=(n, n))
    return a @ a.T + (n + 1) * np.eye(n)


def test_what_a_step_has_set_is_what_the_next_one_sums():
    compiled, batch = harp.jit(by_harp), harp.jit(harp.vmap(by_harp))
    for n in SIZES:
        a = positive(n)
        expected = np.linalg.cholesky(a)
        npt.assert_allclose(compiled(a), expected, rtol=1e-10, atol=1e-12)
        npt.assert_allclose(batch(np.stack([a, 4 * a])), np.stack([expected, 2 * expected]), rtol=1e-10, atol=1e-12)


def test_derivatives():
    gradient = harp.jit(harp.grad(lambda a: hnp.sum(by_harp(a) ** 3)))
    for n in (1, 2, 5, 34):
        a, way = positive(n), np.random.default_rng(1).normal(size=(n, n)) * 1e-5
        way += way.T
        loss = lambda a: np.sum(np.linalg.cholesky(a) ** 3)
        npt.assert_allclose(np.sum(np.asarray(gradient(a)) * way), (loss(a + way) - loss(a - way)) / 2, rtol=1e-5)


def test_masks_of_several_loops():
    """Of the elements between the numbers of two loops, for each pair."""

    def pairs(x):
        k, n = hnp.arange(x.shape[0]), x.shape[0]
        between = lambda i, j: hnp.sum(hnp.where((k >= i) & (k < j), x, 0.0))
        row = lambda i, made: harp.fori_loop(i, n, lambda j, made: made.at[i, j].set(between(i, j)), made)
        return harp.fori_loop(0, n, row, hnp.zeros((n, n)))

    compiled = harp.jit(pairs)
    for n in SIZES:
        x = np.random.default_rng(n).normal(size=n)
        expected = [[x[i:j].sum() for j in range(n)] for i in range(n)]
        npt.assert_allclose(compiled(x), np.reshape(expected, (n, n)), rtol=1e-10, atol=1e-12)


def test_numbers_that_a_mask_leaves_out_do_not_matter():
    """Not a NaN, an infinity or a negative zero."""
    x = np.array([1.0, 2.0, np.nan, np.inf, -0.0])

    def sums(x):
        k, start = hnp.arange(x.shape[0]), hnp.zeros_like(x)
        return harp.fori_loop(0, 3, lambda i, c: c.at[i].set(hnp.sum(hnp.where(k < i, x * x, 0.0))), start)

    npt.assert_array_equal(harp.jit(sums)(x), [0.0, 1.0, 5.0, 0.0, 0.0])
