"""Densities of data against SciPy's, with derivatives against differences, and what is drawn against its moments."""

import numpy as np
import pytest
import scipy.stats as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, LinAlgError, ShapeError
from harp.scipy.stats import gaussian_kde
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
METHODS = [None, "scott", "silverman", 0.7, pytest.param(lambda kde: kde.neff ** (-1 / 3), id="function")]


def both(d, weighted=True, method=None, n=12):
    data = RNG.normal(size=(d, n)) * np.arange(1, d + 1)[:, None]
    weights = RNG.uniform(0.5, 2, n) if weighted else None
    return gaussian_kde(data, method, weights), truth.gaussian_kde(data, method, weights)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_densities_beside_scipy(d, method, weighted):
    ours, theirs = both(d, weighted, method)
    other, their_other = both(d, n=7)
    np.testing.assert_allclose(ours.covariance, theirs.covariance)
    np.testing.assert_allclose(ours.inv_cov, theirs.inv_cov)
    assert (ours.d, ours.n) == (theirs.d, theirs.n)
    points, mean = RNG.normal(size=(d, 5)) * 3, RNG.normal(size=d)
    cov = np.eye(d) + 0.25

    def values(kde, points, other):
        found = [kde(points), kde.pdf(points), kde.evaluate(points), kde.logpdf(points)]
        found += [kde.integrate_gaussian(mean, cov), kde.integrate_kde(other), other.integrate_kde(kde)]
        return found + ([kde.integrate_box_1d(-0.5, 2.0)] if d == 1 else [])

    expected = values(theirs, points, their_other)
    for f in (values, harp.jit(values)):
        for a, b in zip(f(ours, points, other), expected, strict=True):
            assert a.shape == np.shape(b)
            np.testing.assert_allclose(a, b, rtol=1e-10)


def test_vectors_of_points():
    one, theirs = both(1)
    np.testing.assert_allclose(one(np.array([0.0, 2.0])), theirs([0.0, 2.0]))
    np.testing.assert_allclose(one(0.5), theirs(0.5))
    three, theirs = both(3)
    np.testing.assert_allclose(three(np.ones(3)), theirs(np.ones(3)))
    assert np.isfinite(three.logpdf(1e4 * np.ones(3))).all() and three(1e4 * np.ones(3)).tolist() == [0.0]
    assert three(np.ones((3, 0))).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_dtypes(dtype):
    data = (10 * RNG.normal(size=9)).astype(dtype)
    found = gaussian_kde(data)(np.array([1, 2], dtype))
    assert found.dtype == ("float32" if dtype == "float32" else "float64")
    np.testing.assert_allclose(found, truth.gaussian_kde(data)([1, 2]), rtol=1e-5)


def test_one_program_for_all_sizes():
    density = harp.jit(
        lambda data, points: gaussian_kde(data)(points), signature=[harp.f64["d", "n"], harp.f64["d", "m"]]
    )
    for d, n, m in ((1, 5, 3), (2, 8, 1), (3, 20, 0)):
        data, points = RNG.normal(size=(d, n)), RNG.normal(size=(d, m))
        np.testing.assert_allclose(density(data, points), truth.gaussian_kde(data)(points), rtol=1e-10)


def test_derivatives_and_batches():
    data, points, weights = RNG.normal(size=(2, 6)), RNG.normal(size=(2, 3)), RNG.uniform(0.5, 2, 6)

    def values(data, points, weights):
        kde = gaussian_kde(data, weights=weights)
        return kde.logpdf(points), kde.integrate_gaussian(hnp.zeros(2), hnp.eye(2)), kde.integrate_kde(kde)

    check_grads(harp.jit(values), (data, points, weights), 2)
    made = harp.vmap(gaussian_kde)(np.stack([data, 2 * data]))
    np.testing.assert_allclose(harp.vmap(lambda k: k(points))(made)[1], gaussian_kde(2 * data)(points))


def test_numbers_that_are_drawn():
    kde, _ = both(2, n=30)
    drawn = harp.jit(lambda kde, key: kde.resample(key, (200, 100)))(kde, harp.random.key(3))
    assert drawn.shape == (2, 200, 100)
    flat = np.asarray(drawn).reshape(2, -1)
    data, w = np.asarray(kde.dataset), np.asarray(kde.weights)
    np.testing.assert_allclose(flat.mean(1), data @ w, atol=0.05)
    spread = np.cov(data, aweights=w, bias=True) + np.asarray(kde.covariance)
    np.testing.assert_allclose(np.cov(flat), spread, atol=0.15)
    assert kde.resample(harp.random.key(0)).shape == (2,)


def test_what_does_not_fit():
    one, three = both(1)[0], both(3)[0]
    for call in (
        lambda: gaussian_kde(np.ones(1)),
        lambda: gaussian_kde(np.ones((2, 3, 4))),
        lambda: gaussian_kde(np.arange(4.0), weights=np.ones(3)),
        lambda: gaussian_kde(np.arange(4.0), weights=np.ones((1, 4))),
        lambda: three(np.ones((2, 5))),
        lambda: three.integrate_box_1d(0.0, 1.0),
        lambda: one.integrate_box_1d(np.zeros(2), 1.0),
        lambda: three.integrate_gaussian(np.zeros(2), np.eye(3)),
        lambda: three.integrate_gaussian(np.zeros(3), np.eye(2)),
        lambda: three.integrate_kde(one),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(ArgumentError, match="bw_method"):
        gaussian_kde(np.arange(4.0), "other")
    with pytest.raises(DTypeError, match="dataset"):
        gaussian_kde(np.ones(3) * 1j)
    with pytest.raises(DTypeError, match="points"):
        one(1j)
    flat = np.stack([np.arange(4.0), np.zeros(4)])
    with pytest.raises(LinAlgError, match="positive definite"):
        gaussian_kde(flat)(np.zeros(2))
    assert np.isnan(harp.jit(lambda x: gaussian_kde(x)(np.zeros(2)))(flat)).all()
