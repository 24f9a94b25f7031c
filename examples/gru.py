"""Train a recurrent network on sequences of changing lengths: one compiled train step for all lengths and batches.

    python examples/gru.py --steps 3000 --output gru.png

The adding problem (S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997): each element of a sequence is a
random number and a mark, two elements are marked, and the answer is the sum of their numbers. A gated recurrent unit
reads the sequence; it must keep a number for many steps. The answer that knows nothing, 1, has a mean square error of
1/6.
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

HIDDEN = 32
BATCH = 32
LONGEST = 50  # in training
RATE = 3e-3  # of Adam
IGNORANT = 1 / 6  # the mean square error of the answer 1

Params = dict[str, np.ndarray]


def gru_step(params, h, x):
    """The next state h, of shape (batch, HIDDEN), for inputs x of shape (batch, 2)."""
    gates = hnp.sigmoid(x @ params["gates_x"] + h @ params["gates_h"] + params["gates_b"])
    update, reset = gates[:, :HIDDEN], gates[:, HIDDEN:]
    candidate = hnp.tanh(x @ params["new_x"] + (reset * h) @ params["new_h"] + params["new_b"])
    return h + update * (candidate - h)


def answer(params, xs):
    """The answers, of shape (batch,), to sequences of shape (time, batch, 2)."""
    start = hnp.zeros((xs.shape[1], HIDDEN), xs.dtype)
    last, _ = harp.scan(lambda h, x: (gru_step(params, h, x), None), start, xs)
    return last @ params["out_w"] + params["out_b"]


def loss(params, xs, ys):
    """The mean square error of the answers."""
    return hnp.mean((answer(params, xs) - ys) ** 2)


value_and_gradient = harp.jit(harp.value_and_grad(loss))


@harp.jit
def train_step(params, moments, step, xs, ys):
    """A step of Adam (D. P. Kingma, J. Ba, 2015): the new parameters, the new moments, and the loss before."""
    value, gradient = harp.value_and_grad(loss)(params, xs, ys)
    mean = harp.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradient)
    square = harp.tree.map(lambda v, g: 0.99 * v + 0.01 * g**2, moments[1], gradient)
    rate = RATE * hnp.sqrt(1 - 0.99**step) / (1 - 0.9**step)
    params = harp.tree.map(lambda p, m, v: p - rate * m / (hnp.sqrt(v) + 1e-8), params, mean, square)
    return params, (mean, square), value


def initial_params(rng: np.random.Generator) -> Params:
    """Small normal weights; the bias keeps the update gate nearly closed, so that the state is remembered."""

    def normal(*shape: int) -> np.ndarray:
        return (rng.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)

    gates_b = np.concatenate([np.full(HIDDEN, -1.0), np.zeros(HIDDEN)]).astype(np.float32)
    return {
        "gates_x": normal(2, 2 * HIDDEN),
        "gates_h": normal(HIDDEN, 2 * HIDDEN),
        "gates_b": gates_b,
        "new_x": normal(2, HIDDEN),
        "new_h": normal(HIDDEN, HIDDEN),
        "new_b": np.zeros(HIDDEN, np.float32),
        "out_w": normal(HIDDEN),
        "out_b": np.zeros((), np.float32),
    }


def adding_problem(length: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of shape (length, batch, 2), numbers and marks, and the sum of the two marked numbers of each."""
    numbers = rng.uniform(size=(length, batch))
    order = np.argsort(rng.uniform(size=(length, batch)), axis=0)
    marks = order < 2
    sums = np.sum(numbers * marks, axis=0)
    return np.stack([numbers, marks], axis=-1).astype(np.float32), sums.astype(np.float32)


def train(steps: int, rng: np.random.Generator) -> tuple[Params, list[float]]:
    """Train on sequences of random lengths; the parameters, and the loss of each batch."""
    params = initial_params(rng)
    zeros = {name: np.zeros_like(p) for name, p in params.items()}
    moments, losses = (zeros, zeros), []
    for step in range(1, steps + 1):
        xs, ys = adding_problem(int(rng.integers(2, LONGEST + 1)), BATCH, rng)
        params, moments, value = train_step(params, moments, np.float32(step), xs, ys)
        losses.append(float(value))
    return params, losses


def errors(params: Params, lengths: Sequence[int], rng: np.random.Generator) -> list[float]:
    """The mean square error for sequences of each length, most of which training has not seen."""
    return [float(value_and_gradient(params, *adding_problem(length, 500, rng))[0]) for length in lengths]


def draw(losses: Sequence[float], lengths: Sequence[int], tested: Sequence[float], path: str) -> None:
    """The learning curve on the left, the error for each length on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    window = max(1, len(losses) // 50)
    means = np.convolve(losses, np.full(window, 1 / window), "valid")
    left.plot(losses, color="tab:blue", alpha=0.2)
    left.plot(np.arange(len(means)) + window / 2, means, color="tab:blue")
    left.set(xlabel="step", ylabel="mean square error", yscale="log", title=f"Training, lengths from 2 to {LONGEST}")
    right.plot(lengths, tested, ".-", color="tab:orange")
    right.axvspan(0, LONGEST, color="0.93")
    right.text(LONGEST / 2, 0.3, "seen in\ntraining", ha="center", va="center", color="0.4", fontsize=9)
    right.set(xlabel="length of the sequence", xlim=(0, None), title="Longer ones, by the same program")
    for axes in (left, right):
        axes.axhline(IGNORANT, color="0.5", linestyle="--", linewidth=1)
    left.text(len(losses), IGNORANT, "knows nothing", ha="right", va="bottom", color="0.4", fontsize=9)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, test, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a gated recurrent unit on the adding problem with harp.")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights and the sequences")
    parser.add_argument("--output", default="gru.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    rng = np.random.default_rng(options.seed)
    start = time.perf_counter()
    params, losses = train(options.steps, rng)
    seconds = time.perf_counter() - start
    lengths = [2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300, 400]
    tested = errors(params, lengths, rng)
    draw(losses, lengths, tested, options.output)

    print(f"mean square error: {tested[lengths.index(50)]:.5f} at length 50; knowing nothing: {IGNORANT:.5f}")
    print(f"programs compiled: {train_step.compilations} for the train step, {value_and_gradient.compilations} to test")
    print(f"steps: {options.steps}, in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
