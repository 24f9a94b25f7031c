"""Which files of harp's own code this process runs: what is remembered on disk of a program is theirs alone.

Inode and change time are those that no program can set, so an edit is noticed however it was made.
"""

from __future__ import annotations

import os


def snapshot() -> str:
    """Names the files of harp as they are now; empty where harp is not made of files."""
    found, directories = [], [os.path.dirname(__file__)]
    try:
        while directories:
            with os.scandir(directories.pop()) as entries:
                for entry in entries:
                    if entry.name == "__pycache__":
                        continue
                    if entry.is_dir():
                        directories.append(entry.path)
                    else:
                        s = entry.stat()
                        found.append(f"{entry.path} {s.st_size} {s.st_mtime_ns} {s.st_ctime_ns} {s.st_ino}")
    except OSError:
        return ""
    return "\n".join(sorted(found))


LOADED = snapshot()  # before the other modules, some of which are imported much later


def unchanged() -> bool:
    """Whether the files are still those that the process began to import."""
    return LOADED != "" and snapshot() == LOADED
