"""Runs the scripts beside it in turns until the time is over: `make soak`, `SOAK_ARGS='--minutes 5'`.

Every line tells the seed, with which a script does the same again, as far as the machine does.
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, help="of the first turn; the next ones follow (default: a random one)")
    parser.add_argument("--only", choices=SCRIPTS, help="one script alone")
    chosen = parser.parse_args()
    seed = random.randrange(10**9) if chosen.seed is None else chosen.seed
    end, failures = time.monotonic() + chosen.minutes * 60, 0
    scripts = [chosen.only] if chosen.only else SCRIPTS
    seconds = max(5.0, min(120.0, chosen.minutes * 60 / len(scripts)))
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as cache:
        environment = {"HARP_CACHE_DIR": cache} | os.environ
        while time.monotonic() < end:
            for name in scripts:
                command = [sys.executable, str(HERE / f"{name}.py"), "--seed", str(seed), "--seconds", f"{seconds:g}"]
                if subprocess.run(command, env=environment, check=False).returncode:
                    print(f"FAILED: {name}.py --seed {seed} --seconds {seconds:g}", flush=True)
                    failures += 1
                if time.monotonic() > end:
                    break
            seed += 1
    print(f"{failures} failures", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
