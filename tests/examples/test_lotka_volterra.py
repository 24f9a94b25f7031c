"""The predators and their prey: the integration against SciPy's, the gradient against differences, the rates found."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp


@pytest.fixture
def example(load):
    return load("lotka_volterra")


def exact(example, rates, start, times):
    """By SciPy's method of order 8, to some ten digits."""

    def change(_, state):
        prey, predators = state
        return prey * (rates[0] - rates[1] * predators), predators * (rates[2] * prey - rates[3])

    found = solve_ivp(change, (0, times[-1]), start, "DOP853", t_eval=times, rtol=1e-11, atol=1e-11)
    return found.y.T


def test_trajectory(example):
    for count in (1, 7, 40):
        times = np.sort(np.random.default_rng(count).uniform(0, example.END, count))
        found = np.asarray(example.trajectory(example.RATES, example.START, times))
        expected = exact(example, example.RATES, example.START, times)
        np.testing.assert_allclose(found, expected, rtol=1e-9 + 20 * example.STEP**4)
    assert example.trajectory.compilations == 1


def test_gradient(example):
    data = example.observe(60, np.random.default_rng(0))
    logs = np.log(np.concatenate([example.RATES * [1.1, 0.9, 1.0, 1.05], example.START]))

    def misfit(logs):
        unknown = np.exp(logs)
        return 0.5 * np.mean((np.log(exact(example, unknown[:4], unknown[4:], data.times)) - np.log(data.counts)) ** 2)

    value, gradient = example.misfit_and_gradient(logs, *data)
    assert float(value) == pytest.approx(misfit(logs), rel=1e-5)
    differences = [(misfit(logs + d) - misfit(logs - d)) / 2e-4 for d in 1e-4 * np.eye(6)]
    np.testing.assert_allclose(np.asarray(gradient), differences, rtol=1e-4, atol=1e-6)


def test_rates_are_found(example, monkeypatch):
    monkeypatch.setattr(example, "NOISE", 1e-4)
    for count in (20, 33):
        rates, start = example.fit(example.observe(count, np.random.default_rng(count)))
        np.testing.assert_allclose(rates, example.RATES, rtol=1e-3)
        np.testing.assert_allclose(start, example.START, rtol=1e-3)
    assert example.misfit_and_gradient.compilations == 1


def test_main(example, run):
    printed = run(example, "--observations", "20", "60", "--seed", "1").splitlines()
    assert float(printed[2].split()[-1].rstrip("%")) < 10  # twice the standard error
    assert printed[3].split() == ["truth", "1.0000", "0.1000", "0.0200", "0.4000"]
    assert printed[4] == "programs compiled: 1 for misfit and gradient"


def test_needs_as_many_observations_as_unknowns(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--observations", "5"])
    assert "--observations" in capsys.readouterr().err
