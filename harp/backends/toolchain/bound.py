"""How large a cache directory may grow, and what is removed from it: what was not used for the longest time.

A file whose length says how much was written since the last look tells each process when the next one is due, so that
few of them look at all entries. Many may do all of this at the same time, and each may be killed at any moment.
An entry that is removed while it is loaded stays whole for those who have it open.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from typing import NamedTuple

from harp.config import log

# Bytes of a directory, if nobody has said otherwise.
USUAL = 10**9
# A look is due when this part of what is allowed was written, and then leaves so much room.
_PART = 8
_BLOCK = 4096
# Seconds in which an entry counts as used once, for each note of it is a write.
_HOUR = 3600.0
_ENTRY = re.compile(r"([0-9a-f]{64}\.(so|o|cl)|[a-z]+-[0-9a-f]{64}\.json)")
_TEMPORARY = re.compile(rf"\.({_ENTRY.pattern}|limit)\.[0-9a-f]{{8}}")
_WRITTEN, _HITS, _LIMIT = "written", "hits", "limit"
_COUNTING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """A file of a cache directory: when it was used last, and how many bytes of the disk it takes."""

    used: float
    size: int
    name: str


def on_disk(size: int) -> int:
    """The bytes of the disk that a file of this size takes."""
    return -(-size // _BLOCK) * _BLOCK


def temporary_name(name: str) -> str:
    """For an entry that is not whole yet."""
    return f".{name}.{os.urandom(4).hex()}"


def touch(handle: int) -> None:
    """Note that an open entry was used."""
    if time.time() - os.fstat(handle).st_mtime > _HOUR:
        try:
            os.utime(handle)
        except OSError as error:  # a directory that can only be read
            log.debug("the use of a cache entry cannot be noted: %s", error)


def count_hit(directory: int) -> None:
    """Count a program that was found."""
    try:
        _append(directory, _HITS, 1)
    except OSError as error:
        log.debug("the hit cannot be counted: %s", error)


def hits(directory: int) -> int:
    """How many programs were found."""
    return _length(directory, _HITS)


def _length(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    except OSError:
        return 0


def _append(directory: int, name: str, count: int) -> int:
    """Make a file longer, and return how long it is. Raises OSError."""
    handle = os.open(name, _COUNTING, 0o600, dir_fd=directory)
    try:
        os.write(handle, bytes(count))
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def limit(directory: int) -> int:
    """How many bytes the directory may have."""
    try:
        handle = os.open(_LIMIT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return USUAL
    try:
        text = os.read(handle, 20)
    except OSError:
        return USUAL
    finally:
        os.close(handle)
    return int(text) if text.isdigit() else USUAL


def set_limit(directory: int, size: int) -> None:
    """Allow so many bytes, in all processes. Raises OSError."""
    temporary = temporary_name(_LIMIT)
    handle = os.open(temporary, _COUNTING, 0o600, dir_fd=directory)
    try:
        os.write(handle, str(size).encode())
    finally:
        os.close(handle)
    os.replace(temporary, _LIMIT, src_dir_fd=directory, dst_dir_fd=directory)


def grown(directory: int, size: int) -> None:
    """Note that so many bytes were written; removes old entries when enough was."""
    try:
        most = limit(directory)
        if _append(directory, _WRITTEN, -(-size // _BLOCK)) * _BLOCK > most // _PART:
            shrink(directory, most - most // _PART)
    except OSError as error:
        log.debug("nothing is removed from the cache: %s", error)


def shrink(directory: int, most: int) -> None:
    """Remove what was not used for the longest time until so many bytes are left. Raises OSError."""
    handle = os.open(_WRITTEN, _COUNTING, 0o600, dir_fd=directory)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back by the system if the process dies
        except OSError:
            return  # another process does it
        found = entries(directory)
        total = sum(entry.size for entry in found)
        for entry in sorted(found):
            if total <= most:
                break
            _unlink(directory, entry.name)
            total -= entry.size
        for name in os.listdir(directory):
            if _TEMPORARY.fullmatch(name):
                _remove_old(directory, name)
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def clear(directory: int) -> int:
    """Remove all entries and counts; returns how many entries there were."""
    found = entries(directory)
    for name in (*(entry.name for entry in found), _HITS, _WRITTEN):
        _unlink(directory, name)
    return len(found)


def is_entry(name: str) -> bool:
    """Whether an entry may have this name."""
    return _ENTRY.fullmatch(name) is not None


def entries(directory: int) -> list[Entry]:
    """All entries, in no order. Other files are nobody's business here. Raises OSError."""
    found = []
    for name in os.listdir(directory):
        if is_entry(name):
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except OSError:  # removed in the meantime
                continue
            if not stat.S_ISDIR(status.st_mode):
                found.append(Entry(status.st_mtime, on_disk(status.st_size), name))
    return found


def _remove_old(directory: int, name: str) -> None:
    """What a process that was killed has not finished writing."""
    try:
        if time.time() - os.stat(name, dir_fd=directory, follow_symlinks=False).st_mtime > _HOUR:
            _unlink(directory, name)
    except OSError as error:
        log.debug("%s: %s", name, error)


def _unlink(directory: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        log.debug("could not remove %s: %s", name, error)
