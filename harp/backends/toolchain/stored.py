"""A library that is open: what was checked is what is loaded, whatever becomes of its name; and whether it is whole.

Python would die of SIGBUS on loading one that was cut short.
"""

from __future__ import annotations

import itertools
import os
import struct
import sys
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from harp.config import log

_DESCRIPTORS = "/proc/self/fd"
OBJECT, LIBRARY = 1, 3  # kinds of files of ELF
_KINDS = {OBJECT: "an object file", LIBRARY: "a shared library"}
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


def damage(file: Path | int, kind: int = LIBRARY) -> str | None:
    """What is wrong with a file of this kind, given by path or open, or None.

    Says nothing where libraries are not ELF files. Raises OSError if it cannot be read.
    """
    if not sys.platform.startswith("linux"):
        return None
    with open(file, "rb", closefd=not isinstance(file, int)) as opened:
        opened.seek(0)
        try:
            return _damage(opened, os.fstat(opened.fileno()).st_size, kind)
        except struct.error:  # shorter than its headers
            return "is cut short"


def _damage(file: BinaryIO, size: int, wanted: int) -> str | None:
    ident = file.read(16)
    if ident[:4] != b"\x7fELF" or len(ident) < 16:
        return "is not an ELF file"
    wide, order = ident[4] == 2, ">" if ident[5] == 2 else "<"
    layout = struct.Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
    kind, _, _, _, segments, sections, _, _, segment_size, count, section_size, section_count, _ = layout.unpack(
        file.read(layout.size)
    )
    if kind != wanted:
        return f"is not {_KINDS[wanted]}"
    ends = [sections + section_size * section_count, segments + segment_size * count]
    segment = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    for number in range(count):
        file.seek(segments + number * segment_size)
        fields = segment.unpack(file.read(segment.size))
        ends.append(fields[2] + fields[5] if wide else fields[1] + fields[4])
    return None if max(ends) <= size else "is cut short"
