"""Programs from one machine to another: a file with entries of the cache, which is refused where they cannot run.

The file is a gzip stream: a line with the format and the versions, then, for each entry, a line with its name, size and
digest, and its content. No entry is stored before the whole stream, including its checksum, is found undamaged.

Importing a file means running its code: like any program, it should come from someone who is trusted.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, cast

from harp.backends.toolchain import bound, cache, compilers, trust
from harp.backends.toolchain.records import harp_digest, software
from harp.errors import CacheError
from harp.trace.source_locations import printable

_FORMAT = "harp programs 2"
_LINE = 4096  # the most bytes of a line
_LARGEST = {".so": 1 << 28, ".json": 1 << 20}  # the most bytes of an entry, by its suffix
_KINDS = ("toolchain-", "program-", "runtime-")


def export(file: Path) -> int:
    """Write all programs of the cache to a file; returns the number of entries. Raises CacheError."""
    directory = cache.directory()
    if directory is None:
        raise CacheError(f"there is no cache directory with programs for {file}; run the functions first")
    try:
        with gzip.open(file, "wb") as stream:
            stream.write(_line([_FORMAT, *_versions()]))
            count = 0
            for name, data in _entries(directory):
                stream.write(_line([name, len(data), cache.digest(name, data).hex()]) + data)
                count += 1
    except OSError as error:
        raise CacheError(f"{file} cannot be written: {error.strerror or error}") from None
    return count


def _line(fields: list[object]) -> bytes:
    return json.dumps(fields).encode() + b"\n"


def _versions() -> list[str]:
    """The versions that a program depends on, besides the compiler and the CPU."""
    return [f"harp {harp_digest() or 'of unknown content'}", *software()]


def _entries(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Undamaged records and libraries; not the entries that only the compiler needs."""
    for entry in sorted(_listed(directory), key=lambda entry: entry.name):
        key, suffix = os.path.splitext(entry.name)
        if suffix == cache.LIBRARY or key.startswith(_KINDS):
            content = cache.get(key, suffix)
            if content is not None and len(content) <= _LARGEST[suffix]:
                yield entry.name, content


def _listed(directory: Path) -> list[bound.Entry]:
    opened = trust.open_directory(directory)
    try:
        return bound.entries(opened)
    finally:
        os.close(opened)


def take(file: Path) -> int:
    """Put the programs of a file into the cache; returns the number of entries.

    Raises CacheError if the file is damaged or too large, or none of its programs can run or would be found here.
    """
    try:
        with open(file, "rb") as opened:
            lacks = {name: _lacks(name, data) for name, data in _read_entries(file, opened)}  # checks all of it first
            _require_useful(file, lacks)
            return sum(_keep(name, data) for name, data in _read_entries(file, opened) if not lacks[name])
    except (OSError, EOFError, zlib.error, ValueError, LookupError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise CacheError(f"{file} cannot be read: {reason}; export it again") from None


def _keep(name: str, data: bytes) -> int:
    """Put an entry into the cache; returns the number of entries, 1."""
    if cache.put(*os.path.splitext(name), data) is None:
        raise CacheError("the cache cannot be written to; `python -m harp doctor` says why")
    return 1


def _read_entries(file: Path, opened: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The entries of an open file, from the start. Raises CacheError, or what `take` catches."""
    opened.seek(0)
    with gzip.open(opened) as stream:
        _require_same_versions(file, stream.readline(_LINE))
        room = most = _allowed()
        while line := stream.readline(_LINE):  # the end of the stream has a checksum, which is compared here
            name, size, digest = _header(line)
            room -= bound.on_disk(size)
            if room < 0:
                raise CacheError(
                    f"{file} has more than the {most} bytes that the cache holds; allow more with `python -m harp "
                    "cache --max-size SIZE`"
                )
            data = stream.read(size)
            if len(data) != size or cache.digest(name, data).hex() != digest:
                raise ValueError(f"{name} does not have its size and digest")
            yield name, data


def _allowed() -> int:
    """The most bytes that all entries may take on the disk."""
    directory = cache.directory()
    if directory is None:
        return bound.USUAL
    opened = trust.open_directory(directory)
    try:
        return bound.limit(opened)
    finally:
        os.close(opened)


def _header(line: bytes) -> tuple[str, int, str]:
    """Name, size and digest of an entry. Raises ValueError."""
    fields = json.loads(line)
    if not isinstance(fields, list) or [*map(type, cast(list[object], fields))] != [str, int, str]:
        raise ValueError("an entry has no name, size and digest")
    name, size, digest = fields
    if not bound.is_entry(name) or not 0 < size <= _LARGEST.get(os.path.splitext(name)[1], -1):
        raise ValueError(f"{name!a} of {size} bytes is no entry")
    return name, size, digest


def _require_same_versions(file: Path, line: bytes) -> None:
    try:
        theirs = json.loads(line)
    except (ValueError, RecursionError):
        theirs = None
    if not isinstance(theirs, list) or theirs[:1] != [_FORMAT]:
        raise CacheError(
            f"{file} is no export of a cache, or one of an older harp, without digests of its entries; make one with "
            "`python -m harp cache export FILE`"
        )
    ours = _versions()
    if theirs[1:] != ours:
        made_by = ", ".join(printable(str(version)) for version in theirs[1:])
        raise CacheError(
            f"none of the programs of {file} would be found: they were made by {made_by}, and this is "
            f"{', '.join(ours)}; install the same versions here, or export there again"
        )


def _lacks(name: str, data: bytes) -> list[str]:
    """What this machine lacks for the programs of a compiler, if the entry describes one."""
    if not name.startswith("toolchain-"):
        return []
    compiler = compilers.parsed(data)
    return ["what it is for"] if compiler is None else [*map(printable, compiler.lacks)]


def _require_useful(file: Path, lacks: Mapping[str, list[str]]) -> None:
    """Raise CacheError if no compiler's programs run here."""
    known = [missing for name, missing in lacks.items() if name.startswith("toolchain-")]
    if all(known):
        missing = sorted({word for words in known for word in words}) or ["a compiler that they are of"]
        raise CacheError(
            f"the programs of {file} do not run on this machine, which lacks {', '.join(missing)}; compile them on one "
            "with the same processor features"
        )
