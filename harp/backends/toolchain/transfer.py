"""Programs from one machine to another: an archive of entries of the cache, which is not taken where they cannot run.

Whoever imports a file runs the code in it. So it should come from somebody who is trusted, as any program.
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

from harp.backends.toolchain import bound, cache, compilers, trust
from harp.backends.toolchain.records import harp_digest, software
from harp.errors import CacheError

_MANIFEST = "harp-cache.json"
_LARGEST = 1 << 28  # bytes of an entry
_KINDS = ("toolchain-", "program-", "runtime-")


def export(file: Path) -> int:
    """Write all programs of the cache into a file; returns how many entries these are. Raises CacheError."""
    directory = cache.directory()
    if directory is None:
        raise CacheError(f"there is no cache directory with programs for {file}; run the functions first")
    try:
        with tarfile.open(file, "w:gz") as archive:
            _add(archive, _MANIFEST, json.dumps(_versions()).encode())
            count = 0
            for name, data in _entries(directory):
                _add(archive, name, data)
                count += 1
    except OSError as error:
        raise CacheError(f"{file} cannot be written: {error.strerror or error}") from None
    return count


def _versions() -> list[str]:
    """What a program depends on beside the compiler and the processor."""
    return [f"harp {harp_digest() or 'of unknown content'}", *software()]


def _entries(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Undamaged records and libraries; not what only the compiler needs."""
    for entry in sorted(_listed(directory), key=lambda entry: entry.name):
        key, suffix = os.path.splitext(entry.name)
        if suffix == cache.LIBRARY or key.startswith(_KINDS):
            content = cache.get(key, suffix)
            if content is not None:
                yield entry.name, content


def _listed(directory: Path) -> list[bound.Entry]:
    opened = trust.open_directory(directory)
    try:
        return bound.entries(opened)
    finally:
        os.close(opened)


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def take(file: Path) -> int:
    """Put the programs of a file into the cache; returns how many entries these are.

    Raises CacheError if the file is damaged, or none of its programs can run or would be found here.
    """
    try:
        with tarfile.open(file, "r:gz") as archive:
            found = dict(_members(archive))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise CacheError(f"{file} cannot be read: {error}; export it again") from None
    _require_same_versions(file, found.pop(_MANIFEST, b""))
    useless = _useless(file, found)
    for name, data in found.items():
        if name not in useless and cache.put(*os.path.splitext(name), data) is None:
            raise CacheError("the cache cannot be written to; `python -m harp doctor` says why")
    return len(found) - len(useless)


def _members(archive: tarfile.TarFile) -> Iterator[tuple[str, bytes]]:
    for member in archive:
        if member.isfile() and member.size <= _LARGEST and (member.name == _MANIFEST or bound.is_entry(member.name)):
            opened = archive.extractfile(member)
            if opened is not None:
                yield member.name, opened.read()


def _require_same_versions(file: Path, manifest: bytes) -> None:
    try:
        theirs = json.loads(manifest)
    except (ValueError, RecursionError):
        theirs = None
    if not isinstance(theirs, list) or not theirs:
        raise CacheError(f"{file} is no export of a cache; make one with `python -m harp cache export FILE`")
    ours = _versions()
    if theirs != ours:
        raise CacheError(
            f"none of the programs of {file} would be found: they were made by {', '.join(map(str, theirs))}, and this "
            f"is {', '.join(ours)}; install the same versions here, or export there again"
        )


def _useless(file: Path, found: dict[str, bytes]) -> set[str]:
    """The records of compilers whose programs do not run here. Raises CacheError if all are such."""
    known = {name: compilers.parsed(data) for name, data in found.items() if name.startswith("toolchain-")}
    lacks = {name: ["what it is for"] if compiler is None else compiler.lacks for name, compiler in known.items()}
    useless = {name for name, missing in lacks.items() if missing}
    if len(useless) == len(known):
        missing = sorted({word for words in lacks.values() for word in words}) or ["a compiler that they are of"]
        raise CacheError(
            f"the programs of {file} do not run on this machine, which lacks {', '.join(missing)}; compile them on one "
            "with the same processor features"
        )
    return useless
