"""What all programs of the process share: the pool of threads, scratch memory that is kept between calls, and the
reader of arguments.

It is one library, made with harp's own compiler from `process.c`. A program has variables that point to its functions;
without it, they point to functions of the program's own, which use one thread and keep nothing.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime import host_calls
from harp.backends.runtime.load import Library, build_and_load, find_and_load
from harp.backends.toolchain.background import later
from harp.backends.toolchain.records import Record, recall_any, record_key, remember
from harp.config import log, on_threads, settings
from harp.errors import ToolchainError
from harp.locks import forkable_lock

# Variables of programs, and the functions that they point to.
RUNTIME = {
    "harp_parallel": "harp_pool_run",
    "harp_take": "harp_memory_take",
    "harp_give": "harp_memory_give",
    "harp_interrupted": "harp_interrupt_poll",
    host_calls.VARIABLE: "harp_interrupt_call",
}

# Those that may change in the middle of a call.
_AT_ANY_TIME = ("harp_parallel", "harp_interrupted")

# Scalar operations, about, that take as long as waking a thread, some microseconds.
_LEAST_WORK = 65536
# Scalar operations between two checks for interrupts: about a millisecond.
_BLOCK_WORK = 1 << 20
_NAMES = (
    *RUNTIME.values(), "harp_pool_set_threads", "harp_pool_set_mine", "harp_memory_kept", "harp_memory_release",
    "harp_memory_set_patience", "harp_array_bytes", "harp_read_arrays",
)  # fmt: skip
_OPTIONS = CompileOptions()

_lock = forkable_lock(sys.modules[__name__])
_loaded: list[Library | None] = []
_waiting: deque[Library] = deque()  # programs that are attached when the library is there


def runtime() -> Library | None:
    """The library; None if it cannot be made."""
    with _lock:
        if not _loaded:
            try:
                library = _find() or _make()
                for variable, address in host_calls.POINTERS.items():
                    library.set_pointer(variable, address)
                _loaded.append(library)
                set_threads(settings.threads)
                on_threads.append(set_threads)
            except ToolchainError as error:
                log.warning("programs run in one thread, for the pool of threads cannot be made: %s", error)
                _loaded.append(None)
        _attach_those_that_wait()
        return _loaded[0]


def attach(program: Library, waits: bool = True) -> None:
    """Point the variables of a program to the library's functions.

    A program that does not wait until the library has been made uses one thread until then, and no interrupt ends it.
    Calls of it may run at the moment when it is attached. So it takes memory from the heap for good: what a call has
    taken must be given back in the same way."""
    variables = [name for name in RUNTIME if program.has(name)]
    if not variables:
        return
    if waits or _loaded or host_calls.VARIABLE in variables:
        _point(program, variables, runtime())
        return
    _waiting.append(program)
    if _loaded:
        _attach_those_that_wait()


def _attach_those_that_wait() -> None:
    while _loaded and _waiting:
        try:
            program = _waiting.popleft()
        except IndexError:  # another thread attaches it
            return
        _point(program, [name for name in _AT_ANY_TIME if program.has(name)], _loaded[0])


def _point(program: Library, variables: Iterable[str], shared: Library | None) -> None:
    for variable in variables:
        if shared is not None:
            program.point(variable, shared, RUNTIME[variable])


def set_threads(count: int) -> None:
    """Set the number of threads of the pool; 0 is one for each usable core. A pool that is made later asks for it."""
    library = _loaded[0] if _loaded else None
    if library is not None:
        library.function("harp_pool_set_threads", "void(*)(int)")(count or usable_cores())


@contextmanager
def threads_of_this_thread(count: int) -> Iterator[None]:
    """Within it, programs that this thread calls use this number of threads."""
    library = runtime()
    if library is None:
        yield
        return
    set_mine = library.function("harp_pool_set_mine", "void(*)(int)")
    set_mine(count)
    try:
        yield
    finally:
        set_mine(0)


def usable_cores() -> int:
    """The cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _find() -> Library | None:
    """The library that another process made of the same files, which need not be read for that."""
    record = recall_any(b"", _OPTIONS, kind="runtime")
    return find_and_load(record.library, _NAMES, keep=True) if record is not None else None


def _make() -> Library:
    """The library, compiled. Raises ToolchainError."""
    amounts = f"#define HARP_POOL_LEAST_WORK {_LEAST_WORK}.0\n#define HARP_POOL_BLOCK_WORK {_BLOCK_WORK}.0\n"
    # All of it is quick however it is compiled: the first call of a process with an empty cache waits for it.
    unit = Unit(f'{amounts}#include "process.c"\n', ("-pthread", "-O1"), shared=True)
    library = build_and_load(Source((unit,)), _OPTIONS, names=_NAMES, keep=True)
    later(partial(_remember, library.key)) if settings.quick else _remember(library.key)
    return library


def _remember(library: str) -> None:
    key = record_key(b"", _OPTIONS, kind="runtime")
    if key is not None:
        remember(key, Record(library, 0, 0, 0, False))
