"""A row vector times a matrix of any width. What is summed may be a variable, which no function takes as a row."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

SIZES = [0, 1, 2, 3]
WIDTHS = (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 48, 63, 64, 65, 100, 127, 128, 129, 140, 600)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "c16"])
def test_a_sum_of_short_products_of_all(dtype):
    """The smallest of them is one loop nest that adds to one variable, in two loops and in three."""
    x = np.arange(1, 5).astype(dtype)
    two = harp.jit(lambda b: hnp.sum(hnp.outer(hnp.diff(b)[:3], b[:4])))
    three = harp.jit(lambda b: hnp.sum(b[:2, None, None] * hnp.diff(b)[None, :3, None] * b[None, None, :4]))
    np.testing.assert_allclose(np.asarray(two(x)), np.sum(np.outer(np.diff(x)[:3], x[:4])))
    np.testing.assert_allclose(np.asarray(three(x)), np.sum(x[:2]) * np.sum(np.diff(x)[:3]) * np.sum(x[:4]))


@pytest.mark.parametrize("rows", SIZES)
@pytest.mark.parametrize("columns", SIZES)
def test_products_of_constant_sizes(rows, columns):
    a, b = np.arange(1.0, 17).reshape(4, 4), np.arange(3.0, 19).reshape(4, 4)
    for depth in SIZES:
        left, right = a[:rows, :depth], b[:depth, :columns]

        def f(a, b, depth=depth):
            product = a[:rows, :depth] @ b[:depth, :columns]
            return product, hnp.sum(product), a[:rows, :depth] @ b[:depth, 0], hnp.outer(a[:rows, 0], b[:columns, 0])

        expected = left @ right, np.sum(left @ right), left @ right[:, 0] if columns else left @ b[:depth, 0]
        for found, known in zip(harp.jit(f)(a, b), (*expected, np.outer(a[:rows, 0], b[:columns, 0])), strict=True):
            np.testing.assert_allclose(np.asarray(found), known)
        gradient = np.asarray(harp.jit(harp.grad(lambda a, b, f=f: f(a, b)[1]))(a, b))
        exact = np.zeros((4, 4))
        exact[:rows, :depth] = right.sum(1)
        np.testing.assert_allclose(gradient, exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_do_not_depend_on_the_width(dtype, width):
    rng = np.random.default_rng(width)
    a, b = rng.normal(size=(1, 70)).astype(dtype), rng.normal(size=(70, 600)).astype(dtype)
    f = harp.jit(lambda a, b: a @ b)
    found = np.asarray(f(a, b[:, :width].copy()))
    np.testing.assert_array_equal(found, np.asarray(f(a, b))[:, :width])
    tolerance = 1e-4 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(found, a.astype(np.float64) @ b[:, :width], rtol=tolerance, atol=tolerance)


def test_what_stands_beside_a_part_is_left_alone():
    b = np.full((40, 64), np.nan)
    b[:, 3:20] = 1.0
    f = harp.jit(lambda a, b, c: c.at[:, 3:20].set(a @ b[:, 3:20]))
    found = np.asarray(f(np.ones((1, 40)), b, np.full((1, 64), 7.0)))
    np.testing.assert_array_equal(found[0, 3:20], 40.0)
    np.testing.assert_array_equal(np.delete(found[0], range(3, 20)), 7.0)
