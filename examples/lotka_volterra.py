"""Fit the rates of a predator-prey model to noisy counts: the gradient goes through the integration of the equations.

    python examples/lotka_volterra.py --observations 20 80 --output lotka_volterra.png

Lotka and Volterra's equations are integrated by Runge and Kutta's method from one observation to the next. These lie at
irregular times, so the number of steps is computed from the data. One program computes the misfit and its
gradient, whatever the numbers of observations and of steps; SciPy's BFGS does the rest.
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

RATES = np.array([1.0, 0.1, 0.02, 0.4])  # births of prey, their deaths by a predator, its births by prey, its deaths
START = np.array([30.0, 5.0])  # prey and predators at time 0
NOISE = 0.1  # standard deviation of the logarithm of a count
END = 30.0  # of the observations; some three periods
STEP = 0.05  # of the integration, at most


class Data(NamedTuple):
    """Increasing times, and the counts of prey and predators at each."""

    times: np.ndarray
    counts: np.ndarray


def change(state, rates):
    """The derivatives in time of the numbers of prey and predators."""
    prey, predators = state
    return hnp.stack([prey * (rates[0] - rates[1] * predators), predators * (rates[2] * prey - rates[3])])


def runge_kutta(state, rates, h):
    """The state after a time h, with an error of order h^5."""
    k1 = change(state, rates)
    k2 = change(state + 0.5 * h * k1, rates)
    k3 = change(state + 0.5 * h * k2, rates)
    k4 = change(state + h * k3, rates)
    return state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


@harp.jit
def trajectory(rates, start, times):
    """Prey and predators at each of the times: an array of shape (times, 2)."""

    def advance(state, gap):
        steps = hnp.ceil(gap / STEP).astype(np.int64)
        state = harp.fori_loop(0, steps, lambda _, state: runge_kutta(state, rates, gap / steps), state)
        return state, state

    return harp.scan(advance, start, hnp.diff(times, prepend=0.0))[1]


def misfit(logs, times, counts):
    """Half the mean square of the errors of the logarithms, for the logarithms of the four rates and the start."""
    unknown = hnp.exp(logs)
    errors = hnp.log(trajectory(unknown[:4], unknown[4:], times)) - hnp.log(counts)
    return 0.5 * hnp.mean(errors**2)


misfit_and_gradient = harp.jit(harp.value_and_grad(misfit))


def observe(observations: int, rng: np.random.Generator) -> Data:
    """Counts at random times: the true ones, times a lognormal number close to 1."""
    times = np.sort(rng.uniform(0, END, observations))
    exact = np.asarray(trajectory(RATES, START, times))
    return Data(times, exact * np.exp(NOISE * rng.normal(size=exact.shape)))


def fit(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The rates and the start that fit the data best: first their beginning, then more and more of them.

    A guess that is off by a fifth has lost the phase after a few cycles, and the best fit nearby is none.
    """
    logs = np.log(np.concatenate([RATES * [1.2, 0.8, 1.2, 0.8], data.counts[0]]))
    for share in (0.4, 0.7, 1.0):
        part = Data(*(column[: round(share * len(column))] for column in data))

        def fun(logs: np.ndarray, part: Data = part) -> tuple[float, np.ndarray]:
            value, gradient = misfit_and_gradient(logs, *part)
            return float(value), np.asarray(gradient)

        logs = minimize(fun, logs, jac=True, method="BFGS", options={"gtol": 1e-7}).x
    return np.exp(logs[:4]), np.exp(logs[4:])


def draw(data: Data, rates: np.ndarray, start: np.ndarray, path: str) -> None:
    """Counts and fitted curves in time on the left, the cycle on the right."""
    times = np.linspace(0, END, 400)
    fitted, exact = (np.asarray(trajectory(r, s, times)) for r, s in ((rates, start), (RATES, START)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", width_ratios=(3, 2))
    for k, (name, colour) in enumerate((("prey", "tab:blue"), ("predators", "tab:orange"))):
        left.plot(times, exact[:, k], color="0.75", linewidth=4, label="true" if k else None)
        left.plot(times, fitted[:, k], color=colour, label=f"{name}, fitted")
        left.plot(data.times, data.counts[:, k], ".", color=colour)
    left.set(xlabel="time", ylabel="number", title=f"{len(data.times)} observations (dots)")
    left.set_ylim(0, 1.25 * left.get_ylim()[1])
    left.legend(loc="upper right", ncols=3, fontsize=9)
    right.plot(*exact.T, color="0.75", linewidth=4)
    right.plot(*fitted.T, color="black", linewidth=1)
    right.plot(*data.counts.T, ".", color="tab:green")
    right.set(xlabel="prey", ylabel="predators", title="The cycle")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Fit a predator-prey model to noisy counts with harp and SciPy.")
    parser.add_argument("--observations", type=int, nargs="+", default=[20, 80, 320])
    parser.add_argument("--seed", type=int, default=0, help="of the times and the noise")
    parser.add_argument("--output", default="lotka_volterra.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if min(options.observations) < 6:
        parser.error("--observations must be at least 6")

    rng = np.random.default_rng(options.seed)
    print("observations  births  deaths  births  deaths  largest error")
    for observations in options.observations:
        data = observe(observations, rng)
        rates, start = fit(data)
        error = np.abs(rates / RATES - 1).max()
        print(f"{observations:12}  {'  '.join(f'{r:6.4f}' for r in rates)}  {error:13.1%}")
    print(f"{'truth':>12}  {'  '.join(f'{r:6.4f}' for r in RATES)}")
    draw(data, rates, start, options.output)
    print(f"programs compiled: {misfit_and_gradient.compilations} for misfit and gradient")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
