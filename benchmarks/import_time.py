"""What `import harp` costs beyond `import numpy`: medians of interleaved runs, in milliseconds.

python -m benchmarks.import_time [runs]
"""

import statistics
import subprocess
import sys

MODULES = ("numpy", "harp")
CODE = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def once(module: str) -> float:
    done = subprocess.run([sys.executable, "-c", CODE.format(module)], capture_output=True, text=True, check=True)
    return float(done.stdout) * 1e3


def main(runs: int = 21) -> None:
    for module in MODULES:  # byte code and file cache
        once(module)
    times: dict[str, list[float]] = {module: [] for module in MODULES}
    for _ in range(runs):
        for module in MODULES:
            times[module].append(once(module))
    median = {module: statistics.median(times[module]) for module in MODULES}
    for module in MODULES:
        print(f"import {module:<6} {median[module]:7.1f} ms   (fastest {min(times[module]):.1f})")
    print(f"difference    {median['harp'] - median['numpy']:7.1f} ms   of {runs} runs each")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
