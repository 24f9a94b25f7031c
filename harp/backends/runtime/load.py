"""From a library file to functions that Python calls, through cffi. A call releases the GIL.

Types are parsed by cffi's compiled parser (`_cffi_backend`), not by pycparser, which is slow to import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import _cffi_backend

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source
from harp.backends.toolchain import cache, elf
from harp.backends.toolchain.build import build
from harp.config import log
from harp.errors import ToolchainError
from harp.trace.scalar.dtypes import NDArray

_ffi = _cffi_backend.FFI()
_TYPE_ANY = "void(*)(void)"
_ANY, _POINTER = _ffi.typeof(_TYPE_ANY), _ffi.typeof("void *")


# The address of a C-contiguous array for a call; it keeps the array alive.
pointer: Callable[[NDArray], object] = _ffi.from_buffer
# A C type, for what makes memory of it.
type_of: Callable[[str], object] = _ffi.typeof


class Library:
    """A loaded library."""

    def __init__(self, path: Path) -> None:
        """Raises OSError if the file is no whole library, or cannot be loaded from where it is."""
        self.path = path
        self.key = ""  # in the cache
        damage = elf.damage(path)
        if damage:
            raise OSError(f"{path} {damage}")
        try:
            self._handle = _cffi_backend.load_library(str(path), 0)
        except UnicodeEncodeError:
            raise OSError(f"{path!r}: cffi loads only from paths in UTF-8") from None

    def has(self, name: str) -> bool:
        """Whether there is a function with this name."""
        try:
            self._handle.load_function(_ANY, name)
        except AttributeError:
            return False
        return True

    def keep(self) -> None:
        """Never unload it, also not when Python ends: threads that it has started run its code."""
        _cffi_backend.load_library(str(self.path), os.RTLD_NOW | getattr(os, "RTLD_NODELETE", 0))

    def close(self) -> None:
        """Unload it: the loader would give the same library again for another file with this name."""
        self._handle.close_lib()

    def point(self, variable: str, library: Library, name: str) -> None:
        """Let a variable, a pointer, point to a function of another library. Keep that alive."""
        self._handle.write_variable(_POINTER, variable, _ffi.cast(_POINTER, library.function(name, _TYPE_ANY)))

    def function(self, name: str, declaration: str) -> Callable[..., int]:
        """A function by name; `declaration` is its type, as in `int(*)(void *, int64_t)`. Keep the library alive."""
        try:
            return cast(Callable[..., int], self._handle.load_function(_ffi.typeof(declaration), name))
        except AttributeError as error:
            raise ToolchainError(f"{self.path} has no function {name}: {error}") from None


def _open(path: Path, names: Sequence[str]) -> Library:
    """The library in a file, if it has these functions. Raises OSError."""
    library = Library(path)
    for name in names:
        if not library.has(name):
            library.close()
            raise OSError(f"{path} has no function {name}")
    return library


def _load(path: Path, names: Sequence[str]) -> Library:
    """A library from its file, or from memory if it cannot be loaded from its directory. Raises OSError."""
    try:
        return _open(path, names)
    except OSError as error:
        copy = None if cache.release(path) else cache.in_memory(path.read_bytes())
        if copy is None:
            raise
        log.debug("%s cannot be loaded (%s): loaded from memory", path, error)
    try:
        return _open(copy, names)
    except OSError:
        cache.release(copy)
        raise


def _keyed(library: Library, key: str) -> Library:
    library.key = key
    return library


def find_and_load(key: str, names: Sequence[str]) -> Library | None:
    """The library that the cache has under a key, if there is one with these functions that can be loaded."""
    path = cache.get(key, ".so")
    try:
        return None if path is None else _keyed(_load(path, names), key)
    except OSError as error:
        log.debug("%s cannot be loaded: %s", path, error)
        return None


def build_and_load(
    source: Source, options: CompileOptions, *, names: Sequence[str] = (), again: bool = False
) -> Library:
    """The loaded library of a source, with functions of these names.

    What the cache holds is built again if it cannot be loaded, or with `again`. Raises ToolchainError.
    """
    if not again:
        path, key = build(source, options)
        try:
            return _keyed(_load(path, names), key)
        except OSError as error:
            log.debug("%s cannot be loaded (%s): built again", path, error)
    try:
        path, key = build(source, options, again=True)
        return _keyed(_load(path, names), key)
    except OSError as error:
        raise ToolchainError(
            f"the compiled program cannot be loaded: {error}; if its directory is mounted noexec, set HARP_CACHE_DIR "
            "to one that is not"
        ) from None
