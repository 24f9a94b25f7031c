"""Orthogonal factors, eigenvalues, singular values: NumPy's numbers, derivatives against differences, and JAX's."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest
from differences import slope

import harp
import harp.numpy as hnp
from harp.backends.runtime import lapack
from harp.errors import ArgumentError, MissingRuleError, ShapeError

linalg = hnp.linalg
RNG = np.random.default_rng(32)
DTYPES = ("f8", "f4", "c16", "c8")
LEAST = np.array([0.1, 1e3, 2.0])
SHAPES = ((3, 3), (0, 0), (1, 1), (5, 2), (2, 5), (0, 3), (4, 0), (17, 17), (40, 33))


def general(dtype, *shape):
    a = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype[0] == "c" else 0)
    return a.astype(dtype)


def hermitian(dtype, *shape):
    a = general(dtype, *shape)
    return (a + turned(a)) / 2


def turned(a):
    return np.conj(np.swapaxes(np.asarray(a), -1, -2))


def close(a, b, factor=1.0):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    tolerance = factor * 400 * np.finfo(a.dtype).eps
    npt.assert_allclose(a, b, rtol=tolerance, atol=tolerance * max(1.0, np.abs(b).max(initial=0)))


def identity_like(q):
    return np.broadcast_to(np.eye(q.shape[-1]), (*q.shape[:-2], q.shape[-1], q.shape[-1])).astype(q.dtype)


def both(function):
    """It, and compiled."""
    return function, harp.jit(function)


@pytest.mark.parametrize("dtype", DTYPES)
def test_qr(dtype):
    for mode in ("reduced", "complete", "r"):
        for f in both(lambda a, mode=mode: linalg.qr(a, mode=mode)):
            for shape in (*SHAPES, (2, 3, 4, 3)):
                a = general(dtype, *shape)
                found, expected = f(a), np.linalg.qr(a, mode)
                if mode == "r":
                    close(found, expected)
                    continue
                q, r = map(np.asarray, found)
                close(q, expected[0])
                close(r, expected[1])
                close(q @ r, a)
                close(turned(q) @ q, identity_like(q))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eigh(dtype):
    for f in both(linalg.eigh):
        for shape in ((3, 3), (0, 0), (1, 1), (17, 17), (2, 3, 4, 4)):
            a = hermitian(dtype, *shape)
            w, v = map(np.asarray, f(a))
            close(w, np.linalg.eigvalsh(a))
            close(linalg.eigvalsh(a), w)
            close(v * w[..., None, :] @ turned(v), a)
            close(turned(v) @ v, identity_like(v))
    a = hermitian(dtype, 4, 4)
    for f in both(lambda a, b: (linalg.eigh(a)[0], linalg.eigvalsh(b, UPLO="U"))):
        for w in f(np.tril(a), np.triu(a)):
            close(w, np.linalg.eigvalsh(a))


@pytest.mark.parametrize("dtype", DTYPES)
def test_eig(dtype):
    for f in both(linalg.eig):
        for shape in ((3, 3), (0, 0), (1, 1), (17, 17), (2, 3, 4, 4)):
            a = general(dtype, *shape)
            w, v = map(np.asarray, f(a))
            assert w.dtype == v.dtype == np.result_type(a.dtype, np.complex64)
            close(a @ v, v * w[..., None, :])
            npt.assert_allclose(np.linalg.norm(v, axis=-2), np.ones(v.shape[:-1]), rtol=1e-5)
            close(np.sort_complex(np.asarray(linalg.eigvals(a))), np.sort_complex(w), 10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_svd(dtype):
    for full in (True, False):
        for f in both(lambda a, full=full: linalg.svd(a, full_matrices=full)):
            for shape in (*SHAPES, (2, 3, 4, 3)):
                a = general(dtype, *shape)
                u, s, vh = map(np.asarray, f(a))
                expected = np.linalg.svd(a, full_matrices=full)
                assert [x.shape for x in (u, s, vh)] == [x.shape for x in expected]
                close(s, expected[1])
                close(linalg.svdvals(a), s)
                count = s.shape[-1]
                close(u[..., :count] * s[..., None, :] @ vh[..., :count, :], a)
                close(turned(u) @ u, identity_like(u))
                close(vh @ turned(vh), identity_like(turned(vh)))


def test_one_program_for_all_sizes():
    f = harp.jit(lambda a, h: (*linalg.qr(a), *linalg.svd(a, full_matrices=False), *linalg.eigh(h), linalg.eigvals(h)))
    g = harp.jit(harp.grad(lambda a: hnp.sum(linalg.svdvals(a)) + hnp.sum(linalg.qr(a).R ** 2)))
    for m, n in SHAPES:
        f(general("f8", m, n), hermitian("f8", n, n))
        g(general("f8", m, n))
    assert f.compilations == g.compilations == 1


def test_integers_halves_and_what_is_not_finite():
    integers, halves = np.array([[2, 1], [1, 3]]), np.array([[2, 1], [1, 3]], np.float16)
    for f in both(lambda a: (linalg.qr(a).R, linalg.eigvalsh(a), linalg.svdvals(a), linalg.pinv(a))):
        for x in f(integers):
            assert x.dtype == np.float64
        for x in f(halves):
            assert x.dtype == np.float16
    bad = np.stack([np.eye(3), np.eye(3) * np.nan, np.diag([1.0, np.inf, 1.0])])
    for f in both(lambda a: (*linalg.eigh(a), *linalg.eig(a), *linalg.svd(a), linalg.cholesky(a))):
        for x in map(np.asarray, f(bad)):
            assert np.isfinite(x[0]).all() and np.isnan(x[1]).all() and not np.isfinite(x[2]).all()


def test_the_same_without_lapack(monkeypatch):
    """NumPy computes then, called by the program."""
    monkeypatch.setattr(lapack, "is_there", lambda: False)
    a, b = general("f8", 2, 4, 4), general("f8", 4, 2)
    h = a @ turned(a) + np.eye(4)

    def f(a, b, h):
        factors = (linalg.cholesky(h), *linalg.qr(a), linalg.eigvalsh(h), linalg.svdvals(a), linalg.eigvals(h))
        return (linalg.solve(a, b), linalg.inv(a), linalg.solve_triangular(h, b, lower=True), *factors)

    compiled = harp.jit(f)
    for found, eager in zip(compiled(a, b, h), f(*map(hnp.asarray, (a, b, h))), strict=True):
        npt.assert_allclose(found, eager, rtol=1e-9, atol=1e-11)
    npt.assert_allclose(harp.vmap(lambda a: linalg.solve(a, b))(a), np.linalg.solve(a, b), rtol=1e-9)


@pytest.mark.slow
def test_pseudo_inverses_ranks_and_least_squares():
    low = general("f8", 5, 2) @ general("f8", 2, 4)
    b, many = general("f8", 5), general("f8", 5, 3)
    f = lambda a, b: (linalg.pinv(a), linalg.matrix_rank(a), *linalg.lstsq(a, b), linalg.cond(a))
    for compute in both(f):
        for a in (low, general("f8", 5, 4), general("f8", 5, 9)):
            for right in (b, many):
                inverse, rank, x, residuals, same, s, ratio = map(np.asarray, compute(a, right))
                npt.assert_allclose(inverse, np.linalg.pinv(a, rtol=None), atol=1e-10)
                expected = np.linalg.lstsq(a, right, rcond=None)
                assert rank == same == expected[2] == np.linalg.matrix_rank(a)
                npt.assert_allclose(x, expected[0], atol=1e-10)
                npt.assert_allclose(s, expected[3], atol=1e-10)
                assert residuals.shape == np.atleast_1d(right[0]).shape
                npt.assert_allclose(residuals, ((right - a @ x) ** 2).sum(0), atol=1e-10)
                if rank == min(a.shape):
                    npt.assert_allclose(ratio, np.linalg.cond(a), rtol=1e-9)
    batch = general("f8", 3, 5, 4)
    npt.assert_allclose(linalg.matrix_rank(batch, tol=LEAST), np.linalg.matrix_rank(batch, LEAST))
    npt.assert_allclose(linalg.pinv(batch, rcond=0.5), np.linalg.pinv(batch, rcond=0.5), atol=1e-12)
    bootstrap = harp.jit(harp.vmap(lambda a, b: linalg.lstsq(a, b).x))
    for a, right, x in zip(batch, b + batch[..., 0], bootstrap(batch, b + batch[..., 0]), strict=True):
        npt.assert_allclose(x, np.linalg.lstsq(a, right, rcond=None)[0], atol=1e-12)


@pytest.mark.slow
def test_condition_numbers_and_norms_by_singular_values():
    a, batch = general("f8", 4, 4), general("f8", 3, 2, 4)
    for p in (None, 2, -2, 1, -1, np.inf, -np.inf, "fro", "nuc"):
        for f in both(lambda a, p=p: linalg.cond(a, p)):
            npt.assert_allclose(f(a), np.linalg.cond(a, p), rtol=1e-9)
    for order in (2, -2, "nuc"):
        for keepdims in (False, True):
            for f in both(lambda a, o=order, k=keepdims: linalg.matrix_norm(a, ord=o, keepdims=k)):
                npt.assert_allclose(f(batch), np.linalg.matrix_norm(batch, ord=order, keepdims=keepdims), rtol=1e-12)
            found = linalg.norm(batch, order, (0, 2), keepdims)
            npt.assert_allclose(found, np.linalg.norm(batch, order, (0, 2), keepdims), rtol=1e-12)


def test_tensors_and_chains_of_products():
    a, b = general("f8", 2, 3, 6), general("f8", 2, 3)
    for f in both(lambda a, b: (linalg.tensorsolve(a, b), linalg.tensorinv(a))):
        npt.assert_allclose(f(a, b)[0], np.linalg.tensorsolve(a, b), rtol=1e-9)
        npt.assert_allclose(f(a, b)[1], np.linalg.tensorinv(a), rtol=1e-9)
    moved = np.moveaxis(general("f8", 6, 2, 3), 0, 2)
    npt.assert_allclose(linalg.tensorsolve(np.moveaxis(moved, 2, 0), b, axes=(0,)), np.linalg.tensorsolve(moved, b))
    npt.assert_allclose(
        linalg.tensorinv(a[:, :, :].reshape(6, 2, 3), ind=1), np.linalg.tensorinv(a.reshape(6, 2, 3), 1)
    )
    chain = [general("f8", *s) for s in ((3,), (3, 7), (7, 2), (2,))]
    for arrays in (chain, chain[1:], chain[:-1], chain[1:3], [chain[0], chain[0]]):
        for f in both(lambda *arrays: linalg.multi_dot(arrays)):
            npt.assert_allclose(f(*arrays), np.linalg.multi_dot(arrays), rtol=1e-12)


W, V = RNG.normal(size=(4, 4)), RNG.normal(size=(4,))
PHASED = W + 1j * RNG.normal(size=(4, 4))


def moduli(z):
    return hnp.real(z * hnp.conj(z))


SCALARS = {
    "qr": lambda a: hnp.sum(W * linalg.qr(a).Q) + hnp.sum(hnp.sin(linalg.qr(a).R)),
    "qr-tall": lambda a: hnp.sum(W[:, :2] * linalg.qr(a[:, :2]).Q) + hnp.sum(linalg.qr(a[:, :2], mode="r") ** 3),
    "qr-wide": lambda a: hnp.sum(W[:2, :2] * linalg.qr(a[:2]).Q) + hnp.sum(hnp.sin(linalg.qr(a[:2]).R)),
    "eigh": lambda a: V @ hnp.sin(linalg.eigh(a + a.T)[0]) + hnp.sum(W * linalg.eigh(a + a.T)[1] ** 2),
    "eigvalsh": lambda a: V @ linalg.eigvalsh(a @ a.T),
    "eig": lambda a: hnp.sum(hnp.real(hnp.sin(linalg.eig(a)[0]))) + hnp.sum(moduli(linalg.eig(a)[1])[0] ** 2),
    "eigvals": lambda a: hnp.sum(moduli(linalg.eigvals(a)) ** 2),
    "svd": lambda a: (lambda u, s, vh: V @ s**2 + hnp.sum(W * u**2) + hnp.sum(W * vh**4))(
        *linalg.svd(a, full_matrices=False)
    ),
    "svd-tall": lambda a: hnp.sum(W[:, :3] * linalg.svd(a[:, :3], full_matrices=False)[0] ** 2),
    "svd-wide": lambda a: hnp.sum(W[:3] * linalg.svd(a[:3], full_matrices=False)[2] ** 2),
    "svdvals": lambda a: V[:2] @ linalg.svdvals(a[:2]) ** 3,
    "pinv": lambda a: hnp.sum(W[:3].T * linalg.pinv(a[:3])) + hnp.sum(W[:3] * linalg.pinv(a[:, :3])),
    "lstsq": lambda a: hnp.sum(linalg.lstsq(a[:, :3], V * a[:, 3]).x ** 3),
    "norm-2": lambda a: linalg.norm(a, 2) + linalg.norm(a[:, :2], "nuc"),
    "complex-eigh": lambda a: (lambda w, v: V @ w**2 + hnp.sum(W * moduli(v)))(*linalg.eigh(a + a.T + 1j * (a - a.T))),
    "complex-qr": lambda a: (lambda q, r: hnp.sum(W * moduli(q)) + hnp.sum(W * hnp.imag(r)))(
        *linalg.qr(a * PHASED + PHASED)
    ),
    "complex-svd": lambda a: (lambda u, s, vh: V @ s + hnp.sum(W * hnp.real((u * s**3) @ vh)) + hnp.sum(W * moduli(u)))(
        *linalg.svd(a * PHASED + PHASED, full_matrices=False)
    ),
    "complex-cholesky": lambda a: hnp.sum(
        W * hnp.imag(linalg.cholesky((a + PHASED) @ hnp.conj(a + PHASED).T + hnp.eye(4)))
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_derivatives(name):
    f = SCALARS[name]
    rng = np.random.default_rng(4)
    a, direction = rng.normal(size=(4, 4)) + 3 * np.diag([1, 2, 3, 5]), rng.normal(size=(4, 4))
    gradient, value = harp.jit(harp.grad(f)), harp.jit(f)
    expected = slope(value, a)
    npt.assert_allclose(gradient(a), expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    tangent = harp.jvp(f, (a,), (direction,))[1]
    npt.assert_allclose(tangent, np.sum(expected * direction), rtol=1e-5, atol=1e-5)
    second = harp.jit(harp.grad(lambda a: hnp.sum(harp.grad(f)(a) * direction)))(a)
    difference = slope(lambda x: np.sum(np.asarray(gradient(x)) * direction), a)
    npt.assert_allclose(second, difference, rtol=1e-4, atol=1e-4)
    forward = harp.jvp(harp.grad(f), (a,), (direction,))[1]
    npt.assert_allclose(forward, second, rtol=1e-6, atol=1e-8)
    some = np.stack([a, a.T, a + 1])
    every = np.stack([np.asarray(gradient(each)) for each in some])
    npt.assert_allclose(harp.vmap(harp.grad(f))(some), every, rtol=1e-7, atol=1e-8)


def test_gradients_where_values_are_equal():
    """Functions that do not depend on the choice of the vectors: of log det, of a square root."""
    for a in (np.eye(3), np.diag([2.0, 2.0, 5.0]), np.zeros((3, 3)) + 1 + np.eye(3)):
        w = RNG.normal(size=(3, 3))

        def log_det(a):
            return hnp.sum(hnp.log(linalg.eigvalsh(a)))

        def root(a, w=w):
            values, v = linalg.eigh(a)
            return hnp.sum((w + w.T) * ((v * hnp.sqrt(values)) @ v.T))

        def nuclear(a):
            return hnp.sum(linalg.svdvals(a))

        npt.assert_allclose(harp.grad(log_det)(a), np.linalg.inv(a), rtol=1e-9, atol=1e-12)
        assert np.isfinite(np.asarray(harp.grad(root)(a))).all()
        npt.assert_allclose(harp.grad(nuclear)(a), np.eye(3), atol=1e-9)


def test_derivatives_that_are_not_determined():
    a = general("f8", 4, 2)
    for f in (lambda a: hnp.sum(linalg.qr(a, mode="complete").Q), lambda a: hnp.sum(linalg.svd(a)[0])):
        with pytest.raises(MissingRuleError, match=r"mode='reduced'|full_matrices=False"):
            harp.grad(f)(a)


def total(namespace, name, a):
    """A number that depends on all results, whatever the signs of vectors are."""
    found = getattr(namespace.linalg, name)(a, **({"full_matrices": False} if name == "svd" else {}))
    results = found if isinstance(found, tuple) else (found,)
    return sum(namespace.sum(namespace.real(x * namespace.conj(x)) ** 2) for x in results)


@pytest.mark.parametrize("name", ["qr", "eigh", "svd", "pinv", "eigvals"])
def test_the_same_as_jax(name):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    a = general("f8", 5, 5) + np.diag(np.arange(5.0))
    a = a + a.T if name == "eigh" else a
    ours = harp.jit(harp.grad(lambda a: total(hnp, name, a)))
    npt.assert_allclose(ours(a), jax.grad(lambda a: total(jax.numpy, name, a))(a), rtol=1e-6, atol=1e-8)


def test_a_row_of_a_batch_has_the_same_bits():
    compiled = harp.jit(lambda a: (*linalg.eigh(a), *linalg.svd(a, full_matrices=False), *linalg.qr(a)))
    a = hermitian("f8", 9, 12, 12)
    for all_of_them, some in zip(compiled(a), compiled(a[4:6]), strict=True):
        npt.assert_array_equal(np.asarray(all_of_them)[4:6], some)


def test_errors():
    x = np.ones((2, 3))
    for call, error, match in (
        (lambda: linalg.eigh(x), ShapeError, "eigh takes square matrices"),
        (lambda: linalg.eig(x), ShapeError, "eig takes square matrices"),
        (lambda: linalg.svd(np.ones(3)), ShapeError, "argument a of svd has 1 axis"),
        (lambda: linalg.qr(np.ones(3)), ShapeError, "argument a of qr has 1 axis"),
        (lambda: linalg.qr(x, mode="raw"), ArgumentError, "mode of qr is 'reduced', 'complete' or 'r', not 'raw'"),
        (lambda: linalg.eigvalsh(np.eye(2), UPLO="X"), ArgumentError, "UPLO of eigvalsh is 'L' or 'U'"),
        (lambda: linalg.multi_dot([x]), ArgumentError, "at least two matrices, not 1"),
        (lambda: linalg.multi_dot([x, np.ones((1, 2, 3)), x]), ShapeError, "array 1 has 3 axes"),
        (lambda: linalg.tensorinv(x, ind=0), ArgumentError, "ind of tensorinv is at least 1"),
        (lambda: linalg.lstsq(x, np.ones(3)), ShapeError, "3"),
        (lambda: linalg.cond(x, 1), ShapeError, "cond takes square matrices"),
        (lambda: linalg.cond(x, "no"), ArgumentError, "the order of a matrix norm"),
    ):
        with pytest.raises(error, match=match):
            call()


@pytest.mark.parametrize("f", both(lambda a: (linalg.eigh(a), linalg.eig(a), linalg.svd(a))))
def test_results_have_the_names_of_numpys(f):
    a = hermitian("f8", 3, 3)
    symmetric, any_matrix, singular = f(a)
    npt.assert_allclose(a @ symmetric.eigenvectors, symmetric.eigenvectors * symmetric.eigenvalues, atol=1e-12)
    npt.assert_allclose(a @ any_matrix.eigenvectors, any_matrix.eigenvectors * any_matrix.eigenvalues, atol=1e-12)
    npt.assert_allclose(singular.U * singular.S @ singular.Vh, a, atol=1e-12)


def test_condition_of_matrices_without_an_inverse_or_elements():
    for p in (None, 1, -1, 2, -2, "fro", np.inf, -np.inf):
        for f in both(lambda a, p=p: linalg.cond(a, p)):
            assert np.asarray(f(np.zeros((2, 2)))) == np.inf
            assert np.isnan(f(np.array([[np.nan, 1.0], [1.0, 2.0]])))
            with pytest.raises(ShapeError, match="cond of matrices without elements: axis 0"):
                f(np.zeros((0, 0)))
    with pytest.raises(ShapeError, match="cond takes square matrices"):
        linalg.cond(np.ones((2, 3)), "fro")


def test_the_other_triangle_is_not_read():
    for f in both(lambda a: (linalg.eigvalsh(a), linalg.eigh(a).eigenvalues)):
        for w in f(np.array([[1.0, np.nan], [0.0, 2.0]])):
            npt.assert_allclose(w, [1, 2])
        for w in f(np.array([[1.0, 0.0], [np.inf, 2.0]])):
            assert np.isnan(np.asarray(w)).all()


def test_tolerances_and_ranks_as_numpy_has_them():
    a = np.array([[1.0, 1.0], [1.0, 1.0]])
    for f in both(lambda a: linalg.lstsq(a, np.ones(2), -1)):
        found = f(a)
        npt.assert_allclose(found.x, [0.5, 0.5])
        assert np.asarray(found.rank) == 1
    for f in both(linalg.matrix_rank):
        assert [int(f(x)) for x in (np.zeros(3), np.ones(3), np.float64(0), np.float64(2))] == [0, 1, 0, 1]
    with pytest.raises(ArgumentError, match="pinv takes rcond or rtol"):
        linalg.pinv(a, 1e-3, rtol=1e-3)
    with pytest.raises(ArgumentError, match="matrix_rank takes tol or rtol"):
        linalg.matrix_rank(a, 1e-3, rtol=1e-3)


def test_errors_name_the_function_that_was_called():
    a = np.eye(3)
    for match, f in (
        ("lstsq takes as many rows", lambda: linalg.lstsq(a, np.ones(2))),
        ("argument b of lstsq is a number", lambda: linalg.lstsq(a, 1.0)),
        ("multi_dot: array 1 has as many columns", lambda: linalg.multi_dot([a, a, np.ones((2, 3))])),
        ("tensorsolve: b has as many", lambda: linalg.tensorsolve(np.ones((2, 3)), np.ones(2))),
        ("tensorinv: the first 1 axes", lambda: linalg.tensorinv(np.ones((2, 3)), 1)),
    ):
        with pytest.raises(ShapeError, match=match):
            f()
    with pytest.raises(ArgumentError, match="multi_dot takes a list"):
        linalg.multi_dot(None)
    a = np.eye(6).reshape(2, 6, 3)
    npt.assert_allclose(linalg.tensorsolve(a, np.ones((2, 3)), 1), np.linalg.tensorsolve(a, np.ones((2, 3)), (1,)))
