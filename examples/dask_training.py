"""Training by blocks of different lengths on several processes, with Dask: gradients are added up as a tree.

    pip install 'harp-compiler[dask]'
    python examples/dask_training.py --workers 2 --blocks 24 --rounds 20

The functions below are sent to the workers, which compile them once: the blocks differ in length, and are served by one
program. Halfway a worker is killed; Dask computes its blocks again elsewhere, and the result is that of one process.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence

import numpy as np
from dask.distributed import Client, LocalCluster
from tqdm.auto import tqdm

import harp
import harp.numpy as hnp


def predict(weights, x):
    """A layer of 64 hidden units, for rows of x."""
    hidden, out = weights
    return hnp.tanh(x @ hidden) @ out


def squares(weights, block):
    """The sum of the squared errors of a block, not their mean, so that blocks of different lengths add up."""
    x, y = block
    return hnp.sum((predict(weights, x) - y) ** 2)


block_gradient = harp.jit(harp.value_and_grad(squares))


def added(pairs):
    """The sum of (value, gradient) of several blocks, in their order: it does not depend on who computed them."""
    first, *others = pairs
    for pair in others:
        first = harp.tree.map(lambda a, b: a + b, first, pair)
    return first


def block_of(number: int):
    """2,000 to 6,000 rows of a function with noise; it stands for a file, which can be read again."""
    rng = np.random.default_rng(number)
    rows, direction = rng.integers(2000, 6000), np.linspace(-1, 1, 20)[:, None]
    x = rng.normal(size=(rows, 20))
    return x, np.sin(x @ direction) + 0.1 * rng.normal(size=(rows, 1))


def start(seed: int = 1):
    """Small random weights."""
    rng = np.random.default_rng(seed)
    return 0.2 * rng.normal(size=(20, 64)), 0.2 * rng.normal(size=(64, 1))


def tree_sum(client: Client, futures, fan_in: int = 8):
    """The sum of what futures hold, by groups of `fan_in`: no process gets all of it."""
    while len(futures) > 1:
        groups = [futures[k : k + fan_in] for k in range(0, len(futures), fan_in)]
        futures = [client.submit(added, group, pure=False) for group in groups]
    return futures[0]


def train(client: Client, count: int, rounds: int, kills: bool, rate: float = 0.1):
    """The weights after so many steps down the gradient, the mean error of each, and the seconds that each took."""
    blocks, weights = [client.submit(block_of, number) for number in range(count)], start()
    rows = sum(client.gather([client.submit(lambda block: len(block[1]), block) for block in blocks]))
    errors, seconds = [], []
    for number in tqdm(range(rounds), desc="rounds"):
        began = time.perf_counter()
        if kills and number == rounds // 2:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        sums = [client.submit(block_gradient, weights, block, pure=False) for block in blocks]
        value, gradient = tree_sum(client, sums).result()
        weights = harp.tree.map(lambda w, g: w - rate / rows * g, weights, gradient)
        errors.append(float(value) / rows)
        seconds.append(time.perf_counter() - began)
    return weights, errors, seconds


def alone(count: int, rounds: int, rate: float = 0.1):
    """The same in this process."""
    blocks, weights = [block_of(number) for number in range(count)], start()
    rows = sum(len(y) for _, y in blocks)
    for _ in range(rounds):
        pairs = [block_gradient(weights, block) for block in blocks]
        while len(pairs) > 1:
            pairs = [added(pairs[k : k + 8]) for k in range(0, len(pairs), 8)]
        weights = harp.tree.map(lambda w, g: w - rate / rows * g, weights, pairs[0][1])
    return weights


def main(arguments: Sequence[str] | None = None) -> int:
    """Train on local workers and compare with one process."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args(arguments)
    with (
        LocalCluster(n_workers=options.workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        weights, errors, seconds = train(client, options.blocks, options.rounds, kills=options.workers > 1)
    print(f"mean squared error {errors[0]:.4f} -> {errors[-1]:.4f}")
    print(f"first round {seconds[0]:.2f} s, later ones {np.median(seconds[1:]):.3f} s")
    same = all(np.array_equal(a, b) for a, b in zip(weights, alone(options.blocks, options.rounds), strict=True))
    print(f"the weights are those of one process: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
