"""The disk cache: one file an entry, written whole and renamed into place; no lock, no index, no pickle.

An entry ends with the SHA-256 of what stands before it. Loaders ignore what follows a library, and a damaged or
truncated entry is noticed before it is loaded. Only a directory and files that belong to the user and that nobody
else can write to are used. Where a place cannot be used the next one is tried:
`$HARP_CACHE_DIR`, `$XDG_CACHE_HOME/harp`, `~/.cache/harp`, a private temporary directory. Where none can, a library
stays in memory.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harp.config import log
from harp.locks import forkable_lock

_DIGEST = 32
_LINKS = 10
_MEMORY = Path("/proc/self/fd")
_lock = forkable_lock(sys.modules[__name__])
_private: list[Path] = []


def places() -> Iterator[Path]:
    """Where entries may be, in order of preference. The private directory comes last and is made when asked for."""
    yield from _shared()
    private = _private_directory()
    if private is not None:
        yield private


def _shared() -> Iterator[Path]:
    """Where other processes find entries too."""
    chosen, base = os.environ.get("HARP_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if chosen:
        try:
            yield Path(os.path.abspath(os.path.expanduser(chosen)))
        except OSError as error:  # it is relative to a directory that was deleted
            log.debug("HARP_CACHE_DIR=%s: %s", chosen, error)
    elif os.path.isabs(base):
        yield Path(base) / "harp"
    else:
        home = os.path.expanduser("~")
        if os.path.isabs(home):
            yield Path(home) / ".cache" / "harp"


def _private_directory() -> Path | None:
    with _lock:
        if not _private or not _private[0].is_dir():
            try:
                fresh = Path(tempfile.mkdtemp(prefix="harp-"))
            except OSError as error:
                log.debug("no temporary directory: %s", error)
                return None
            _private[:] = [fresh]
            atexit.register(_remove, fresh, os.getpid())
        return _private[0]


def _remove(directory: Path, owner: int) -> None:
    if os.getpid() == owner:  # not in a forked child, whose parent still uses it
        shutil.rmtree(directory, ignore_errors=True)


def refusal(path: Path) -> str | None:
    """Why a file must not be trusted, or None."""
    try:
        status = os.lstat(path)
    except OSError as error:
        return error.strerror or str(error)
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link"
    if status.st_uid != os.geteuid():
        return "belongs to another user"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "can be written to by others"
    return None


def directory_refusal(path: Path) -> str | None:
    """Why a directory must not be trusted, or None. Links of the user are followed."""
    for _ in range(_LINKS):
        try:
            target = path.parent / os.readlink(path)
            owner = os.lstat(path).st_uid
        except OSError:  # it is no link
            return refusal(path)
        if owner != os.geteuid():
            return "is a symbolic link of another user"
        path = target
    return "is a symbolic link to too many others"


def prepare(directory: Path) -> str | None:
    """Make a cache directory; returns why it cannot be used, or None."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    reason = directory_refusal(directory)
    return reason if reason or os.access(directory, os.W_OK | os.X_OK) else "cannot be written to"


def get(key: str, suffix: str) -> Path | None:
    """The undamaged entry with this key, if there is one."""
    for directory in (*_shared(), *_private):
        path = directory / f"{key}{suffix}"
        if os.path.lexists(path) and directory_refusal(directory) is None and _is_whole(path):
            return path
    return None


def _is_whole(path: Path) -> bool:
    reason = refusal(path)
    if reason is None:
        try:
            data = path.read_bytes()
        except OSError as error:
            reason = str(error)
        else:
            if len(data) > _DIGEST and hashlib.sha256(data[:-_DIGEST]).digest() == data[-_DIGEST:]:
                return True
            reason = "is damaged"
    log.debug("cache entry %s %s: passed over", path, reason)
    return False


def read(path: Path) -> bytes:
    """The content of an entry."""
    return path.read_bytes()[:-_DIGEST]


def in_memory(content: bytes) -> Path | None:
    """A library that is in no directory, where the system has such files.

    Its descriptor stays open: the loader takes two libraries with the same path for one.
    """
    try:
        handle = os.memfd_create("harp")
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(content)
    except (AttributeError, OSError) as error:
        log.debug("no library in memory: %s", error)
        return None
    return _MEMORY / str(handle)


def release(path: Path) -> bool:
    """Give back the memory of a library that could not be loaded; returns whether it was in memory."""
    if path.parent != _MEMORY:
        return False
    os.close(int(path.name))
    return True


def forget(key: str, suffix: str) -> None:
    """Remove an entry."""
    for directory in (*_shared(), *_private):
        path = directory / f"{key}{suffix}"
        if os.path.lexists(path) and directory_refusal(directory) is None:
            try:
                path.unlink()
            except OSError as error:
                log.debug("could not remove %s: %s", path, error)


def put(key: str, suffix: str, content: bytes) -> Path | None:
    """Store an entry in the first place that takes it; None where none does."""
    for directory in places():
        reason = prepare(directory)
        if reason is None:
            try:
                return _write(directory, f"{key}{suffix}", content)
            except OSError as error:
                reason = error.strerror or str(error)
        log.debug("cache directory %s: %s; trying the next", directory, reason)
    return None


def _write(directory: Path, name: str, content: bytes) -> Path:
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.write(hashlib.sha256(content).digest())
        os.chmod(temporary, 0o700)
        path = directory / name
        os.replace(temporary, path)
    except BaseException:
        try:
            os.unlink(temporary)
        except OSError as error:
            log.debug("could not remove %s: %s", temporary, error)
        raise
    return path
