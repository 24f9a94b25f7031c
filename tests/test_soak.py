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


@pytest.mark.slow
def test_a_mistake_is_found_and_made_small():
    command = [sys.executable, "-W", "ignore", "-c", BROKEN, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]


UNSETTLED = """
import sys
sys.path.insert(0, sys.argv[1] + "/soak")
import numpy as np
from compare import interpreter_agrees, slopes_agree, values_agree
from expressions import Expression
steep = Expression("plain", (("tanh", (0,)), ("floor", (2,))))
near_one = np.array([9.045, 1.0, 20.0], np.float32)  # tanh is 1 or one unit less, by rounding
for given in (steep, steep._replace(kind="vmap")):
    found = given.numpy([near_one, near_one])
    other = 1 - found
    verdict = interpreter_agrees(given, [near_one, near_one], np.array([other[0], *found[1:]]))
    assert not verdict.problem, verdict
    assert interpreter_agrees(given, [near_one, near_one], np.array([found[0], *other[1:]])).problem
    hidden = given._replace(steps=(("tanh", (0,)), ("log2", (2,)), ("logical not", (3,))))
    found = hidden.numpy([near_one, near_one])
    assert interpreter_agrees(hidden, [near_one, near_one], found ^ [True, False, False]) == ("", 1)
product = Expression("plain", (("to float32", (0,)), ("prod", (2,))))
factors = np.array([0] + [2**30] * 5, np.int32)  # infinite, times 0, where the zero comes last
assert values_agree(product, [factors, factors], np.float32(np.nan), None) == ("", 1)
assert values_agree(product, [factors // 2**20, factors], np.float32(np.nan), None).problem
total = Expression("plain", (("sum", (0,)),))
terms = np.array([3e38, -3e38, 3e38, -3e38, 1], np.float32)
assert values_agree(total, [terms, terms], np.float32(np.inf), None) == ("", 1)
assert values_agree(total, [terms / 8, terms], np.float32(np.inf), None).problem
order = Expression("jvp", (("exp2", (0,)), ("sort", (2,))))
nearly = np.array([1.0, 1.0 + 1e-7, 3.0], np.float32)  # either of the first two is the first one, but for rounding
turned = np.log(2) * 2**nearly * [10, 5, 7]
for given, wrong in ((turned, False), (turned[::-1], True)):
    assert bool(slopes_agree(order, [nearly, np.array([5, 10, 7], np.float32)], np.float32(given), 0).problem) == wrong
"""


def test_what_rounding_or_the_order_of_terms_decides_is_not_settled():
    command = [sys.executable, "-W", "ignore", "-c", UNSETTLED, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
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
