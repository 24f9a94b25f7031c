"""Programs of the process: how they are called, and who makes them when several ask."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp


@pytest.mark.parametrize("count", [31, 32, 500])
def test_many_arrays(count):
    f = harp.jit(lambda arrays: [x + 1 for x in arrays])
    for sizes in (2, 3):
        arrays = [np.full(sizes + k % 3, float(k)) for k in range(count)]
        for x, y in zip(arrays, f(arrays), strict=True):
            npt.assert_array_equal(y, x + 1)
    assert f.compilations == 1


def test_gradients_of_many_arrays():
    weights = [np.full(2, float(k)) for k in range(100)]  # captured arrays are parameters too

    def f(arrays):
        return sum(hnp.sum(hnp.sin(x) * weights[k % 100][0]) for k, x in enumerate(arrays))

    arrays = [np.full(2 + k % 2, 0.5 + k) for k in range(500)]
    for k, gradient in enumerate(harp.jit(harp.grad(f))(arrays)):
        npt.assert_allclose(gradient, k % 100 * np.cos(arrays[k]))


def test_scratch_of_many_arrays():
    f = harp.jit(lambda arrays: [hnp.matmul(hnp.matmul(x, x.T), x) for x in arrays])
    arrays = [np.ones((20 + k % 2, 30)) for k in range(25)]
    for x, y in zip(arrays, f(arrays), strict=True):
        npt.assert_allclose(y, x @ x.T @ x)
    assert harp.stats()["scratch_bytes"] > 0
