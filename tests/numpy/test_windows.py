"""Windows against NumPy, and the Bessel function of one of them against SciPy."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


@pytest.mark.parametrize("size", [0, 1, 2, 5, 8])
def test_windows(size):
    for name in ("bartlett", "blackman", "hamming", "hanning"):
        np.testing.assert_allclose(getattr(hnp, name)(size), getattr(np, name)(size), atol=1e-15)
    np.testing.assert_allclose(hnp.kaiser(size, 8.6), np.kaiser(size, 8.6), rtol=1e-14)


def test_windows_of_a_size():
    program = harp.jit(lambda x: (hnp.hanning(x.shape[0]), hnp.kaiser(x.shape[0], x[0])))
    for size in (1, 2, 7):
        for found, wanted in zip(program(np.full(size, 3.0)), (np.hanning(size), np.kaiser(size, 3.0)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)
    assert program.compilations == 1


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_bessel_function(dtype):
    special = pytest.importorskip("scipy.special")
    x = np.array([0, 1e-5, 0.5, 3, 19.9, 20, 20.1, 50, -7, 700], dtype)
    with np.errstate(over="ignore"):
        wanted = special.i0(x.astype(float)).astype(dtype)
    for found in (hnp.i0(x), harp.jit(hnp.i0)(x)):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=4 * np.finfo(dtype).eps + 1e-14 * (dtype == "float64"))
    if dtype == "float64":
        slope = harp.vmap(harp.grad(hnp.i0))
        np.testing.assert_allclose(slope(x[:-1]), special.i1(x[:-1]), rtol=1e-13, atol=1e-14)
        twice = harp.vmap(harp.grad(harp.grad(hnp.i0)))(x[2:8])
        np.testing.assert_allclose(twice, special.ivp(0, x[2:8], 2), rtol=1e-12)
