"""What those read on a terminal who wait for a program."""

from __future__ import annotations

import inspect
import io
import re
import sys
import threading
import time

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.05)


def unrolled(x):
    for k in range(1200):
        x = x * 1.5 + k
        x = hnp.sin(x)
    return x


def line_of(function, number: int) -> str:
    return f"{__file__}:{inspect.getsourcelines(function)[1] + number}"


def test_a_slow_trace_says_which_line_makes_it_large(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)

    def grows(x):
        end = time.monotonic() + 100
        while not terminal.getvalue() and time.monotonic() < end:
            x = hnp.sin(x)
        return x

    harp.jit(grows).lower(np.ones(3))
    first, second, *_ = terminal.getvalue().splitlines()
    count = int(re.fullmatch(r"harp: tracing 'grows', which has ([\d,]+) operations by now", first)[1].replace(",", ""))
    assert count >= 1024
    assert second.startswith(f"harp: most of these operations come from {line_of(grows, 3)}; ")


def test_nothing_is_said_in_a_pipe(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    harp.jit(unrolled).lower(np.ones(3))
    assert pipe.getvalue() == ""


def test_no_thread_is_started(monkeypatch):
    """Near a limit of memory, `Thread.start` may never return."""

    def refuse(thread):
        raise AssertionError(f"{thread} is started")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    x = np.arange(12.0).reshape(3, 4)
    result = harp.jit(lambda x: hnp.sort(x @ x.T + 17.25))(x)  # of several units
    np.testing.assert_array_equal(result, np.sort(x @ x.T + 17.25))
    harp.jit(lambda x: hnp.cos(x) + 17.25).lower(np.ones(3))


def test_the_advice_is_given_for_a_slow_program(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    harp.jit(unrolled).lower(np.ones(3))
    lines = terminal.getvalue().splitlines()
    assert sum("harp.scan" in line for line in lines) == 1


def warnings_of(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_a_function_that_is_compiled_for_every_size_says_so_once(caplog):
    def average(x):
        return hnp.sum(x) / len(x)

    compiled = harp.jit(average)
    for size in range(1, 13):
        assert compiled(np.ones(size)) == 1.0
    assert compiled.compilations == 12
    (said,) = warnings_of(caplog)
    assert said.startswith("'average' is compiled for the 8th time, since it asks for the number of a size")
    assert f"x.shape[0] = 8\n  at {line_of(average, 1)}: len(x)\nwrite x.shape[0] for len(x)" in said


def test_other_reasons_for_several_programs_are_not_reported(caplog):
    branch = harp.jit(lambda x: x * next(k for k in range(20) if x.shape[0] <= 2**k))
    for k in range(12):
        branch(np.ones(2**k))
    pinned = harp.jit(lambda x: x * len(x))
    for _ in range(20):
        pinned(np.ones(3))
    for dtype in ("f4", "f8", "i4", "i8", "u1", "u2", "i2", "i1", "u4"):
        harp.jit(lambda x: x * len(x))(np.ones(3, dtype))
    assert branch.compilations > 8 and warnings_of(caplog) == []
