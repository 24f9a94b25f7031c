"""From a library file to functions that Python calls, through cffi. A call releases the GIL.

Types are parsed by cffi's compiled parser (`_cffi_backend`), not by pycparser, which is slow to import.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from typing import cast

import _cffi_backend

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source
from harp.backends.toolchain import cache
from harp.backends.toolchain.trust import Stored, damage
from harp.config import log
from harp.errors import ToolchainError
from harp.lazy import Names
from harp.trace.scalar.dtypes import NDArray

_COMPILER = Names({"harp.backends.toolchain.build": "build"})
_ffi = _cffi_backend.FFI()
_TYPE_ANY = "void(*)(void)"
_ANY, _POINTER = _ffi.typeof(_TYPE_ANY), _ffi.typeof("void *")


# The address of a C-contiguous array for a call; it keeps the array alive.
pointer: Callable[[NDArray], object] = _ffi.from_buffer
# A C type, for functions that allocate it.
type_of: Callable[[str], object] = _ffi.typeof

# Adds a reference to an object of cffi for good: threads may run its machine code while Python ends.
_Keep = Callable[[object], None]
keep_for_good: _Keep = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))


class Library:
    """A loaded library."""

    def __init__(self, stored: Stored, keep: bool = False) -> None:
        """With `keep` it is never unloaded, not even when Python ends: threads that it has started run its code.

        Raises OSError if it is damaged, or cannot be loaded from its directory.
        """
        self.place = str(stored)
        self.key = ""  # its key in the cache
        problem = damage(stored.handle)
        if problem:
            raise OSError(f"{stored} {problem}")
        flags = os.RTLD_NOW | getattr(os, "RTLD_NODELETE", 0) if keep else 0
        try:
            self._handle = _cffi_backend.load_library(stored.name_for_loader(), flags)
        except UnicodeEncodeError:
            raise OSError(f"{stored.place!r}: cffi loads only from paths in UTF-8") from None

    def __del__(self, python_ends: Callable[[], bool] = sys.is_finalizing, keep: _Keep = keep_for_good) -> None:
        if python_ends():
            keep(vars(self).get("_handle"))

    def has(self, name: str) -> bool:
        """Whether there is a function with this name."""
        try:
            self._handle.load_function(_ANY, name)
        except AttributeError:
            return False
        return True

    def close(self) -> None:
        """Unload it: the loader would return the same library again for another file with this name."""
        self._handle.close_lib()

    def point(self, variable: str, library: Library, name: str) -> None:
        """Point a variable to a function of another library, which the caller keeps alive."""
        self._handle.write_variable(_POINTER, variable, _ffi.cast(_POINTER, library.function(name, _TYPE_ANY)))

    def set_pointer(self, variable: str, address: object) -> None:
        """Set a pointer variable to this value of cffi."""
        self._handle.write_variable(_POINTER, variable, address)

    def set_number(self, variable: str, value: float) -> None:
        """Set a variable of type double."""
        self._handle.write_variable(_ffi.typeof("double"), variable, value)

    def function(self, name: str, declaration: str) -> Callable[..., int]:
        """A function by name; `declaration` is its type, as in `int(*)(void *, int64_t)`. The caller keeps the library
        alive."""
        try:
            return cast(Callable[..., int], self._handle.load_function(_ffi.typeof(declaration), name))
        except AttributeError as error:
            raise ToolchainError(f"{self.place} has no function {name}: {error}") from None


def _open(stored: Stored, names: Sequence[str], keep: bool) -> Library:
    """The library in a file, if it has these functions. Raises OSError."""
    library = Library(stored, keep)
    for name in names:
        if not library.has(name):
            library.close()
            raise OSError(f"{stored} has no function {name}")
    return library


def _load(stored: Stored, key: str, names: Sequence[str], keep: bool) -> Library:
    """A library from its file, or from memory if it cannot be loaded from its directory. Raises OSError."""
    with stored:
        try:
            library = _open(stored, names, keep)
        except OSError as error:
            copy = stored.in_memory()
            if copy is None:
                raise
            log.debug("%s cannot be loaded (%s): loaded from memory", stored, error)
            with copy:
                library = _open(copy, names, keep)
    library.key = key
    return library


def import_compiler() -> None:
    """Import what runs the compiler: programs that the cache has do not need it."""
    _COMPILER["build"]


def find_and_load(key: str, names: Sequence[str], keep: bool = False) -> Library | None:
    """The library that the cache has under a key, if it has these functions and can be loaded."""
    stored = cache.get_library(key)
    try:
        return None if stored is None else _load(stored, key, names, keep)
    except OSError as error:
        log.debug("%s cannot be loaded: %s", stored, error)
        return None


def build_and_load(
    source: Source, options: CompileOptions, *, names: Sequence[str] = (), again: bool = False, keep: bool = False
) -> Library:
    """The loaded library of a source, with functions of these names.

    With `again`, or if the cached library cannot be loaded, it is built anew. With `keep` it is never unloaded.
    Raises ToolchainError.
    """
    if not again:
        stored, key = _COMPILER["build"](source, options)
        try:
            return _load(stored, key, names, keep)
        except OSError as error:
            log.debug("%s cannot be loaded (%s): built again", stored, error)
    try:
        stored, key = _COMPILER["build"](source, options, again=True)
        return _load(stored, key, names, keep)
    except OSError as error:
        refused = any(word in str(error) for word in ("not permitted", "denied", "failed to map"))
        advice = "; if its directory is mounted noexec, set HARP_CACHE_DIR to one that is not" if refused else ""
        raise ToolchainError(f"the compiled program cannot be loaded: {error}{advice}") from None
