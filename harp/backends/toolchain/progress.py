"""A line for those who wait."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from harp.config import log

PATIENCE = 1.0  # seconds


@contextlib.contextmanager
def announced(text: str) -> Iterator[None]:
    """Say so, once, if this takes longer than a second: to the log, and to the terminal if there is one."""
    timer = threading.Timer(PATIENCE, _say, (text,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # no thread is left behind


def _say(text: str) -> None:
    log.info(text)
    with contextlib.suppress(OSError, ValueError):  # the terminal has gone away; stderr is closed
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"harp: {text}", file=sys.stderr, flush=True)
