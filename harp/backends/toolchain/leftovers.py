"""Temporary directories, and the removal of those that killed processes have left."""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from weakref import ref

from harp.config import log

# The prefixes of directories for compilers, and of private caches.
_SCRATCH, _PRIVATE = "harp-build-", "harp-private-"
_DAY = 86400.0  # no compiler runs longer
_looked_in: set[str] = set()


class _Use:
    """Lives as long as its directory is needed."""


# An interrupt may come at any moment, also while a directory is removed: unused directories are removed later.
_used: dict[str, ref[_Use]] = {}
os.register_at_fork(after_in_child=_used.clear)  # they belong to the parent


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A directory for a run of the compiler. Also removes those that other processes have left, once per process.

    Raises OSError.
    """
    _remove_unused()
    _remove_old(tempfile.gettempdir())
    path, use = _fresh(_SCRATCH), _Use()
    _used[path] = ref(use)
    try:
        os.mkdir(path, 0o700)
        yield Path(path)
    finally:
        del use
        _remove_unused()


def private() -> Path:
    """A directory for the lifetime of this process, which removes it at its end. Raises OSError."""
    path = _fresh(f"{_PRIVATE}{os.getpid()}-")
    os.mkdir(path, 0o700)
    return Path(path)


def _fresh(prefix: str) -> str:
    """A new path of a directory that no other process makes."""
    return os.path.join(tempfile.gettempdir(), prefix + os.urandom(8).hex())


def remove_private(directory: Path) -> None:
    """Remove a directory of this process; not in a forked child, for the parent still uses it."""
    if directory.name.startswith(f"{_PRIVATE}{os.getpid()}-"):
        _remove_tree(str(directory))


def _remove_unused() -> None:
    for path, use in list(_used.items()):
        if use() is None:
            _remove_tree(path)
            if not os.path.lexists(path):
                _used.pop(path, None)


atexit.register(_remove_unused)


def _remove_old(directory: str) -> None:
    if directory in _looked_in:
        return
    _looked_in.add(directory)
    try:
        with os.scandir(directory) as entries:
            old = [entry.path for entry in entries if _is_left(entry)]
    except OSError as error:
        log.debug("%s cannot be searched for what was left there: %s", directory, error)
        return
    for path in old:
        log.debug("%s was left behind: removed", path)
        _remove_tree(path)


def _remove_tree(directory: str) -> None:
    """Remove as much as possible: a killed compiler may still write files, and an error would replace the interrupt.
    After an interrupt `shutil.rmtree` may close a descriptor twice, which may belong to another file by then."""
    for folder, folders, files in os.walk(directory, topdown=False):
        for name in files + folders:
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if name in folders and not os.path.islink(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
    with contextlib.suppress(OSError):
        os.rmdir(directory)


def _is_left(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory of this user that no process can still need."""
    if not entry.name.startswith((_SCRATCH, _PRIVATE)):
        return False
    try:
        status = entry.stat(follow_symlinks=False)
        mine = entry.is_dir(follow_symlinks=False) and status.st_uid == os.geteuid()
    except OSError:  # it was removed
        return False
    if not mine or time.time() - status.st_mtime < _DAY:
        return False
    owner = entry.name.removeprefix(_PRIVATE).partition("-")[0]
    return not (entry.name.startswith(_PRIVATE) and owner.isdecimal() and _lives(int(owner)))


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # another user's process; or not a process number
        return True
    return True
