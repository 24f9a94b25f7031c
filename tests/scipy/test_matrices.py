"""Matrices of a structure against SciPy's."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import linalg

RNG = np.random.default_rng(0)
OF_VECTORS = {
    "hankel": ((4,), (4, 3)), "circulant": ((1,), (5,)), "fiedler": ((1,), (4,)), "companion": ((2,), (5,)),
    "leslie": ((2, 1), (5, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_VECTORS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_matrices_of_vectors(name, dtype):
    ours, theirs = getattr(linalg, name), getattr(truth, name)
    for sizes in OF_VECTORS[name]:
        given = [RNG.normal(size=(3, n)).astype(dtype) for n in sizes]
        expected = np.stack([theirs(*row) for row in zip(*given, strict=True)])
        for found in (ours(*given), harp.jit(ours)(*given), harp.jit(harp.vmap(ours))(*given)):
            assert found.dtype in (expected.dtype, dtype)  # SciPy has float64 for fiedler
            np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == "float32" else 1e-14)
    with pytest.raises(ShapeError):
        ours(*(1.0 for _ in given))


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
def test_matrices_of_a_size(n):
    np.testing.assert_allclose(linalg.hilbert(n), truth.hilbert(n))
    np.testing.assert_array_equal(linalg.hadamard(n), truth.hadamard(n))
    for full in (False, True):
        np.testing.assert_allclose(linalg.helmert(n, full), truth.helmert(n, full), atol=1e-15)
    for scale in (None, "n", "sqrtn"):
        np.testing.assert_allclose(linalg.dft(n, scale), truth.dft(n, scale), atol=1e-13)
    assert linalg.dft(n, dtype="complex64").dtype == np.complex64
    assert linalg.hadamard(n, "float32").dtype == np.float32


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode):
    for m in (1, 2, 5):
        for n in (1, 3, 6):
            a = RNG.normal(size=(2, m))
            expected = np.stack([truth.convolution_matrix(row, n, mode) for row in a])
            np.testing.assert_array_equal(linalg.convolution_matrix(a, n, mode), expected)


def test_what_does_not_fit():
    with pytest.raises(ShapeError, match="survivors"):
        linalg.leslie(np.ones(3), np.ones(3))
    for call in (
        lambda: linalg.hadamard(3),
        lambda: linalg.dft(3, "other"),
        lambda: linalg.convolution_matrix(np.ones(3), 0),
        lambda: linalg.convolution_matrix(np.ones(3), 2, "other"),
    ):
        with pytest.raises(ArgumentError):
            call()
