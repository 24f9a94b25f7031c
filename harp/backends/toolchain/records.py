"""What the cache remembers of programs: which library a graph became, so that no later process has to lower it again.

A record is an entry of the cache like a library. Its key covers the graph, harp's own files, the compiler and its
flags: all that the library depends on. A record that is missing, damaged, or about something else is no record.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Sequence
from typing import NamedTuple, cast

import numpy as np

from harp import sources
from harp.backends.options import CompileOptions
from harp.backends.toolchain import cache
from harp.backends.toolchain.compilers import Toolchain
from harp.backends.toolchain.toolchain import base_flags, find_toolchain, program_flags, usable_toolchains
from harp.config import log

_SUFFIX = ".json"
_known: dict[str, str] = {}  # of harp's files

Pairs = tuple[tuple[int, int], ...]


class Record(NamedTuple):
    """The key of a library, how many arrays and sizes its program takes, and whether it uses scratch memory.

    `donated` are pairs of an input and the output that lives in its memory.
    """

    library: str
    inputs: int
    outputs: int
    sizes: int
    uses_scratch: bool
    donated: Pairs = ()


def record_key(graph: bytes, options: CompileOptions, donated: Sequence[int] = (), kind: str = "program") -> str | None:
    """The key for the digest of a graph and its donated inputs; None where nothing can be remembered of it."""
    toolchain, harp = find_toolchain(), harp_digest()
    return None if toolchain is None or harp is None else _key(toolchain, harp, graph, options, donated, kind)


def recall_any(
    graph: bytes, options: CompileOptions, donated: Sequence[int] = (), kind: str = "program"
) -> Record | None:
    """What an earlier process remembered of a graph, of this compiler or, where there is none, of another machine's."""
    harp = harp_digest()
    for toolchain in usable_toolchains() if harp is not None else ():
        record = recall(_key(toolchain, harp or "", graph, options, donated, kind))
        if record is not None:
            return record
    return None


def _key(
    toolchain: Toolchain, harp: str, graph: bytes, options: CompileOptions, donated: Sequence[int], kind: str
) -> str:
    compiler = [*toolchain.command, toolchain.family.value, toolchain.version, str(toolchain.vector_bytes)]
    flags = [*base_flags(toolchain), *program_flags(toolchain), *options.flags(), str(toolchain.fma)]
    facts = [graph.hex(), repr([*donated]), harp, *software(), *compiler, *flags]
    return f"{kind}-" + hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


def software() -> tuple[str, str]:
    """Python and NumPy, which compute with numbers that are folded."""
    return f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}", f"numpy {np.__version__}"


def harp_digest() -> str | None:
    """The digest of harp's own files, the same on all machines; None where they cannot be told.

    The cache remembers it for files with these inodes and times of change: to look takes less time than to read them.
    """
    loaded = sources.LOADED
    if not loaded:
        return None
    if loaded not in _known:
        key = "sources-" + hashlib.sha256(loaded.encode(errors="surrogateescape")).hexdigest()
        known = cache.get(key, _SUFFIX) or b""
        if len(known) != 64:
            known = _digest_of_files()
            if known:
                cache.put(key, _SUFFIX, known)
        _known[loaded] = known.decode("ascii", "replace")
    return _known[loaded] or None


def _digest_of_files() -> bytes:
    """Empty where the files have changed since they were imported."""
    digest = hashlib.sha256()
    try:
        for name, content in sources.contents():
            digest.update(f"{name}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    except OSError as error:
        log.debug("harp's own files cannot be read: %s", error)
        return b""
    return digest.hexdigest().encode() if sources.unchanged() else b""


def recall(key: str) -> Record | None:
    """What an earlier process remembered."""
    try:
        content = cache.get(key, _SUFFIX)
        return None if content is None else _checked(key, json.loads(content))
    except (ValueError, RecursionError) as error:
        log.debug("record %s cannot be read: %s", key, error)
        return None


def _checked(key: str, fields: object) -> Record:
    """Raises ValueError for anything but a record of this key."""
    kinds = [str, str, int, int, int, bool, list]
    if not isinstance(fields, list) or [type(field) for field in cast(list[object], fields)] != kinds:
        raise ValueError("it is no record")
    own, library, inputs, outputs, sizes, uses_scratch, pairs = fields
    record = Record(library, inputs, outputs, sizes, uses_scratch, _pairs(pairs))
    if own != key or len(record.library) != 64 or not {*record.library} <= {*"0123456789abcdef"}:
        raise ValueError(f"it is about {own!r} and {record.library!r}")
    return record


def _pairs(listed: list[object]) -> Pairs:
    """Raises ValueError for anything but pairs of numbers."""
    pairs = tuple(tuple(pair) for pair in listed if isinstance(pair, list) and list(map(type, pair)) == [int, int])
    if len(pairs) != len(listed):
        raise ValueError("it has no pairs of arrays")
    return cast(Pairs, pairs)


def remember(key: str, record: Record) -> None:
    """Keep a record, in the place of a damaged one too, unless harp's files have changed since they were imported."""
    if sources.unchanged():
        cache.put(key, _SUFFIX, json.dumps([key, *record]).encode())
