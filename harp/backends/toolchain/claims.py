"""Claims: where several processes need the same entry of the cache at once, one makes it, and the others wait for it.

A claim is a lock on one byte of the file `claims` in the cache's directory, and the key says which byte. The system
takes the lock back when its process dies, and gives it to no forked child. Where a file cannot be locked, each process
makes the entry, as it does for one whose process is suspended.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs

from harp.backends.toolchain import cache, trust
from harp.backends.toolchain.background import require_time
from harp.backends.toolchain.bound import CLAIMS
from harp.config import log
from harp.locks import forkable_lock
from harp.progress import announced, tick

# The number of bytes of a file that can be locked: the file itself stays empty.
_BYTES = 1 << 62
# Seconds for which another process is waited for, and between two looks at its claim.
PATIENCE, _MOMENT = 60.0, 0.005
_OPEN = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


_lock = forkable_lock(sys.modules[__name__])
_files: dict[Path, _File] = {}  # those in use


@contextlib.contextmanager
def claimed(key: str) -> Iterator[None]:
    """Hold the claim on the entry with this key. Whoever held it before may have made the entry."""
    byte = int(key, 16) % _BYTES
    with _file() as handle:
        if handle is None:
            yield
            return
        try:
            _wait(handle, byte)
            yield
        finally:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.lockf(handle, fcntl.LOCK_UN, 1, byte)


@attrs.define
class _File:
    """The open file of claims, and how many threads use it."""

    handle: int
    users: int = 0


@contextlib.contextmanager
def _file() -> Iterator[int | None]:
    """The open file, or None. The threads of a process share it: to close it anywhere ends all claims of the process,
    also of those who have opened the file themselves."""
    place = cache.ready()
    if place is None:
        yield None
        return
    with _lock:
        file = _files.get(place)
        if file is None:
            handle = _opened(place)
            file = None if handle is None else _files.setdefault(place, _File(handle))
        if file is not None:
            file.users += 1
    try:
        yield None if file is None else file.handle
    finally:
        if file is not None:
            _leave(place, file)


def _leave(place: Path, file: _File) -> None:
    """The last thread that uses the file closes it."""
    with _lock:
        file.users -= 1
        if not file.users and _files.get(place) is file:
            os.close(_files.pop(place).handle)


def _forget_files() -> None:
    """A forked child has none of the claims, and uses no file of its parent."""
    while _files:
        os.close(_files.popitem()[1].handle)


os.register_at_fork(after_in_child=_forget_files)


def _opened(place: Path) -> int | None:
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
