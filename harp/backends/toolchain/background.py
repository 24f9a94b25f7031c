"""Work of the compiler that no call waits for: one thread does it, one piece after the other, in order.

A process that is ending waits until all of it is done, so that the next one finds it in the cache; an interrupt gives
up the rest. Where no thread can be started, the caller does the work at once.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import time
from collections import deque
from collections.abc import Callable

from harp.backends.toolchain import cache
from harp.config import log
from harp.errors import HarpError
from harp.locks import forkable_lock
from harp.progress import announced, tick

# Seconds for which an interrupted end of the process waits for the thread to stop its compilers and remove their files.
_PATIENCE = 2.0
_MOMENT = 0.001


class GivenUp(Exception):
    """An interrupt has come while the process waited for the rest of the work."""


class _Worker:
    """`thread` is 0 when there is none: it ends when nothing is left to do."""

    def __init__(self) -> None:
        self.thread = 0
        self.pending: deque[Callable[[], object]] = deque()
        self.ends = False
        self.is_awaited = False  # whether the end of this process is known to wait

    def forget_thread(self) -> None:
        """A forked child has no such thread; the next piece of work starts one. The parent does what it was to do."""
        self.thread, self.is_awaited = 0, False
        self.pending.clear()


_lock = forkable_lock(sys.modules[__name__])
_worker = _Worker()
os.register_at_fork(after_in_child=_worker.forget_thread)


def later(work: Callable[[], object]) -> None:
    """Do this in the thread, or here if no thread can be started."""
    with _lock:
        _worker.pending.append(work)
        if _worker.thread or _worker.ends:
            return
        _await_at_end()
        try:
            # Not `threading.Thread`, whose `start` waits for good for a thread that has no memory to begin.
            _worker.thread = _thread.start_new_thread(_run, ())
            return
        except RuntimeError as error:
            log.debug("no thread for the compiler: %s", error)
            _worker.pending.pop()  # the caller may hold locks that other pieces of work wait for
    _do(work)


def wait_for_compilers() -> None:
    """Wait until programs that were compiled quickly for their first calls are replaced by the optimised ones.

    Takes and returns nothing. Whoever measures the time of later calls asks for it before; with `HARP_QUICK=0` there is
    nothing to wait for. A program that cannot be made is not missed: the first one serves all calls.

    >>> import harp, numpy as np
    >>> f = harp.jit(lambda x: x * 2 + 1)
    >>> y = f(np.ones(3))
    >>> harp.wait_for_compilers()
    """
    while _worker.thread and _worker.pending:
        tick()
        time.sleep(_MOMENT)


def is_here() -> bool:
    """Whether this is the thread."""
    return _thread.get_ident() == _worker.thread


def require_time() -> None:
    """Raise GivenUp in the thread if the rest is given up: whatever takes long there asks again and again."""
    if _worker.ends and is_here():
        raise GivenUp


def _next() -> Callable[[], object] | None:
    """The next piece of work, or None: then the thread ends."""
    with _lock:
        if _worker.pending and not _worker.ends:
            return _worker.pending[0]
        _worker.thread = 0
        return None


def _do(work: Callable[[], object]) -> None:
    """Whoever needs a result that is missing afterwards makes it, and sees the error."""
    try:
        work()
    except (HarpError, GivenUp, OSError, MemoryError, RuntimeError, AssertionError) as error:
        log.debug("work of the compiler beside the calls failed: %s", error)


def _run() -> None:
    try:
        while (work := _next()) is not None:
            try:
                _do(work)
            finally:
                _worker.pending.popleft()
    except BaseException:  # a mistake in harp, or there is no memory to go on: the next piece of work starts a thread
        _worker.thread = 0
        raise


def _await_at_end() -> None:
    """A process that `multiprocessing` has forked ends without the functions of `atexit`."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None and not _worker.is_awaited:
        _worker.is_awaited = True
        util.Finalize(None, _end, exitpriority=0)


@atexit.register
def _end() -> None:
    try:
        if _worker.thread and cache.ready() is not None:
            with announced("compiling programs for the next run; an interrupt leaves them for then"):
                wait_for_compilers()
    except KeyboardInterrupt:
        pass
    _worker.ends = True
    end = time.monotonic() + _PATIENCE
    while _worker.thread and time.monotonic() < end:
        time.sleep(_MOMENT)
