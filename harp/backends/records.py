"""What the cache remembers of programs: which library a graph became, so that no later process has to lower it again.

A record is an entry of the cache like a library. Its key covers the graph, harp's own files, the compiler and its
flags: all that the library depends on. A record that is missing, damaged, or about something else is no record.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from typing import NamedTuple, cast

import numpy as np

from harp import sources
from harp.backends import cache
from harp.backends.options import CompileOptions
from harp.backends.toolchain import base_flags, find_toolchain
from harp.config import log

_SUFFIX = ".json"
_KEY = re.compile("[0-9a-f]{64}")


class Record(NamedTuple):
    """The key of a library, how many arrays and sizes its program takes, and whether it uses scratch memory."""

    library: str
    inputs: int
    outputs: int
    sizes: int
    uses_scratch: bool


def record_key(graph: bytes, options: CompileOptions) -> str | None:
    """The key for the digest of a graph; None where nothing can be remembered of it."""
    toolchain = find_toolchain()
    if toolchain is None or not sources.LOADED:
        return None
    compiler = [*toolchain.command, toolchain.family.value, toolchain.version, str(toolchain.vector_bytes)]
    flags = [*base_flags(toolchain), *options.flags(), str(toolchain.fma)]
    # NumPy computes with numbers that are folded.
    facts = [graph.hex(), sources.LOADED, sys.version, np.__version__, *compiler, *flags]
    return "program-" + hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


def recall(key: str) -> Record | None:
    """What an earlier process remembered."""
    try:
        path = cache.get(key, _SUFFIX)
        return None if path is None else _checked(key, json.loads(cache.read(path)))
    except (OSError, ValueError, RecursionError) as error:
        log.debug("record %s cannot be read: %s", key, error)
        return None


def _checked(key: str, fields: object) -> Record:
    """Raises ValueError for anything but a record of this key."""
    kinds = [str, str, int, int, int, bool]
    if not isinstance(fields, list) or [type(field) for field in cast(list[object], fields)] != kinds:
        raise ValueError("it is no record")
    own, record = fields[0], Record(*fields[1:])
    if own != key or not _KEY.fullmatch(record.library):
        raise ValueError(f"it is about {own!r} and {record.library!r}")
    return record


def remember(key: str, record: Record) -> None:
    """Keep a record, in the place of a damaged one too, unless harp's files have changed since they were imported."""
    if sources.unchanged():
        cache.put(key, _SUFFIX, json.dumps([key, *record]).encode())
