"""Whether a file is a whole library. Python would die of SIGBUS on loading one that was cut short."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import BinaryIO

OBJECT, LIBRARY = 1, 3
_KINDS = {OBJECT: "an object file", LIBRARY: "a shared library"}


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
