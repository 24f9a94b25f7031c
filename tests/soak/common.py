"""What the scripts share: their options, and the line that each prints at its end."""

from __future__ import annotations

import argparse
import faulthandler
import pathlib
import random
import subprocess
import sys


def options(text: str, count: int | None = None) -> argparse.Namespace:
    """The options of a script. One that hangs tells where, and fails."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default 60)")
    parser.add_argument("--seed", type=int, default=random.randrange(10**9), help="what all choices depend on")
    if count is not None:
        parser.add_argument("--count", type=int, default=count, help=f"programs of one function (default {count})")
    chosen = parser.parse_args()
    faulthandler.dump_traceback_later(chosen.seconds + 900, exit=True)
    return chosen


def works(command: list[str]) -> bool:
    """Whether this machine, or the container, lets it run."""
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def say(chosen: argparse.Namespace, text: str) -> None:
    print(f"{pathlib.Path(sys.argv[0]).stem} --seed {chosen.seed}: {text}", flush=True)
