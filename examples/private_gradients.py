"""Train a classifier with differential privacy: the gradient of each example is clipped before they are added.

    python examples/private_gradients.py --steps 600 --output private_gradients.png

The gradients of all examples of a batch are made by vmap of grad. Clipped, summed, and hidden by noise, they tell
little about a single example (M. Abadi et al., "Deep learning with differential privacy", 2016); how little, `epsilon`
computes. For that each example must be in a batch by chance, independently of the others. So every batch has another
size, and all of them run the same program.
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
from scipy.special import gammaln, logsumexp, xlog1py
from sklearn.datasets import make_moons

import harp
import harp.numpy as hnp

EXAMPLES = 1000  # to train on, and as many to test with
SHARE = 0.05  # the probability of an example to be in a batch
CLIP = 1.0  # the largest norm of an example's gradient
RATE = 0.5
HIDDEN = 16
DELTA = 1e-5  # the probability with which privacy may fail


class Training(NamedTuple):
    """What came of it."""

    params: dict[str, np.ndarray]
    accuracy: float  # on examples that were not seen
    batch_sizes: list[int]


def logit(params, x):
    """The log odds of the second class: for one point, or a row of points."""
    return hnp.tanh(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]


def loss(params, x, y):
    """The cross-entropy of one label, 0 or 1."""
    score = logit(params, x)
    return hnp.softplus(score) - y * score


def clipped_gradient(params, x, y):
    """The gradient of one example, shrunk to the norm CLIP if it is longer."""
    gradient = harp.grad(loss)(params, x, y)
    norm = hnp.sqrt(sum(hnp.sum(g**2) for g in harp.tree.leaves(gradient)))
    return harp.tree.map(lambda g: g * hnp.minimum(1.0, CLIP / (norm + 1e-12)), gradient)


@harp.jit
def private_step(params, x, y, key, noise):
    """A step down the sum of clipped gradients plus normal noise of `noise` times the clipping norm."""
    gradients = harp.vmap(clipped_gradient, in_axes=(None, 0, 0))(params, x, y)
    keys = dict(zip(params, harp.random.split(key, len(params)), strict=True))

    def update(p, g, key):
        noisy = hnp.sum(g, axis=0) + noise * CLIP * harp.random.normal(key, p.shape)
        return p - RATE * noisy / (SHARE * EXAMPLES)

    return harp.tree.map(update, params, gradients, keys)


def epsilon(noise: float, share: float, steps: int) -> float:
    """The privacy loss of a training: one example changes no probability by more than e^epsilon, but for DELTA.

    By Renyi divergences of integer orders (I. Mironov, K. Talwar, L. Zhang: "Renyi differential privacy of the sampled
    Gaussian mechanism", 2019).
    """
    if noise == 0:
        return np.inf
    losses = []
    for order in range(2, 256):
        k = np.arange(order + 1)
        binomial = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        chances = binomial + k * np.log(share) + xlog1py(order - k, -share)
        divergence = logsumexp(chances + k * (k - 1) / (2 * noise**2)) / (order - 1)
        losses.append(steps * divergence - np.log(DELTA) / (order - 1))
    return float(min(losses))


def moons(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane in two interlocking half circles, and which one each belongs to."""
    x, y = make_moons(EXAMPLES, noise=0.2, random_state=seed)
    return x, y.astype(np.float64)


def train(steps: int, noise: float, seed: int) -> Training:
    """Train on batches that chance makes."""
    (x, y), (test_x, test_y) = moons(seed), moons(seed + 1)
    rng, key = np.random.default_rng(seed), harp.random.key(seed)
    params = {
        "w1": rng.normal(size=(2, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": rng.normal(size=HIDDEN) / np.sqrt(HIDDEN),
        "b2": np.zeros(()),
    }
    sizes = []
    for step in range(steps):
        chosen = rng.random(EXAMPLES) < SHARE
        sizes.append(int(chosen.sum()))
        params = private_step(params, x[chosen], y[chosen], harp.random.fold_in(key, step), noise)
    accuracy = float(np.mean((np.asarray(logit(params, test_x)) > 0) == test_y))
    return Training(params, accuracy, sizes)


def draw(trainings: dict[float, Training], losses: dict[float, float], seed: int, path: str) -> None:
    """The probability that each training has learnt, and some of the test points."""
    (x, y), (u, v) = moons(seed + 1), np.meshgrid(np.linspace(-2, 3, 200), np.linspace(-1.5, 2, 200))
    figure, row = plt.subplots(1, len(trainings), figsize=(11, 3.2), layout="constrained", sharey=True)
    for axes, (noise, training) in zip(np.atleast_1d(row), trainings.items(), strict=True):
        scores = np.asarray(logit(training.params, np.stack([u, v], axis=-1)))
        axes.contourf(u, v, 1 / (1 + np.exp(-scores)), levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.7)
        axes.contour(u, v, scores, levels=[0], colors="black", linewidths=1)
        axes.scatter(*x[:300].T, c=y[:300], s=5, cmap="RdBu_r", edgecolors="none")
        privacy = f"ε = {losses[noise]:.1f}" if noise else "not private"
        axes.set(title=f"noise {noise:g}: {privacy}, {training.accuracy:.1%} correct", xticks=[], yticks=[])
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a classifier with differential privacy with harp.")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.0, 1.0, 30.0], help="in units of CLIP")
    parser.add_argument("--seed", type=int, default=0, help="of the data, the initial weights, batches and noise")
    parser.add_argument("--output", default="private_gradients.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.steps < 1 or min(options.noise) < 0:
        parser.error("--steps must be at least 1, and --noise at least 0")

    trainings = {noise: train(options.steps, noise, options.seed) for noise in options.noise}
    losses = {noise: epsilon(noise, SHARE, options.steps) for noise in trainings}
    print("noise  epsilon  test accuracy  batch sizes")
    for noise, (_, accuracy, sizes) in trainings.items():
        print(f"{noise:5.1f}  {losses[noise]:7.2f}  {accuracy:13.1%}  from {min(sizes)} to {max(sizes)}")
    print(f"programs compiled: {private_step.compilations} for the train step")
    draw(trainings, losses, options.seed, options.output)
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
