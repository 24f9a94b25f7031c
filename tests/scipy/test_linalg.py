"""Against SciPy in float64; derivatives against central differences; one program for all sizes."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError
from harp.scipy import linalg

DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrices(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(dtype)


def positive(a):
    return a @ np.swapaxes(a.conj(), -1, -2) + np.eye(a.shape[-1], dtype=a.dtype)


def each(function, *arrays):
    """SciPy's function for each matrix of a batch."""
    found = [function(*parts) for parts in zip(*(a.reshape(-1, *a.shape[-2:]) for a in arrays), strict=True)]
    return np.stack(found).reshape(*arrays[0].shape[:-2], *found[0].shape)


def close(found, expected, dtype="float64", factor=200):
    eps = np.finfo(dtype).eps
    assert found.shape == expected.shape
    scale = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=factor * eps, atol=factor * eps * scale)


def central(function, x, direction, step=1e-6):
    return (function(x + step * direction) - function(x - step * direction)) / (2 * step)


def check_derivative(function, x, seed=3):
    """Forward and reverse along a direction, of a sum of the results with weights."""
    direction = matrices(*x.shape, dtype=x.dtype, seed=seed)
    weights = matrices(*function(x).shape, seed=seed + 1)

    def total(x):
        return (weights * hnp.real(function(x))).sum()

    expected = central(lambda x: float(total(x)), x, direction)
    _, forward = harp.jit(lambda x, d: harp.jvp(total, (x,), (d,)))(x, direction)
    np.testing.assert_allclose(forward, expected, rtol=2e-6, atol=1e-7)
    if np.dtype(x.dtype).kind != "c":
        slope = harp.jit(harp.grad(total))(x)
        np.testing.assert_allclose((slope * direction).sum(), expected, rtol=2e-6, atol=1e-7)


@harp.jit
def cholesky_of(a, b):
    upper, lower = linalg.cholesky(a), linalg.cho_factor(a, lower=True)
    return upper, lower[0], linalg.cho_solve(lower, b), linalg.cho_solve(linalg.cho_factor(a), b)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_cholesky(dtype):
    for n in (0, 1, 4):
        a, b = positive(matrices(2, n, n, dtype=dtype)), matrices(2, n, 3, dtype=dtype)
        upper, lower, x, y = cholesky_of(a, b)
        close(upper, each(truth.cholesky, a) if n else a, dtype)
        close(lower, np.swapaxes(np.asarray(upper).conj(), -1, -2), dtype)
        expected = np.linalg.solve(a, b)
        close(x, expected, dtype)
        close(y, expected, dtype)
    if dtype == "float64":
        check_derivative(lambda a: linalg.cho_solve(linalg.cho_factor(a + a.T), b[0]), positive(a[0]))


@harp.jit
def lu_of(a):
    return linalg.lu_factor(a), linalg.lu(a), linalg.lu(a, permute_l=True)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_lu(dtype):
    for m, n in ((4, 4), (3, 5), (5, 2), (1, 1), (0, 3), (2, 0)):
        a = matrices(2, m, n, dtype=dtype)
        for (packed, pivots), (p, low, up), (moved, _) in (lu_of(a), lu_of.__wrapped__(a)):
            close(np.asarray(p) @ np.asarray(low) @ np.asarray(up), a, dtype)
            close(moved, np.asarray(p) @ np.asarray(low), dtype)
            for k in range(2 if m and n else 0):
                expected, places = truth.lu_factor(a[k])
                close(packed[k], expected, dtype)
                assert np.array_equal(pivots[k], places)


@pytest.mark.slow
def test_lu_has_derivatives():
    for m, n in ((3, 3), (2, 4), (4, 2)):
        check_derivative(lambda a: linalg.lu_factor(a)[0], matrices(m, n))
        check_derivative(lambda a: linalg.lu_factor(a)[0], matrices(m, n, dtype="complex128"))
    check_derivative(lambda a: linalg.lu(a, permute_l=True)[0], matrices(2, 3, 3))


@pytest.mark.parametrize("trans", [0, 1, 2])
def test_lu_solve(trans):
    solve = harp.jit(lambda a, b: linalg.lu_solve(linalg.lu_factor(a), b, trans))
    for dtype in ("float32", "complex128"):
        for n in (0, 1, 5):
            a, b = matrices(3, n, n, dtype=dtype), matrices(3, n, 2, dtype=dtype)
            op = (a, np.swapaxes(a, -1, -2), np.swapaxes(a.conj(), -1, -2))[trans]
            close(solve(a, b), np.linalg.solve(op, b), dtype, 2e3)
    vector = linalg.lu_solve(linalg.lu_factor(a[0]), b[0, :, 0], trans)
    close(vector, np.linalg.solve(op[0], b[0, :, 0]))
    check_derivative(lambda a: linalg.lu_solve(linalg.lu_factor(a), np.ones(3), trans), matrices(3, 3))


exponential = harp.jit(linalg.expm)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_expm(dtype):
    for n in (0, 1, 4):
        for scale in (1e-3, 1.0, 20.0):
            a = scale * matrices(3, n, n, dtype=dtype)
            a[1] = a[1] * 0
            expected = each(truth.expm, a.astype("complex128")) if n else a
            if dtype in ("float32", "complex128"):
                close(exponential(a), expected, dtype, 3e3)
            close(linalg.expm(a), expected, dtype, 3e3)
            close(linalg.expm(a[2]), expected[2], dtype, 3e3)


@pytest.mark.slow
def test_a_row_of_a_batch_has_the_same_exponential():
    a = matrices(4, 3, 3) * np.array([0.1, 1.0, 30.0, 5.0])[:, None, None]
    whole = np.asarray(exponential(a))
    assert all(np.array_equal(exponential(a[k : k + 1])[0], whole[k]) for k in range(4))


@pytest.mark.slow
def test_expm_at_its_limits():
    assert np.isnan(exponential(np.array([[1e9, 0.0], [0.0, 1.0]]))).all()
    assert np.isnan(exponential(np.array([[np.nan, 0.0], [0.0, 1.0]]))).any()
    for scale in (0.1, 30.0):
        check_derivative(linalg.expm, scale * matrices(3, 3))
    a, e = matrices(4, 4), matrices(4, 4, seed=1)
    value, tangent = harp.jit(linalg.expm_frechet)(a, e)
    expected = truth.expm_frechet(a, e)
    close(value, expected[0])
    close(tangent, expected[1], factor=2e3)
    close(linalg.expm_frechet(a, e, compute_expm=False), expected[1], factor=2e3)


@pytest.mark.slow
def test_sqrtm():
    root = harp.jit(linalg.sqrtm)
    for dtype in ("float32", "complex128"):
        for n in (0, 1, 4):
            a = matrices(3, n, n, dtype=dtype)
            a = a @ a if np.dtype(dtype).kind == "c" else positive(a) * 100
            x = root(a)
            assert x.dtype.kind == "c"
            close(np.asarray(x) @ np.asarray(x), a, x.dtype, 2e3)
            if n:
                close(x, each(truth.sqrtm, a), x.dtype, 2e3)
            assert all(np.array_equal(root(a[k : k + 1])[0], x[k]) for k in range(3))
    assert np.isnan(root(np.array([[-1.0, 0.0], [0.0, -2.0]]))).all()
    check_derivative(linalg.sqrtm, positive(matrices(3, 3)) + matrices(3, 3, seed=1) / 5)


def test_polar():
    for dtype in ("float64", "complex64"):
        for m, n in ((3, 3), (4, 2), (2, 4)):
            a = matrices(m, n, dtype=dtype)
            for side in ("left", "right"):
                for found, expected in zip(linalg.polar(a, side), truth.polar(a, side), strict=True):
                    close(found, expected, dtype)
    with pytest.raises(ArgumentError, match="side of polar is 'left' or 'right', not 'up'"):
        linalg.polar(a, "up")


def test_structures():
    two = harp.jit(lambda c, r: (linalg.toeplitz(c), linalg.toeplitz(c, r), linalg.block_diag(c, r, 5.0, c[:, None])))
    for m, n in ((4, 2), (1, 3), (3, 1), (0, 2)):
        c, r = matrices(m, dtype="complex128"), matrices(n, seed=1)
        one, both, blocks = two(c, r)
        if m:
            assert np.array_equal(one, truth.toeplitz(c))
            assert np.array_equal(both, truth.toeplitz(c, r))
        assert np.array_equal(blocks, truth.block_diag(c[None], r, 5.0, c[:, None]))
    assert two.compilations == 1
    assert linalg.block_diag().shape == (1, 0)
    batch = matrices(2, 3)
    assert np.array_equal(linalg.toeplitz(batch), np.stack([truth.toeplitz(row) for row in batch]))


def test_one_program_for_all_sizes():
    for function in (exponential, harp.jit(linalg.lu)):
        before = function.compilations
        for n in (2, 3, 7):
            function(matrices(n, n, dtype="float32"))
        assert function.compilations <= before + 1


def test_what_does_not_fit():
    square, wide = np.eye(3), np.ones((2, 3))
    for call in (
        lambda: linalg.cholesky(wide),
        lambda: linalg.expm(wide),
        lambda: linalg.sqrtm(wide),
        lambda: linalg.lu_factor(np.ones(3)),
        lambda: linalg.lu_solve((square, np.arange(3)), np.ones(4)),
        lambda: linalg.cho_solve((square, True), np.ones(4)),
        lambda: linalg.block_diag(np.ones((1, 2, 3))),
        lambda: linalg.toeplitz(1.0),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(ArgumentError, match="trans of lu_solve is 0, 1 or 2, not 3"):
        linalg.lu_solve((square, np.arange(3)), np.ones(3), 3)
