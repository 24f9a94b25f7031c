"""Schur and Hessenberg forms by what they are, and functions of matrices against SciPy's."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, MissingRuleError, ShapeError
from harp.scipy import linalg
from harp.trace.graph import schur_form

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "complex64", "complex128"]


def numbers(n, dtype):
    a = RNG.normal(size=(n, n))
    return (a + 1j * RNG.normal(size=(n, n)) if dtype[0] == "c" else a).astype(dtype)


def special(dtype):
    """With equal eigenvalues, pairs of them, zeros, and large numbers."""
    turn = np.array([[0.0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    given = [np.eye(5, k=1) + np.eye(5), np.eye(5, k=-1), np.roll(np.eye(4), 1, 0), np.ones((4, 4)), np.zeros((3, 3))]
    given += [np.diag(np.arange(4.0)), np.kron(np.eye(2), turn), 1e30 * RNG.normal(size=(5, 5))]
    return [a.astype(dtype) for a in given]


def check(a, t, z, below):
    """That z is unitary, z @ t @ z.mH is a, and t has zeros under these diagonals below the main one."""
    a, t, z = (np.asarray(array) for array in (a, t, z))
    assert t.dtype == z.dtype and t.shape == z.shape == a.shape
    limit = 100 * (len(a) + 1) * np.finfo(t.dtype).eps
    np.testing.assert_allclose(z.conj().T @ z, np.eye(len(a)), atol=limit)
    scale = np.abs(a).max(initial=0) or 1
    np.testing.assert_allclose(z @ (t / scale) @ z.conj().T, a / scale, atol=limit)
    np.testing.assert_array_equal(np.tril(t, -1 - below), 0)


def check_blocks(t):
    under = np.diagonal(t, -1) != 0
    assert not (under[1:] & under[:-1]).any()
    for k in np.flatnonzero(under):
        assert t[k, k] == t[k + 1, k + 1] and t[k, k + 1] * t[k + 1, k] < 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_forms(dtype):
    def forms(a):
        return linalg.schur(a), linalg.schur(a, "complex"), linalg.hessenberg(a, calc_q=True), linalg.hessenberg(a)

    compiled = harp.jit(forms)
    real = dtype[0] == "f"
    for a in [numbers(n, dtype) for n in (0, 1, 2, 3, 5, 24)] + special(dtype):
        for f in (compiled, forms):
            (t, z), (whole, turned), (h, q), alone = f(a)
            check(a, t, z, int(real))
            check_blocks(np.asarray(t))
            check(a.astype(np.asarray(whole).dtype), whole, turned, 0)
            check(a, h, q, 1)
            np.testing.assert_array_equal(h, alone)
        check(a, *schur_form.schur(a), int(real))
        check_blocks(schur_form.schur(a)[0])
        check(a, *schur_form.hessenberg(a), 1)
    assert compiled.compilations == 1


def test_complex_forms_of_real_ones():
    a = RNG.normal(size=(9, 9))
    t, z = linalg.rsf2csf(*linalg.schur(a))
    check(a.astype(complex), t, z, 0)
    expected = truth.rsf2csf(*truth.schur(a))[0]
    found, expected = (np.sort_complex(np.diagonal(a).round(9)) for a in (t, expected))
    np.testing.assert_allclose(found, expected)


def test_batches_and_numbers_that_are_not_finite():
    a = RNG.normal(size=(3, 2, 4, 4))
    t, z = harp.jit(harp.vmap(linalg.schur))(a)
    for place in np.ndindex(3, 2):
        check(a[place], np.asarray(t)[place], np.asarray(z)[place], 1)
    a[1, 1, 0, 0] = np.nan
    for f in (linalg.schur, harp.jit(linalg.schur), lambda a: linalg.hessenberg(a, calc_q=True)):
        for found in f(a):
            np.testing.assert_array_equal(np.isnan(found).all((-2, -1)), np.isnan(a).any((-2, -1)))
    assert linalg.schur(np.eye(2, dtype="float16"))[0].dtype == np.float16
    assert linalg.hessenberg(np.eye(2, dtype=int)).dtype == np.float64


@pytest.mark.parametrize("dtype", DTYPES)
def test_functions_of_matrices(dtype):
    for n in (0, 1, 2, 6):
        a = numbers(n, dtype)
        for f in (linalg.funm, harp.jit(linalg.funm, static_argnums=1)):
            found = f(a, hnp.sin)
            assert found.dtype == np.result_type(dtype, "complex64")
            if n:
                expected = truth.funm(a.astype("complex128"), np.sin)
                limit = 1e4 * np.finfo(dtype).eps * np.abs(expected).max()
                np.testing.assert_allclose(found, expected, atol=limit)
    many = RNG.normal(size=(3, 4, 4))
    found, error = harp.vmap(lambda a: linalg.funm(a, hnp.exp, disp=False))(many)
    np.testing.assert_allclose(found, truth.expm(many), atol=1e-9)
    for one, a in zip(error, many, strict=True):
        np.testing.assert_allclose(one, truth.funm(a.astype(complex), np.exp, disp=False)[1], rtol=1, atol=1e-13)


def test_functions_of_matrices_with_equal_eigenvalues():
    np.testing.assert_allclose(linalg.funm(3 * np.eye(3), hnp.sqrt), np.sqrt(3) * np.eye(3))
    basis = np.linalg.qr(RNG.normal(size=(4, 4)))[0]
    symmetric = basis * np.array([2.0, 2.0, 2.0, 5.0]) @ basis.T
    np.testing.assert_allclose(linalg.funm(symmetric, hnp.sqrt), truth.sqrtm(symmetric), atol=1e-13)
    found, error = linalg.funm(np.array([[1.0, 1.0], [0.0, 1.0]]), hnp.sqrt, disp=False)
    assert np.isnan(found).any() and error == np.inf


def test_what_does_not_fit_and_derivatives():
    for f in (linalg.schur, linalg.hessenberg, lambda a: linalg.funm(a, hnp.exp), lambda a: linalg.rsf2csf(a, a)):
        with pytest.raises(ShapeError, match="square"):
            f(np.ones((2, 3)))
        with pytest.raises(MissingRuleError, match="no derivatives"):
            harp.jvp(f, (np.eye(3),), (np.eye(3),))
    with pytest.raises(ArgumentError, match="output of schur"):
        linalg.schur(np.eye(2), "other")
