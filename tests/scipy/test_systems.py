"""SciPy's arguments for systems of equations and decompositions."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError
from harp.scipy import linalg
from harp.test_util import check_grads

RNG = np.random.default_rng(0)


def numbers(shape, dtype):
    values = RNG.normal(size=shape)
    return (values + 1j * RNG.normal(size=shape) if dtype == "complex128" else values).astype(dtype)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions(dtype):
    """Of a matrix with an assumption one triangle is read, and the other one has other numbers."""
    a, b = numbers((3, 3), dtype), numbers((3, 2), dtype)
    positive = a @ a.conj().T + np.eye(3)
    np.testing.assert_allclose(linalg.solve(a, b), truth.solve(a, b), rtol=1e-10)
    for lower in (False, True):
        keep, drop = (np.tril, np.triu) if lower else (np.triu, np.tril)
        junk = drop(np.full((3, 3), 7.0), 1 if lower else -1)
        for kind, whole in (("sym", a + a.T), ("her", a + a.conj().T), ("pos", positive)):
            found = linalg.solve(keep(whole) + junk, b, lower, assume_a=kind)
            np.testing.assert_allclose(found, np.linalg.solve(whole, b), rtol=1e-9)
        triangle = keep(a)
        for trans in (0, 1, 2):
            found = linalg.solve_triangular(triangle, b, trans, lower, overwrite_b=True)
            np.testing.assert_allclose(found, truth.solve_triangular(triangle, b, trans, lower), rtol=1e-9)
    np.testing.assert_allclose(linalg.det(a, True), truth.det(a))
    np.testing.assert_allclose(linalg.inv(a, check_finite=False), truth.inv(a), rtol=1e-10)
    np.testing.assert_allclose(linalg.svd(a, compute_uv=False), truth.svd(a, compute_uv=False))
    check_grads(lambda a, b: linalg.solve(a + a.T, b, assume_a="sym"), (a, b), 1)
    with pytest.raises(ArgumentError, match="assume_a of solve"):
        linalg.solve(a, b, assume_a="other")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_factors(dtype):
    for shape in ((1, 1), (3, 3), (5, 3), (3, 5)):
        a = numbers(shape, dtype)
        for mode in ("full", "economic", "r"):
            for pivoting in (False, True):
                found, expected = (m.qr(a, mode=mode, pivoting=pivoting) for m in (linalg, truth))
                for one, other in zip(found, expected, strict=True):
                    assert np.shape(one) == np.shape(other)
                    np.testing.assert_allclose(np.abs(one), np.abs(other), atol=1e-12)
                if mode != "r":
                    columns = a[:, np.asarray(found[2])] if pivoting else a
                    np.testing.assert_allclose(np.asarray(found[0]) @ np.asarray(found[1]), columns, atol=1e-12)
    check_grads(lambda a: linalg.qr(a, mode="economic"), (numbers((4, 3), dtype),), 1)
    check_grads(lambda a: linalg.qr(a), (numbers((3, 3), dtype),), 1)
    with pytest.raises(ArgumentError, match="mode of qr"):
        linalg.qr(a, mode="raw")


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_eigenvalues(dtype):
    a, b = numbers((4, 4), dtype), numbers((4, 4), dtype)
    b = b @ b.conj().T + np.eye(4)
    for lower in (True, False):
        np.testing.assert_allclose(
            linalg.eigh(a, None, lower, True), truth.eigh(a, None, lower=lower, eigvals_only=True)
        )
        for kind in (1, 2, 3):
            w, v = (np.asarray(part) for part in linalg.eigh(a, b, lower, type=kind))
            expected, vectors = truth.eigh(a, b, lower=lower, type=kind)
            np.testing.assert_allclose(w, expected, rtol=1e-9)
            np.testing.assert_allclose(np.abs(v), np.abs(vectors), rtol=1e-8)
            np.testing.assert_allclose(linalg.eigh(a, b, lower, True, type=kind), expected, rtol=1e-9)
    program = harp.jit(lambda a, b: linalg.eigh(a, b)[0])
    for n in (1, 4):
        np.testing.assert_allclose(program(a[:n, :n], b[:n, :n]), truth.eigh(a[:n, :n], b[:n, :n])[0], rtol=1e-9)
    assert program.compilations == 1

    def largest(a, b):
        half = lambda m: m + hnp.conj(m.T)
        return linalg.eigh(half(a), half(b), eigvals_only=True)[-1]

    check_grads(largest, (a, b), 1)
    with pytest.raises(ArgumentError, match="type=4"):
        linalg.eigh(a, b, type=4)
