"""The random programs of programs.py under gcc's sanitizers: addresses and undefined behaviour, then threads."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from common import options, say

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "backends"))
from sanitizers import LIBRARIES, environment  # noqa: E402


def main() -> None:
    chosen = options(__doc__)
    told, failed = [], False
    for sanitizer in LIBRARIES:
        given = environment(sanitizer)
        if given is None:
            told.append(f"{sanitizer}: not here")
            continue
        words = ["--seed", str(chosen.seed), "--seconds", str(chosen.seconds / len(LIBRARIES)), "--count", "32"]
        command = [sys.executable, str(HERE / "programs.py"), *words]
        with tempfile.TemporaryDirectory(prefix="harp-soak-") as cache:
            more = given | {"HARP_CACHE_DIR": cache, "HARP_VERIFY": "0"}
            done = subprocess.run(command, env=os.environ | more, capture_output=True, text=True, check=False)
            left = [path.read_text().strip() for path in pathlib.Path(cache).glob("programs-of-*")]
        found = re.search(r"(\d+) programs, (\d+) results", done.stdout)
        if done.returncode or "Sanitizer" in done.stderr or found is None:
            failed = True
            print(f"{sanitizer}, seed {' '.join(left) or chosen.seed}:\n{done.stdout[-3000:]}{done.stderr[-6000:]}")
        else:
            told.append(f"{sanitizer}: {found[0]}")
    say(chosen, "; ".join(told))
    sys.exit(failed)


if __name__ == "__main__":
    main()
