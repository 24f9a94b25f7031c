"""Temporary directories, and what processes that were killed have left of theirs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from harp.config import log

# How the names of directories for compilers, and of caches of one process, begin.
_SCRATCH, _PRIVATE = "harp-build-", "harp-private-"
_DAY = 86400.0  # no compiler may take longer
_looked_in: set[str] = set()


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A directory for a run of the compiler. Removes those that were left behind, once in a process. Raises OSError."""
    _remove_old(tempfile.gettempdir())
    # A compiler that was killed may still write a file there: an error of the removal would replace the interrupt.
    return tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True)


def private() -> Path:
    """A directory for the time of this process, which its maker removes. Raises OSError."""
    return Path(tempfile.mkdtemp(prefix=f"{_PRIVATE}{os.getpid()}-"))


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
        shutil.rmtree(path, ignore_errors=True)


def _is_left(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory of this user that no process can need any more."""
    if not entry.name.startswith((_SCRATCH, _PRIVATE)):
        return False
    try:
        status = entry.stat(follow_symlinks=False)
        mine = entry.is_dir(follow_symlinks=False) and status.st_uid == os.geteuid()
    except OSError:  # it has gone
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
    except (OSError, OverflowError):  # it is another user's; it is no number of a process
        return True
    return True
