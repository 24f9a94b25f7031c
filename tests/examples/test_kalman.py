"""The hidden cycle: the filter against the normal distribution of a whole series, and the parameters found."""

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import multivariate_normal


@pytest.fixture
def example(load):
    return load("kalman")


def covariance(model, length):
    """Of the observations of a stationary cycle: by its autocovariance, without a filter."""
    lags = np.arange(length)
    signal = model.push**2 / (1 - model.damping**2) * model.damping**lags * np.cos(2 * np.pi * lags / model.period)
    return toeplitz(signal) + model.noise**2 * np.eye(length)


def likelihood(model, observed):
    return multivariate_normal.logpdf(observed, np.zeros(len(observed)), covariance(model, len(observed)))


def test_likelihood(example):
    for length in (1, 2, 10, 100):
        _, observed = example.simulate(example.TRUTH, length, np.random.default_rng(length))
        found, _ = example.kalman_filter(example.GUESS, observed)
        assert float(found) == pytest.approx(likelihood(example.GUESS, observed), rel=1e-10)
    assert float(example.kalman_filter(example.GUESS, np.zeros(0))[0]) == 0
    assert example.kalman_filter.compilations == 1


def test_prediction(example):
    """Mean and variance of the last element of a normal vector, given the others."""
    _, observed = example.simulate(example.TRUTH, 30, np.random.default_rng(0))
    mean, variance = (np.asarray(a)[-1] for a in example.kalman_filter(example.TRUTH, observed)[1])
    cov = covariance(example.TRUTH, 30)
    weights = np.linalg.solve(cov[:-1, :-1], cov[:-1, -1])
    assert mean == pytest.approx(weights @ observed[:-1], rel=1e-10)
    assert variance == pytest.approx(cov[-1, -1] - example.TRUTH.noise**2 - weights @ cov[:-1, -1], rel=1e-10)


def test_gradient(example):
    _, observed = example.simulate(example.TRUTH, 60, np.random.default_rng(1))
    unknown = np.array([2.0, 2.5, -0.5, 0.1])

    def loss(unknown):
        return -likelihood(example.Model(*map(float, example.model_of(unknown))), observed) / 60

    value, gradient = example.loss_and_gradient(unknown, observed)
    assert float(value) == pytest.approx(loss(unknown), rel=1e-10)
    differences = [(loss(unknown + d) - loss(unknown - d)) / 2e-5 for d in 1e-5 * np.eye(4)]
    np.testing.assert_allclose(np.asarray(gradient), differences, rtol=1e-6, atol=1e-8)


def test_parameters_are_found(example):
    for length in (30, 4000):
        _, observed = example.simulate(example.TRUTH, length, np.random.default_rng(5))
        found = example.fit(observed)
    assert example.loss_and_gradient.compilations == 1
    errors = np.abs(np.subtract(found, example.TRUTH))
    assert (errors < [0.2, 0.014, 0.04, 0.055]).all()  # about four standard errors


def test_main(example, run):
    printed = run(example, "--lengths", "40", "300").splitlines()
    assert [line.split()[0] for line in printed[1:4]] == ["40", "300", "truth"]
    assert 10 < float(printed[2].split()[1]) < 12
    assert printed[4] == "programs compiled: 1 for the likelihood and its gradient"


def test_needs_a_period(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--lengths", "9"])
    assert "--lengths" in capsys.readouterr().err
