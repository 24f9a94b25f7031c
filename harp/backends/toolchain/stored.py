"""A library that is open: what was checked is what is loaded, whatever becomes of its name."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from harp.config import log

_DESCRIPTORS = "/proc/self/fd"
_numbers = itertools.count(1)


class Stored:
    """An open file with a whole library, or memory with one; closed at the end of a `with`."""

    def __init__(self, handle: int, place: Path | None) -> None:
        self.handle = handle
        self.place = place  # None in memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        os.close(self.handle)

    def __str__(self) -> str:
        return "the library in memory" if self.place is None else str(self.place)

    def name_for_loader(self) -> str:
        """A path for the loader, which needs the file no more when it is loaded.

        No name is given twice, for the loader takes two libraries with the same name for one.
        """
        if self.place is not None and not (sys.platform.startswith("linux") and os.path.isdir(_DESCRIPTORS)):
            return str(self.place)
        same = "".join("/." if digit == "1" else "/" for digit in f"{next(_numbers):b}")  # all mean the same place
        return f"{_DESCRIPTORS}{same}/{self.handle}"

    def read(self) -> bytes:
        """All of it."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        with os.fdopen(self.handle, "rb", closefd=False) as file:
            return file.read()

    def in_memory(self) -> Stored | None:
        """A copy in memory, for a directory from which nothing can be loaded; None where there is no such thing."""
        return None if self.place is None else in_memory(self.read())


def in_memory(content: bytes) -> Stored | None:
    """A library that is in no directory, where the system has such files."""
    try:
        handle = os.memfd_create("harp")
    except (AttributeError, OSError) as error:
        log.debug("no library in memory: %s", error)
        return None
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(content)
    except OSError as error:
        os.close(handle)
        log.debug("no library in memory: %s", error)
        return None
    return Stored(handle, None)
