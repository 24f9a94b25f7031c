"""Systems of few diagonals against SciPy and dense matrices; derivatives against differences."""

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, LinAlgError, NotFiniteError, ShapeError
from harp.scipy import linalg
from harp.test_util import check_grads

BANDS = [(0, 0), (1, 1), (0, 2), (3, 1), (2, 5)]


def numbers(*shape, dtype="float64", seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    return (a + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else a).astype(dtype)


def dense(below, above, ab):
    n = ab.shape[-1]
    i, j = np.indices((n, n))
    inside = (i - j <= below) & (j - i <= above)
    return np.where(inside, ab[..., np.where(inside, above + i - j, 0), j], 0)


def close(found, expected, dtype="float64", factor=1e3):
    eps = factor * np.finfo(dtype).eps
    assert found.shape == expected.shape and found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=eps, atol=eps * np.abs(expected).max(initial=1))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("band", BANDS, ids=str)
def test_solve_banded(band, dtype):
    below, above = band
    compiled = harp.jit(lambda ab, b: linalg.solve_banded(band, ab, b))
    for n in (0, 1, 2, 3, 30):
        ab, b = numbers(below + above + 1, n, dtype=dtype), numbers(n, 3, dtype=dtype, seed=1)
        expected = np.linalg.solve(dense(below, above, ab.astype("complex128")), b)
        expected = expected.astype(dtype) if dtype[0] == "c" else expected.real
        scale = 1e3 + (np.linalg.cond(dense(below, above, ab)) if n else 0)
        for solve in (compiled, compiled.__wrapped__):
            close(solve(ab, b), expected, dtype, scale)
        if n > 2:
            close(compiled(ab, b), truth.solve_banded(band, ab, b), dtype, scale)
            close(linalg.solve_banded(band, ab, b[:, 0]), expected[:, 0], dtype, scale)
    assert compiled.compilations == 1


def test_pivots_and_singular_matrices():
    ab = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 5.0], [1.0, 3.0, 0.0]])  # zeros on the diagonal
    solve = harp.jit(lambda ab, b: linalg.solve_banded((1, 1), ab, b))
    close(solve(ab, np.ones(3)), truth.solve_banded((1, 1), ab, np.ones(3)))
    assert not np.isfinite(solve(np.zeros((3, 4)), np.ones(4))).any()
    for call in (solve, solve.__wrapped__):
        assert np.isnan(call(np.full((3, 4), np.nan), np.ones(4))).all()
    close(solve(ab.astype(int), np.ones(3, int)), truth.solve_banded((1, 1), ab, np.ones(3)))
    half = linalg.solve_banded((0, 0), np.full((1, 2), 4, "float16"), np.ones(2, "float16"))
    assert half.dtype == np.float16 and half.tolist() == [0.25, 0.25]


def test_what_has_no_solution_is_an_error_outside_of_jit():
    """As a singular matrix is to `harp.numpy.linalg.solve`."""
    singular = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])  # the first two rows are the same
    assert np.linalg.matrix_rank(dense(1, 1, singular)) == 2
    hermitian = np.array([[0.0, 1.0], [1.0, 1.0]])
    calls = {
        "singular": (lambda ab, b: linalg.solve_banded((1, 1), ab, b), singular),
        "singular, or": (linalg.solveh_banded, hermitian),
        "positive definite": (lambda ab, b: linalg.cholesky_banded(ab), -hermitian),
    }
    for text, (call, ab) in calls.items():
        b = np.ones(ab.shape[-1])
        with pytest.raises(LinAlgError, match=text) as caught:
            call(ab, b)
        assert isinstance(caught.value, np.linalg.LinAlgError)
        assert not np.isfinite(harp.jit(call)(ab, b)).all()
        with pytest.raises(NotFiniteError):
            harp.jit(call, check=True)(ab, b)
    with pytest.raises(LinAlgError, match="singular"):
        harp.jit(calls["singular"][0], check=True)(singular, np.ones(3))
    many = np.stack([np.array([[0.0, 0.0, 0.0], [1.0, 2.0, 4.0], [0.0, 0.0, 0.0]]), singular])
    with pytest.raises(LinAlgError, match=r"the matrix at \[1\] is singular"):
        linalg.solve_banded((1, 1), many, np.ones((2, 3, 1)))
    for b in (np.array([1.0, np.nan, 1.0]), np.array([np.inf, 1.0, 1.0])):  # are no matter of the matrix
        assert not np.isfinite(linalg.solve_banded((1, 1), many[0], b)).all()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_batches_broadcast(dtype):
    ab, b = numbers(2, 1, 4, 5, dtype=dtype), numbers(3, 5, 2, dtype=dtype)
    expected = np.linalg.solve(dense(2, 1, ab), b)
    close(linalg.solve_banded((2, 1), ab, b), expected, dtype)
    close(harp.jit(lambda ab, b: linalg.solve_banded((2, 1), ab, b))(ab, b), expected, dtype)
    rows = harp.jit(harp.vmap(lambda ab, b: linalg.solve_banded((2, 1), ab, b), in_axes=(0, None)))(
        ab[:, 0], b[0, :, 0]
    )
    close(rows, expected[:, 0, :, 0], dtype)


@pytest.mark.parametrize("band", [(1, 1), (0, 2), (2, 0), (3, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives(band, dtype):
    ab, b = numbers(sum(band) + 1, 5, dtype=dtype), numbers(5, 2, dtype=dtype, seed=1)
    ab[band[1]] += 3
    check_grads(harp.jit(lambda ab, b: linalg.solve_banded(band, ab, b)), (ab, b), order=2)
    if dtype == "float64":
        slope = harp.jit(harp.grad(lambda ab: linalg.solve_banded(band, ab, b).sum()))(ab)
        a = dense(*band, ab)
        full = -np.linalg.solve(a.T, np.ones((5, 2))) @ np.linalg.solve(a, b).T
        place, j = np.indices(ab.shape)
        i = place - band[1] + j
        inside = (i >= 0) & (i < 5)
        close(slope, np.where(inside, full[np.where(inside, i, 0), j], 0))


def hermitian(rows, n, dtype, lower):
    """The diagonals of a positive definite matrix, and the matrix."""
    ab = numbers(rows, n, dtype=dtype)
    ab[0 if lower else -1] = 2 * rows + np.abs(ab[0])
    a = dense(rows - 1, 0, ab) if lower else dense(0, rows - 1, ab)
    return ab, a + np.swapaxes(a.conj(), -1, -2) - np.diag(np.diag(a).real)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_hermitian_matrices(dtype, lower):
    solve = harp.jit(lambda ab, b: linalg.solveh_banded(ab, b, lower=lower))
    factor = harp.jit(lambda ab: linalg.cholesky_banded(ab, lower=lower))
    by_factor = harp.jit(lambda c, b: linalg.cho_solve_banded((c, lower), b))
    for rows in (1, 2, 4):
        for n in (0, 1, 2, 9):
            ab, a = hermitian(rows, n, dtype, lower)
            b = numbers(n, 2, dtype=dtype, seed=1)
            expected = np.linalg.solve(a, b)
            c = factor(ab)
            for call, first in ((solve, ab), (solve.__wrapped__, ab), (by_factor, c)):
                close(call(first, b), expected, dtype)
            if n >= rows:
                close(solve(ab, b), truth.solveh_banded(ab, b, lower=lower), dtype)
                given = truth.cholesky_banded(ab, lower=lower)
                close(dense(rows - 1, 0, c) if lower else dense(0, rows - 1, c),
                      dense(rows - 1, 0, given) if lower else dense(0, rows - 1, given), dtype)  # fmt: skip
    assert (solve.compilations, factor.compilations, by_factor.compilations) == (1, 1, 1)
    assert np.isnan(factor(-ab)).any()


@pytest.mark.slow
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_derivatives_of_hermitian_matrices(dtype, lower):
    ab, _ = hermitian(3, 5, dtype, lower)
    b, main = numbers(5, dtype=dtype, seed=1), 0 if lower else -1

    def solutions(ab, b):
        ab = hnp.asarray(ab)
        ab = ab.at[main].set(hnp.real(ab[main]))
        factor = linalg.cholesky_banded(ab, lower=lower)
        return linalg.solveh_banded(ab, b, lower=lower), linalg.cho_solve_banded((factor, lower), b), factor

    check_grads(harp.jit(solutions), (ab, b), 2)


def test_what_does_not_fit():
    for call in (
        lambda: linalg.solve_banded((1, 1), np.ones((2, 4)), np.ones(4)),
        lambda: linalg.solve_banded((1, 1), np.ones((3, 4)), np.ones(5)),
        lambda: linalg.solve_banded((0, 0), np.ones(4), np.ones(4)),
        lambda: linalg.solve_banded((0, 0), np.ones((1, 4)), 1.0),
        lambda: linalg.solveh_banded(np.ones((0, 4)), np.ones(4)),
        lambda: linalg.cholesky_banded(np.ones(4)),
        lambda: linalg.cho_solve_banded((np.ones((1, 3)), True), np.ones(4)),
    ):
        with pytest.raises(ShapeError):
            call()
    for pair in (1, (1, -1), (1, 1, 1), (1.0, 1)):
        with pytest.raises(ArgumentError, match="of solve_banded"):
            linalg.solve_banded(pair, np.ones((3, 4)), np.ones(4))
