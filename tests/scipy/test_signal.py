"""Convolutions and correlations beside SciPy's, and their derivatives."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import signal

RNG = np.random.default_rng(0)
SIZES = [((5, 6), (3, 2)), ((5, 6), (2, 4)), ((2, 3), (4, 5)), ((5, 6), (5, 3)), ((1, 1), (1, 1))]
NAMES = ["convolve", "correlate", "fftconvolve", "convolve2d", "correlate2d"]


@pytest.fixture(scope="module")
def oracle():
    return pytest.importorskip("scipy.signal")


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("name", NAMES)
def test_matrices(oracle, name, mode):
    f = harp.jit(lambda a, b: getattr(signal, name)(a, b, mode))
    for first, second in SIZES:
        a, b = RNG.normal(size=first), RNG.normal(size=second)
        if name == "correlate" or mode != "valid" or first > second:
            b = b + 1j * RNG.normal(size=second)
        expected = getattr(oracle, name)(a, b, mode)
        npt.assert_allclose(getattr(signal, name)(a, b, mode), expected, rtol=1e-10, atol=1e-12)
        npt.assert_allclose(f(a, b), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_boundaries(oracle, boundary, mode):
    a, b = RNG.normal(size=(5, 6)), RNG.normal(size=(4, 3))
    for name in ("convolve2d", "correlate2d"):
        found = getattr(signal, name)(a, b, mode, boundary, 0.5)
        npt.assert_allclose(found, getattr(oracle, name)(a, b, mode, boundary, 0.5), rtol=1e-10, atol=1e-12)


def test_any_number_of_axes(oracle):
    for rank in (1, 3):
        a, b = RNG.integers(-9, 9, [4] * rank), RNG.integers(-9, 9, [3] * rank)
        for mode in ("full", "same", "valid"):
            npt.assert_array_equal(signal.convolve(a, b, mode), oracle.convolve(a, b, mode, method="direct"))
    assert signal.convolve(a, b).dtype == "int64"
    rows, row = RNG.normal(size=(3, 8)), RNG.normal(size=(1, 4))
    npt.assert_allclose(signal.fftconvolve(rows, row, "same", 1), oracle.fftconvolve(rows, row, "same", 1), atol=1e-12)
    npt.assert_allclose(signal.convolve(rows, row, method="fft"), oracle.convolve(rows, row), atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name):
    a, b = RNG.normal(size=(4, 5)), RNG.normal(size=(3, 2))
    u, v = RNG.normal(size=a.shape), RNG.normal(size=b.shape)

    def loss(a, b):
        return hnp.sum(hnp.sin(getattr(signal, name)(a, b, "same")))

    by_a, by_b = harp.jit(harp.grad(loss, (0, 1)))(a, b)
    ends = [float(loss(a + h * u, b + h * v)) for h in (1e-6, -1e-6)]
    npt.assert_allclose(np.sum(by_a * u) + np.sum(by_b * v), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_errors():
    with pytest.raises(ArgumentError, match="mode"):
        signal.convolve(np.ones(3), np.ones(2), "whole")
    with pytest.raises(ShapeError, match="as many axes"):
        signal.convolve(np.ones(3), np.ones((2, 2)))
    with pytest.raises(ShapeError, match="larger along all axes"):
        signal.convolve(np.ones((3, 1)), np.ones((2, 2)), "valid")
    with pytest.raises(ArgumentError, match="boundary"):
        signal.convolve2d(np.ones((3, 3)), np.ones((2, 2)), boundary="none")
    with pytest.raises(ShapeError, match="with elements"):
        signal.correlate(np.ones(3), np.ones(0))
