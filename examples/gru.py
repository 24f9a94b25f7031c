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
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import harp
import harp.numpy as hnp
from harp import nn, optim

HIDDEN = 32
BATCH = 32
LONGEST = 50  # in training
OPTIMISER = optim.adam(3e-3, b2=0.99)
IGNORANT = 1 / 6  # the mean square error of the answer 1

Params = dict[str, Any]


def answer(params, xs):
    """The answers, of shape (batch,), to sequences of shape (time, batch, 2)."""
    last, _ = nn.gru(params["gru"], hnp.zeros((xs.shape[1], HIDDEN), xs.dtype), xs)
    return last @ params["out_w"] + params["out_b"]


def loss(params, xs, ys):
    """The mean square error of the answers."""
    return hnp.mean((answer(params, xs) - ys) ** 2)


value_and_gradient = harp.jit(harp.value_and_grad(loss))


@harp.jit
def train_step(params, state, xs, ys):
    """The new parameters and state of the optimiser, and the loss before."""
    value, gradient = harp.value_and_grad(loss)(params, xs, ys)
    updates, state = OPTIMISER.update(gradient, state, params)
    return optim.apply_updates(params, updates), state, value


def initial_params(seed: int) -> Params:
    """Random weights; the bias keeps the update gate nearly closed, so that the state is remembered."""
    keys = harp.random.split(harp.random.key(seed), 2)
    gru = nn.gru_parameters(keys[0], 2, HIDDEN, "float32")
    gru["bias"] = gru["bias"].at[HIDDEN : 2 * HIDDEN].set(1.0)
    out = harp.random.normal(keys[1], (HIDDEN,), "float32") / HIDDEN**0.5
    return {"gru": gru, "out_w": out, "out_b": hnp.zeros((), "float32")}


def adding_problem(length: int, batch: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of shape (length, batch, 2), numbers and marks, and the sum of the two marked numbers of each."""
    numbers = rng.uniform(size=(length, batch))
    order = np.argsort(rng.uniform(size=(length, batch)), axis=0)
    marks = order < 2
    sums = np.sum(numbers * marks, axis=0)
    return np.stack([numbers, marks], axis=-1).astype(np.float32), sums.astype(np.float32)


def train(steps: int, seed: int, rng: np.random.Generator) -> tuple[Params, list[float]]:
    """Train on sequences of random lengths; the parameters, and the loss of each batch."""
    params, losses = initial_params(seed), []
    state = OPTIMISER.init(params)
    for _ in range(steps):
        xs, ys = adding_problem(int(rng.integers(2, LONGEST + 1)), BATCH, rng)
        params, state, value = train_step(params, state, xs, ys)
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
    params, losses = train(options.steps, options.seed, rng)
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
