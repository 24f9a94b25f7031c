"""The table of the README: what somebody meets in the first hour, harp beside JAX: `python -m benchmarks.newcomer`.

Each number is the median of five new processes, harp's with an empty cache of compiled programs, the two in turns.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

COMMON = """
import sys, time
import numpy as np
if sys.argv[1] == "harp":
    import harp as lib, harp.numpy as xp
    from harp import lax
    ready = np.asarray
else:
    import jax as lib, jax.numpy as xp
    from jax import lax
    ready = np.asarray

def loss(params, x, y):
    hidden = xp.tanh(x @ params["w1"] + params["b1"])
    return xp.mean((hidden @ params["w2"] - y) ** 2)

step = lib.jit(lib.grad(loss))
rng = np.random.default_rng(0)
f32 = lambda *shape: rng.normal(size=shape).astype(np.float32)
params = {"w1": f32(32, 64), "b1": f32(64), "w2": f32(64, 1)}

def run(rows):
    return ready(step(params, f32(rows, 32), f32(rows, 1))["w1"])

def predators(state, steps):  # and their prey
    def move(s, _):
        x, y = s
        s = x + 0.001 * (1.1 * x - 0.4 * x * y), y + 0.001 * (0.1 * x * y - 0.4 * y)
        return s, s[0]
    return lax.scan(move, state, None, length=steps)[1]
"""
FIRST = """
start = time.perf_counter()
run(100)
print(time.perf_counter() - start)
"""
LATER = "the same in a later process"
CASES = {
    "the first call: the gradient of a small network": FIRST,
    LATER: FIRST,
    "the next 20 batch sizes": """
run(100)
start = time.perf_counter()
for rows in range(101, 121):
    run(rows)
print(time.perf_counter() - start)
""",
    "a loop of 100,000 steps, compiled": """
simulate = lib.jit(predators, static_argnums=1)
state = np.float32(10), np.float32(5)
ready(simulate(state, 100_000))
if sys.argv[1] == "harp":
    lib.wait_for_compilers()
times = []
for _ in range(5):
    start = time.perf_counter()
    ready(simulate(state, 100_000))
    times.append(time.perf_counter() - start)
print(min(times))
""",
}


def seconds(library: str, case: str) -> float:
    """What a new process measures."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-c", COMMON + CASES[case], library]
        environment = {**os.environ, "HARP_CACHE_DIR": cache, "HARP_QUICK": "1"}
        for _ in range(2 if case == LATER else 1):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return float(done.stdout)


def main() -> None:
    """Measure and print the table."""
    print("| | harp | JAX |\n|---|---|---|")
    for case in CASES:
        times: dict[str, list[float]] = {"harp": [], "jax": []}
        for _ in range(5):
            for library, found in times.items():
                found.append(seconds(library, case))
        row = [f"{1000 * statistics.median(found):.3g} ms" for found in times.values()]
        print("|", " | ".join([case, *row]), "|", flush=True)


if __name__ == "__main__":
    main()
