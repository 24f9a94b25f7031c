"""Random programs: compiled, interpreted, and by NumPy, at several sizes. `make fuzz` has more of that."""

from __future__ import annotations

import pathlib
import random
import sys
import time

import numpy as np
from common import options, say

import harp
import harp.numpy as hnp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "property"))
from steps import BINARY, UNARY
from test_programs import DTYPES, Program, agree, fill

SIZES = (0, 1, 2, 3, 5, 8, 33, 100)


def program(rng: random.Random, kind: str) -> Program:
    table = [step for step in (*UNARY.values(), *BINARY.values()) if kind in step.kinds]
    steps = []
    for k in range(rng.randint(1, 8)):
        step, a = rng.choice(table), rng.randint(0, k + 1)
        steps.append((step, a, rng.randint(0, k + 1) if step in BINARY.values() else a))
    return Program(rng.randint(1, 3), steps)


def check(seed: int) -> int:
    """One program; how many results were compared."""
    rng, numbers = random.Random(seed), np.random.default_rng(seed)
    dtype, compared = rng.choice(DTYPES), 0
    made = program(rng, np.dtype(dtype).kind)
    compiled = harp.jit(lambda x, y: made.run([x, y], 0))
    for _ in range(4):
        shape = tuple(rng.choice(SIZES) for _ in range(made.rank))
        inputs = [fill(numbers, shape, dtype, not made.exact) for _ in range(2)]
        with np.errstate(all="ignore"):
            expected = made.run(inputs, 1)
        exact = made.exact and inputs[0].dtype.kind != "c"
        if not exact and not all(np.isfinite(e).all() for e in expected if e.dtype.kind in "fc"):
            continue
        interpreted = made.run([hnp.asarray(i) for i in inputs], 0)
        for found, eager, wanted in zip(compiled(*inputs), interpreted, expected, strict=True):
            agree(found, wanted, exact)
            agree(eager, wanted, exact)
            compared += 1
    return compared


def main() -> None:
    chosen = options(__doc__)
    end, count, compared = time.monotonic() + chosen.seconds, 0, 0
    while time.monotonic() < end:
        seed = chosen.seed + count
        try:
            compared += check(seed)
        except BaseException:
            print(f"program of seed {seed}: --seed {seed} --seconds 1 repeats it", flush=True)
            raise
        count += 1
    say(chosen, f"{count} programs, {compared} results compared")


if __name__ == "__main__":
    main()
