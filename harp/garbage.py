"""Python's collector of reference cycles waits while a program is made.

Tracing and lowering make many objects that live until the end, and hardly a cycle; to look through them again and again
took a fifth of the time.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harp.locks import forkable_lock

_lock = forkable_lock(sys.modules[__name__])
_waiting = 0  # how many are in `collected_later` now
_enabled = False  # whether the collector was on before the first of them
_here = threading.local()  # `depth`: how often this thread is in it


@contextmanager
def collected_later() -> Iterator[None]:
    """No collection starts inside, in any thread; afterwards all is as it was."""
    global _waiting, _enabled
    depth: int = getattr(_here, "depth", 0)
    inside = False
    try:
        with _lock:
            if _waiting == 0:
                _enabled = gc.isenabled()
            _waiting, inside = _waiting + 1, True  # a signal may raise an exception at any call, but not in between
            gc.disable()
        _here.depth = depth + 1
        yield
    finally:
        if inside:
            _here.depth = depth
            with _lock:
                _waiting -= 1
                if _waiting == 0 and _enabled:
                    gc.enable()


def _after_fork() -> None:
    """Other threads that were inside are not in the child."""
    global _waiting
    others, _waiting = _waiting, getattr(_here, "depth", 0)
    if others and _waiting == 0 and _enabled:
        gc.enable()


os.register_at_fork(after_in_child=_after_fork)
