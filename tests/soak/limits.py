"""Little memory, few descriptors, a full disk, and forks at random moments: right results or clear errors."""

from __future__ import annotations

import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

from common import options, say

# A limit, and what may come of it: a result that is right, or an error of harp or of Python that says what is missing.
WORKER = """
import os, random, resource, sys
import numpy as np, harp
seed, name, value = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
rng, failed = random.Random(seed), 0
late = rng.random() < 0.5
f = harp.jit(lambda x: x * 2.0 + 1.0)
if late: f(np.ones(3))
if name != "none": resource.setrlimit(getattr(resource, name), (value, value))
for _ in range(12):
    k = float(rng.randrange(1000))
    for g, factor in ((f, 2.0), (harp.jit(lambda x: x * k + 1.0), k)):
        n = rng.choice([0, 1, 1000, 1 << 19, 1 << 22, 1 << 25])
        try:
            x = np.ones(n)
            y = np.asarray(g(x))
            assert y.shape == (n,) and (n == 0 or (y[0] == factor + 1.0 and y[-1] == factor + 1.0)), (n, factor)
        except (MemoryError, harp.errors.HarpError) as error:
            failed += 1
            assert str(error) or isinstance(error, MemoryError)
if name == "none":
    for _ in range(5):
        child = os.fork()
        if child == 0:
            k = float(rng.randrange(1000))
            right = (np.asarray(harp.jit(lambda x: x * k)(np.ones(300_000))) == k).all()
            os._exit(0 if right and float(f(np.ones(2))[1]) == 3.0 else 1)
        f(np.ones(400_000))
        assert os.waitpid(child, 0)[1] == 0
print(failed)
"""
LIMITS = {
    "RLIMIT_AS": (1 << 29, 1 << 32),
    "RLIMIT_NOFILE": (12, 60),
    "RLIMIT_FSIZE": (0, 200_000),
    "RLIMIT_STACK": (1 << 18, 1 << 20),
    "none": (0, 0),
}


def main() -> None:
    chosen = options(__doc__)
    rng, end = random.Random(chosen.seed), time.monotonic() + chosen.seconds
    runs = failed = 0
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as made:
        cache = pathlib.Path(made) / "cache"
        while time.monotonic() < end:
            name = rng.choice([*LIMITS])
            low, high = LIMITS[name]
            words = [str(rng.randrange(10**9)), name, str(rng.randint(low, high))]
            environment = os.environ | {"HARP_CACHE_DIR": str(cache), "HARP_VERIFY": "0"}
            command = [sys.executable, "-W", "ignore", "-c", WORKER, *words]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stderr[-3000:]}")
            runs, failed = runs + 1, failed + int(done.stdout)
    say(chosen, f"{runs} processes with limits, in which {failed} calls were refused with a clear error")


if __name__ == "__main__":
    main()
