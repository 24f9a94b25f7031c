"""One text for an OpenCL compiler, which finds no files: the library is put where it is included.

Files of this backend's library stand in place of those of the C library with the same names; the rest is shared.
"""

from __future__ import annotations

import re
from functools import cache

from harp.backends.toolchain import library

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">].*$', re.MULTILINE)
_GUARD = re.compile(r"#ifndef (HARP_\w+_H)\n#define \1\n")


def whole(text: str) -> str:
    """The text with all files that it includes. Those with a guard stand there once."""
    return _expanded(text, set())


def _expanded(text: str, seen: set[str]) -> str:
    def replacement(found: re.Match[str]) -> str:
        name = found[2]
        if found[1] == "<" or name in seen:  # the headers of C: what is used of them is declared in common.h
            return ""
        content = _file(name)
        if _GUARD.search(content):
            seen.add(name)
        return _expanded(content, seen).strip()

    return _INCLUDE.sub(replacement, text)


@cache
def _file(name: str) -> str:
    try:
        return library.text(name, "opencl")
    except OSError:
        return library.text(name)
