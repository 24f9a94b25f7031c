"""The sampler: its leapfrog steps against NumPy's, its draws against the moments of the banana."""

import re

import numpy as np
import pytest

import harp


@pytest.fixture
def example(load):
    return load("hmc")


def test_leapfrog(example):
    def force(z):
        across = (z[1] - example.BEND * z[0] ** 2) / example.WIDTH**2
        return np.array([-z[0] + 2 * example.BEND * z[0] * across, -across])

    leapfrog = harp.jit(example.leapfrog)
    for steps in (0, 1, 13):
        z, p = np.array([1.5, 0.7]), np.array([0.3, -1.1])
        found = leapfrog(z, p, steps)
        for _ in range(steps):
            p = p + 0.5 * example.STEP * force(z)
            z = z + example.STEP * p
            p = p + 0.5 * example.STEP * force(z)
        np.testing.assert_allclose([np.asarray(a) for a in found], [z, p], rtol=1e-12)
    back, _ = leapfrog(z, -p, steps)  # time runs backwards
    np.testing.assert_allclose(np.asarray(back), [1.5, 0.7], rtol=1e-12)


def test_moments(example):
    """Within five standard errors, which say how precise the draws are: this finds a bias of a few per cent."""
    start = harp.random.normal(harp.random.key(1), (200, 2))
    draws, accepted = map(np.asarray, example.sample(start, harp.random.split(harp.random.key(2), (200, 600))))
    assert accepted.mean() > 0.9
    draws = draws[:, 50:]
    errors = example.errors(draws)
    assert errors.max() < 0.02
    assert (np.abs(example.moments(draws) - list(example.TRUTH.values())) < 5 * errors).all()


def test_a_chain_does_not_depend_on_its_neighbours(example):
    keys = harp.random.split(harp.random.key(0), (5, 20))
    starts = np.random.default_rng(0).normal(size=(5, 2))
    together = np.asarray(example.sample(starts, keys)[0])
    for k in range(5):
        alone = np.asarray(example.sample(starts[k : k + 1], keys[k : k + 1])[0])
        np.testing.assert_array_equal(alone[0], together[k])
    assert example.sample(starts, keys[:, :0])[0].shape == (5, 0, 2)
    assert example.sample.compilations == 1


def test_main(example, run):
    printed = run(example, "--chains", "30", "--draws", "300")
    means = re.findall(r"^mean of .  +(-?\d\.\d+) \+- (\d\.\d+)   true: (\d\.\d+)$", printed, re.MULTILINE)
    assert len(means) == 2
    assert all(abs(float(found) - float(true)) < 5 * float(error) for found, error, true in means)
    assert "programs compiled: 1 for warming up and drawing" in printed


def test_one_draw(example, run):
    assert "of 2 x 1 draws" in run(example, "--chains", "2", "--draws", "1")


def test_needs_two_chains(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--chains", "1"])
    assert "--chains" in capsys.readouterr().err
