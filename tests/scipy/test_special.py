"""The functions of `harp.scipy.special` against SciPy and 40 digits, and gradients that are functions too."""

import doctest

import mpmath
import numpy as np
import pytest
import scipy.special

import harp
import harp.numpy as hnp
from harp import errors

special = harp.scipy.special
INF, NAN = np.inf, np.nan
UNARY = ("gammaln", "digamma", "expit", "logit")
program = harp.jit(lambda x: {name: getattr(special, name)(x) for name in UNARY})
slopes = harp.jit(
    lambda x: {name: harp.grad(lambda x, name=name: hnp.sum(getattr(special, name)(x)))(x) for name in UNARY[:2]}
)


def points(low=-40.0):
    rng = np.random.default_rng(0)
    near = [base + e for base in (0.5, 1.0, 1.5, 2.0, 2.5, 7.5, 8.0) for e in (-1e-9, 0.0, 1e-9, 3e-5, -1e-4)]
    spread = [*rng.uniform(0, 10, 60), *rng.uniform(low, 0, 60), *np.exp(rng.uniform(-300, 300, 40))]
    return np.array([*near, *spread, -1e-13, -1e-17, -1e-20, -1e-300, -1 - 1e-13])


def exact(name, x):
    with mpmath.workdps(40):
        function = {"gammaln": lambda v: mpmath.re(mpmath.loggamma(v)), "digamma": mpmath.digamma}[name]
        return np.array([float(function(mpmath.mpf(float(v)))) for v in x])


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_of_gamma(name):
    x = points()
    expected = exact(name, x)
    for found in (program(x)[name], getattr(special, name)(x)):
        allowed = np.maximum(np.abs(expected), np.where((x > 0) & (name == "gammaln"), 0, 1))
        assert (np.abs(found - expected) <= 3e-15 * allowed * np.where(x < 0, 20, 1)).all()
    single = x.astype(np.float32)
    single = single[(single > 0) | (single != np.floor(single))]
    with np.errstate(over="ignore"):
        wanted = exact(name, single).astype(np.float32)
    np.testing.assert_allclose(program(single)[name], wanted, rtol=2e-7, atol=2e-7)


def test_gamma_at_special_points():
    x = np.array([0.0, -0.0, -1.0, -7.0, INF, -INF, NAN, 1.0, 2.0, 1e308, -1e300])
    np.testing.assert_allclose(program(x)["gammaln"], [INF, INF, INF, INF, INF, INF, NAN, 0, 0, INF, INF], rtol=1e-14)
    np.testing.assert_array_equal(program(x)["digamma"][np.array([0, 1, 2, 3, 6])], NAN)
    assert program(x)["digamma"][4] == INF
    np.testing.assert_allclose(special.gammaln(np.float16(5)), np.float16(np.log(24)))


def test_gradients_are_digamma_and_trigamma():
    x = points(-9.0)
    x = x[(np.abs(x) < 1e100) & (np.abs(x) > 1e-100) & (np.abs(x - np.round(x)) > 1e-6)]
    np.testing.assert_allclose(slopes(x)["gammaln"], scipy.special.digamma(x), rtol=1e-11, atol=2e-13)
    np.testing.assert_allclose(slopes(x)["digamma"], scipy.special.polygamma(1, np.where(x > 0, x, 1))
                               * (x > 0) + np.where(x > 0, 0, _trigamma(x)), rtol=1e-10, atol=1e-12)  # fmt: skip
    twice = harp.grad(lambda x: hnp.sum(harp.grad(lambda x: hnp.sum(special.gammaln(x)))(x)))
    np.testing.assert_allclose(twice(x[x > 0]), scipy.special.polygamma(1, x[x > 0]), rtol=1e-9, atol=1e-12)
    assert harp.grad(special.gammaln)(INF) == INF


def _trigamma(x):
    with mpmath.workdps(40):
        return np.array([float(mpmath.polygamma(1, mpmath.mpf(float(v)))) for v in x])


def test_logit_and_its_inverse():
    x = np.array([0.0, -0.0, 1.0, 0.5, 0.3, 0.25, 0.75, 1e-300, 5e-324, 0.5 + 1e-12, 1 - 1e-12, -0.1, -1e-40, 1.1, NAN])
    np.testing.assert_allclose(program(x)["logit"], scipy.special.logit(x), rtol=2e-15)
    single = np.array([1e-45, 1e-39, 0.3, 0.7], "float32")
    np.testing.assert_allclose(program(single)["logit"], scipy.special.logit(single.astype(float)), rtol=2e-7)
    slope = harp.grad(special.logit)
    for p, order, expected in [
        (0.5, 1, 4.0),
        (1e-200, 1, 1e200),
        (0.5, 2, 0.0),
        (0.25, 2, 16 / 9 - 16),
        (1e-200, 2, -INF),
        (1e-100, 3, 2e300),
        (0.5, 3, 32.0),
    ]:
        f = slope if order == 1 else harp.grad(slope) if order == 2 else harp.grad(harp.grad(slope))
        np.testing.assert_allclose(f(p), expected, rtol=1e-14)
    np.testing.assert_allclose(program(x * 20 - 10)["expit"], scipy.special.expit(x * 20 - 10), rtol=4e-15)


@pytest.mark.parametrize("name", ["xlogy", "xlog1py"])
def test_products_with_logarithms(name):
    values = np.array([0.0, -0.0, 1.0, 0.5, 3.0, -1.0, -2.0, INF, NAN])
    x, y = (a.ravel() for a in np.meshgrid(values, values))
    expected = getattr(scipy.special, name)(x, y)
    np.testing.assert_allclose(getattr(special, name)(x, y), expected, rtol=1e-15)
    by_x, by_y = harp.grad(lambda x, y: getattr(special, name)(x, y), argnums=(0, 1))(0.0, 0.0)
    assert (float(by_x), float(by_y)) == (0.0, 0.0)
    by_x, by_y = harp.grad(lambda x, y: getattr(special, name)(x, y), argnums=(0, 1))(0.0, 2.0)
    np.testing.assert_allclose((by_x, by_y), (np.log(2.0 + (name == "xlog1py")), 0.0))


def test_beta():
    rng = np.random.default_rng(3)
    a, b = (np.array([0.5, 2.0, 8.0, 7.9, 1e15, 3.0, 0.5, 1e-20, 1e308, *10 ** rng.uniform(-12, 16, 40)]),
            np.array([2.0, 0.1, 8.0, 8.0, 2.5, 1e12, 1e8, 1e30, 1e308, *10 ** rng.uniform(-12, 16, 40)]))  # fmt: skip
    with mpmath.workdps(350):
        log = mpmath.loggamma
        expected = np.array([float(log(p) + log(q) - log(p + q)) for p, q in zip(*map(_exactly, (a, b)), strict=True)])
        psi = [[float(mpmath.psi(0, x) - mpmath.psi(0, x + y)) for x, y in ((p, q), (q, p))]
               for p, q in zip(*map(_exactly, (a[:8], b[:8])), strict=True)]  # fmt: skip
    for found in (special.betaln(a, b), special.betaln(b, a)):
        np.testing.assert_allclose(found, expected, rtol=3e-15, atol=3e-15)
    slopes = harp.grad(lambda a, b: hnp.sum(special.betaln(a, b)), argnums=(0, 1))(a[:8], b[:8])
    np.testing.assert_allclose(np.transpose(slopes), psi, rtol=1e-13)


def _exactly(x):
    return [mpmath.mpf(float(v)) for v in x]


def test_beta_at_special_points():
    points = [(INF, 1.0), (1.0, INF), (INF, INF), (NAN, 1.0), (1.0, NAN), (NAN, INF), (0.0, 20.0), (-0.5, INF)]
    a, b = np.array(points).T
    np.testing.assert_array_equal(special.betaln(a, b), [-INF, -INF, -INF, NAN, NAN, NAN, INF, INF])
    a, b = np.array([-0.5, -10.5, -2.5]), np.array([1e15, 30.0, 4.0])
    np.testing.assert_allclose(special.betaln(a, b), scipy.special.betaln(a, b), rtol=1e-13)
    assert list(map(float, harp.grad(special.betaln, argnums=(0, 1))(3.0, INF))) == [-INF, 0.0]


VALUES = np.array([0.0, -0.0, 1.0, 0.5, 2.0, -1.0, -2.5, 1e300, INF, -INF, NAN])


NAMES = "dawsn erfcx ndtr log_ndtr ndtri entr expi exp1 spence i0 i0e i1 i1e j0 j1 gamma gammasgn factorial"


@pytest.mark.parametrize("name", NAMES.split())
def test_special_values(name):
    found, expected = np.asarray(getattr(special, name)(VALUES)), getattr(scipy.special, name)(VALUES)
    limits = np.isnan(expected) & ~np.isnan(VALUES)  # which SciPy leaves out
    expected = np.where(limits, found, expected)
    chosen = np.abs(VALUES) != (1e300 if name in ("j0", "j1") else None)
    np.testing.assert_allclose(found[chosen], expected[chosen], rtol=1e-14, err_msg=str(found))


PAIRS = "beta poch rel_entr kl_div gammainc gammaincc zeta boxcox boxcox1p owens_t"


@pytest.mark.parametrize("name", PAIRS.split())
def test_special_pairs(name):
    values = np.array([0.0, 1.0, 0.5, 30.0, 200.0, INF, NAN, -1.0])[: 5 if name in ("beta", "poch") else None]
    x, y = (a.ravel()[1:] for a in np.meshgrid(values, values))
    found, expected = np.asarray(getattr(special, name)(x, y)), getattr(scipy.special, name)(x, y)
    expected = np.where(np.isnan(expected) & np.isinf(x) | np.isnan(x) & (y <= 0), found, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=str(np.stack([x, y, found, expected], 1)))


def test_incomplete_beta_at_the_ends():
    values = np.array([0.0, 1.0, 0.5, 1e-10, INF, NAN, -1.0])
    a, b, x = (e.ravel() for e in np.meshgrid(values, values, np.array([0.0, 0.3, 1.0, -0.1, NAN])))
    found, expected = np.asarray(special.betainc(a, b, x)), scipy.special.betainc(a, b, x)
    np.testing.assert_allclose(found, expected, rtol=1e-13, err_msg=str(np.stack([a, b, x, found, expected], 1)))


def test_large_parameters():
    a = np.array([1e4, 1e6, 1e8, 1e15])
    x = a + np.sqrt(a)
    np.testing.assert_allclose(special.gammaincc(a, x), scipy.special.gammaincc(a, x), rtol=1e-10)
    a = np.array([1e3, 1e5, 1e6])
    np.testing.assert_allclose(special.betainc(a, 2 * a, 0.333), scipy.special.betainc(a, 2 * a, 0.333), rtol=1e-9)


@pytest.mark.slow
def test_programs_batches_dtypes_and_sizes():
    def functions(x):
        return special.gammainc(2.0, x), special.i0e(x)

    program = harp.jit(functions)
    for n in (0, 1, 4):
        x = np.linspace(0.5, 3, n)
        for one, other in zip(program(x), functions(x), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-14)
    for dtype, run in (("float16", functions), ("float32", program)):
        for found, exact in zip(run(x.astype(dtype)), functions(x.astype(dtype).astype(float)), strict=True):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, np.asarray(exact).astype(dtype))
    batched = harp.vmap(lambda a: harp.grad(lambda a: special.gammainc(a, 1.5))(a))(x)
    singles = [harp.grad(lambda a: special.gammainc(a, 1.5))(v) for v in x]
    np.testing.assert_allclose(batched, singles, rtol=1e-14)
    assert special.gamma(5).dtype == "float64"
    with pytest.raises(errors.DTypeError):
        special.gammainc(1.0, 1j)
    with pytest.raises(errors.ArgumentError, match="factorial of arrays"):
        special.factorial(3, exact=True)


def test_logarithms_of_weighted_sums():
    rng = np.random.default_rng(0)
    a, b = 1000 * rng.normal(size=(3, 4)), rng.normal(size=(3, 4))
    for axis in (None, 0, -1):
        for keepdims in (False, True):
            found = special.logsumexp(a, axis, b, keepdims, return_sign=True)
            expected = scipy.special.logsumexp(a, axis, b, keepdims, return_sign=True)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-13)
    np.testing.assert_allclose(special.softmax(a), scipy.special.softmax(a), atol=1e-15)
    np.testing.assert_allclose(special.log_softmax(a), scipy.special.log_softmax(a))
    np.testing.assert_allclose(special.multigammaln(4.5, 3), scipy.special.multigammaln(4.5, 3), rtol=1e-14)
    slope = harp.grad(lambda a: special.logsumexp(a, b=np.array([2.0, 0.0])))(np.array([1.0, 2.0]))
    np.testing.assert_allclose(slope, [1.0, 0.0])


@pytest.mark.parametrize("name", special.__all__)
def test_examples(name):
    if name == "expit":  # of harp.numpy
        return
    runner, text = doctest.DocTestRunner(), getattr(special, name).__doc__
    names = {other: getattr(special, other) for other in special.__all__}
    found = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert runner.run(found).attempted and not runner.failures


@pytest.mark.parametrize("name", ["gammaln", "i0", "j0"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_derivatives_that_are_functions_of_their_own(name, dtype):
    """At infinities and poles too, forward, and of second order; the program holds no derivative of the formula."""
    function, x = getattr(special, name), np.array([-2.5, -1.0, 0.25, 3.0, 30.0], dtype)
    slopes = {
        "gammaln": scipy.special.digamma,
        "i0": scipy.special.i1,
        "j0": lambda x: -scipy.special.j1(x),
    }
    expected = slopes[name](x.astype(np.float64))
    rtol = 2e-6 if dtype == np.float32 else 1e-12
    found = harp.jit(harp.grad(lambda x: function(x).sum()))(x)
    assert found.dtype == dtype
    regular = np.isfinite(expected)
    np.testing.assert_allclose(np.asarray(found)[regular], expected[regular], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(harp.jvp(function, (x,), (np.ones_like(x),))[1], found, rtol=rtol, equal_nan=True)
    if dtype == np.float64:
        near = harp.jacfwd(harp.jacfwd(function))(2.5)
        step = 1e-5
        slope = (slopes[name](2.5 + step) - slopes[name](2.5 - step)) / (2 * step)
        np.testing.assert_allclose(near, slope, rtol=1e-8)
