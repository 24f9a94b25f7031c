"""Products of every number of rows: the last tiles are lower, and no row has other bits for it."""

from __future__ import annotations

import numpy as np
import pytest

import harp

f = harp.jit(lambda x, w: x @ w)
transposed = harp.jit(lambda x, w: x.T @ w)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("columns", [2, 7, 10, 16, 17, 32, 35])
def test_all_numbers_of_rows(dtype, columns):
    rng = np.random.default_rng(columns)
    x, w = rng.standard_normal((61, 19)).astype(dtype), rng.standard_normal((19, columns)).astype(dtype)
    exact, whole = x.astype("f8") @ w.astype("f8"), np.asarray(f(x, w))
    np.testing.assert_allclose(whole, exact, rtol=0, atol=200 * np.finfo(dtype).eps)
    for rows in range(len(x)):
        np.testing.assert_array_equal(np.asarray(f(x[:rows], w)), whole[:rows])
        np.testing.assert_array_equal(np.asarray(transposed(x[:rows].T.copy(), w)), whole[:rows])
    assert f.compilations <= 2 and transposed.compilations <= 2, "one for each dtype"
