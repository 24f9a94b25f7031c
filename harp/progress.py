"""Lines for those who wait. No thread says them, but the wait itself: it calls `tick` now and then.

The log has each line at the level INFO. A terminal shows them one below the other; a notebook shows the latest one, in
its place the next one, and at the end how long the wait took.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any
from weakref import ref

from harp.config import log

# Seconds until the first line, and how long something goes on that is worth a line after it.
PATIENCE, _SOON = 2.0, 0.5

Text = str | Callable[[], str]


class _Doing:
    """Something that may take long; it has been said, or not yet."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.since = time.monotonic()
        self.is_said = False


class _Wait:
    """One wait of a user, for several things one after the other and inside of each other."""

    def __init__(self) -> None:
        self.doing: list[_Doing] = []  # from the outside in
        self._since = time.monotonic()
        self._said: set[str] = set()
        self._output: Any = None  # the line in a notebook

    def tick(self) -> None:
        now = time.monotonic()
        if now - self._since < PATIENCE:
            return
        for doing in self.doing:  # the first line says what goes on, however short
            if not doing.is_said and (not self._said or now - doing.since >= _SOON):
                doing.is_said = True
                for line in (doing.text if isinstance(doing.text, str) else doing.text()).split("\n"):
                    if line not in self._said:
                        self._said.add(line)
                        self._say(line)

    def _say(self, text: str) -> None:
        log.info(text)
        if _in_notebook():
            self._show(f"harp: {text}")
        elif _has_terminal():
            with contextlib.suppress(OSError, ValueError):  # the terminal has gone away; stderr is closed
                print(f"harp: {text}", file=sys.stderr, flush=True)

    def _show(self, text: str) -> None:
        if self._output is None:
            self._output = import_module("IPython.display").display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._output.update({"text/plain": text}, raw=True)

    def end(self) -> None:
        """Say in a notebook that it is over."""
        if self._output is not None:
            self._show(f"harp: done after {time.monotonic() - self._since:.1f} s")


class _Here(threading.local):
    # An interrupt at a bad moment must not leave this wait for the next one: it ends with the frame that holds it.
    wait: ref[_Wait] | None = None


_here = _Here()


def _current() -> _Wait | None:
    return None if _here.wait is None else _here.wait()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """What is `announced` inside is one wait."""
    if _current() is not None:
        yield
        return
    wait = _Wait()
    _here.wait = ref(wait)
    try:
        yield
    finally:
        _here.wait = None
        wait.end()


def tick() -> None:
    """Say what this thread waits for, each line once, if it has waited for two seconds: to the log, and to the terminal
    or notebook if there is one. Whatever may take long calls this again and again."""
    wait = _current()
    if wait is not None:
        wait.tick()


@contextlib.contextmanager
def announced(text: Text) -> Iterator[None]:
    """What is going on inside, for `tick`: a text, or a function that is asked for it then."""
    with waiting():
        wait = _current()
        assert wait is not None
        doing = _Doing(text)
        wait.doing.append(doing)
        try:
            yield
        finally:
            wait.doing.remove(doing)


def _has_terminal() -> bool:
    with contextlib.suppress(OSError, ValueError):
        return sys.stderr is not None and sys.stderr.isatty()
    return False


def _in_notebook() -> bool:
    """Whether a kernel of IPython runs this code, in a cell: the thread of the compiler has no output."""
    if threading.current_thread() is not threading.main_thread():
        return False
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None
