"""Matrices of a structure against SciPy's."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import linalg
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
OF_VECTORS = {
    "hankel": ((4,), (4, 3)), "circulant": ((1,), (5,)), "fiedler": ((1,), (4,)), "companion": ((2,), (5,)),
    "leslie": ((2, 1), (5, 4)), "fiedler_companion": ((2,), (3,), (6,)),
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


@pytest.mark.parametrize("n", [1, 2, 5, 14, 30])
def test_matrices_of_binomials(n):
    """Exact where numbers are below 2**53."""
    inverse = np.array(truth.invhilbert(n, exact=True), float)
    np.testing.assert_allclose(linalg.invhilbert(n), inverse, rtol=1e-15 if n < 20 else 1e-14)
    for kind in ("symmetric", "lower", "upper"):
        np.testing.assert_array_equal(linalg.pascal(n, kind), truth.pascal(n, kind).astype(float))
        exact = truth.invpascal(n, kind, exact=True).astype(float)
        np.testing.assert_allclose(linalg.invpascal(n, kind), exact, rtol=1e-15)
    np.testing.assert_array_equal(linalg.pascal(n), linalg.pascal(n, "symmetric"))


def _of_vector(x):
    """Matrices of a vector, the same with its derivatives in the direction of itself, and matrices of its size."""
    names = ("toeplitz", "hankel", "circulant", "fiedler")
    made = {name: getattr(linalg, name)(x) for name in names}
    made["block_diag"] = linalg.block_diag(x, x[:, None])
    made["leslie"] = linalg.leslie(x, x[1:])
    made["convolution_matrix"] = linalg.convolution_matrix(x, x.shape[0])
    for name in ("companion", "fiedler_companion"):
        made[name] = getattr(linalg, name)(hnp.concatenate((x, hnp.ones(1))))
    return made


def _of_size(n):
    names = ("hilbert", "dft", "helmert", "invhilbert", "pascal", "invpascal")
    return {name: getattr(linalg, name)(n) for name in names}


def test_one_program_for_all_sizes():
    program = harp.jit(lambda x: (_of_vector(x), _of_size(x.shape[0])))
    for n in (1, 2, 5):
        x = RNG.normal(size=n)
        of_vector, of_size = program(x)
        more = np.append(x, 1.0)
        expected = {
            "block_diag": truth.block_diag(x, x[:, None]),
            "convolution_matrix": truth.convolution_matrix(x, n),
            "leslie": truth.leslie(x, x[1:]) if n > 1 else x[None],
            "companion": truth.companion(more),
            "fiedler_companion": truth.fiedler_companion(more),
        }
        for name, found in of_vector.items():
            wanted = expected[name] if name in expected else getattr(truth, name)(x)
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-15, err_msg=name)
        for name, found in of_size.items():
            np.testing.assert_allclose(found, getattr(truth, name)(n), rtol=1e-14, atol=1e-13, err_msg=name)
    assert program.compilations == 1


def test_derivatives():
    """Of sums of sines, in both modes, of functions that are computed at once; and one program for their gradient."""

    def loss(x):
        return sum(hnp.sum(hnp.sin(matrix)) for matrix in _of_vector(x).values())

    check_grads(loss, (np.array([0.7, -1.2, 2.5, 0.1]),), 1)
    program = harp.jit(harp.grad(loss))
    for n in (1, 3, 4):
        x, h = RNG.normal(size=n), 1e-6
        slopes = [(float(loss(x + h * e)) - float(loss(x - h * e))) / (2 * h) for e in np.eye(n)]
        np.testing.assert_allclose(program(x), slopes, rtol=1e-6, atol=1e-6)
    assert program.compilations == 1


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
        lambda: linalg.pascal(3, "whole"),
        lambda: linalg.dft(3, "other"),
        lambda: linalg.convolution_matrix(np.ones(3), 0),
        lambda: linalg.convolution_matrix(np.ones(3), 2, "other"),
    ):
        with pytest.raises(ArgumentError):
            call()
