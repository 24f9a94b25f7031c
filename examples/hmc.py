"""Sample a banana-shaped distribution by Hamiltonian Monte Carlo: many chains side by side, in one program.

    python examples/hmc.py --chains 64 --draws 1000 --output hmc.png

A chain is a scan over its draws, a draw is a loop of leapfrog steps, and the chains are a batch made by vmap. Random
numbers come from keys, so a run can be repeated exactly. Each draw takes another number of steps, which is drawn, too:
fixed numbers may go around an orbit and end where they began.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import harp
import harp.numpy as hnp

BEND = 0.5  # how much the banana bends
WIDTH = 0.5  # its standard deviation across
STEP = 0.15  # of time, in the leapfrog
STEPS = 20  # at most, of the leapfrog, for a draw
TRUTH = {"mean of x": 0.0, "mean of y": BEND, "variance of x": 1.0, "variance of y": 2 * BEND**2 + WIDTH**2}


def log_density(z):
    """Up to a constant: x is normal, and y is normal around BEND x^2."""
    x, y = z
    return -0.5 * (x**2 + ((y - BEND * x**2) / WIDTH) ** 2)


def leapfrog(z, momentum, steps):
    """Hamilton's equations for so many steps: reversible, volume-preserving, and the energy almost constant."""
    force = harp.grad(log_density)

    def step(_, state):
        z, momentum = state
        momentum = momentum + 0.5 * STEP * force(z)
        z = z + STEP * momentum
        return z, momentum + 0.5 * STEP * force(z)

    return harp.fori_loop(0, steps, step, (z, momentum))


def draw(z, key):
    """The next state of a chain, and whether the proposal was accepted."""
    for_momentum, for_steps, for_choice = harp.random.split(key, 3)
    momentum = harp.random.normal(for_momentum, z.shape)
    steps = harp.random.randint(for_steps, (), 1, STEPS + 1)
    proposal, final = leapfrog(z, momentum, steps)
    gain = log_density(proposal) - log_density(z) - 0.5 * hnp.sum(final**2 - momentum**2)
    accepted = hnp.log(harp.random.uniform(for_choice)) < gain
    return hnp.where(accepted, proposal, z), accepted


def chain(start, keys):
    """The draws of one chain, one for each key: of shape (draws, 2), and which of them were accepted."""

    def step(z, key):
        z, accepted = draw(z, key)
        return z, (z, accepted)

    return harp.scan(step, start, keys)[1]


sample = harp.jit(harp.vmap(chain))  # of starts of shape (chains, 2), and keys of shape (chains, draws, 2)


def moments(draws: np.ndarray) -> np.ndarray:
    """What TRUTH has, estimated from an array of shape (chains, draws, 2)."""
    return np.concatenate([draws.mean(axis=(0, 1)), draws.var(axis=(0, 1))])


def errors(draws: np.ndarray) -> np.ndarray:
    """The standard errors of the moments, by how much the chains differ."""
    each = np.stack([moments(chain[None]) for chain in draws])
    return each.std(axis=0, ddof=1) / np.sqrt(len(each))


def picture(draws: np.ndarray, path: str) -> None:
    """One chain as a path on the density, and the draws of all chains against the true distribution of x and y."""
    x, y = np.linspace(-3.5, 3.5, 200), np.linspace(-2, 6, 200)
    density = np.exp(np.asarray(log_density(np.stack(np.meshgrid(x, y)))))
    density /= density.sum() * (x[1] - x[0]) * (y[1] - y[0])
    figure, (left, *right) = plt.subplots(1, 3, figsize=(11, 4), layout="constrained", width_ratios=(2, 1, 1))
    left.contour(x, y, np.sqrt(density), levels=6, cmap="Blues")
    left.plot(*draws[0, :60].T, ".-", color="tab:orange", linewidth=0.6)
    left.set(xlabel="x", ylabel="y", title="60 draws of a chain")
    for axes, name, k, points in zip(right, "xy", (0, 1), (x, y), strict=True):
        axes.hist(draws[..., k].ravel(), bins=points[::4], density=True, color="tab:orange", alpha=0.5, label="draws")
        axes.plot(points, density.sum(axis=k) * (y[1] - y[0], x[1] - x[0])[k], color="tab:blue", label="true")
        axes.set(xlabel=name, title=f"density of {name}", ylim=(0, None))
    right[-1].legend()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Sample, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Sample a banana-shaped distribution with harp.")
    parser.add_argument("--chains", type=int, default=64)
    parser.add_argument("--draws", type=int, default=1000, help="of each chain, after a fifth more that do not count")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="hmc.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.chains < 2 or options.draws < 1:
        parser.error("--chains must be at least 2, and --draws at least 1")

    for_warm_up, for_draws = harp.random.split(harp.random.key(options.seed))
    start = np.zeros((options.chains, 2))
    start = sample(start, harp.random.split(for_warm_up, (options.chains, 1 + options.draws // 5)))[0][:, -1]
    began = time.perf_counter()
    draws, accepted = map(np.asarray, sample(start, harp.random.split(for_draws, (options.chains, options.draws))))
    seconds = time.perf_counter() - began

    for name, found, error in zip(TRUTH, moments(draws), errors(draws), strict=True):
        print(f"{name:13}  {found:6.3f} +- {error:.3f}   true: {TRUTH[name]:5.3f}")
    print(f"accepted: {accepted.mean():.0%} of {options.chains} x {options.draws} draws, in {seconds:.3f} s")
    print(f"programs compiled: {sample.compilations} for warming up and drawing")
    picture(draws, options.output)
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
