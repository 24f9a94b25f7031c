"""Train a variational autoencoder of handwritten digits, and draw digits that nobody wrote.

    python examples/vae.py --epochs 60 --output vae.png

An encoder makes of an image the mean and the spread of a normal distribution of codes, a decoder makes an image of a
code (D. P. Kingma, M. Welling, "Auto-encoding variational Bayes", 2014). The loss is what it costs to say the pixels by
the image that is decoded, and the code by its distribution. The data are scikit-learn's 1,797 digits of 8 x 8 pixels;
the code has two numbers, so that all of them can be drawn. Random numbers come from a key inside of the compiled step,
which serves all batch sizes.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp
from harp import nn, optim

PIXELS, CODE = 64, 2
ENCODER, DECODER = (PIXELS, 128, 64, 2 * CODE), (CODE, 64, 128, PIXELS)
BATCH = 64
RATE = 3e-3  # of Adam; it falls to a tenth within the run
GRID = 14  # rows and columns of the picture

Params = dict[str, Any]


def network(layers, x):
    """A multilayer perceptron."""
    for k, (w, b) in enumerate(layers):
        x = x @ w + b
        x = x if k + 1 == len(layers) else hnp.tanh(x)
    return x


def encode(params, x):
    """Means and logarithms of variances of codes, each of shape (images, CODE)."""
    both = network(params["encoder"], x)
    return both[:, :CODE], both[:, CODE:]


def decode(params, code):
    """Images of codes."""
    return nn.sigmoid(network(params["decoder"], code))


def loss(params, x, key):
    """The mean over images of minus the lower bound of the logarithm of their probability."""
    mean, log_variance = encode(params, x)
    code = mean + hnp.exp(log_variance / 2) * harp.random.normal(key, mean.shape, x.dtype)
    scores = network(params["decoder"], code)
    pixels = hnp.sum(nn.sigmoid_binary_cross_entropy(scores, x), axis=1)
    distance = hnp.sum(hnp.exp(log_variance) + mean**2 - 1 - log_variance, axis=1) / 2
    return hnp.mean(pixels + distance)


test_loss = harp.jit(loss)
decode_all = harp.jit(decode)
encode_all = harp.jit(encode)


def train_step_of(optimiser: optim.GradientTransformation) -> Any:
    """The compiled step: new parameters and state of the optimiser, and the loss before."""

    @harp.jit
    def train_step(params, state, x, key):
        value, gradient = harp.value_and_grad(loss)(params, x, key)
        updates, state = optimiser.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    return train_step


def initial_params(seed: int) -> Params:
    """Glorot's initialisation, and no bias."""
    normal, keys = nn.initializers.glorot_normal(), iter(harp.random.split(harp.random.key(seed), 6))

    def layers(widths: Sequence[int]) -> list[Any]:
        return [
            (normal(next(keys), pair, "float32"), hnp.zeros(pair[1], "float32")) for pair in itertools.pairwise(widths)
        ]

    return {"encoder": layers(ENCODER), "decoder": layers(DECODER)}


def load_data(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images to train with and images to test with, as rows of numbers from 0 to 1, and the labels of the latter."""
    digits = load_digits()
    order = np.random.default_rng(seed).permutation(len(digits.data))
    images, labels = (digits.data / 16).astype(np.float32)[order], digits.target[order]
    return images[:1400], images[1400:], labels[1400:]


def train(images: np.ndarray, epochs: int, seed: int) -> tuple[Params, list[float], Any]:
    """The trained parameters, the mean loss of each epoch, and the train step."""
    rng, params, key = np.random.default_rng(seed), initial_params(seed), harp.random.key(seed + 1)
    steps = epochs * -(-len(images) // BATCH)
    optimiser = optim.adam(optim.cosine_decay_schedule(RATE, steps, alpha=0.1))
    state, train_step, history = optimiser.init(params), train_step_of(optimiser), []
    bar = tqdm(range(epochs), desc="training", unit="epoch", disable=None)  # no bar where there is no terminal
    for _ in bar:
        order, total = rng.permutation(len(images)), 0.0
        for start in range(0, len(order), BATCH):
            x = images[order[start : start + BATCH]]
            key, used = harp.random.split(key)
            params, state, value = train_step(params, state, x, used)
            total += float(value) * len(x)
        history.append(total / len(images))
        bar.set_postfix(loss=f"{history[-1]:.3f}")
    return params, history, train_step


def samples(params: Params) -> np.ndarray:
    """A picture of decoded codes on a grid, whose places are quantiles of the normal distribution."""
    places = np.asarray(harp.scipy.special.ndtri((np.arange(GRID) + 0.5) / GRID), np.float32)
    codes = np.stack(np.meshgrid(places, places[::-1]), axis=-1).reshape(-1, CODE)
    images = np.asarray(decode_all(params, codes)).reshape(GRID, GRID, 8, 8)
    return images.transpose(0, 2, 1, 3).reshape(8 * GRID, 8 * GRID)


def draw(params: Params, history: Sequence[float], images: np.ndarray, labels: np.ndarray, path: str) -> None:
    """The learning curve, the codes of the test images, and the digits of a grid of codes."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
    left.plot(np.arange(1, len(history) + 1), history)
    left.set(xlabel="epoch", ylabel="loss in nats for each image", title="Training")
    codes = np.asarray(encode_all(params, images)[0])
    points = middle.scatter(codes[:, 0], codes[:, 1], c=labels, cmap="tab10", s=12, vmin=-0.5, vmax=9.5)
    figure.colorbar(points, ax=middle, ticks=range(10))
    middle.set(title="Codes of the test images", xlim=(-4, 4), ylim=(-4, 4), aspect="equal")
    right.imshow(samples(params), cmap="gray_r", vmin=0, vmax=1)
    right.axis("off")
    right.set_title("Digits of a grid of codes")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a variational autoencoder of handwritten digits with harp.")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of the split, the initial weights, and the codes")
    parser.add_argument("--output", default="vae.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.epochs < 1:
        parser.error("--epochs must be at least 1")

    images, test_images, labels = load_data(options.seed)
    start = time.perf_counter()
    params, history, train_step = train(images, options.epochs, options.seed)
    seconds = time.perf_counter() - start
    tested = float(test_loss(params, test_images, harp.random.key(options.seed)))
    draw(params, history, test_images, labels, options.output)

    rest = f"{tested:.3f} of {len(test_images)} other digits; {history[0]:.3f} at first"
    print(f"loss: {history[-1]:.3f} in training, {rest}")
    print(f"programs compiled: {train_step.compilations} for the train step")
    print(f"epochs: {options.epochs}, in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
