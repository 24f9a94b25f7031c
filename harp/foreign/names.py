"""Names that a kernel's source can use: identifiers that mean nothing else in C or OpenCL C."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harp.errors import KernelError
from harp.trace.source_locations import where

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum extern float for generic
    global goto half if imaginary inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t kernel
    local long main pipe private register restrict return short signed sizeof size_t static struct switch typedef
    uchar uint ulong uniform union unsigned ushort vec_step void volatile while
"""
_TAKEN = frozenset(_WORDS.split())


def check_names(kernel: str, names: Iterable[str]) -> None:
    """Raise KernelError for a name that stands twice, or cannot stand in a source."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise KernelError(f"{kernel} has two things that are called {name!r}{where()}")
        seen.add(name)
        if not _IDENTIFIER.fullmatch(name) or name in _TAKEN or name.startswith("harp_"):
            raise KernelError(
                f"{name!r} of {kernel} cannot be a name in C: names are letters, digits and underscores, none of C's "
                f"words, and do not begin with harp_{where()}"
            )
