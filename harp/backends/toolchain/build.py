"""From source to a library file: from the cache, or by the compiler, which compiles several units at once."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.toolchain import cache
from harp.backends.toolchain.claims import claimed
from harp.backends.toolchain.compilers import Family, Toolchain
from harp.backends.toolchain.leftovers import scratch
from harp.backends.toolchain.library import included, write
from harp.backends.toolchain.process import Done, Job, TimedOut, run_all
from harp.backends.toolchain.toolchain import (
    base_flags,
    examine_again,
    find_toolchain,
    has_worked,
    linked_libraries,
    program_flags,
    time_limit,
)
from harp.backends.toolchain.trust import OBJECT, Stored, damage, in_memory
from harp.config import counters, log, show
from harp.errors import ToolchainError
from harp.progress import announced

_SECONDS = 300.0
# The space on the disk, in bytes, that a compiler may need.
_ROOM = 1 << 18
# The lines of a program that take as long to compile as a file of harp's own library.
_LINES_OF_A_FILE = 60
# The beginnings of flags that only gcc knows.
_OF_GCC = ("--param", "-fno-ivopts", "-fno-tree-")
# The folder, beside a unit, with the files that it includes.
_LIBRARY = "library"
_ADVICE = "`python -m harp doctor` says what was found; set HARP_CC to another compiler, or to none for NumPy"


class BuiltLibrary(NamedTuple):
    """An open library, and its key in the cache."""

    stored: Stored
    key: str


def cache_key(units: Iterable[Unit], flags: tuple[str, ...], toolchain: Toolchain) -> str:
    """The key covers everything that the library depends on."""
    units = tuple(units)
    texts = [word for unit in units for word in (unit.text, *unit.flags)]
    texts += included(*(unit.text for unit in units)).values()
    facts = [*texts, *flags, *program_flags(toolchain), toolchain.family.value, toolchain.version, *toolchain.command]
    return hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


def build(source: Source, options: CompileOptions, *, again: bool = False) -> BuiltLibrary:
    """The library of a source. With `again` the cache is not asked: the cached library could not be loaded.

    Raises ToolchainError if there is no compiler, or it fails.
    """
    toolchain = find_toolchain()
    if toolchain is None:
        raise ToolchainError(f"there is no C compiler; {_ADVICE}")
    key = cache_key(source.units, (*base_flags(toolchain), *options.flags()), toolchain)
    stored = None if again else cache.get_library(key)
    if stored is None:
        with claimed(key):
            stored = None if again else cache.get_library(key)  # another process may have made it meanwhile
            if stored is None:
                return _built(source, options, key, toolchain, again)
    _count(source, "cache_hits")
    return BuiltLibrary(stored, key)


def _built(source: Source, options: CompileOptions, key: str, toolchain: Toolchain, again: bool) -> BuiltLibrary:
    """The library from the compiler, which the cache keeps if it can."""
    _count(source, "cache_misses")
    try:
        library = _compile(source, options, toolchain)
    except ToolchainError:
        if not examine_again(toolchain):
            raise
        return build(source, options, again=again)
    has_worked(toolchain)
    kept = cache.put(key, cache.LIBRARY, library) is not None
    stored = (cache.get_library(key) if kept else None) or in_memory(library)  # others may empty the cache at any time
    if stored is None:
        raise ToolchainError("the compiled program cannot be stored; set HARP_CACHE_DIR to a writable directory")
    return BuiltLibrary(stored, key)


def missing_lines(source: Source, options: CompileOptions) -> int:
    """The lines of the shared units whose object files are not in the cache; 0 if the library is. One of harp's own
    files, of which the unit has a line, takes as long as some lines of a program."""
    toolchain = find_toolchain()
    if toolchain is None:
        return 0
    flags = (*base_flags(toolchain), *options.flags())
    if cache.has(cache_key(source.units, flags, toolchain), cache.LIBRARY):
        return 0
    missing = [u for u in source.units if u.shared and not cache.has(cache_key((u,), flags, toolchain), ".o")]
    return sum(_LINES_OF_A_FILE if unit.is_library else unit.text.count("\n") for unit in missing)


def _count(source: Source, name: str) -> None:
    """Count compilations of programs, not of what they share."""
    if not all(unit.is_library for unit in source.units):
        counters.add(name)


def _compile(source: Source, options: CompileOptions, toolchain: Toolchain) -> bytes:
    started, lines = time.perf_counter(), str(source).count("\n")
    _count(source, "compiler_runs")
    is_shared = all(unit.is_library for unit in source.units)
    text = "functions that programs share" if is_shared else f"{lines:,} lines of C"
    waiting = f"compiling {text} with {shlex.join(toolchain.command)}, once: others load the result"
    try:
        with announced(waiting), scratch() as directory:
            content = _make(source, options, toolchain, directory)
    except OSError as error:
        raise ToolchainError(f"the C compiler could not be run: {error}; {_ADVICE}") from None
    except TimedOut as error:
        raise ToolchainError(f"the C compiler {error}; {_ADVICE}") from None
    seconds = time.perf_counter() - started
    log.info("compiled %s in %.2f s", text, seconds)
    show(1, "compiled", f"{text} in {seconds:.2f} s")
    return content


def _make(source: Source, options: CompileOptions, toolchain: Toolchain, directory: Path) -> bytes:
    """Compile one unit to the library in one run; several are compiled separately, at the same time, and linked."""
    flags = (*base_flags(toolchain), *options.flags())
    write(included(*(unit.text for unit in source.units)), directory / _LIBRARY)
    result = directory / "program.so"
    if len(source.units) == 1:
        files = [_written(source.units[0], directory / "unit0.c")]
        flags = _all_flags(source.units[0], flags, toolchain)
    else:
        files = [directory / f"unit{number}.o" for number in range(len(source.units))]
        run_all(_objects(source, flags, toolchain, files), time_limit(_SECONDS), directory)
    command = (
        *(*toolchain.command, *flags, f"-I{directory / _LIBRARY}", "-shared", "-o", str(result)),
        *(*map(str, files), *linked_libraries(toolchain, options, source.of_user)),
    )
    run_all([Job(command, partial(_require, command, result))], time_limit(_SECONDS), directory)
    problem = damage(result)
    if problem:
        raise ToolchainError(
            f"the C compiler made a library that {problem}; if the disk of {directory} is full, set TMPDIR to a "
            f"directory on another one; {_ADVICE}"
        )
    return result.read_bytes()


def _objects(source: Source, flags: tuple[str, ...], toolchain: Toolchain, results: Iterable[Path]) -> Iterator[Job]:
    """The jobs that compile the object file of each unit; those of shared units are cached."""
    for unit, result in zip(source.units, results, strict=True):
        key = cache_key((unit,), flags, toolchain)
        kept = cache.get(key, ".o") if unit.shared else None
        if unit.kernel:
            counters.add("kernels_compiled" if kept is None else "kernels_reused")
        if kept is not None:
            result.write_bytes(kept)
            continue
        code = _written(unit, result.with_suffix(".c"))
        all_flags = (*_all_flags(unit, flags, toolchain), f"-I{result.parent / _LIBRARY}")
        command = (*toolchain.command, *all_flags, "-c", "-o", str(result), str(code))
        yield Job(command, partial(_keep, unit, key, command, result))


def _keep(unit: Unit, key: str, command: tuple[str, ...], result: Path, done: Done) -> None:
    """Put an object file into the cache, if it is shared. Raises ToolchainError if there is none."""
    _require(command, result, done)
    if unit.shared and damage(result, OBJECT) is None:
        cache.put(key, ".o", result.read_bytes())


def _all_flags(unit: Unit, flags: tuple[str, ...], toolchain: Toolchain) -> tuple[str, ...]:
    """All flags of a unit, without gcc's own for other compilers. The user's flags come later, and win."""
    of_unit = (f for f in unit.flags if toolchain.family is Family.GCC or not f.startswith(_OF_GCC))
    return (*(() if unit.is_library else program_flags(toolchain)), *flags, *of_unit)


def _written(unit: Unit, path: Path) -> Path:
    path.write_text(unit.text, encoding="utf-8")
    return path


def _require(command: tuple[str, ...], result: Path, done: Done) -> None:
    """Raise ToolchainError if a run of the compiler has not made its file."""
    if done.returncode or not result.is_file():
        raise ToolchainError(_failure(command, done.returncode, done.stderr, result.parent))


def _failure(command: tuple[str, ...], code: int, messages: str, directory: Path) -> str:
    """Why a run of the compiler failed. Its messages are in the directory, too, and are cut if the disk is full."""
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if free < _ROOM:
        messages += (
            f"\nthe disk of {directory} has only {free:,} bytes left: make room, or set TMPDIR to another directory"
        )
    head = "\n".join(messages.strip().splitlines()[:20]) or "it printed nothing"
    event = f"failed with exit status {code}" if code else "made no library"
    return f"the C compiler {event}:\n  {shlex.join(command)}\n{head}\n{_ADVICE}"
