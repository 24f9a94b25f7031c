"""Products with Q, Sylvester's equation and eigenvalues of three diagonals, against SciPy's."""

import itertools

import numpy as np
import pytest
import scipy.linalg as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from harp.scipy import linalg
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
SIZES = [(1, 1), (3, 3), (5, 3), (3, 5)]


def numbers(shape, dtype="float64"):
    values = RNG.normal(size=shape)
    return (values + 1j * RNG.normal(size=shape) if dtype[0] == "c" else values).astype(dtype)


def close(found, expected, dtype="float64"):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == np.asarray(expected).dtype
    tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-12
    np.testing.assert_allclose(found, expected, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_products_with_q(dtype):
    for (m, n), mode, pivoting, conjugate in itertools.product(SIZES, ("left", "right"), (False, True), (False, True)):
        a = numbers((m, n), dtype)
        for shape in ((min(m, n), 2), (min(m, n),)) if mode == "left" else ((2, m), (m,)):
            c = numbers(shape, dtype)
            found = linalg.qr_multiply(a, c, mode, pivoting, conjugate)
            expected = truth.qr_multiply(a, c, mode, pivoting, conjugate)
            for one, other in zip(found[:2], expected[:2], strict=True):
                close(one, other, dtype)
            if pivoting:
                np.testing.assert_array_equal(found[2], expected[2])


def test_one_program_multiplies_by_q():
    program = harp.jit(lambda a, c: linalg.qr_multiply(a, c, pivoting=True))
    for m, n in SIZES:
        a, c = numbers((m, n)), numbers((2, m))
        for one, other in zip(program(a, c), truth.qr_multiply(a, c, "right", True), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
    assert program.compilations == 1
    a, c = numbers((2, 4, 3)), numbers((2, 2, 4))
    batched = linalg.qr_multiply(a, c, pivoting=True)
    for k, found in enumerate(zip(*harp.vmap(lambda a, c: linalg.qr_multiply(a, c, pivoting=True))(a, c), strict=True)):
        for one, other, row in zip(found, truth.qr_multiply(a[k], c[k], "right", True), batched, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
            np.testing.assert_allclose(row[k], other, atol=1e-12)
    check_grads(lambda a, c: linalg.qr_multiply(a, c, pivoting=True)[:2], (a[0], c[0]), 1)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_sylvester(dtype):
    for m, n in ((1, 1), (3, 2), (2, 4)):
        a, b, c = numbers((m, m), dtype), numbers((n, n), dtype), numbers((m, n), dtype)
        close(linalg.solve_sylvester(a, b, c), truth.solve_sylvester(a, b, c), dtype)
    assert linalg.solve_sylvester(np.zeros((0, 0)), np.eye(2), np.zeros((0, 2))).shape == (0, 2)


def test_one_program_solves_sylvester():
    program = harp.jit(lambda a, b, c: (linalg.solve_sylvester(a, b, c), harp.grad(_size, (0, 1, 2))(a, b, c)))
    for m, n in ((1, 1), (3, 2), (2, 4)):
        given = numbers((m, m)), numbers((n, n)), numbers((m, n))
        toward = tuple(map(numbers, ((m, m), (n, n), (m, n))))
        found, slopes = program(*given)
        np.testing.assert_allclose(found, truth.solve_sylvester(*given), rtol=1e-10)
        ends = [_exact_size(*(g + h * t for g, t in zip(given, toward, strict=True))) for h in (1e-6, -1e-6)]
        along = sum(np.sum(s * t) for s, t in zip(slopes, toward, strict=True))
        np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-6)
    assert program.compilations == 1
    a, b, c = numbers((3, 2, 2)), numbers((3, 3)), numbers((3, 2, 3))
    batched = harp.vmap(linalg.solve_sylvester, (0, None, 0))(a, b, c)
    np.testing.assert_allclose(batched, linalg.solve_sylvester(a, b, c), rtol=1e-12)
    np.testing.assert_allclose(batched[1], truth.solve_sylvester(a[1], b, c[1]), rtol=1e-10)
    check_grads(linalg.solve_sylvester, (a[0], b, c[0]), 2)


def _size(a, b, c):
    return hnp.sum(hnp.sin(linalg.solve_sylvester(a, b, c)))


def _exact_size(a, b, c):
    return np.sum(np.sin(truth.solve_sylvester(a, b, c)))


def test_three_diagonals():
    program = harp.jit(lambda d, e: (*linalg.eigh_tridiagonal(d, e), linalg.eigh_tridiagonal(d, e, True, "i", (0, 1))))
    for n in (1, 2, 6):
        d, e = numbers(n), numbers(n - 1)
        values, vectors, two = program(d, e)
        exact, basis = truth.eigh_tridiagonal(d, e) if n > 1 else (d, np.eye(1))
        np.testing.assert_allclose(values, exact, atol=1e-14)
        np.testing.assert_allclose(np.abs(vectors), np.abs(basis), atol=1e-12)
        np.testing.assert_allclose(two, exact[:2], atol=1e-14)
    assert program.compilations == 1
    for select, bounds in (("i", (1, 3)), ("v", (-0.5, 2.0))):
        found = linalg.eigh_tridiagonal(d, e, select=select, select_range=bounds)
        expected = truth.eigh_tridiagonal(d, e, select=select, select_range=bounds)
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(np.abs(found[1]), np.abs(expected[1]))
    assert linalg.eigh_tridiagonal(np.ones(3, "float32"), np.ones(2, "float32"), True).dtype == "float32"
    several = linalg.eigh_tridiagonal(np.stack([d, -d]), e, True)
    np.testing.assert_allclose(several[1], truth.eigh_tridiagonal(-d, e, True))
    check_grads(lambda d, e: linalg.eigh_tridiagonal(d, e, True), (d, e), 2)


def test_arguments_that_do_not_fit():
    one = np.eye(2)
    with pytest.raises(LinAlgError, match="an eigenvalue that is one of -B"):
        linalg.solve_sylvester(one, -one, one)
    for call in (
        lambda: linalg.solve_sylvester(one, one, np.ones((2, 3))),
        lambda: linalg.qr_multiply(one, np.ones(3)),
        lambda: linalg.qr_multiply(one, 1.0),
        lambda: linalg.eigh_tridiagonal(np.ones(3), np.ones(3)),
        lambda: linalg.eigh_tridiagonal(np.ones(1), 1.0),
    ):
        with pytest.raises(ShapeError):
            call()
    for call in (
        lambda: linalg.qr_multiply(one, one, "middle"),
        lambda: linalg.solve_sylvester(one, one, one, method="other"),
        lambda: linalg.eigh_tridiagonal(np.ones(2), np.ones(1), select="i"),
        lambda: linalg.eigh_tridiagonal(np.ones((2, 2)), np.ones(1), select="v", select_range=(0, 1)),
    ):
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(DTypeError, match="real numbers"):
        linalg.eigh_tridiagonal(np.ones(2, complex), np.ones(1))
