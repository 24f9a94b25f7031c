"""Elementwise functions beside NumPy's and JAX's on a million numbers, in one thread: ratios of processor time.

python -m benchmarks.functions [--dtype float32] [function ...]

A ratio above 1 says that harp is faster. Arguments lie between 0.01 and 0.99, where all functions are numbers (those of
acosh are one more, second ones lie between -2 and 2). JAX is compared where it is installed.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ["HARP_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import numpy as np

import harp
import harp.numpy as hnp

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    jax = None

ONE = [
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan"),
    *("asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
]
TWO = ["pow", "atan2", "hypot", "maximum", "logaddexp"]
SIZE, ROUNDS = 1 << 20, 21


def timed(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each, in turns, of the processor: others on the machine count less."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.process_time()
            call()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(taken[2:]) for name, taken in times.items()}


def calls(name: str, arguments: list[np.ndarray]) -> dict[str, Callable[[], object]]:
    """What is compared, each with arguments of its own kind."""
    compiled, held = harp.jit(getattr(hnp, name)), [hnp.asarray(a) for a in arguments]
    found = {"harp": lambda: np.asarray(compiled(*held)), "numpy": lambda: getattr(np, name)(*arguments)}
    if jax is not None and hasattr(jnp, name):
        peer, given = jax.jit(getattr(jnp, name)), [jnp.asarray(a) for a in arguments]
        found["jax"] = lambda: peer(*given).block_until_ready()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("names", nargs="*", metavar="function")
    given = parser.parse_args()
    if jax is not None:
        jax.config.update("jax_enable_x64", True)
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.01, 0.99, SIZE).astype(given.dtype), rng.uniform(-2, 2, SIZE).astype(given.dtype)
    for name in given.names or [*ONE, *TWO]:
        first = x + 1 if name == "acosh" else x
        medians = timed(calls(name, [first, y] if name in TWO else [first]))
        ratios = " ".join(f"{peer} {medians[peer] / medians['harp']:6.2f}" for peer in medians if peer != "harp")
        print(f"{name:10} {given.dtype} harp {medians['harp'] * 1e3:7.3f} ms  {ratios}", flush=True)


if __name__ == "__main__":
    main()
