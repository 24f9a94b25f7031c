"""Runs a case, and says what is wrong with it, if something is.

The truth is NumPy's: values, shapes, kinds of dtypes, and which exception is raised. Each call is also traced afresh at
its own sizes, by a function that has seen no others; where values are exact, both programs give the same bits.
"""

from __future__ import annotations

import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

import harp
from harp.transforms.jit import jit as jit_module
from harp.transforms.jit import programs

from .case import Call, Case
from .differences import ANOTHER_TYPE, ONLY_HARP_RAISES, is_known
from .shims import HARP, NUMPY

SLOW = 1.0  # seconds for one trace, by the clock and then by the time of the processor
TOLERANCE = 1e-9
LARGEST = 1e12  # sums of larger numbers have lost too many digits to be compared
COMMON = (ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, AttributeError, RuntimeError)


class Finding(NamedTuple):
    """What went wrong: `kind` groups findings, `call` is the number of the call."""

    kind: str
    call: int
    text: str


class Report(NamedTuple):
    """What became of a case."""

    finding: Finding | None
    calls: int = 0
    programs: int = 0
    exceptions: int = 0  # calls in which both raised


@contextmanager
def backend(name: str) -> Iterator[None]:
    """All programs made inside are compiled ("c") or interpreted ("numpy")."""
    usual = programs.backend_name
    programs.backend_name = lambda *device: name if name == "numpy" else usual(*device)
    try:
        yield
    finally:
        programs.backend_name = usual


@contextmanager
def timed_traces(times: list[float], clock: Callable[[], float] = time.perf_counter) -> Iterator[None]:
    """Puts the seconds that each trace takes into the list."""
    usual = jit_module.JitFunction._traced

    def traced(self: object, *arguments: object) -> object:
        start = clock()
        try:
            return usual(self, *arguments)
        finally:
            times.append(clock() - start)

    jit_module.JitFunction._traced = traced
    try:
        yield
    finally:
        jit_module.JitFunction._traced = usual


def attempt(function: Callable, case: Case, call: Call) -> tuple[np.ndarray, ...] | Exception:
    """The results as arrays of NumPy, or the exception."""
    arrays, named = case.given(call)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return tuple(np.asarray(value) for value in function(*arrays, **named))
        except Exception as error:
            return error


def check(case: Case, name: str = "numpy") -> Report:
    """Run all calls of the case on the backend of this name, and compare."""
    truth = case.function(NUMPY)
    shared = _jitted(case)
    times: list[float] = []
    agreed = 0
    with backend(name), timed_traces(times):
        for number, call in enumerate(case.calls):
            expected = attempt(truth, case, call)
            results: list[tuple | Exception] = []
            for which, function in (("", shared), ("alone ", _jitted(case))):
                traces = len(times)
                results.append(attempt(function, case, call))
                problem = compare(case, results[-1], expected) or _differ(case, results)
                if problem is None and max(times[traces:], default=0.0) > SLOW:
                    problem = _slow(case, call)
                if problem is not None:
                    return Report(Finding(which + problem[0], number, problem[1]), number + 1, len(times), agreed)
            agreed += isinstance(expected, Exception)
    return Report(None, len(case.calls), len(times), agreed)


def _jitted(case: Case) -> Callable:
    return harp.jit(case.function(HARP), static_argnames="flag")


def _slow(case: Case, call: Call) -> tuple[str, str] | None:
    """Whether the trace at these sizes is slow once more: the machine may have been busy."""
    times: list[float] = []
    with timed_traces(times, time.thread_time):
        attempt(_jitted(case), case, call)
    return ("slow trace", f"a trace took {times[-1]:.1f} s") if times[-1] > SLOW else None


def compare(case: Case, found: tuple | Exception, expected: tuple | Exception) -> tuple[str, str] | None:
    """What is wrong, as a kind and a text."""
    if isinstance(found, Exception):
        return _compare_errors(found, expected)
    if isinstance(expected, Exception):
        shown = ", ".join(f"{v.dtype}{list(v.shape)}" for v in found)
        return f"no {type(expected).__name__}", f"harp returns {shown}; NumPy raises {expected!r}"
    for name, value, wanted in zip(case.returned, found, expected, strict=True):
        problem = _compare_values(value, wanted, case.exact(name))
        if problem is not None:
            return problem[0], f"{name}: {problem[1]}"
    return None


def _differ(case: Case, results: list[tuple | Exception]) -> tuple[str, str] | None:
    """Whether a program that was traced at other sizes has other bits than a fresh one, where none are rounded."""
    if len(results) < 2 or any(isinstance(result, Exception) for result in results):
        return None
    for name, shared, fresh in zip(case.returned, *results, strict=True):
        if case.exact(name) and shared.tobytes() != fresh.tobytes():
            return "other bits", f"{name}: traced at other sizes\n{shared}\ntraced afresh\n{fresh}"
    return None


def _compare_errors(found: Exception, expected: tuple | Exception) -> tuple[str, str] | None:
    if isinstance(expected, Exception):
        if any(isinstance(found, kind) and isinstance(expected, kind) for kind in COMMON):
            return None
        if is_known(found, ONLY_HARP_RAISES + ANOTHER_TYPE):
            return None
        return f"{type(found).__name__} for {type(expected).__name__}", f"harp: {found!r}\nNumPy: {expected!r}"
    if is_known(found, ONLY_HARP_RAISES):
        return None
    frames = traceback.extract_tb(found.__traceback__)
    inside = [f"{f.filename.rsplit('/harp/')[-1]}:{f.name}" for f in frames if "/harp/" in f.filename]
    place = inside[-1] if inside else "?"
    return (
        f"{type(found).__name__} in {place}",
        f"harp raises {found!r}; NumPy raises nothing\nin {', '.join(inside[-4:])}",
    )


def _compare_values(found: np.ndarray, expected: np.ndarray, exact: bool) -> tuple[str, str] | None:
    if found.shape != expected.shape:
        return "wrong shape", f"harp has {found.shape}, NumPy has {expected.shape}"
    if found.dtype.kind != expected.dtype.kind:
        return "wrong dtype", f"harp has {found.dtype}, NumPy has {expected.dtype}"
    if expected.dtype.kind == "f":
        with np.errstate(all="ignore"):
            scale = np.max(np.abs(expected), initial=0.0)
            if exact or not scale < LARGEST:
                same = np.array_equal(found, expected, equal_nan=True) or not scale < LARGEST
            else:
                same = np.allclose(found, expected, rtol=TOLERANCE, atol=TOLERANCE * max(scale, 1.0), equal_nan=True)
    else:
        same = np.array_equal(found, expected)
    return None if same else ("wrong values", f"harp has\n{found}\nNumPy has\n{expected}")
