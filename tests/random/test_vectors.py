"""Normal vectors have their mean and covariance; points fill the ball; matrices are orthogonal, by Haar's measure."""

import numpy as np
import numpy.testing as npt
import pytest
from scipy import stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.random import ball, key, multivariate_normal, normal, orthogonal, split

K = key(14)
MEAN, COV = np.array([1.0, -2.0, 0.5]), np.array([[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.5]])


@pytest.mark.parametrize("method", ["cholesky", "eigh", "svd"])
def test_normal_vectors(method):
    sample = np.asarray(multivariate_normal(K, MEAN, COV, 20_000, method=method))
    npt.assert_allclose(sample.mean(0), MEAN, atol=0.05)
    whitened = np.linalg.solve(np.linalg.cholesky(COV), (sample - MEAN).T)
    assert stats.kstest(whitened.ravel(), stats.norm.cdf).pvalue > 1e-3
    npt.assert_allclose(np.cov(whitened), np.eye(3), atol=0.05)
    assert multivariate_normal(K, MEAN.astype("f4"), COV.astype("f4"), method=method).dtype == np.float32

    # d E[sum(w x**2)] / d cov is the diagonal of w, which a mean over numbers that do not depend on it estimates
    w = np.array([1.0, 2.0, 3.0])
    of = harp.grad(
        lambda m, c: hnp.mean((multivariate_normal(K, m, c, 20_000, method=method) ** 2) @ w), argnums=(0, 1)
    )
    by_mean, by_cov = of(MEAN, COV)
    npt.assert_allclose(by_mean, 2 * w * MEAN, atol=0.2)
    npt.assert_allclose((np.asarray(by_cov) + np.asarray(by_cov).T) / 2, np.diag(w), atol=0.15)


def test_normal_vectors_of_cholesky_factors_and_singular_covariances():
    drawn = np.asarray(normal(K, (4, 3)))
    npt.assert_allclose(multivariate_normal(K, MEAN, COV, 4), MEAN + drawn @ np.linalg.cholesky(COV).T)
    for method in ("eigh", "svd"):
        flat = np.asarray(multivariate_normal(K, np.zeros(2), np.ones((2, 2)), 50, method=method))
        npt.assert_allclose(flat[:, 0], flat[:, 1], atol=1e-7)


def test_batches_and_sizes_of_normal_vectors():
    many = np.broadcast_to(COV, (4, 3, 3)) * np.arange(1.0, 5)[:, None, None]
    result = multivariate_normal(K, np.zeros((2, 1, 3)), many)
    expected = np.einsum("bij,abj->abi", np.linalg.cholesky(many), np.asarray(normal(K, (2, 4, 3))))
    npt.assert_allclose(result, expected)
    draw = harp.jit(lambda k, m, c, x: multivariate_normal(k, m, c, x.shape))
    for n, shape in ((3, (2, 2)), (0, (1, 2)), (1, (0, 3)), (2, (4, 1))):
        like = np.zeros(shape)
        found = draw(K, MEAN[:n], COV[:n, :n], like)
        assert found.shape == (*shape, n)
        npt.assert_allclose(found, multivariate_normal(K, MEAN[:n], COV[:n, :n], shape), rtol=1e-12)
    keys = split(K, 3)
    batch = harp.vmap(lambda k, c: multivariate_normal(k, MEAN, c))(keys, many[:3])
    npt.assert_allclose(batch, [multivariate_normal(k, MEAN, c) for k, c in zip(keys, many, strict=False)])


@pytest.mark.parametrize("p", [1.0, 2, 3.5])
def test_points_in_a_ball(p):
    points = np.asarray(ball(K, 3, p, (100, 200))).reshape(-1, 3)
    radius = (np.abs(points) ** p).sum(-1) ** (1 / p)
    assert stats.kstest(radius**3, stats.uniform.cdf).pvalue > 1e-3
    npt.assert_allclose(points.mean(0), 0, atol=0.02)
    assert ball(K, 0, shape=(2,), dtype="float32").shape == (2, 0)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_orthogonal_matrices(dtype):
    for n, m in ((3, 3), (2, 4), (4, 2)):
        q = orthogonal(K, n, 2000, dtype, m)
        assert q.shape == (2000, n, m) and q.dtype == dtype
        tall = np.asarray(q) if n >= m else np.asarray(q).mT
        eps = 50 * np.finfo(dtype).eps
        npt.assert_allclose(
            tall.conj().mT @ tall, np.broadcast_to(np.eye(min(n, m)), (2000, *(min(n, m),) * 2)), atol=eps
        )
        # each column is evenly distributed over the sphere
        size = max(n, m) * (2 if tall.dtype.kind == "c" else 1)
        for j in range(min(n, m)):
            law = stats.beta((size - 1) / 2, (size - 1) / 2)
            assert stats.kstest((tall[:, -1, j].real.astype(float) + 1) / 2, law.cdf).pvalue > 1e-3
    draw = harp.jit(lambda k, x: orthogonal(k, x.shape[0], (2,), dtype))
    for n in (0, 1, 5):
        assert draw(K, np.zeros(n)).shape == (2, n, n)
    assert draw.compilations == 1


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: multivariate_normal(K, MEAN, COV[:2]), errors.ShapeError, r"not \(3,\) and \(2, 3\)"),
        (lambda: multivariate_normal(K, 0.0, COV), errors.ShapeError, r"a mean of shape \(\.\.\., n\)"),
        (lambda: multivariate_normal(K, MEAN, COV, method="qr"), errors.ArgumentError, "cholesky, eigh, svd, not 'qr'"),
        (lambda: orthogonal(K, -1), errors.ShapeError, "n is negative"),
        (lambda: orthogonal(K, 2, dtype="float16"), errors.DTypeError, "orthogonal draws float32 or float64"),
        (lambda: ball(K, 2.5), errors.ShapeError, "d must be an integer"),
    ],
)
def test_errors(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
