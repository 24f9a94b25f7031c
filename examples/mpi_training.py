"""Training by blocks of different lengths on several ranks of MPI: each rank adds up the gradients of its blocks.

    pip install harp-compiler mpi4py mpich  # or the MPI of the machine
    mpiexec -n 2 python examples/mpi_training.py --blocks 24 --rounds 50

One rank compiles the program while the others wait for it in the cache; it serves blocks of all lengths. Every rank
adds the gradients of all blocks in the order of the blocks, so the weights have the same bits for any number of ranks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from mpi4py import MPI

import harp
import harp.numpy as hnp


@harp.jit
@harp.value_and_grad
def squares(weights, x, y):
    """The sum of the squared errors of a block, not their mean, so that blocks of different lengths add up."""
    hidden, out = weights
    return hnp.sum((hnp.tanh(x @ hidden) @ out - y) ** 2)


def block(number):
    """Some hundred rows of 8 numbers, and the numbers that are to be predicted of them."""
    rng = np.random.default_rng(number)
    x = rng.normal(size=(200 + 37 * number, 8))
    return x, np.sin(x).sum(axis=1)


def gradients_of_all(world, weights, blocks):
    """The losses and gradients of all blocks, each computed by one rank, in the order of the blocks."""
    own = {n: squares(weights, *blocks[n]) for n in blocks}
    sent = {n: (float(loss), harp.tree.map(np.asarray, gradient)) for n, (loss, gradient) in own.items()}
    every = {n: pair for part in world.allgather(sent) for n, pair in part.items()}
    return [every[n] for n in sorted(every)]


def main(arguments: Sequence[str]) -> int:
    """Train, and print the mean loss of each tenth round on the first rank."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args(arguments)
    world = MPI.COMM_WORLD
    blocks = {n: block(n) for n in range(world.rank, options.blocks, world.size)}
    rows = world.allreduce(sum(len(y) for _, y in blocks.values()))
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(8, 32)) / 3, rng.normal(size=32) / 6
    for number in range(options.rounds):
        found = gradients_of_all(world, weights, blocks)
        gradient = harp.tree.map(lambda *parts: sum(parts) / rows, *(slope for _, slope in found))
        weights = harp.tree.map(lambda w, slope: w - 0.1 * slope, weights, gradient)
        if world.rank == 0 and number % 10 == 0:
            print(f"round {number}: loss {sum(loss for loss, _ in found) / rows:.4f}", flush=True)
    if world.rank == 0:
        print(f"{world.size} ranks, {squares.compilations} program, weights {sum(map(np.sum, weights)).hex()}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
