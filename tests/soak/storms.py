"""Many processes share a small cache: some are killed, entries are damaged, and all results are right."""

from __future__ import annotations

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from common import options, say

from harp.backends.toolchain import bound, trust

MOST = 600_000  # bytes: some ten programs
WORKER = """
import random, sys
import numpy as np, harp
rng = random.Random(int(sys.argv[1]))
for _ in range(6):
    k = float(rng.randrange(25))
    x = np.arange(rng.choice([0, 1, 7, 300]), dtype=np.float64)
    assert np.array_equal(np.asarray(harp.jit(lambda x: x * k + 1.0)(x)), x * k + 1.0), (k, x.size)
"""


def damage(rng: random.Random, path: pathlib.Path) -> None:
    """What disks, users and bugs do to a file, in its place and beside it."""
    data = path.read_bytes() if path.is_file() else b""  # a pipe would be waited for
    fresh = path.with_name("fresh")
    kinds = ("flip", "cut", "empty", "pipe", "directory", "link", "swap", "gone")
    kind = rng.choice(kinds)
    if kind in ("flip", "cut", "empty"):
        at = rng.randrange(len(data)) if data else 0
        content = {"flip": data[:at] + b"\xff" + data[at + 1 :], "cut": data[:at], "empty": b""}[kind]
        fresh.write_bytes(content)
        fresh.chmod(0o700)
        fresh.replace(path)
        return
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path, 0o700)
    elif kind == "directory":
        path.mkdir(0o700)
    elif kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "swap":
        others = [other for other in path.parent.glob("*.so") if other.is_file()]
        if others:
            os.link(rng.choice(others), path)


def turn(rng: random.Random, directory: pathlib.Path, counts: dict[str, int]) -> None:
    """A few workers at once; some are killed at a random moment, while entries are damaged."""
    environment = os.environ | {"HARP_CACHE_DIR": str(directory), "HARP_VERIFY": "0"}
    seeds = [rng.randrange(10**9) for _ in range(4)]
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(seed)], env=environment, stderr=subprocess.PIPE, text=True)
        for seed in seeds
    ]
    victim = rng.choice(workers)
    time.sleep(rng.uniform(0.1, 2.0))
    victim.send_signal(signal.SIGKILL)
    for path in (
        rng.sample(sorted(directory.glob("*-*.json")) + sorted(directory.glob("*.so")), k=1)
        if any(directory.glob("*.so"))
        else []
    ):
        try:
            damage(rng, path)
            counts["damaged"] += 1
        except OSError:  # it was removed, or replaced, in the meantime
            pass
    for seed, worker in zip(seeds, workers, strict=True):
        _, error = worker.communicate(timeout=600)
        counts["killed" if worker is victim and worker.returncode < 0 else "finished"] += 1
        if worker.returncode not in (0, -signal.SIGKILL if worker is victim else 0):
            raise SystemExit(f"worker {seed}: status {worker.returncode}\n{error}")


def main() -> None:
    chosen = options(__doc__)
    rng = random.Random(chosen.seed)
    counts = {"finished": 0, "killed": 0, "damaged": 0, "largest": 0}
    end = time.monotonic() + chosen.seconds
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as made:
        directory = pathlib.Path(made) / "cache"
        directory.mkdir(0o700)
        opened = trust.open_directory(directory)
        bound.set_limit(opened, MOST)
        while time.monotonic() < end:
            turn(rng, directory, counts)
            counts["largest"] = max(counts["largest"], sum(entry.size for entry in bound.entries(opened)))
            if counts["largest"] > 2 * MOST:
                raise SystemExit(f"the cache has {counts['largest']} bytes of {MOST}")
        os.close(opened)
    shown = f"{counts['finished']} processes finished, {counts['killed']} killed, {counts['damaged']} entries damaged"
    say(chosen, f"{shown}; the cache had {counts['largest']} bytes at most, of {MOST}")


if __name__ == "__main__":
    main()
