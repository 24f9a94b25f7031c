"""Train a multilayer perceptron on scikit-learn's handwritten digits, with SGD and momentum written in harp.

The batch size grows during the run and the last batch of an epoch is ragged; the training step is compiled once.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import harp
import harp.numpy as hnp

mpl.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  after the choice of how to draw

SIZES = (64, 128, 64, 10)
MOMENTUM = 0.9
BATCH_SIZES = (32, 64, 128)


def forward(params, x):
    """Logits of shape (batch, 10)."""
    for layer in params[:-1]:
        x = hnp.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def cross_entropy(params, x, labels):
    """The mean negative log-likelihood of integer labels of shape (batch,)."""
    logits = forward(params, x)
    chosen = hnp.where(labels[:, None] == hnp.arange(10), logits, 0.0)
    return hnp.mean(hnp.logsumexp(logits, axis=1) - hnp.sum(chosen, axis=1))


@harp.jit
def train_step(params, velocity, x, labels, rate):
    """One step of SGD with momentum: (loss, new params, new velocity)."""
    loss, gradient = harp.value_and_grad(cross_entropy)(params, x, labels)
    velocity = [{k: MOMENTUM * v[k] - rate * g[k] for k in v} for v, g in zip(velocity, gradient, strict=True)]
    params = [{k: p[k] + v[k] for k in p} for p, v in zip(params, velocity, strict=True)]
    return loss, params, velocity


@harp.jit
def predict(params, x):
    """The most likely digit of each image."""
    return hnp.argmax(forward(params, x), axis=1)


def initial_params(rng: np.random.Generator):
    """He initialisation."""
    pairs = zip(SIZES[:-1], SIZES[1:], strict=True)
    return [
        {"w": (rng.normal(size=(m, n)) * np.sqrt(2 / m)).astype(np.float32), "b": np.zeros(n, np.float32)}
        for m, n in pairs
    ]


def batches(x, labels, size: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Shuffled batches; the last one has what is left."""
    order = rng.permutation(len(x))
    for start in range(0, len(x), size):
        chosen = order[start : start + size]
        yield x[chosen], labels[chosen]


def draw(path: str, history, x, labels, predicted) -> None:
    """The learning curve and a few misclassified digits as a PNG."""
    wrong = np.flatnonzero(labels != predicted)[:8]
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    axes = left.subplots()
    axes.plot([loss for loss, _ in history], label="training loss")
    axes.plot([1 - accuracy for _, accuracy in history], label="test error")
    axes.set(xlabel="epoch", yscale="log", title="Learning curve")
    axes.legend()
    right.suptitle("Misclassified: true → predicted")
    for axes, k in zip(np.ravel(right.subplots(2, 4)), [*wrong, *[None] * (8 - len(wrong))], strict=True):
        axes.axis("off")
        if k is not None:
            axes.imshow(x[k].reshape(8, 8), cmap="gray_r")
            axes.set_title(f"{labels[k]} → {predicted[k]}", fontsize=10)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: list[str] | None = None) -> int:
    """Train, report and draw; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", default="digits.png")
    options = parser.parse_args(argv)

    digits = load_digits()
    images = (digits.data / 16.0).astype(np.float32)
    split = train_test_split(images, digits.target, test_size=0.2, random_state=0, stratify=digits.target)
    x, x_test, labels, labels_test = split
    rng = np.random.default_rng(options.seed)
    params = initial_params(rng)
    velocity = [{k: np.zeros_like(v) for k, v in layer.items()} for layer in params]

    started = time.perf_counter()
    history: list[tuple[float, float]] = []
    progress = tqdm(range(options.epochs), unit="epoch", disable=not sys.stderr.isatty())
    for epoch in progress:
        size = BATCH_SIZES[epoch * len(BATCH_SIZES) // options.epochs]
        losses = []
        for batch, target in batches(x, labels, size, rng):
            loss, params, velocity = train_step(params, velocity, batch, target, 0.05)
            losses.append(float(loss))
        accuracy = float(np.mean(np.asarray(predict(params, x_test)) == labels_test))
        history.append((float(np.mean(losses)), accuracy))
        progress.set_postfix(batch=size, loss=f"{history[-1][0]:.4f}", accuracy=f"{accuracy:.2%}")

    predicted = np.asarray(predict(params, x_test))
    draw(options.output, history, x_test, labels_test, predicted)
    accuracy = float(np.mean(predicted == labels_test))
    print(f"test accuracy {accuracy:.2%} after {options.epochs} epochs in {time.perf_counter() - started:.1f} s")
    print(f"programs compiled: {train_step.compilations} for the training step, {predict.compilations} to predict")
    print(f"picture written to {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
