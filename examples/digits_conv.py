"""Train a convolutional network on handwritten digits of two sizes, in batches of several: one compiled train step.

    python examples/digits_conv.py --epochs 20 --output digits_conv.png

The data are the 1,797 digits that come with scikit-learn, 8 x 8 pixels each. Every other batch is enlarged to 12 x 12;
the largest elements over all places at the end of the network make ten scores of either size. The optimiser is AdamW of
`harp.optim`, with a learning rate that rises and then falls with half a wave.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp
from harp import nn, optim

CHANNELS = (1, 32, 64, 64)
SIZES = (8, 12)  # of images, in turns
BATCH_SIZES = (32, 64, 128)  # one for each third of the run
RATE = 4e-3  # the highest learning rate
WEIGHT_DECAY = 1e-2
SHIFT = 1  # training images are moved by up to so many pixels

Params = dict[str, Any]


class Data(NamedTuple):
    """Images of shape (n, 1, 8, 8) with numbers from 0 to 1, and labels from 0 to 9."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Epoch(NamedTuple):
    """What is known after an epoch: the loss, and the accuracy for each of SIZES."""

    batch_size: int
    loss: float
    accuracies: tuple[float, ...]


def logits(params, x):
    """The scores of the ten classes, one row for each image, whatever the size of images."""
    for k, layer in enumerate(params["layers"]):
        x = hnp.relu(nn.conv(x, layer["w"], padding="same") + layer["b"][:, None, None])
        if k == 0:
            x = nn.max_pool(x, (2, 2))
    return nn.global_max_pool(x) @ params["w"] + params["b"]


def loss(params, x, y):
    """Mean cross-entropy of the labels."""
    return hnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits(params, x), y))


@harp.jit
def predict(params, x):
    """The most likely class of each image."""
    return hnp.argmax(logits(params, x), axis=1)


def train_step_of(optimiser: optim.GradientTransformation) -> Callable[..., Any]:
    """The compiled step: new parameters and state of the optimiser, and the loss before."""

    @harp.jit
    def train_step(params, state, x, y):
        value, gradient = harp.value_and_grad(loss)(params, x, y)
        updates, state = optimiser.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    return train_step


def load_data(seed: int) -> Data:
    """A stratified split: three quarters to train on, a quarter to test with."""
    digits = load_digits()
    images, labels = (digits.images[:, None] / 16).astype(np.float32), digits.target.astype(np.int32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    return Data(train_x, train_y, test_x, test_y)


def initial_params(seed: int) -> Params:
    """He's initialisation, and no bias."""
    normal, keys = nn.initializers.he_normal(in_axis=(1, 2, 3), out_axis=0), harp.random.split(harp.random.key(seed), 4)
    layers = [
        {"w": normal(keys[k], (outputs, inputs, 3, 3), "float32"), "b": hnp.zeros(outputs, "float32")}
        for k, (inputs, outputs) in enumerate(itertools.pairwise(CHANNELS))
    ]
    w = nn.initializers.he_normal()(keys[3], (CHANNELS[-1], 10), "float32")
    return {"layers": layers, "w": w, "b": hnp.zeros(10, "float32")}


def resized(x: np.ndarray, size: int) -> np.ndarray:
    """The images with so many rows and columns."""
    return np.asarray(nn.resize(x, (len(x), 1, size, size), "linear")) if size != x.shape[-1] else x


def moved(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The images, all moved by the same random number of pixels in both directions."""
    padded = np.pad(x, ((0, 0), (0, 0), (SHIFT, SHIFT), (SHIFT, SHIFT)))
    i, j = rng.integers(0, 2 * SHIFT + 1, size=2)
    return padded[:, :, i : i + x.shape[2], j : j + x.shape[3]]


def batches(data: Data, size: int, rng: np.random.Generator) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The training data, moved and resized, in random order, `size` at a time; the last batch has what is left."""
    order = rng.permutation(len(data.train_x))
    for k, start in enumerate(range(0, len(order), size)):
        rows = order[start : start + size]
        yield resized(moved(data.train_x[rows], rng), SIZES[k % len(SIZES)]), data.train_y[rows]


def batch_size(epoch: int, epochs: int) -> int:
    """Larger batches toward the end."""
    return BATCH_SIZES[epoch * len(BATCH_SIZES) // epochs]


def train(data: Data, epochs: int, seed: int) -> tuple[Params, list[Epoch], Any]:
    """The trained parameters, the history of the run, and the train step."""
    rng, params = np.random.default_rng(seed), initial_params(seed)
    steps = sum(-(-len(data.train_x) // batch_size(epoch, epochs)) for epoch in range(epochs))
    rate = optim.warmup_cosine_decay_schedule(0.0, RATE, max(1, steps // 10), steps + 1)
    optimiser = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, weight_decay=WEIGHT_DECAY))
    state, train_step, history = optimiser.init(params), train_step_of(optimiser), []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)  # no bar where there is no terminal
    for epoch in bar:
        size, total = batch_size(epoch, epochs), 0.0
        for x, y in batches(data, size, rng):
            params, state, value = train_step(params, state, x, y)
            total += float(value) * len(x)
        accuracies = tuple(accuracy(params, data, size) for size in SIZES)
        history.append(Epoch(size, total / len(data.train_x), accuracies))
        bar.set_postfix(batch=size, loss=f"{history[-1].loss:.4f}", test=f"{accuracies[0]:.1%}")
    return params, history, train_step


def accuracy(params: Params, data: Data, size: int) -> float:
    """The share of test images of a size whose class is found."""
    return float(np.mean(np.asarray(predict(params, resized(data.test_x, size))) == data.test_y))


def draw(history: Sequence[Epoch], path: str) -> None:
    """The learning curve, and the errors for both sizes."""
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    steps = np.arange(1, len(history) + 1)
    lines = axes.plot(steps, [e.loss for e in history], ".-", color="tab:blue", label="training loss (left)")
    axes.set(xlabel="epoch", ylabel="training loss", yscale="log", title="One program for all batches and both sizes")
    right = axes.twinx()
    for k, (size, color) in enumerate(zip(SIZES, ("tab:orange", "tab:green"), strict=True)):
        errors = [100 * (1 - e.accuracies[k]) for e in history]
        label = f"test error, {size} x {size} pixels (right)"
        lines += right.plot(steps, errors, ".-", color=color, label=label)
    right.set(ylabel="test error in %", ylim=(0, 10))
    axes.legend(handles=lines, loc="upper right")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a convolutional network on digits of two sizes with harp.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0, help="of the split, the initial weights, and the batches")
    parser.add_argument("--output", default="digits_conv.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    data = load_data(options.seed)
    start = time.perf_counter()
    _, history, train_step = train(data, options.epochs, options.seed)
    seconds = time.perf_counter() - start
    draw(history, options.output)

    found = ", ".join(f"{a:.2%} at {size} x {size}" for size, a in zip(SIZES, history[-1].accuracies, strict=True))
    print(f"test accuracy: {found}, of {len(data.test_y)} digits")
    print(f"programs compiled: {train_step.compilations} for the train step, {predict.compilations} for prediction")
    print(f"epochs: {options.epochs}, in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
