"""Maximum likelihood for a hidden cycle: Kalman's filter as a scan, its likelihood climbed by its gradient.

    python examples/kalman.py --lengths 50 200 800 3200 --output kalman.png

A cycle of slowly changing amplitude and phase is observed with noise, as the number of sunspots is. The filter gives
the likelihood of a series in one pass over its time; harp differentiates the pass, and SciPy finds the parameters that
make the series most likely. Series of all lengths run the same program.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import harp
import harp.numpy as hnp


class Model(NamedTuple):
    """A damped rotation of the plane, pushed by noise; its first coordinate is observed with more noise."""

    period: float
    damping: float  # of the amplitude in one step, from 0 to 1
    push: float  # standard deviation in one step, of each coordinate
    noise: float  # standard deviation of an observation


TRUTH = Model(period=11.0, damping=0.97, push=0.3, noise=1.0)
GUESS = Model(period=9.0, damping=0.9, push=0.5, noise=0.5)


def rotation(model):
    """The matrix that takes the expected state from one time to the next."""
    angle = 2 * np.pi / model.period
    cos, sin = hnp.cos(angle), hnp.sin(angle)
    return model.damping * hnp.stack([hnp.stack([cos, -sin]), hnp.stack([sin, cos])])


@harp.jit
def kalman_filter(model, observed):
    """The log-likelihood of a series, and the signal's mean and variance at each time given what came before."""
    turn, push = rotation(model), model.push**2 * hnp.eye(2)

    def step(carry, y):
        mean, covariance, likelihood = carry
        variance = covariance[0, 0] + model.noise**2
        surprise = y - mean[0]
        likelihood = likelihood - 0.5 * (surprise**2 / variance + hnp.log(2 * np.pi * variance))
        gain = covariance[:, 0] / variance
        updated = covariance - hnp.outer(gain, covariance[0])
        carry = turn @ (mean + gain * surprise), turn @ updated @ turn.T + push, likelihood
        return carry, (mean[0], covariance[0, 0])

    stationary = push / (1 - model.damping**2)
    (_, _, likelihood), signal = harp.scan(step, (hnp.zeros(2), stationary, 0.0), observed)
    return likelihood, signal


def model_of(unknown):
    """The model for four numbers without bounds."""
    period, damping, push, noise = unknown
    return Model(2 + hnp.exp(period), hnp.sigmoid(damping), hnp.exp(push), hnp.exp(noise))


@harp.jit
def loss_and_gradient(unknown, observed):
    """Minus the log-likelihood for each observation, and its gradient."""

    def loss(unknown):
        return -kalman_filter(model_of(unknown), observed)[0] / observed.shape[0]

    return harp.value_and_grad(loss)(unknown)


def simulate(model: Model, length: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The signal and its observations."""
    state = rng.normal(size=2) * model.push / np.sqrt(1 - model.damping**2)
    turn = np.asarray(rotation(model))
    signal = np.empty(length)
    for t in range(length):
        signal[t] = state[0]
        state = turn @ state + model.push * rng.normal(size=2)
    return signal, signal + model.noise * rng.normal(size=length)


def fit(observed: np.ndarray) -> Model:
    """The model that makes the series most likely."""

    def fun(unknown: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss_and_gradient(unknown, observed)
        return float(value), np.asarray(gradient)

    start = [np.log(GUESS.period - 2), np.log(GUESS.damping / (1 - GUESS.damping)), *np.log(GUESS[2:])]
    found = minimize(fun, np.array(start), jac=True, method="L-BFGS-B", options={"ftol": 1e-12})
    return Model(*map(float, model_of(found.x)))


def draw(model: Model, signal: np.ndarray, observed: np.ndarray, path: str) -> None:
    """The end of a series, and what the filter predicts at each time."""
    _, (mean, variance) = kalman_filter(model, observed)
    last = np.arange(max(0, len(observed) - 120), len(observed))
    mean, width = np.asarray(mean)[last], 2 * np.sqrt(np.asarray(variance)[last])
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    axes.fill_between(last, mean - width, mean + width, color="tab:blue", alpha=0.2, linewidth=0)
    axes.plot(last, mean, color="tab:blue", label="predicted from the past, with two standard deviations")
    axes.plot(last, signal[last], color="black", linewidth=1, label="signal")
    axes.plot(last, observed[last], ".", color="tab:orange", label="observed")
    axes.set(
        xlabel="time", title=f"A hidden cycle, its period estimated as {model.period:.2f}", xlim=(last[0], last[-1])
    )
    axes.legend(loc="upper left", ncols=3, fontsize=9)
    axes.set_ylim(axes.get_ylim()[0], 1.25 * axes.get_ylim()[1])
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Simulate, fit, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Estimate a hidden cycle by maximum likelihood with harp and SciPy.")
    parser.add_argument("--lengths", type=int, nargs="+", default=[50, 200, 800, 3200], help="of the series")
    parser.add_argument("--seed", type=int, default=0, help="of the series")
    parser.add_argument("--output", default="kalman.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if min(options.lengths) < 10:
        parser.error("--lengths must be at least 10")

    rng = np.random.default_rng(options.seed)
    print("length  period  damping  push   noise")
    for length in options.lengths:
        signal, observed = simulate(TRUTH, length, rng)
        model = fit(observed)
        print(f"{length:6}  {model.period:6.3f}  {model.damping:7.3f}  {model.push:5.3f}  {model.noise:5.3f}")
    print(f" truth  {TRUTH.period:6.3f}  {TRUTH.damping:7.3f}  {TRUTH.push:5.3f}  {TRUTH.noise:5.3f}")
    draw(model, signal, observed, options.output)
    print(f"programs compiled: {loss_and_gradient.compilations} for the likelihood and its gradient")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
