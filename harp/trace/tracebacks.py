"""Tracebacks without the frames of harp: what the user wrote, the line that failed last."""

from __future__ import annotations

import os
import sys
from collections import Counter
from contextlib import suppress
from types import CodeType, TracebackType
from typing import Any

from harp.errors import HarpError, NestingError
from harp.trace.keywords import explain
from harp.trace.source_locations import is_of_harp, running_text, shown


def shorten(error: Exception, function: object = None) -> None:
    """Take the frames of harp out of the traceback, unless HARP_TRACEBACK is "full", or the error is a mistake of harp:
    then all of them matter. A wrong number of arguments for the user's `function` is a mistake of the user.
    Before that, say which keyword of a function of harp was meant."""
    explain(error)
    if os.environ.get("HARP_TRACEBACK") == "full":
        return
    frames: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    if not frames or (is_of_harp(frames[-1].tb_frame) and not _is_of_user(error, frames[-1])):
        name = getattr(function, "__qualname__", None)
        if name is None or type(error) is not TypeError or not str(error).startswith(f"{name}() "):
            return
    kept: TracebackType | None = None
    for step in reversed(frames):
        if not is_of_harp(step.tb_frame):
            kept = TracebackType(kept, step.tb_frame, step.tb_lasti, step.tb_lineno)
    error.__traceback__ = kept


def _is_of_user(error: Exception, last: TracebackType) -> bool:
    """Whether an error that was raised in harp is a mistake of the user: harp's own errors, those that `explain` has
    explained, and names that are not there."""
    missing = isinstance(error, AttributeError) and last.tb_frame.f_code.co_name in ("find", "__getattr__")
    return isinstance(error, HarpError) or hasattr(error, "__notes__") or missing


_DEEP = 20  # calls of one function inside of each other, which no other function is meant to reach


def require_no_recursion(error: RecursionError, name: str) -> None:
    """Raise NestingError where a function of the user calls itself without an end while the one of this name is traced,
    naming its line."""
    if isinstance(error, HarpError):
        return
    steps: dict[CodeType, TracebackType] = {}  # the outermost one of each function: the call of itself
    counts: Counter[CodeType] = Counter()
    step = error.__traceback__
    frame = None if step is None else step.tb_frame.f_back
    while frame is not None:
        counts[frame.f_code] += 1
        frame = frame.f_back
    while step is not None:
        counts[step.tb_frame.f_code] += 1
        steps.setdefault(step.tb_frame.f_code, step)
        step = step.tb_next
    of_user = [code for code in steps if counts[code] >= _DEEP and not is_of_harp(steps[code].tb_frame)]
    if not of_user:
        return
    code = max(of_user, key=lambda code: (not code.co_name.startswith("<"), counts[code]))
    call = steps[code]
    text = shown(running_text(call.tb_frame, call.tb_lasti))
    raise NestingError(
        f"{code.co_name!r} calls itself without an end while {name!r} is traced: numbers are not known then, so both "
        "ways of a choice are traced; write a loop, harp.while_loop or harp.fori_loop, or make the number that ends it "
        f"static, with static_argnums\n  at {code.co_filename}:{call.tb_lineno}{': ' if text else ''}{text}"
    ) from None


# What functions of the user raise while harp runs them, and harp itself.
_OF_USER = (ArithmeticError, AssertionError, AttributeError, HarpError, LookupError, NameError, OSError, RuntimeError,
            TypeError, ValueError)  # fmt: skip


def shorten_uncaught() -> None:
    """From now on errors that nobody has caught are shortened and explained before they are shown, by Python or by
    IPython: outside of transforms nothing of harp sees them before."""
    before = sys.excepthook

    def shown(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        with suppress(Exception):  # the error is shown in any case
            if isinstance(error, _OF_USER):
                shorten(error)
                traceback = error.__traceback__
        before(kind, error, traceback)

    sys.excepthook = shown
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is not None and not getattr(shell, "custom_exceptions", True):
        shell.set_custom_exc(_OF_USER, _show_in_ipython)


def _show_in_ipython(
    shell: Any, kind: type[BaseException], error: Exception, traceback: TracebackType, tb_offset: int | None = None
) -> None:
    shorten(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)
