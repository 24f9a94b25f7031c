"""What one call costs: x + 1 on 4 float32 elements, in microseconds.

python -m benchmarks.dispatch [repeats]
"""

import os
import statistics
import sys
import tempfile
import timeit
from collections.abc import Callable

import numpy as np

CALLS = 10_000


def per_call(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Microseconds per call of each, measured in turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(timeit.timeit(call, number=CALLS) / CALLS * 1e6)
    return times


def main(repeats: int = 15) -> None:
    with tempfile.TemporaryDirectory(prefix="harp-bench-") as cache:
        os.environ["HARP_CACHE_DIR"] = cache
        import harp

        f = harp.jit(lambda x: x + 1)
        x = np.arange(4, dtype=np.float32)
        held = f(x)
        assert np.array_equal(np.asarray(held), x + 1)
        calls = {
            "harp.jit, NumPy argument": lambda: f(x),
            "harp.jit, harp argument": lambda: f(held),
            "numpy": lambda: x + 1,
        }
        for name, times in per_call(calls, repeats).items():
            print(f"{name:<26}{statistics.median(times):7.2f} us   (fastest {min(times):.2f})")
        assert f.compilations == 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
