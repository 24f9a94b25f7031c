"""Clocks and random numbers of Python and NumPy in a traced function: they are asked once, while it is traced, and the
program has their answers.

    def f(x):
        return x * random.random()   # random.random
"""

from __future__ import annotations

import datetime
import dis
import inspect
import random
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from types import CodeType, FunctionType, ModuleType

import numpy as np

_DRAWING = (random.Random, np.random.RandomState, np.random.Generator)
_CLOCKS = [
    *(time.time, time.time_ns, time.perf_counter, time.perf_counter_ns, time.monotonic, time.monotonic_ns),
    *(time.process_time, time.localtime, datetime.datetime.now, datetime.date.today, np.random.default_rng),
]


def frozen_calls(function: Callable[..., object]) -> list[str]:
    """The clocks and generators that the function names, or functions of its module that it names, each as
    `file:line: name`.

    >>> def noisy(x):
    ...     return x * random.random()
    >>> [text.rpartition(": ")[2] for text in frozen_calls(noisy)]
    ['random.random']
    """
    found: dict[str, None] = {}
    seen: set[FunctionType] = set()
    waiting: list[object] = [inspect.unwrap(function)]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, FunctionType) or current in seen:
            continue
        seen.add(current)
        names, code = current.__globals__ | _outer(current), _codes(current.__code__)
        for line, name, value in chain.from_iterable(_named(part, names) for part in code):
            if isinstance(value, FunctionType) and value.__globals__ is current.__globals__:
                waiting.append(value)
            elif isinstance(getattr(value, "__self__", None), _DRAWING) or any(value == clock for clock in _CLOCKS):
                found[f"{current.__code__.co_filename}:{line}: {name}"] = None
    return list(found)


def _outer(function: FunctionType) -> dict[str, object]:
    """What the function closes over; of a name that is given something later, nothing."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):
            found[name] = cell.cell_contents
    return found


def _codes(code: CodeType) -> list[CodeType]:
    """The code, and that of the functions inside of it."""
    found = [code]
    for part in found:
        found += [constant for constant in part.co_consts if isinstance(constant, CodeType)]
    return found


def _named(code: CodeType, names: dict[str, object]) -> Iterator[tuple[int, str, object]]:
    """The functions that code names, `numpy.random.normal` as one, with their lines."""
    name, value, line = "", None, code.co_firstlineno
    for step in dis.get_instructions(code):
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, (ModuleType, type, *_DRAWING)):
            name, value = f"{name}.{step.argval}", getattr(value, step.argval, None)
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            name, value = str(step.argval), names.get(step.argval)
        elif step.opname != "PUSH_NULL":
            name, value = "", None
        if callable(value) and not isinstance(value, type):
            yield line, name, value
