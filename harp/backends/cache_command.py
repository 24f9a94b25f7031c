"""What `python -m harp cache` does: shows the cache, bounds and empties it, and moves programs between machines."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harp.backends.toolchain import bound, cache, transfer, trust
from harp.errors import CacheError
from harp.trace.source_locations import printable

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def size(text: str) -> int:
    """A number of bytes, as in `500M` or `1.5 GB`. Raises CacheError.

    >>> size("1.5GB"), size("200")
    (1500000000, 200)
    """
    match = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,3})?)\s*([kmgt]?)b?\s*", text, re.ASCII | re.IGNORECASE)
    if match is None:
        raise CacheError(f"{text!a} is no size; write a number of bytes as in 500M or 1.5GB")
    return int(float(match[1]) * _UNITS[match[2].lower()])


def shown(count: float) -> str:
    """A number of bytes for people.

    >>> shown(999), shown(12_345_678), shown(10**9)
    ('999 bytes', '12.3 MB', '1 GB')
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count:.0f} bytes"


def main(action: str | None, file: str | None, most: str | None) -> int:
    """Run an action, then print what the cache holds; returns the exit status. Raises CacheError."""
    if action == "import":
        count = transfer.take(Path(file or ""))
        print(f"imported   {count} entries from {printable(file or '')}")
    directory = cache.directory()
    if directory is None:
        print("no cache directory is in use; `python -m harp doctor` says which ones can be used")
        return 0 if action != "export" else 1
    if most is not None:
        _bound(directory, size(most))
    if action == "clear":
        print(f"removed    {_cleared(directory)} entries")
    if action == "export":
        print(f"exported   {transfer.export(Path(file or ''))} entries to {printable(file or '')}")
    print("\n".join(report(directory)))
    return 0


def report(directory: Path) -> list[str]:
    """Lines that describe a cache directory."""
    opened = trust.open_directory(directory)
    try:
        entries, most, hits = bound.entries(opened), bound.limit(opened), bound.hits(opened)
    finally:
        os.close(opened)
    libraries = sum(entry.name.endswith(cache.LIBRARY) for entry in entries)
    programs = sum(entry.name.startswith("program-") for entry in entries)
    return [
        f"directory  {printable(str(directory))}",
        f"size       {shown(sum(entry.size for entry in entries))}, at most {shown(most)}",
        f"entries    {len(entries)}: {programs} programs, {libraries} libraries, and what these are made of",
        f"hits       {hits} programs found since it was cleared",
    ]


def _bound(directory: Path, most: int) -> None:
    opened = trust.open_directory(directory)
    try:
        bound.set_limit(opened, most)
        bound.shrink(opened, most)
    except OSError as error:
        raise CacheError(f"{directory} cannot be written to: {error.strerror or error}") from None
    finally:
        os.close(opened)


def _cleared(directory: Path) -> int:
    opened = trust.open_directory(directory)
    try:
        return bound.clear(opened)
    finally:
        os.close(opened)
