"""Sums of products of sizes that are numbers: what is summed may be a variable, which no function takes as a row."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

SIZES = [0, 1, 2, 3]


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
