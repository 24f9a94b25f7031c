"""The size limit of a cache directory, and the removal of its least recently used entries.

The length of the file `written` is the number of blocks, of 4096 bytes each, that were written since the last look at
all entries, so that each process knows when the next look is due, and few of them take one. Many processes may do all
of this at once, and each may be killed at any moment. An entry that is removed while it is loaded stays whole for
processes that have it open.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from typing import NamedTuple

from harp.config import log

# The limit of a directory in bytes, by default.
USUAL = 10**9
# A look is due when this part of the limit was written; afterwards as much is free.
_PART = 8
_BLOCK = 4096
# Seconds within which an entry is noted as used only once, since each note is a write.
_HOUR = 3600.0
_ENTRY = re.compile(r"([0-9a-f]{64}\.(so|o|cl)|[a-z]+-[0-9a-f]{64}\.json)")
_TEMPORARY = re.compile(rf"\.({_ENTRY.pattern}|limit)\.[0-9a-f]{{8}}")
_WRITTEN, _HITS, _LIMIT = "written", "hits", "limit"
# The file whose bytes are the claims of processes on entries (`claims.py`).
CLAIMS = "claims"
_COUNTING = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Entry(NamedTuple):
    """A file of a cache directory: when it was used last, and how many bytes of the disk it takes."""

    used: float
    size: int
    name: str


def on_disk(size: int) -> int:
    """The bytes that a file of this size takes on the disk."""
    return -(-size // _BLOCK) * _BLOCK


def temporary_name(name: str) -> str:
    """A name for an entry that is not completely written."""
    return f".{name}.{os.urandom(4).hex()}"


def touch(handle: int) -> None:
    """Note that an open entry was used."""
    if time.time() - os.fstat(handle).st_mtime > _HOUR:
        try:
            os.utime(handle)
        except OSError as error:  # the directory is read-only
            log.debug("the use of a cache entry cannot be noted: %s", error)


def count_hit(directory: int) -> None:
    """Count a program that was found in the cache."""
    try:
        _append(directory, _HITS, 1)
    except OSError as error:
        log.debug("the hit cannot be counted: %s", error)


def hits(directory: int) -> int:
    """The number of programs that were found in the cache."""
    return _length(directory, _HITS)


def _length(directory: int, name: str) -> int:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_size
    except OSError:
        return 0


def _append(directory: int, name: str, count: int) -> int:
    """Make a file longer by `count` bytes; returns its length. Raises OSError."""
    handle = os.open(name, _COUNTING, 0o600, dir_fd=directory)
    try:
        os.write(handle, bytes(count))
        return os.fstat(handle).st_size
    finally:
        os.close(handle)


def limit(directory: int) -> int:
    """The limit of the directory in bytes."""
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
    """Set the limit for all processes. Raises OSError."""
    temporary = temporary_name(_LIMIT)
    handle = os.open(temporary, _COUNTING, 0o600, dir_fd=directory)
    try:
        os.write(handle, str(size).encode())
    finally:
        os.close(handle)
    os.replace(temporary, _LIMIT, src_dir_fd=directory, dst_dir_fd=directory)


def grown(directory: int, size: int) -> None:
    """Note that this many bytes were written; removes old entries when enough were."""
    try:
        most = limit(directory)
        if _append(directory, _WRITTEN, -(-size // _BLOCK)) * _BLOCK > most // _PART:
            shrink(directory, most - most // _PART)
    except OSError as error:
        log.debug("nothing is removed from the cache: %s", error)


def shrink(directory: int, most: int) -> None:
    """Remove the least recently used entries until at most `most` bytes are left. Raises OSError."""
    handle = os.open(_WRITTEN, _COUNTING, 0o600, dir_fd=directory)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)  # given back by the system if the process dies
        except OSError:
            return  # another process does it
        all_entries = entries(directory)
        total = sum(entry.size for entry in all_entries)
        for entry in sorted(all_entries):
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
    """Remove all entries and counts; returns the number of entries."""
    all_entries = entries(directory)
    for name in (*(entry.name for entry in all_entries), _HITS, _WRITTEN, CLAIMS):
        _unlink(directory, name)
    return len(all_entries)


def is_entry(name: str) -> bool:
    """Whether a file of this name may be an entry."""
    return _ENTRY.fullmatch(name) is not None


def entries(directory: int) -> list[Entry]:
    """All entries, in no order; other files are ignored. Raises OSError."""
    listed = []
    for name in os.listdir(directory):
        if is_entry(name):
            try:
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except OSError:  # removed in the meantime
                continue
            if not stat.S_ISDIR(status.st_mode):
                listed.append(Entry(status.st_mtime, on_disk(status.st_size), name))
    return listed


def _remove_old(directory: int, name: str) -> None:
    """Remove an incomplete file of a process that was killed."""
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
