"""The random programs of `make soak` find a mistake, and make it small. In a process of their own, with their names."""

from __future__ import annotations

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOUND = """
import collections, sys
sys.path.insert(0, sys.argv[1] + "/soak")
import programs, rows
counts = collections.Counter()
given = programs.batch(7, 12)._replace(mode="joined -O0")
assert programs.check(given, counts) is None and counts["programs"] == 12 and counts["results compared"] >= 60
assert programs.batch(7, 12).programs == given.programs != programs.batch(8, 12).programs
"""
BROKEN = (
    SOUND
    + """
turned = rows.ONE["flip"]
rows.ONE["flip"] = turned._replace(harp=lambda x: turned.harp(x) if x.shape[0] < 5 else x)
for seed in range(100):
    given = programs.batch(seed, 12)._replace(mode="joined -O0")
    if any(name == "flip" for _, made in given.programs for name, _ in made.steps):
        found = programs.check(given, counts)
        if found is not None:
            break
small = programs.smaller(given, found)
(made,) = (made for _, made in small.programs)
assert len(small.calls) == 1 and len(made.steps) <= 2 and "flip" in dict(made.steps), made
"""
)


def test_a_mistake_is_found_and_made_small():
    command = [sys.executable, "-W", "ignore", "-c", BROKEN, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
