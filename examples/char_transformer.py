"""Train a transformer to go on with a text, letter by letter: one compiled train step for all lengths.

    python examples/char_transformer.py --steps 1500 --output char_transformer.png

The text is what `help()` of Python says of its language, which comes with Python. Each step reads pieces of a random
length, and the text that is written grows letter by letter, up to lengths that training has not seen; each is one
program. A. Vaswani and others, "Attention is all you need", 2017; with the norms before each part (R. Xiong and others,
2020), and positions as rotations (J. Su and others, 2021).
"""

from __future__ import annotations

import argparse
import pydoc_data.topics
import sys
import time
from collections.abc import Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp
from harp import nn, optim

WIDTH, HEADS, LAYERS = 64, 4, 2
BASE = 100.0  # of the frequencies of positions
BATCH = 16
SHORTEST, LONGEST = 16, 96  # pieces of the text in training
RATE = 3e-3  # the highest learning rate
TEMPERATURE = 0.6
TOPICS = ("compound", "typesmapping", "specialnames", "exprlists", "formatstrings")
LETTERS = "\n" + "".join(map(chr, range(32, 127)))  # all others are left out

Params = dict[str, Any]


def block(params, x):
    """A layer: what other positions say, then what the own one makes of it. x is (batch, n, WIDTH)."""
    batch, n = x.shape[:2]
    heads = nn.layer_norm(x, params["norm1"]) @ params["qkv"]
    q, k, v = (part.reshape(batch, n, HEADS, WIDTH // HEADS) for part in hnp.split(heads, 3, axis=-1))
    q, k = nn.rotary_embedding(q, base=BASE), nn.rotary_embedding(k, base=BASE)
    mixed = nn.dot_product_attention(q, k, v, is_causal=True).reshape(batch, n, WIDTH)
    x = x + mixed @ params["out"]
    return x + nn.gelu(nn.layer_norm(x, params["norm2"]) @ params["up"]) @ params["down"]


def logits(params, text):
    """For each position of (batch, n) numbers of letters, the scores of the letters that may follow."""
    x = params["letters"][text]
    for layer in params["layers"]:
        x = block(layer, x)
    return nn.layer_norm(x, params["norm"]) @ params["letters"].T


def loss(params, text):
    """The mean cross-entropy, in nats, of each letter after those before it."""
    return hnp.mean(nn.softmax_cross_entropy_with_integer_labels(logits(params, text[:, :-1]), text[:, 1:]))


@harp.jit
def next_letter(params, text, key):
    """One more letter after each row of the text, at random."""
    return harp.random.categorical(key, logits(params, text)[:, -1] / TEMPERATURE)


def train_step_of(optimiser: optim.GradientTransformation) -> Any:
    """The compiled step: new parameters and state of the optimiser, and the loss before."""

    @harp.jit
    def train_step(params, state, text):
        value, gradient = harp.value_and_grad(loss)(params, text)
        updates, state = optimiser.update(gradient, state, params)
        return optim.apply_updates(params, updates), state, value

    return train_step


def initial_params(seed: int) -> Params:
    """Small normal weights, and scales of 1."""
    keys = iter(harp.random.split(harp.random.key(seed), 4 * LAYERS + 1))

    def normal(*shape: int, scale: float = 1.0) -> harp.Array:
        return scale / shape[0] ** 0.5 * harp.random.normal(next(keys), shape, "float32")

    ones, quiet = hnp.ones(WIDTH, "float32"), (2 * LAYERS) ** -0.5
    layers = [
        {
            "norm1": ones,
            "qkv": normal(WIDTH, 3 * WIDTH),
            "out": normal(WIDTH, WIDTH, scale=quiet),
            "norm2": ones,
            "up": normal(WIDTH, 4 * WIDTH),
            "down": normal(4 * WIDTH, WIDTH, scale=quiet),
        }
        for _ in range(LAYERS)
    ]
    return {"letters": normal(len(LETTERS), WIDTH), "layers": layers, "norm": ones}


def load_text() -> str:
    """What `help()` says of some topics."""
    return "\n".join(pydoc_data.topics.topics[name] for name in TOPICS)


def numbers_of(text: str) -> np.ndarray:
    """The number of each letter, without those that have none."""
    return np.array([LETTERS.index(letter) for letter in text if letter in LETTERS], np.int32)


def train(text: np.ndarray, steps: int, seed: int) -> tuple[Params, list[float], Any]:
    """The trained parameters, the loss of each step, and the train step."""
    rng, params = np.random.default_rng(seed), initial_params(seed)
    rate = optim.warmup_cosine_decay_schedule(0.0, RATE, max(1, steps // 10), steps + 1, 0.1 * RATE)
    optimiser = optim.chain(optim.clip_by_global_norm(1.0), optim.adamw(rate, b2=0.99))
    state, train_step, losses = optimiser.init(params), train_step_of(optimiser), []
    bar = tqdm(range(steps), desc="training", unit="step", disable=None)  # no bar where there is no terminal
    for _ in bar:
        length = int(rng.integers(SHORTEST, LONGEST + 1))
        starts = rng.integers(0, len(text) - length, size=BATCH)
        params, state, value = train_step(params, state, text[starts[:, None] + np.arange(length)])
        losses.append(float(value))
        bar.set_postfix(length=length, loss=f"{losses[-1]:.3f}")
    return params, losses, train_step


def written(params: Params, start: str, count: int, seed: int) -> str:
    """The text with so many more letters, each of which depends on at most LONGEST before it."""
    text, key = numbers_of(start)[None], harp.random.key(seed)
    for _ in range(count):
        key, used = harp.random.split(key)
        letter = np.asarray(next_letter(params, text[:, -LONGEST:], used), np.int32)
        text = np.concatenate([text, letter[:, None]], axis=1)
    return "".join(LETTERS[number] for number in text[0])


def draw(losses: Sequence[float], path: str) -> None:
    """The learning curve, in bits for each letter."""
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    bits, window = np.array(losses) / np.log(2), max(1, len(losses) // 50)
    means = np.convolve(bits, np.full(window, 1 / window), "valid")
    axes.plot(bits, color="tab:blue", alpha=0.2)
    axes.plot(np.arange(len(means)) + window / 2, means, color="tab:blue")
    axes.axhline(np.log2(len(LETTERS)), color="0.5", linestyle="--", linewidth=1)
    axes.text(len(losses), np.log2(len(LETTERS)), "knows nothing", ha="right", va="top", color="0.4", fontsize=9)
    title = f"Pieces of {SHORTEST} to {LONGEST} letters, one program"
    axes.set(xlabel="step", ylabel="bits for each letter", ylim=(0, None), title=title)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, write, report, draw. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Train a transformer on the letters of Python's help with harp.")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--letters", type=int, default=300, help="how many are written at the end")
    parser.add_argument("--seed", type=int, default=0, help="of the initial weights, the pieces, and what is written")
    parser.add_argument("--output", default="char_transformer.png", help="where the picture goes")
    options = parser.parse_args(argv)
    if options.steps < 1:
        parser.error("--steps must be at least 1")

    text = numbers_of(load_text())
    start = time.perf_counter()
    params, losses, train_step = train(text, options.steps, options.seed)
    seconds = time.perf_counter() - start
    draw(losses, options.output)
    print(written(params, "The ", options.letters, options.seed))

    last = np.mean(losses[-max(1, len(losses) // 20) :]) / np.log(2)
    print(f"\nbits for each letter: {last:.2f} of a text of {len(text)} letters; {losses[0] / np.log(2):.2f} at first")
    print(f"programs compiled: {train_step.compilations} for the train step, {next_letter.compilations} to write")
    print(f"steps: {options.steps}, in {seconds:.1f} s, compiling included")
    print(f"picture: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
