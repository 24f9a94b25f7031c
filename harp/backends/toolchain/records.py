"""Records in the cache that say which library a graph became, so that no later process has to lower the graph again.

A record is an entry of the cache like a library. Its key covers the graph, harp's own files, the compiler and its
flags: all that the library depends on. A record that is missing, damaged, or for another key is ignored.
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
_known: dict[str, str] = {}  # digests of harp's files

Pairs = tuple[tuple[int, int], ...]


class Record(NamedTuple):
    """The key of a library, the numbers of arrays and sizes that its program takes, and whether it uses scratch memory.

    `donated` are pairs of an input and the output that lives in its memory.
    """

    library: str
    inputs: int
    outputs: int
    sizes: int
    uses_scratch: bool
    donated: Pairs = ()


def record_key(graph: bytes, options: CompileOptions, donated: Sequence[int] = (), kind: str = "program") -> str | None:
    """The key of a graph, by its digest and donated inputs; None if records cannot be kept."""
    toolchain, harp = find_toolchain(), harp_digest()
    return None if toolchain is None or harp is None else _key(toolchain, harp, graph, options, donated, kind)


def recall_any(
    graph: bytes, options: CompileOptions, donated: Sequence[int] = (), kind: str = "program"
) -> Record | None:
    """The record of a graph, for this compiler or, if there is none, for a compiler of another machine."""
    harp = (harp_digest() or "") if may_have_records() else ""
    for toolchain in usable_toolchains() if harp else ():
        record = recall(_key(toolchain, harp, graph, options, donated, kind))
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
    """The versions of Python and NumPy, which fold constants."""
    return f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}", f"numpy {np.__version__}"


def may_have_records() -> bool:
    """Whether the cache has any records, or knows a digest of harp's files, which comes with the first one."""
    return bool(_known) or any(map(cache.keys, ("sources", "program", "runtime")))


def harp_digest() -> str | None:
    """The digest of harp's own files, equal on all machines; None if they cannot be read.

    The cache remembers it by the files' inodes and times of change: comparing these is faster than reading the files.
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
    """The digest of harp's files; empty if these have changed since they were imported."""
    digest = hashlib.sha256()
    try:
        for name, content in sources.contents():
            digest.update(f"{name}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    except OSError as error:
        log.debug("harp's own files cannot be read: %s", error)
        return b""
    return digest.hexdigest().encode() if sources.unchanged() else b""


def recall(key: str) -> Record | None:
    """The record with this key, or None."""
    try:
        content = cache.get(key, _SUFFIX)
        return None if content is None else _checked(key, json.loads(content))
    except (ValueError, RecursionError) as error:
        log.debug("record %s cannot be read: %s", key, error)
        return None


def _checked(key: str, fields: object) -> Record:
    """The record in an entry. Raises ValueError for any other content."""
    kinds = [str, str, int, int, int, bool, list]
    if not isinstance(fields, list) or [type(field) for field in cast(list[object], fields)] != kinds:
        raise ValueError("it is no record")
    own, library, inputs, outputs, sizes, uses_scratch, pairs = fields
    record = Record(library, inputs, outputs, sizes, uses_scratch, _pairs(pairs))
    if own != key or len(record.library) != 64 or not {*record.library} <= {*"0123456789abcdef"}:
        raise ValueError(f"it is about {own!r} and {record.library!r}")
    return record


def _pairs(listed: list[object]) -> Pairs:
    """The pairs in a list. Raises ValueError for any other content."""
    pairs = tuple(tuple(pair) for pair in listed if isinstance(pair, list) and list(map(type, pair)) == [int, int])
    if len(pairs) != len(listed):
        raise ValueError("it has no pairs of arrays")
    return cast(Pairs, pairs)


def remember(key: str, record: Record) -> None:
    """Store a record, also in place of a damaged one, unless harp's files have changed since they were imported."""
    if sources.unchanged():
        cache.put(key, _SUFFIX, json.dumps([key, *record]).encode())
