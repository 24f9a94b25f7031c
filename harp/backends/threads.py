"""How many threads run parallel loops: one pool for the process, made with harp's own compiler.

Results do not depend on it. `HARP_THREADS` says how many at the start, else as many as this process may use cores;
1 never starts a thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from harp.backends.load import Library, build_and_load, find_and_load
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.records import Record, recall, record_key, remember
from harp.config import log, on_threads, settings
from harp.errors import ToolchainError
from harp.locks import forkable_lock

# Scalar operations, about: what takes as long as waking a thread, some microseconds.
_LEAST_WORK = 65536

_NAMES = ("harp_pool_run", "harp_pool_set_threads", "harp_pool_set_mine")
_OPTIONS = CompileOptions()

_lock = forkable_lock(sys.modules[__name__])
_pool: list[Library | None] = []


def pool() -> Library | None:
    """The pool, with the number of threads that is wanted; None where it cannot be made."""
    with _lock:
        if not _pool:
            try:
                library = _find() or _make()
                library.keep()
                _pool.append(library)
            except ToolchainError as error:
                log.warning("programs run in one thread, for the pool of threads cannot be made: %s", error)
                _pool.append(None)
            _apply(settings.threads)
            on_threads.append(_apply)
        return _pool[0]


def _find() -> Library | None:
    """What another process made of the same files, which need not be read for that."""
    key = record_key(b"", _OPTIONS, kind="pool")
    record = recall(key) if key is not None else None
    return find_and_load(record.library, _NAMES) if record is not None else None


def _make() -> Library:
    """Raises ToolchainError."""
    text = f'#define HARP_POOL_LEAST_WORK {_LEAST_WORK}.0\n#include "pool.c"\n'
    library = build_and_load(Source((Unit(text, ("-pthread",), shared=True),)), _OPTIONS, names=_NAMES)
    key = record_key(b"", _OPTIONS, kind="pool")
    if key is not None:
        remember(key, Record(library.key, 0, 0, 0, False))
    return library


def _apply(count: int) -> None:
    library = _pool[0] if _pool else None
    if library is not None:
        library.function("harp_pool_set_threads", "void(*)(int)")(count or usable_cores())


@contextmanager
def threads_of_this_thread(count: int) -> Iterator[None]:
    """Programs that this thread calls inside use so many threads."""
    library = pool()
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
