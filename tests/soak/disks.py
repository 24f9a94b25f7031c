"""Disks that are full, that become full while programs are stored and old ones removed, and that run nothing.

They are small file systems in memory, which only root can mount; the mounts are seen by this script and its children
alone. Results are right. Where the compiler has no room either, an error says so.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

from common import options, say, works

from harp.backends.toolchain import bound, trust

WORKER = """
import random, sys
import numpy as np, harp
rng, failed = random.Random(int(sys.argv[1])), 0
for _ in range(8):
    k = float(rng.randrange(40))
    x = np.arange(rng.choice([0, 1, 7, 300]), dtype=np.float64)
    try:
        found = np.asarray(harp.jit(lambda x: x * k + 1.0)(x))
        assert np.array_equal(found, x * k + 1.0), (k, x.size)
    except harp.errors.ToolchainError as error:
        assert "disk" in str(error) or "space" in str(error) or "written" in str(error), error
        failed += 1
print(failed)
"""


def mounted(path: pathlib.Path, size: int, *flags: str) -> None:
    path.mkdir(0o700)
    words = ",".join([f"size={size}", "mode=700", *flags])
    subprocess.run(["mount", "-t", "tmpfs", "-o", words, "harp-soak", str(path)], check=True)


def fill(path: pathlib.Path, share: float) -> None:
    """A file that takes this part of what is free."""
    free = shutil.disk_usage(path).free
    with contextlib.suppress(OSError), (path / "filled").open("ab") as file:
        file.write(bytes(int(free * share)))


def turn(rng: random.Random, directory: pathlib.Path, counts: dict[str, int]) -> None:
    """Some processes share a cache on such a disk, while somebody else fills it and makes room again."""
    size = rng.choice([1 << 15, 1 << 17, 1 << 19, 1 << 21])
    flags = ["noexec"] if rng.random() < 0.4 else []
    cache, temporary = directory / "disk", directory / "tmp"
    mounted(cache, size, *flags)
    mounted(temporary, rng.choice([1 << 16, 1 << 19, 1 << 24]) if rng.random() < 0.3 else 1 << 26, *flags)
    try:
        place = cache / "cache"
        place.mkdir(0o700)
        if rng.random() < 0.6:
            opened = trust.open_directory(place)
            with contextlib.suppress(OSError):
                bound.set_limit(opened, rng.choice([size // 4, size // 2, size]))
            os.close(opened)
        if rng.random() < 0.5:
            fill(cache, rng.choice([0.5, 0.9, 1.0]))
        environment = os.environ | {"HARP_CACHE_DIR": str(place), "TMPDIR": str(temporary), "HARP_VERIFY": "0"}
        environment |= {"HARP_CC_TIMEOUT": "200"}
        workers = {
            seed: subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", WORKER, str(seed)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for seed in (rng.randrange(10**9) for _ in range(3))
        }
        while any(worker.poll() is None for worker in workers.values()):
            time.sleep(rng.uniform(0, 0.3))
            if rng.random() < 0.5:
                fill(cache, rng.choice([0.3, 1.0]))
            else:
                (cache / "filled").unlink(missing_ok=True)
        for seed, worker in workers.items():
            out, error = worker.communicate(timeout=600)
            if worker.returncode:
                raise SystemExit(f"worker {seed}, {size} bytes, {flags}: status {worker.returncode}\n{error[-4000:]}")
            counts["processes"] += 1
            counts["refused"] += int(out)
        counts["noexec"] += bool(flags)
        counts["disks"] += 1
    finally:
        for path in (cache, temporary):
            subprocess.run(["umount", "-l", str(path)], check=False)
            path.rmdir()


def main() -> None:
    alone = ["unshare", "--mount", "--propagation", "private"]
    if "HARP_SOAK_ALONE" not in os.environ:
        mount = "mount -t tmpfs harp-soak /mnt"
        if os.geteuid() or not works([*alone, "sh", "-c", mount]):
            print("disks: only root can mount them; passed over")
            return
        os.environ["HARP_SOAK_ALONE"] = "1"
        os.execvp(alone[0], [*alone, sys.executable, *sys.argv])
    chosen = options(__doc__)
    rng, end = random.Random(chosen.seed), time.monotonic() + chosen.seconds
    counts = dict.fromkeys(("disks", "noexec", "processes", "refused"), 0)
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as made:
        while time.monotonic() < end:
            turn(rng, pathlib.Path(made), counts)
    shown = f"{counts['disks']} disks, {counts['noexec']} of them noexec, {counts['processes']} processes"
    say(chosen, f"{shown}, in which {counts['refused']} programs were refused for want of room")


if __name__ == "__main__":
    main()
