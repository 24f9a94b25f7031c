"""The files in C and OpenCL C that come with harp, in the folder `library` of each backend: their texts, and the files
of `c/library` that a piece of C includes.

They are read through the loader of this package, so harp may be in an archive. In a wheel all of them are one file,
each behind a form feed and a line with its name. A process that finds its programs in the cache reads none of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Protocol, cast

_BACKENDS = os.path.dirname(os.path.dirname(__file__))
_INCLUDE = re.compile(r'^ *# *include "([^"]+)"', re.MULTILINE)


class _Loader(Protocol):
    def get_data(self, path: str) -> bytes: ...


@cache
def text(name: str, backend: str = "c") -> str:
    """The text of a file, named by its path in the library of a backend, as in `linalg/gemm.h`.

    Raises OSError if there is none.
    """
    try:
        return _file_text(backend, "library", *name.split("/"))
    except OSError:
        bundle = _bundle()
        if f"{backend}/library/{name}" not in bundle:
            raise
        return bundle[f"{backend}/library/{name}"]


def _file_text(*path: str) -> str:
    loader = cast(_Loader, __spec__.loader)  # importlib.resources takes longer to import than to find a program
    return loader.get_data(os.path.join(_BACKENDS, *path)).decode()


@cache
def _bundle() -> Mapping[str, str]:
    """All files by path, if they are bundled in one file."""
    try:
        parts = _file_text("library.txt").split("\f")
    except OSError:
        return {}
    return {name: content for name, _, content in (part.partition("\n") for part in parts)}


def included(*codes: str) -> Mapping[str, str]:
    """The files that pieces of C include, directly and indirectly, with their texts."""
    texts: dict[str, str] = {}
    pending = [name for code in codes for name in _INCLUDE.findall(code)]
    while pending:
        name = pending.pop()
        if name not in texts:
            texts[name] = text(name)
            pending += _INCLUDE.findall(texts[name])
    return dict(sorted(texts.items()))


def write(files: Mapping[str, str], directory: Path) -> None:
    """Write files where a compiler finds them."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
