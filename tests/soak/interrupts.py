"""Interrupts at random moments around calls, traces and compilations: none is lost, and every later call is right."""

from __future__ import annotations

import random
import signal
import sys
import time

import numpy as np
from common import options, say

import harp
import harp.numpy as hnp
from harp.backends.runtime import memory

lost: list[str] = []


class Interrupt(BaseException):
    """As KeyboardInterrupt, which the script itself may get."""


def handle(number: int, frame: object) -> None:
    raise Interrupt


def lose(found: object) -> None:
    if isinstance(found.exc_value, Interrupt):
        lost.append(str(found.object))


def work(rng: random.Random, made: list) -> None:
    """One of the things that users do, checked against NumPy."""
    choice, n = rng.random(), rng.choice([0, 1, 5, 1000, memory.LARGE // 4, memory.LARGE // 2])
    x = np.arange(n, dtype=np.float32)
    if choice < 0.05 or not made:
        factor = float(rng.randint(1, 10**6))
        made.append((harp.jit(lambda x: hnp.cumsum(x * factor * 0.0) + x), factor))
        del made[:-20]
    f, _ = made[-1] if choice < 0.1 else rng.choice(made)
    y = f(f(x))
    if not np.array_equal(np.asarray(y), x):
        raise SystemExit(f"a wrong result for {n} elements")


def main() -> None:
    chosen = options(__doc__)
    rng, made, count, calls = random.Random(chosen.seed), [], 0, 0
    sys.unraisablehook = lose
    signal.signal(signal.SIGALRM, handle)
    end = time.monotonic() + chosen.seconds
    while time.monotonic() < end:
        try:
            signal.setitimer(signal.ITIMER_REAL, 10 ** rng.uniform(-5, -0.7))
            while True:
                work(rng, made)
                calls += 1
        except Interrupt:
            count += 1
        started = time.monotonic()
        work(rng, made)
        if time.monotonic() - started > 200:
            raise SystemExit(f"a call took {time.monotonic() - started:.0f} s")
    say(chosen, f"{count} interrupts, {calls} calls between them, {len(lost)} lost: {sorted(set(lost))}")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
