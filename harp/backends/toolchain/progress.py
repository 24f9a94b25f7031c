"""Lines for those who wait."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

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


class _Watch:
    """One wait of a user, for several things one after the other and inside of each other, and its thread."""

    def __init__(self) -> None:
        self.doing: list[_Doing] = []  # from the outside in
        self._since = time.monotonic()
        self._said: set[str] = set()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="harp-progress", daemon=True)
            with contextlib.suppress(RuntimeError):  # there are too many threads, and nothing is said
                thread.start()
                self._thread = thread

    def end(self) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()  # no thread is left behind

    def _run(self) -> None:
        soon = 0.0  # the first line says what goes on, however short
        pause = max(PATIENCE - (time.monotonic() - self._since), 0)
        while not self._over.wait(pause):
            for doing in list(self.doing):
                if not doing.is_said and time.monotonic() - doing.since >= soon:
                    doing.is_said = True
                    self._say(doing.text if isinstance(doing.text, str) else doing.text())
                    soon = _SOON
            pause = min(PATIENCE, _SOON / 2)

    def _say(self, text: str) -> None:
        for line in text.split("\n"):
            if line not in self._said:
                self._said.add(line)
                _say(line)


class _Here(threading.local):
    watch: _Watch | None = None


_here = _Here()


@contextlib.contextmanager
def waiting() -> Iterator[None]:
    """What is `announced` inside is one wait."""
    if _here.watch is not None:
        yield
        return
    watch = _here.watch = _Watch()
    try:
        yield
    finally:
        _here.watch = None
        watch.end()


def will_take_long() -> None:
    """What is being announced in this thread may be worth a line."""
    if _here.watch is not None:
        _here.watch.begin()


@contextlib.contextmanager
def announced(text: Text, is_long: bool = True) -> Iterator[None]:
    """Say so, each line once, where the wait takes longer than two seconds: to the log, and to the terminal if there is
    one.

    A text that is a function is asked for in another thread. What is not long as a rule needs no such thread until
    `will_take_long` is called inside.
    """
    with waiting():
        watch = _here.watch
        assert watch is not None
        watch.doing.append(_Doing(text))
        if is_long:
            watch.begin()
        try:
            yield
        finally:
            watch.doing.pop()


def _say(text: str) -> None:
    log.info(text)
    with contextlib.suppress(OSError, ValueError):  # the terminal has gone away; stderr is closed
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"harp: {text}", file=sys.stderr, flush=True)
