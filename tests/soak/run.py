"""Runs the scripts beside it in turns until the time is over: `make soak`, `SOAK_ARGS='--minutes 5'`.

Where there are two cores, random programs run beside the turns all the time. Every line tells the seed, with which a
script does the same again, as far as the machine does.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ("interrupts", "storms", "limits", "disks", "others", "sanitized", "programs")


def start(name: str, seed: int, seconds: float, environment: dict[str, str]) -> subprocess.Popen:
    command = [sys.executable, str(HERE / f"{name}.py"), "--seed", str(seed), "--seconds", f"{seconds:g}"]
    return subprocess.Popen(command, env=environment)


def failed(process: subprocess.Popen, cache: pathlib.Path) -> bool:
    """Waits for a script. One that crashed has left the seed at which it was."""
    if process.wait() == 0:
        return False
    left = cache / f"programs-of-{process.pid}"
    where = f", at seed {left.read_text().strip()}" if left.exists() else ""
    print(f"FAILED with status {process.returncode}{where}: {' '.join(process.args[1:])}", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="of the first turn; the next ones follow (default: a random one)")
    parser.add_argument("--only", choices=SCRIPTS, help="one script alone")
    chosen = parser.parse_args()
    seed = random.randrange(10**9) if chosen.seed is None else chosen.seed
    seconds = chosen.minutes * 60
    end, failures = time.monotonic() + seconds, 0
    scripts = [chosen.only] if chosen.only else SCRIPTS
    a_turn = max(5.0, min(120.0, seconds / len(scripts)))
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as made:
        environment = {"HARP_CACHE_DIR": made} | os.environ
        cache = pathlib.Path(environment["HARP_CACHE_DIR"])
        beside = []
        if not chosen.only and (os.cpu_count() or 1) > 1:
            beside.append(start("programs", seed + 10**9, seconds, environment))
        while time.monotonic() < end:
            for name in scripts:
                failures += failed(start(name, seed, a_turn, environment), cache)
                if time.monotonic() > end:
                    break
            seed += 1
        failures += sum(failed(process, cache) for process in beside)
    print(f"{failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
