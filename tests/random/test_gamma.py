"""Gamma, beta and Dirichlet numbers are so distributed, for all shapes, and say that they have no derivative."""

import sys

import numpy as np
import numpy.testing as npt
import pytest
from scipy import stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.random import beta, dirichlet, gamma, key, loggamma
from harp.random.gamma import ATTEMPTS

K = key(5)
compiled = harp.jit(lambda k, a, x: (gamma(k, a, x.shape), loggamma(k, a, x.shape)))


@pytest.mark.parametrize("a", [1e-3, 0.3, 1.0, 1.7, 30.0, 1e6])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma(dtype, a):
    values, logarithms = compiled(K, np.asarray(a, dtype), np.zeros(20_000))
    assert values.dtype == logarithms.dtype == dtype
    sample = np.asarray(logarithms, np.float64)
    assert stats.kstest(sample, stats.loggamma(a).cdf).pvalue > 1e-3
    with np.errstate(under="ignore"):
        npt.assert_allclose(values, np.exp(sample), rtol=2e3 * np.finfo(dtype).eps, atol=np.finfo(dtype).tiny)


def test_one_program_and_the_same_numbers_outside():
    for n in (0, 1, 7):
        for dtype in ("float32", "float64"):
            inside = compiled(K, np.asarray(2.5, dtype), np.zeros(n))
            npt.assert_allclose(inside[0], gamma(K, np.asarray(2.5, dtype), n), rtol=1e-5)
            npt.assert_allclose(inside[1], loggamma(K, np.asarray(2.5, dtype), n), rtol=1e-4, atol=1e-6)
    assert compiled.compilations == 2  # one for each dtype
    npt.assert_array_equal(gamma(K, 2.5, 9)[:4], gamma(K, 2.5, 4))


def test_shapes_and_special_parameters():
    assert gamma(K, 2.0).shape == ()
    assert gamma(K, np.ones((3, 1)), (2, 3, 4)).shape == (2, 3, 4)
    assert gamma(K, np.ones(3, np.int8)).dtype == np.float32
    special = np.array([0.0, -1.0, np.nan, np.inf, -0.5])
    npt.assert_array_equal(gamma(K, special), [0, np.nan, np.nan, np.inf, np.nan])
    npt.assert_array_equal(loggamma(K, special), [-np.inf, np.nan, np.nan, np.inf, np.nan])
    with pytest.raises(errors.ShapeError, match="axis 0"):
        gamma(K, np.ones(3), 2)


def test_the_attempts_suffice():
    """One attempt fails most often at the shape 1: with this probability, which the page states."""
    d = 1 - 1 / 3
    x = np.linspace(-3 * np.sqrt(d), 12, 400_001)[1:]
    v = (1 + x / (3 * np.sqrt(d))) ** 3
    accepted = np.minimum(1, np.exp(x * x / 2 + d - d * v + d * np.log(v))) * stats.norm.pdf(x)
    fails = 1 - np.trapezoid(accepted, x)
    npt.assert_allclose(fails, 0.0483, atol=1e-4)
    assert fails**ATTEMPTS < 2.0**-69


@pytest.mark.parametrize("draw", [gamma, loggamma, lambda k, a: beta(k, a, 2.0), lambda k, a: beta(k, 2.0, a)])
def test_derivatives_raise(draw):
    with pytest.raises(errors.MissingRuleError, match=r"no derivative .* put harp.stop_gradient"):
        harp.grad(lambda a: draw(K, a))(2.0)
    assert float(harp.grad(lambda a: a * harp.stop_gradient(draw(K, a)))(2.0)) == float(draw(K, 2.0))
    assert float(harp.grad(lambda a: a * draw(K, harp.stop_gradient(a)))(2.0)) == float(draw(K, 2.0))


def test_dirichlet_raises_too():
    with pytest.raises(errors.MissingRuleError, match="no derivative"):
        harp.grad(lambda a: dirichlet(K, a)[0])(np.ones(3))


def test_beta():
    draw = harp.jit(lambda k, a, b, x: beta(k, a, b, x.shape))
    for a, b in ((0.5, 2.0), (3.0, 3.0), (40.0, 1.0)):
        assert stats.kstest(np.asarray(draw(K, a, b, np.zeros(20_000))), stats.beta(a, b).cdf).pvalue > 1e-3
    tiny = np.asarray(draw(K, 1e-4, 1e-4, np.zeros(1000)))  # gamma numbers of these shapes are 0 in float64
    assert ((tiny >= 0) & (tiny <= 1)).all()
    assert abs(tiny.mean() - 0.5) < 0.1
    assert beta(K, np.ones((2, 1), np.float32), np.ones(3, np.float32)).shape == (2, 3)


def test_dirichlet():
    alpha = np.array([0.5, 1.0, 2.5])
    sample = np.asarray(harp.jit(lambda k, a, x: dirichlet(k, a, x.shape))(K, alpha, np.zeros((100, 200))))
    assert sample.shape == (100, 200, 3)
    npt.assert_allclose(sample.sum(-1), 1)
    for j in range(3):
        assert stats.kstest(sample[..., j].ravel(), stats.beta(alpha[j], 4 - alpha[j]).cdf).pvalue > 1e-3
    assert dirichlet(K, np.ones((4, 3), np.float32)).shape == (4, 3)
    assert hnp.sum(dirichlet(K, np.full(5, 1e-3))).item() == pytest.approx(1)


def test_outside_of_traces_attempts_are_made_for_those_that_have_none_only(monkeypatch):
    """The same attempts count as in the interpreter of graphs, which makes them all."""
    a = np.linspace(0.05, 5, 300).reshape(20, 15)
    module = sys.modules["harp.random.rejection"]
    few = np.asarray(gamma(K, a, (4, 20, 15)))
    monkeypatch.setattr(module, "_first_at_once", module._first)
    npt.assert_array_equal(few, np.asarray(gamma(K, a, (4, 20, 15))))
