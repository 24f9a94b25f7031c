"""The scripts of `make soak` find what they look for. In processes of their own, for they have modules of their own."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

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


@pytest.mark.slow
@pytest.mark.parametrize("name", ["disks", "others"])
def test_full_disks_and_other_users(name):
    """A turn of each, where root runs the tests."""
    command = [sys.executable, str(HERE / "soak" / f"{name}.py"), "--seconds", "1", "--seed", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    if "passed over" in done.stdout:
        pytest.skip(done.stdout)
