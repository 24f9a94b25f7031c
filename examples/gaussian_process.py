"""Regression with a Gaussian process, whose length scale, amplitude and noise are found by gradient.

    python examples/gaussian_process.py --points 60 --output gaussian_process.png

The logarithm of the likelihood is by a Cholesky factor of the covariance, and its gradient by another formula of
matrices: both are calls of LAPACK inside of one program, which serves all numbers of points. C. E. Rasmussen,
C. K. I. Williams, Gaussian Processes for Machine Learning (2006), chapter 2 and algorithm 2.1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp
from harp.scipy.linalg import cho_solve, solve_triangular

NOISE = 0.1  # of the data
RATE = 0.05  # of Adam, in logarithms of the parameters
START = {"length": 0.0, "amplitude": 0.0, "noise": -1.0}


def covariance(params, a, b):
    """The squared exponential kernel of two sets of points."""
    distance = (a[:, None] - b[None, :]) / hnp.exp(params["length"])
    return hnp.exp(2 * params["amplitude"]) * hnp.exp(-0.5 * distance**2)


def factor(params, x):
    """The lower Cholesky factor of the covariance of the data."""
    return hnp.linalg.cholesky(covariance(params, x, x) + hnp.exp(2 * params["noise"]) * hnp.eye(x.shape[0]))


def loss(params, x, y):
    """Minus the logarithm of the likelihood of the data, for each point."""
    lower = factor(params, x)
    weights = cho_solve((lower, True), y)
    log_determinant = 2 * hnp.sum(hnp.log(hnp.linalg.diagonal(lower)))
    return (0.5 * (y @ weights) + 0.5 * log_determinant) / x.shape[0] + 0.5 * np.log(2 * np.pi)


@harp.jit
def step(params, mean, square, t, x, y):
    """One step of Adam: new parameters, the averages of the gradient and of its square, and the loss before."""
    value, gradient = harp.value_and_grad(loss)(params, x, y)
    mean = {name: 0.9 * m + 0.1 * gradient[name] for name, m in mean.items()}
    square = {name: 0.99 * s + 0.01 * gradient[name] ** 2 for name, s in square.items()}
    sizes = {name: hnp.sqrt(s / (1 - 0.99**t)) + 1e-8 for name, s in square.items()}
    params = {name: p - RATE * mean[name] / (1 - 0.9**t) / sizes[name] for name, p in params.items()}
    return params, mean, square, value


@harp.jit
def predict(params, x, y, places):
    """Mean and standard deviation of the function at other places."""
    lower = factor(params, x)
    across = covariance(params, x, places)
    spread = solve_triangular(lower, across, lower=True)
    variance = hnp.exp(2 * params["amplitude"]) - hnp.sum(spread**2, axis=0)
    return across.T @ cho_solve((lower, True), y), hnp.sqrt(hnp.maximum(variance, 0.0))


def truth(x: np.ndarray) -> np.ndarray:
    """What the data are made of."""
    return np.sin(3 * x) + 0.5 * x


def measured(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """So many points with noise, and a gap in the middle."""
    x = np.sort(np.concatenate([rng.uniform(-3, -0.5, count // 2), rng.uniform(1, 3, count - count // 2)]))
    return x, truth(x) + NOISE * rng.standard_normal(count)


def train(x: np.ndarray, y: np.ndarray, steps: int) -> tuple[dict[str, float], list[float]]:
    """The parameters, and the loss before each step."""
    params, history = dict(START), []
    mean = square = dict.fromkeys(START, 0.0)
    for t in tqdm(range(1, steps + 1), desc=f"{len(x)} points", disable=None):
        params, mean, square, value = step(params, mean, square, float(t), x, y)
        history.append(float(value))
    return {name: float(p) for name, p in params.items()}, history


def draw(path: str, x: np.ndarray, y: np.ndarray, params: dict[str, float], history: Sequence[float]) -> None:
    """The function with its uncertainty, and the loss."""
    places = np.linspace(-3.5, 3.5, 300)
    mean, deviation = (np.asarray(a) for a in predict(params, x, y, places))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(2, 1), layout="constrained")
    left.fill_between(places, mean - 2 * deviation, mean + 2 * deviation, alpha=0.2, label="two standard deviations")
    left.plot(places, mean, label="mean")
    left.plot(places, truth(places), "k--", linewidth=1, label="truth")
    left.plot(x, y, "k.", label=f"{len(x)} points")
    left.set(xlabel="x", ylabel="y", title="A Gaussian process")
    left.legend()
    right.plot(history)
    right.set(xlabel="step", ylabel="-log likelihood for each point", title="One program for all sizes")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit to a third of the points, to two thirds and to all, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Gaussian process regression with harp.")
    parser.add_argument("--points", type=int, default=60)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="gaussian_process.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.points < 6:
        parser.error("--points must be at least 6")

    for count in (options.points // 3, 2 * options.points // 3, options.points):
        x, y = measured(count, np.random.default_rng(options.seed))
        params, history = train(x, y, options.steps)
        mean, _ = predict(params, x, y, x)
        error = float(np.sqrt(np.mean((np.asarray(mean) - truth(x)) ** 2)))
        found = ", ".join(f"{name} {np.exp(value):.3f}" for name, value in params.items())
        print(f"{count} points: {found}; root of the mean square error {error:.3f}")
    draw(options.output, x, y, params, history)
    print(f"programs compiled: {step.compilations} for the steps, {predict.compilations} for predictions")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
