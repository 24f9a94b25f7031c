"""The distributions of `harp.scipy.stats` against SciPy's, inside and outside of their support."""

import numpy as np
import pytest
import scipy.stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.scipy import stats

INF, NAN = np.inf, np.nan
PARAMETERS = {
    **dict.fromkeys(("norm", "uniform", "expon", "laplace", "logistic", "cauchy", "gumbel_r", "gumbel_l"), ()),
    "gennorm": (1.5,), "vonmises": (2.5,), "wrapcauchy": (0.4,), "betabinom": (10, 2.0, 0.5),
    "gamma": (2.5,), "chi2": (3.0,), "beta": (2.0, 0.5), "t": (4.0,), "pareto": (2.5,), "truncnorm": (-1.0, 2.0),
    "poisson": (3.5,), "bernoulli": (0.3,), "binom": (10, 0.3), "geom": (0.3,), "nbinom": (5, 0.3),
}  # fmt: skip
JOINT = {"multivariate_normal", "dirichlet", "multinomial"}
FUNCTIONS = {"gaussian_kde", "mode", "rankdata", "sem"}
NUMBERS = np.array([-3, -2, -1, -0.5, 0, 0.1, 0.5, 0.99, 1, 1.5, 2, 3, 5, 10, 11, 20, INF, -INF, NAN])
SHARES = np.array([-0.1, 1e-10, 0.1, 0.5, 0.7, 1 - 1e-9, 1, 1.1, NAN])
DISCRETE = ("betabinom", "poisson", "bernoulli", "binom", "geom", "nbinom")


def test_all_are_checked():
    assert {*PARAMETERS} | JOINT | FUNCTIONS == {*stats.__all__}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", PARAMETERS)
def test_values(name):
    ours, theirs = getattr(stats, name), getattr(scipy.stats, name)
    moved = {"loc": 1} if name in DISCRETE else {"loc": 0.25, "scale": 1.5}
    for kind in ours._functions:
        x = SHARES if kind in ("ppf", "isf") else NUMBERS
        found = np.asarray(getattr(ours, kind)(x, *PARAMETERS[name], **moved))
        expected = getattr(theirs, kind)(x, *PARAMETERS[name], **moved)
        if (name, kind) == ("bernoulli", "isf"):
            expected[x == 1] = 1  # SciPy: one less than the smallest number
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15 if "log" in kind else 1e-27)


def test_derivatives_of_densities():
    x = {True: np.array([-50.0, 1.0, 3.0, 70.0]), False: np.array([-50.0, 0.6, 0.8, 70.0])}
    given = {n: [np.asarray(p, float) for p in (*ps, *([] if n in DISCRETE else [0.1, 1.3]))]
             for n, ps in PARAMETERS.items()}  # fmt: skip
    given["pareto"][1] -= 1
    del given["binom"], given["betabinom"], given["uniform"]

    def one(name, values):
        distribution = getattr(stats, name)
        density = distribution.pmf if name in DISCRETE else distribution.pdf
        return hnp.sum(density(x[name in DISCRETE], *values))

    slopes = harp.grad(lambda given: sum(one(name, values) for name, values in given.items()))(given)
    for name, values in given.items():
        for k, slope in enumerate(slopes[name]):
            steps = [1e-6 * (k == m) for m in range(len(values))]
            up, down = (float(one(name, [v + s * t for v, t in zip(values, steps, strict=True)])) for s in (1, -1))
            np.testing.assert_allclose(slope, (up - down) / 2e-6, rtol=1e-6, atol=1e-8, err_msg=f"{name} {k}")


def test_derivatives_of_distribution_functions_are_densities():
    x = np.array([0.3, 0.8])
    names = [
        n
        for n in PARAMETERS
        if n not in DISCRETE and "cdf" in getattr(stats, n)._functions and n not in ("beta", "gamma", "pareto")
    ]

    def total(x):
        return sum(hnp.sum(getattr(stats, n).cdf(x, *PARAMETERS[n])) for n in names)

    expected = sum(getattr(scipy.stats, n).pdf(x, *PARAMETERS[n]) for n in names)
    np.testing.assert_allclose(harp.grad(total)(x), expected, rtol=1e-12)


def test_vectors():
    rng = np.random.default_rng(0)
    mean, root, x = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=(5, 3))
    cov = root @ root.T + np.eye(3)
    expected = scipy.stats.multivariate_normal.logpdf(x, mean, cov)
    np.testing.assert_allclose(stats.multivariate_normal.logpdf(x, mean, cov), expected, rtol=1e-12)
    single = harp.vmap(lambda v: stats.multivariate_normal.pdf(v, mean, cov=cov))(x)
    np.testing.assert_allclose(single, np.exp(expected), rtol=1e-12)
    p, alpha = rng.dirichlet(np.ones(3), 4).T, np.array([0.5, 2.0, 3.0])
    np.testing.assert_allclose(stats.dirichlet.logpdf(p, alpha), scipy.stats.dirichlet.logpdf(p, alpha), rtol=1e-12)
    assert float(stats.dirichlet.pdf(np.array([0.5, 0.5, 0.5]), alpha)) == 0


def test_counts():
    x, p = np.array([[2, 1, 3], [0, 0, 6], [1, 1, 1], [7, -1, 0]]), np.array([0.2, 0.3, 0.5])
    for f in (stats.multinomial.logpmf, harp.jit(stats.multinomial.logpmf)):
        np.testing.assert_allclose(f(x, 6, p), scipy.stats.multinomial.logpmf(x, 6, p), rtol=1e-12)
    np.testing.assert_allclose(stats.multinomial.pmf(x[0], 6, p), scipy.stats.multinomial.pmf(x[0], 6, p), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
def test_ranks(dtype):
    rng = np.random.default_rng(1)
    program = harp.jit(lambda x: [stats.rankdata(x, m, axis=k) for m in METHODS for k in (None, 1, 0)])
    for shape in ((3, 7), (1, 1), (2, 0)):
        x = rng.integers(0, 4, shape).astype(dtype)
        wanted = [scipy.stats.rankdata(x, m, axis=k) for m in METHODS for k in (None, 1, 0)]
        for found, expected in zip(program(x), wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(found), expected)
    assert np.asarray(stats.rankdata(np.array([3, 1], dtype), "ordinal")).tolist() == [2, 1]


METHODS = ("average", "min", "max", "dense", "ordinal")


def test_ranks_and_modes_with_nan():
    x = np.array([[1.0, np.nan, 1.0], [3.0, 2.0, 2.0]])
    np.testing.assert_array_equal(np.asarray(stats.rankdata(x, axis=1)), scipy.stats.rankdata(x, axis=1))
    value, count = stats.mode(np.array([np.nan, 1.0, np.nan]))
    assert np.isnan(value) and count == 2


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("keepdims", [False, True])
def test_modes_and_errors_of_means(axis, keepdims):
    x = np.random.default_rng(2).integers(0, 4, (5, 6))
    for name in ("mode", "sem"):
        f = lambda x, name=name: getattr(stats, name)(x, axis=axis, keepdims=keepdims)
        expected = getattr(scipy.stats, name)(x, axis=axis, keepdims=keepdims)
        for g in (f, harp.jit(f)):
            for found, each in zip(*((r if name == "mode" else [r]) for r in (g(x), expected)), strict=True):
                np.testing.assert_allclose(np.asarray(found), each, rtol=1e-14, strict=True)
    slope = harp.grad(lambda x: hnp.sum(stats.sem(x)))(np.array([1.0, 3.0]))
    np.testing.assert_allclose(slope, [-0.5, 0.5])
    single = stats.sem(np.float32([1, 3]))
    assert single.dtype == np.float32 and float(single) == 1


def test_dtypes_sizes_and_tails():
    program = harp.jit(lambda x: (stats.norm.logsf(x), stats.truncnorm.logcdf(x, 30.0, 40.0), stats.t.pdf(x, 3.0)))
    for n in (0, 1, 3):
        x = np.linspace(30.5, 39, n, dtype=np.float32)
        found = program(x)
        assert {f.dtype for f in found} == {np.dtype("float32")}
        wide = x.astype(float)
        np.testing.assert_allclose(found[0], scipy.stats.norm.logsf(wide), rtol=1e-7)
        np.testing.assert_allclose(found[1], scipy.stats.truncnorm.logcdf(wide, 30, 40), rtol=1e-5, atol=1e-12)
        np.testing.assert_allclose(found[2], scipy.stats.t.pdf(wide, 3), rtol=1e-6)
    np.testing.assert_allclose(harp.grad(stats.norm.logcdf)(-1e8), 1e8, rtol=1e-15)


def test_numbers_of_python():
    assert float(stats.norm.ppf(0.5)) == float(stats.norm.isf(0.5)) == 0
    np.testing.assert_allclose(stats.geom.logpmf(2, 0.5), np.log(0.25))


ERRORS = [
    (lambda: stats.gamma.pdf(1.0), "gamma.pdf takes .*a, loc.*missing"),
    (lambda: stats.t.cdf(1.0, 2.0), "t has no cdf; it has logpdf, pdf"),
    (lambda: stats.poisson.pmf(1, 2.0, scale=2.0), "poisson.pmf takes"),
    (lambda: stats.rankdata(np.ones(2), "first"), "method of rankdata is one of average"),
    (lambda: stats.mode(np.ones(2), nan_policy="omit"), "nan_policy of mode is 'propagate'"),
    (lambda: stats.norm.pmf(1), "norm has no pmf; it has logpdf"),
]


@pytest.mark.parametrize(("call", "text"), ERRORS)
def test_errors(call, text):
    with pytest.raises(errors.ArgumentError, match=text):
        call()
