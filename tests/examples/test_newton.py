"""Newton's method: published coefficients, gradients that vanish, and linear equations against NumPy."""

import numpy as np
import pytest

import harp


@pytest.fixture
def example(load):
    return load("newton")


def gradient(coefficients, features, labels, weights):
    return features.T @ (weights * (1 / (1 + np.exp(-features @ coefficients)) - labels))


def test_solve(example):
    solve = harp.jit(example.solve)
    for n in (1, 2, 9):
        rng = np.random.default_rng(n)
        root = rng.normal(size=(n, n + 3))
        matrix, right = root @ root.T, rng.normal(size=n)
        np.testing.assert_allclose(np.asarray(solve(matrix, right)), np.linalg.solve(matrix, right), rtol=1e-9)
    assert solve.compilations == 1


def test_published_coefficients(example):
    found, steps = example.newton(example.design(example.FAHRENHEIT), example.DAMAGED, np.ones(23))
    np.testing.assert_allclose(np.asarray(found), [15.0429, -0.2322], rtol=0, atol=5e-5)
    assert 4 <= int(steps) <= 10


def test_gradient_vanishes(example):
    for rows, columns in ((30, 1), (200, 5), (50, 3)):
        rng = np.random.default_rng(rows)
        features, weights = rng.normal(size=(rows, columns)), rng.exponential(size=rows)
        labels = (rng.normal(size=rows) + features[:, 0] > 0).astype(np.float64)
        found, steps = example.newton(features, labels, weights)
        assert int(steps) < example.MOST_STEPS
        assert np.abs(gradient(np.asarray(found), features, labels, weights)).max() < 1e-10 * rows
    assert example.newton.compilations == 1


def test_stops_where_there_is_no_best_fit(example):
    """Labels that a line separates: the coefficients grow for ever."""
    found, steps = example.newton(np.array([[-1.0], [1.0]]), np.array([0.0, 1.0]), np.ones(2))
    assert int(steps) == example.MOST_STEPS
    assert float(found[0]) > 20


def test_copies(example):
    """All together as one by one, each with a number of steps of its own."""
    features = example.design(example.FAHRENHEIT)
    weights = np.random.default_rng(0).exponential(size=(8, 23))
    together, steps = map(np.asarray, example.bootstrap(features, example.DAMAGED, weights))
    assert len(set(steps.tolist())) > 1
    for k in range(8):
        alone, n = example.newton(features, example.DAMAGED, weights[k])
        np.testing.assert_allclose(together[k], np.asarray(alone), rtol=1e-9)
        assert steps[k] == int(n)
    example.bootstrap(features, example.DAMAGED, weights[:1])
    assert example.bootstrap.compilations == 1


def test_main(example, run):
    printed = run(example, "--copies", "50")
    assert "log odds of damage: 15.043 - 0.2322 x temperature" in printed
    assert "with a probability of 0.9996" in printed
    assert "programs compiled: 1 for a fit, 1 for 50 at once" in printed


def test_needs_copies(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--copies", "1"])
    assert "--copies" in capsys.readouterr().err
