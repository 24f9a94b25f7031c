"""Train a classifier of handwritten digits: one compiled train step, whatever the batch size.

    python examples/digits.py --epochs 40 --output digits.png

The data are the 1,797 digits that come with scikit-learn, 8 x 8 pixels each. The model is a multilayer perceptron; its
gradient and the update (SGD with momentum) are one jitted function. The batch grows during the run, and the last batch
of an epoch is smaller than the others. All of them run the same program.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import itertools

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp
from harp import nn

WIDTHS = (64, 128, 64, 10)
BATCH_SIZES = (32, 64, 128)  # one for each third of the run
LEARNING_RATE = 0.1  # at the start; it falls to 0 on a line
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-3
NOISE = 0.2  # added to the pixels of training images, so that the model does not learn them by heart

Params = dict[str, np.ndarray]


class Data(NamedTuple):
    """Images as rows of 64 numbers from 0 to 1, and labels from 0 to 9."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Epoch(NamedTuple):
    """What is known after an epoch."""

    batch_size: int
    loss: float
    accuracy: float


def logits(params, x):
    """The scores of the ten classes, one row for each image."""
    last = len(WIDTHS) - 2
    for k in range(last):
        x = hnp.relu(x @ params[f"w{k}"] + params[f"b{k}"])
    return x @ params[f"w{last}"] + params[f"b{last}"]


def loss(params, x, y):
    """Mean cross-entropy of the labels, with weight decay."""
    entropy = hnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits(params, x), y))
    decay = sum(hnp.sum(w * w) for name, w in params.items() if name.startswith("w"))
    return entropy + 0.5 * WEIGHT_DECAY * decay


@harp.jit
def train_step(params, velocity, x, y, rate):
    """One step of SGD with momentum: the new parameters, the new velocity, and the loss before the step."""
    value, gradient = harp.value_and_grad(loss)(params, x, y)
    velocity = {name: MOMENTUM * v - rate * gradient[name] for name, v in velocity.items()}
    params = {name: p + velocity[name] for name, p in params.items()}
    return params, velocity, value


@harp.jit
def predict(params, x):
    """The most likely class of each image."""
    return hnp.argmax(logits(params, x), axis=1)


def load_data(seed: int) -> Data:
    """A stratified split: three quarters to train on, a quarter to test with."""
    digits = load_digits()
    images, labels = (digits.data / 16).astype(np.float32), digits.target.astype(np.int32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    return Data(train_x, train_y, test_x, test_y)


def initial_params(rng: np.random.Generator) -> Params:
    """He's initialisation: normal weights of variance 2 / inputs, and no bias."""
    params = {}
    for k, (inputs, outputs) in enumerate(itertools.pairwise(WIDTHS)):
        params[f"w{k}"] = (rng.normal(size=(inputs, outputs)) * np.sqrt(2 / inputs)).astype(np.float32)
        params[f"b{k}"] = np.zeros(outputs, np.float32)
    return params


def schedule(epoch: int, epochs: int) -> tuple[int, np.float32]:
    """Batch size and learning rate of an epoch: larger batches and smaller steps toward the end."""
    third = epoch * len(BATCH_SIZES) // epochs
    return BATCH_SIZES[third], np.float32(LEARNING_RATE * (1 - epoch / epochs))


def batches(data: Data, size: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The training data with noise, in random order, `size` at a time; the last batch has what is left."""
    order = rng.permutation(len(data.train_x))
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        x = data.train_x[rows]
        yield x + np.float32(NOISE) * rng.standard_normal(x.shape, np.float32), data.train_y[rows]


def train(data: Data, epochs: int, rng: np.random.Generator) -> tuple[Params, list[Epoch]]:
    """The trained parameters and the history of the run."""
    params = initial_params(rng)
    velocity = {name: np.zeros_like(p) for name, p in params.items()}
    history = []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)  # no bar where there is no terminal
    for epoch in bar:
        size, rate = schedule(epoch, epochs)
        total = 0.0
        for x, y in batches(data, size, rng):
            params, velocity, value = train_step(params, velocity, x, y, rate)
            total += float(value) * len(x)
        accuracy = float(np.mean(np.asarray(predict(params, data.test_x)) == data.test_y))
        history.append(Epoch(size, total / len(data.train_x), accuracy))
        bar.set_postfix(batch=size, loss=f"{history[-1].loss:.4f}", test=f"{accuracy:.1%}")
    return params, history


def draw(history: Sequence[Epoch], data: Data, predicted: np.ndarray, path: str) -> None:
    """The learning curve above, misclassified digits below."""
    wrong = np.flatnonzero(predicted != data.test_y)
    columns = 8
    figure = plt.figure(figsize=(8, 6), layout="constrained")
    grid = figure.add_gridspec(2, columns, height_ratios=(3, 1))
    _draw_curve(figure.add_subplot(grid[0, :]), history)
    for k in range(columns):
        axes = figure.add_subplot(grid[1, k])
        axes.axis("off")
        if k < len(wrong):
            row = wrong[k]
            axes.imshow(data.test_x[row].reshape(8, 8), cmap="gray_r", vmin=0, vmax=1)
            axes.set_title(f"{data.test_y[row]}, not {predicted[row]}", fontsize=9)
    shown = f", {columns} of them shown" if len(wrong) > columns else ""
    figure.supxlabel(f"{len(wrong)} of {len(data.test_y)} test digits are misclassified{shown}", fontsize=10)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _draw_curve(axes: plt.Axes, history: Sequence[Epoch]) -> None:
    steps, losses = np.arange(1, len(history) + 1), [e.loss for e in history]
    (loss_line,) = axes.plot(steps, losses, ".-", color="tab:blue", label="training loss (left)")
    right = axes.twinx()
    errors = [100 * (1 - e.accuracy) for e in history]
    (error_line,) = right.plot(steps, errors, ".-", color="tab:orange", label="test error (right)")
    right.set(ylabel="test error in %", ylim=(0, 1.1 * max(1.0, *errors)))
    axes.set(xlabel="epoch", ylabel="training loss", title="One program for all batch sizes")
    for k, e in enumerate(history):
        if k == 0 or e.batch_size != history[k - 1].batch_size:
            axes.axvline(k + 0.5, color="0.8", linewidth=1, zorder=0)
            place = axes.get_xaxis_transform()  # x in epochs, y from 0 to 1
            axes.text(k + 0.5, 0.02, f" batch {e.batch_size}", transform=place, color="0.4")
    axes.set(xlim=(0.5, len(history) + 0.5), ylim=(0, 1.1 * max(losses)))
    axes.legend(handles=[loss_line, error_line], loc="upper right")


def main(argv: Sequence[str] | None = None) -> int:
    """Train, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a classifier of handwritten digits with harp.")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0, help="of the split, the initial weights, and the batches")
    parser.add_argument("--output", default="digits.png", help="where the picture goes")
    parser.add_argument("--backend", choices=("c", "opencl"), default="c", help="what the programs are compiled to")
    options = parser.parse_args(argv)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    with harp.default_device("opencl" if options.backend == "opencl" else "cpu"):
        return run(options)


def run(options: argparse.Namespace) -> int:
    """Train, report, draw on the device in use."""
    data = load_data(options.seed)
    start = time.perf_counter()
    params, history = train(data, options.epochs, np.random.default_rng(options.seed))
    seconds = time.perf_counter() - start
    draw(history, data, np.asarray(predict(params, data.test_x)), options.output)

    used = ", ".join(map(str, dict.fromkeys(e.batch_size for e in history)))
    left = ", ".join(map(str, dict.fromkeys(len(data.train_x) % e.batch_size for e in history)))
    print(f"test accuracy: {history[-1].accuracy:.2%} of {len(data.test_y)} digits")
    print(f"programs compiled: {train_step.compilations} for the train step, {predict.compilations} for prediction")
    print(f"compiler runs: {harp.stats()['compiler_runs']}; programs of an earlier run come out of the cache")
    print(f"batch sizes: {used}; the last batch of an epoch: {left}")
    print(f"epochs: {options.epochs}, in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
