"""Claims: where several processes need the same entry of the cache at once, one makes it, and the others wait for it.

A claim is a lock on one byte of the file `claims` in the cache's directory, and the key says which byte. The system
takes the lock back when its process dies, and gives it to no forked child. Where a file cannot be locked, each process
makes the entry, as it does for one whose process is suspended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from harp.backends.toolchain import cache, trust
from harp.backends.toolchain.background import require_time
from harp.backends.toolchain.bound import CLAIMS
from harp.config import log
from harp.progress import announced, tick

# The number of bytes of a file that can be locked: the file itself stays empty.
_BYTES = 1 << 62
# Seconds for which another process is waited for, and between two looks at its claim.
PATIENCE, _MOMENT = 60.0, 0.005
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextlib.contextmanager
def claimed(key: str) -> Iterator[None]:
    """Hold the claim on the entry with this key. Whoever held it before may have made the entry."""
    handle = _opened()
    try:  # to close the file gives the claim back
        if handle is not None:
            _wait(handle, int(key, 16) % _BYTES)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _opened() -> int | None:
    place = cache.ready()
    if place is None:
        return None
    try:
        directory = trust.open_directory(place)
    except (OSError, trust.Refused):
        return None
    try:
        return os.open(CLAIMS, _OPEN, 0o600, dir_fd=directory)
    except OSError as error:
        log.debug("%s: nothing can be claimed: %s", place, error)
        return None
    finally:
        os.close(directory)


def _wait(handle: int, byte: int) -> None:
    """Take the claim; after a while goes on without it."""
    if _take(handle, byte):
        return
    end = time.monotonic() + PATIENCE
    with announced("another process compiles the same program"):
        while not _take(handle, byte) and time.monotonic() < end:
            tick()
            require_time()
            time.sleep(_MOMENT)


def _take(handle: int, byte: int) -> bool:
    """Whether no other process has it; also if the file cannot be locked."""
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # a file system without locks
        log.debug("nothing can be claimed: %s", error)
    return True
