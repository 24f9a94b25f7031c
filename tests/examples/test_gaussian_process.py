"""The Gaussian process, small, against its formulas in NumPy; and Wiener's filter."""

import re

import numpy as np
import pytest

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def process(load):
    return load("gaussian_process")


@pytest.fixture(scope="module")
def denoise(load):
    return load("denoise")


def test_likelihood_and_prediction(process):
    x, y = process.measured(9, np.random.default_rng(3))
    params = {"length": -0.2, "amplitude": 0.3, "noise": -1.5}

    def kernel(a, b):
        return np.exp(0.6 - 0.5 * ((a[:, None] - b) / np.exp(-0.2)) ** 2)

    full = kernel(x, x) + np.exp(-3.0) * np.eye(9)
    expected = (y @ np.linalg.solve(full, y) + np.linalg.slogdet(full)[1]) / 18 + 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(process.loss(params, x, y), expected, rtol=1e-12)
    places = np.linspace(-1, 1, 4)
    mean, deviation = process.predict(params, x, y, places)
    across = kernel(x, places)
    np.testing.assert_allclose(mean, across.T @ np.linalg.solve(full, y), rtol=1e-9)
    variance = np.exp(0.6) - np.sum(across * np.linalg.solve(full, across), axis=0)
    np.testing.assert_allclose(deviation, np.sqrt(variance), rtol=1e-9)


@pytest.mark.slow
def test_gaussian_process(process, tmp_path, capsys):
    picture = tmp_path / "picture.png"
    assert process.main(["--points", "30", "--steps", "60", "--output", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert picture.read_bytes().startswith(PNG)
    assert re.findall(r"^(\d+) points", printed, re.MULTILINE) == ["10", "20", "30"]
    assert float(re.findall(r"error (\d\.\d+)$", printed, re.MULTILINE)[-1]) < 0.15
    assert process.step.compilations == 1
    with pytest.raises(SystemExit):
        process.main(["--points", "3"])


def test_denoise(denoise, tmp_path, capsys):
    picture = tmp_path / "picture.png"
    assert denoise.main(["--steps", "60", "--output", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert picture.read_bytes().startswith(PNG)
    errors = re.findall(r"error (\d\.\d+) -> (\d\.\d+)$", printed, re.MULTILINE)
    assert len(errors) == 3 and all(float(after) < 0.4 * float(before) for before, after in errors)
    assert "programs compiled: 1 for the steps, 1 for the filter" in printed
    with pytest.raises(SystemExit):
        denoise.main(["--noise", "0"])
