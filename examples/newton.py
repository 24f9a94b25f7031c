"""Logistic regression by Newton's method, and its uncertainty by fitting a thousand reweighted copies of the data.

    python examples/newton.py --copies 1000 --output newton.png

The data are 23 flights of the space shuttle before the Challenger's last: the temperature at the launch, and whether a
seal of its rockets had been damaged. A step of Newton's method solves an equation with harp's Hessian; the steps are a
loop that ends by itself. The Bayesian bootstrap (D. B. Rubin, 1981) repeats the fit with random weights of the flights:
by vmap, in one call.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import harp
import harp.numpy as hnp

# S. R. Dalal, E. B. Fowlkes, B. Hoadley: "Risk analysis of the space shuttle", JASA 84 (1989)
FAHRENHEIT = np.array([66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58.0])
DAMAGED = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1.0])
LAST = 31.0  # at the Challenger's launch
TOLERANCE = 1e-10  # of a coefficient, in the last step
MOST_STEPS = 50


def loss(coefficients, features, labels, weights):
    """Minus the weighted log-likelihood of the labels 0 and 1."""
    scores = features @ coefficients
    return hnp.sum(weights * (hnp.softplus(scores) - labels * scores))


def solve(matrix, right):
    """The solution of a system of linear equations, by elimination; the matrix is positive definite."""

    def eliminate(k, system):
        pivot = system[k] / system[k, k]
        return (system - hnp.outer(system[:, k], pivot)).at[k].set(pivot)

    system = hnp.concatenate([matrix, right[:, None]], axis=1)
    return harp.fori_loop(0, matrix.shape[0], eliminate, system)[:, -1]


@harp.jit
def newton(features, labels, weights):
    """The most likely coefficients, and the number of steps."""

    def unfinished(state):
        _, change, steps = state
        return (hnp.max(abs(change)) > TOLERANCE) & (steps < MOST_STEPS)

    def step(state):
        coefficients, _, steps = state
        data = (features, labels, weights)
        change = solve(harp.hessian(loss)(coefficients, *data), harp.grad(loss)(coefficients, *data))
        return coefficients - change, change, steps + 1

    start = hnp.zeros(features.shape[1])
    coefficients, _, steps = harp.while_loop(unfinished, step, (start, start + 1, 0))
    return coefficients, steps


bootstrap = harp.jit(harp.vmap(newton, in_axes=(None, None, 0)))


def design(temperatures: np.ndarray) -> np.ndarray:
    """Rows of the features of each temperature: 1, and the temperature."""
    return np.stack([np.ones_like(temperatures), temperatures], axis=1)


def probability(temperatures: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Of damage at each temperature, for each row of coefficients: of shape (temperatures, rows)."""
    return 1 / (1 + np.exp(-design(temperatures) @ coefficients.T))


def draw(best: np.ndarray, copies: np.ndarray, path: str) -> None:
    """The flights, the fitted probability, and that of some of the copies."""
    temperatures = np.linspace(30, 85, 200)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(temperatures, probability(temperatures, copies[:200]), color="tab:blue", alpha=0.06)
    axes.plot(temperatures, probability(temperatures, best[None]), color="black", label="most likely")
    axes.plot([], color="tab:blue", alpha=0.5, label="for random weights of the flights")
    jitter = np.random.default_rng(0).uniform(-0.02, 0.02, len(DAMAGED))
    axes.plot(FAHRENHEIT, DAMAGED + jitter, "o", color="tab:orange", markeredgecolor="white", label="flights")
    axes.axvline(LAST, color="0.5", linewidth=1, linestyle="--")
    axes.text(LAST, 0.5, " the Challenger", color="0.4")
    axes.set(xlabel="temperature in °F", ylabel="probability of damage", xlim=(30, 85))
    axes.legend(loc="center left", bbox_to_anchor=(0.04, 0.25))
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Fit a logistic regression by Newton's method with harp.")
    parser.add_argument("--copies", type=int, default=1000, help="of the data, with random weights")
    parser.add_argument("--seed", type=int, default=0, help="of the weights")
    parser.add_argument("--output", default="newton.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.copies < 2:
        parser.error("--copies must be at least 2")

    features = design(FAHRENHEIT)
    best, steps = newton(features, DAMAGED, np.ones_like(DAMAGED))
    weights = len(DAMAGED) * harp.random.dirichlet(harp.random.key(options.seed), np.ones(len(DAMAGED)), options.copies)
    copies, most_steps = bootstrap(features, DAMAGED, weights)
    best, copies = np.asarray(best), np.asarray(copies)

    low, high = np.quantile(copies[:, 1], [0.05, 0.95])
    print(f"log odds of damage: {best[0]:.3f} - {-best[1]:.4f} x temperature, after {int(steps)} steps")
    print(f"slope: from {low:.3f} to {high:.3f} in nine of ten copies, after {int(most_steps.max())} steps at most")
    print(f"at {LAST:.0f} °F: damage with a probability of {probability(np.array([LAST]), best[None])[0, 0]:.4f}")
    print(f"programs compiled: {newton.compilations} for a fit, {bootstrap.compilations} for {options.copies} at once")
    draw(best, copies, options.output)
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
