"""Private training: clipped gradients and steps against NumPy, the noise, and the accountant against the literature."""

import numpy as np
import pytest

import harp


@pytest.fixture
def example(load):
    return load("private_gradients")


@pytest.fixture
def params():
    rng = np.random.default_rng(0)
    return {"w1": rng.normal(size=(2, 16)), "b1": rng.normal(size=16), "w2": rng.normal(size=16), "b2": np.array(0.3)}


def batch(size):
    rng = np.random.default_rng(size)
    return rng.normal(size=(size, 2)), rng.integers(0, 2, size).astype(np.float64)


def gradient(params, x, y):
    """Of one example, by hand."""
    hidden = np.tanh(x @ params["w1"] + params["b1"])
    slope = 1 / (1 + np.exp(-(hidden @ params["w2"] + params["b2"]))) - y
    inner = slope * params["w2"] * (1 - hidden**2)
    return {"w1": np.outer(x, inner), "b1": inner, "w2": slope * hidden, "b2": slope}


def test_step(example, params):
    """Without noise: the sum of clipped gradients, some of which are longer than the norm and some shorter."""
    for size in (7, 0, 1, 100):
        x, y = batch(size)
        total, norms = {name: np.zeros_like(p) for name, p in params.items()}, []
        for k in range(size):
            each = gradient(params, x[k], y[k])
            norms.append(np.sqrt(sum(np.sum(g**2) for g in each.values())))
            for name, g in each.items():
                total[name] += g * min(1, example.CLIP / norms[-1])
        if size == 100:
            assert min(norms) < example.CLIP < max(norms)
        found = example.private_step(params, x, y, harp.random.key(0), 0.0)
        for name, p in params.items():
            expected = p - example.RATE * total[name] / (example.SHARE * example.EXAMPLES)
            np.testing.assert_allclose(np.asarray(found[name]), expected, rtol=1e-10, atol=1e-12)
    assert example.private_step.compilations == 1


def test_noise(example, params):
    """Normal, of the width that was asked for, and another one for each parameter and each step."""
    x, y = batch(0)
    scale = 3.0 * example.CLIP * example.RATE / (example.SHARE * example.EXAMPLES)
    noise = []
    for step in range(200):
        found = example.private_step(params, x, y, harp.random.key(step), 3.0)
        noise.append(np.concatenate([np.ravel(np.asarray(found[name]) - p) / scale for name, p in params.items()]))
    noise = np.stack(noise)
    assert abs(noise.mean()) < 4 / np.sqrt(noise.size)
    assert abs(noise.var() - 1) < 4 * np.sqrt(2 / noise.size)
    correlations = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    assert np.abs(correlations).max() < 5 / np.sqrt(200)


def test_accountant(example):
    assert example.epsilon(4.0, 0.01, 10_000) == pytest.approx(1.26, abs=0.01)  # Abadi and others, figure 2
    orders = np.arange(2, 256)  # where all examples are in each batch, the divergence has a simple formula
    expected = (10 * orders / (2 * 5.0**2) + np.log(1e5) / (orders - 1)).min()
    assert example.epsilon(5.0, 1.0, 10) == pytest.approx(expected, rel=1e-10)
    assert example.epsilon(0.0, 0.5, 10) == np.inf


def test_main(example, run):
    printed = run(example, "--steps", "150", "--noise", "0", "1").splitlines()
    for line in printed[1:3]:
        assert float(line.split()[2].rstrip("%")) > 80
    assert printed[1].split()[1] == "inf"
    assert printed[3] == "programs compiled: 1 for the train step"


def test_needs_noise_that_is_not_negative(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--noise", "-1"])
    assert "--noise" in capsys.readouterr().err
