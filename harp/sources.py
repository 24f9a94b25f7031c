"""Which files of harp's own code this process runs: what is remembered on disk of a program is theirs alone.

Inode and change time are those that no program can set, so an edit is noticed however it was made. To read all files
takes longer; what they hold is the same on other machines.
"""

from __future__ import annotations

import os
from collections.abc import Iterator


def snapshot() -> str:
    """Names the files of harp as they are now; empty where harp is not made of files."""
    found = []
    try:
        for entry in _files():
            s = entry.stat()
            found.append(f"{entry.path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}")
    except OSError:
        return ""
    return "\n".join(sorted(found))


def _files() -> Iterator[os.DirEntry[str]]:
    directories = [os.path.dirname(__file__)]
    while directories:
        with os.scandir(directories.pop()) as entries:
            for entry in entries:
                if entry.name == "__pycache__":
                    continue
                if entry.is_dir():
                    directories.append(entry.path)
                else:
                    yield entry


def contents() -> Iterator[tuple[str, bytes]]:
    """The names and contents of the files, in order. Raises OSError."""
    folder = os.path.dirname(__file__)
    for path in sorted(entry.path for entry in _files()):
        with open(path, "rb") as file:
            yield os.path.relpath(path, folder), file.read()


LOADED = snapshot()  # before the other modules, some of which are imported much later


def unchanged() -> bool:
    """Whether the files are still those that the process began to import."""
    return LOADED != "" and snapshot() == LOADED
