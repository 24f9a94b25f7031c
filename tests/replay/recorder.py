"""A plugin of pytest that records every program that the tests lower, and the bits of each result of a jitted call.

A program is known by its graph in canonical form, its target and its options, so that the order of tests does not
matter. Texts are kept once each, in files named by their digests. Each process writes a file of its own.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pathlib
import threading
import zlib

import numpy as np
import pytest

import harp
from harp import backends
from harp.lower.loopir.text import kernel_text
from harp.lower.report.report import report
from harp.trace.graph.graph import to_text
from harp.transforms.jit import lowering
from harp.transforms.jit.jit import JitFunction

FOLDER = pathlib.Path(os.environ["HARP_REPLAY"])
SAMPLE = int(os.environ.get("HARP_REPLAY_SAMPLE", "1"))

test = ""  # the one that runs
seen: set[str] = set()  # programs
results: dict[str, list[str]] = {}  # of each test
inside = threading.local()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One of so many tests, chosen by its name: the same ones for each commit."""
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % SAMPLE == 0]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item):
    global test
    test = item.nodeid
    results[test] = []
    outcome = yield
    if outcome.excinfo is None:  # what a test that failed had computed until then compares with nothing
        append("results", {"test": test, "bits": results[test]})


def append(kind: str, row: dict[str, object]) -> None:
    with (FOLDER / f"{kind}.{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def kept(text: str) -> str:
    """The digest of a text, which is kept in a file."""
    name = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    path = FOLDER / "texts" / name
    if not path.exists():
        path.write_text(text, encoding="utf-8")
    return name


@functools.wraps(lowering.lower)
def recorded_lower(graph, target, donated=(), check=False, *others, **named):
    lowered = lower(graph, target, donated, check, *others, **named)
    key = kept(f"{to_text(graph)} {target} {tuple(donated)} {check}")
    if key not in seen:
        seen.add(key)
        program = lowered.program
        backend = backends.get("opencl" if target.grid else "c")
        names = tuple(f"s{k}" for k in range(len(program.sizes)))
        cost = report(lowered.algorithm, program.sizes, names, (1,) * len(names))
        row = {
            "graph": kept(str(graph)),
            "kernels": [kept(kernel_text(kernel)) for kernel in program.kernels],
            "loops": kept(lowered.loops),
            "source": kept(backend.text(program).whole),
            "cost": kept(str(cost)),
        }
        append("programs", {"program": key, "test": test, **row})
    return lowered


lower = lowering.lower
lowering.lower = recorded_lower


@functools.wraps(JitFunction.__call__)
def recorded_call(self, *args, **kwargs):
    result = call(self, *args, **kwargs)
    if test and not getattr(inside, "call", False):
        with contextlib.suppress(Exception):  # leaves that are traced, or gone
            results[test].append(bits(result))
    return result


def bits(result: object) -> str:
    """The digest of dtypes, shapes and bytes of a tree of arrays."""
    found = hashlib.blake2b(digest_size=8)
    for leaf in harp.tree.leaves(result):
        array = np.asarray(leaf)
        found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return found.hexdigest()


call = JitFunction.__call__
JitFunction.__call__ = recorded_call
