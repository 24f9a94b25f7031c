"""Programs are given up with the functions that used them, and those of static values that are not passed any more."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.testing as npt
import pytest

import harp
from harp.backends.toolchain import toolchain
from harp.transforms.jit import jit, programs

needs_cc = pytest.mark.skipif(toolchain.find_toolchain() is None, reason="no C compiler")

# Prints how many libraries of programs are in the process while functions come and go, and while they stay.
LIBRARIES = """
import os, re
import numpy as np, harp
def libraries():
    folder = os.path.realpath(os.environ["HARP_CACHE_DIR"])
    lines = open("/proc/self/maps").read().splitlines()
    return len({line.split(None, 5)[5] for line in lines if folder in line})
for k in range(80):
    assert harp.jit(lambda x: x * float(k))(np.ones(2))[0] == k
gone = libraries()
kept = [harp.jit(lambda x, k=k: x * float(k)) for k in range(80)]
for _ in range(3):
    for k, f in enumerate(kept):
        assert f(np.ones(2))[0] == k
print(gone, libraries())
"""


@pytest.mark.slow
@needs_cc
@pytest.mark.usefixtures("processor")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="no /proc")
def test_functions_that_are_gone_give_their_programs_up():
    environment = os.environ | {"HARP_VERIFY": "0", "HARP_CC_TIMEOUT": "300"}
    done = subprocess.run(
        [sys.executable, "-c", LIBRARIES], env=environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr
    gone, kept = map(int, done.stdout.split())
    assert gone <= programs._RECENT + 2 and kept >= 80


def test_a_program_lives_as_long_as_a_function_that_uses_it():
    first = harp.jit(lambda x: x * 123.0)
    first(np.ones(3))
    (program,) = {entry.program for entries in first._entries.values() for entry in entries}
    programs._recent.clear()
    second = harp.jit(lambda x: x * 123.0)
    second(np.ones(3))
    assert {entry.program for entries in second._entries.values() for entry in entries} == {program}
    del first, second, program
    programs._recent.clear()
    other = harp.jit(lambda x: x * 124.5)
    other(np.ones(3))
    assert all(reference() is not None for reference in programs._programs.values()), "the first one is forgotten"


@pytest.mark.slow
def test_static_values_are_given_up(monkeypatch):
    monkeypatch.setattr(jit, "_MOST", 8)
    f = harp.jit(lambda x, k: x * float(k), static_argnums=1)
    x = np.ones(3)
    for k in range(40):
        for _ in range(2):
            npt.assert_array_equal(f(x, k), x * k)
        npt.assert_array_equal(f(x, 0), x * 0)
        assert len(f._entries) <= 8 and len(f._short_ways) <= 9
    assert f.compilations >= 40 and any(key[1] == f._static.split(f, (x, 0), {})[0].key for key in f._entries)
    before = f.compilations
    f(x, 0)
    f(x, 39)
    assert f.compilations == before, "those that are passed again and again stay"


@pytest.mark.slow
def test_values_that_are_given_up_are_not_kept_alive(monkeypatch):
    monkeypatch.setattr(jit, "_MOST", 4)

    class Value:
        alive = 0

        def __init__(self, number: int) -> None:
            self.number = number
            Value.alive += 1

        def __del__(self) -> None:
            Value.alive -= 1

    f = harp.jit(lambda x, v: x + v.number, static_argnums=1)
    for k in range(20):
        npt.assert_array_equal(f(np.zeros(2), Value(k)), np.full(2, k))
    gc.collect()
    assert Value.alive <= 4


def test_functions_that_are_gone_are_forgotten():
    kept = [harp.jit(lambda x: x) for _ in range(5)]
    for _ in range(3 * len(jit._functions) + 100):
        harp.jit(lambda x: x)
    assert {id(f) for f in kept} <= {id(f) for f in jit._living()}
    assert len(jit._functions) <= 2 * len(jit._living()) + 10


@pytest.mark.slow
def test_guards_of_many_sizes(monkeypatch):
    monkeypatch.setattr(jit, "_MOST", 8)
    f = harp.jit(lambda x: x * float(next(k for k in range(50) if x.shape[0] == k)))
    for n in (*range(30), 3, 29):
        npt.assert_array_equal(f(np.ones(n)), np.full(n, float(n)))
        assert len(f.signatures) <= 8
    assert f.compilations >= 30 and re.search(r"\d+ programs", repr(f))
