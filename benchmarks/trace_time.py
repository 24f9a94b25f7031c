"""A chain of many operations: seconds before the C compiler, and in it. Both should grow linearly.

python -m benchmarks.trace_time [length ...]
"""

import sys
import time

import numpy as np

from benchmarks.compile_time import cold


def main(*lengths: int) -> None:
    with cold() as runs:
        import harp
        import harp.numpy as hnp

        def chain(length: int):
            def f(x):
                for i in range(length // 4):
                    x = hnp.sqrt(hnp.abs(x * 1.01 + i))  # four operations
                return x

            return f

        x = np.linspace(-1, 1, 1000, dtype=np.float32)
        print(f"{'operations':>10}{'before C':>10}{'C compiler':>12}")
        for length in lengths or (500, 1000, 2000):
            before, f = len(runs()), harp.jit(chain(length))
            start = time.perf_counter()
            lowered = f.lower(x)
            assert lowered.source
            elapsed = time.perf_counter() - start
            np.asarray(f(x))
            print(f"{length:>10}{elapsed:>8.3f} s{sum(end - start for start, end in runs()[before:]):>10.3f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
