"""How many threads run parallel loops: one pool for the process, made with harp's own compiler.

Results do not depend on it. `HARP_THREADS` says how many at the start, else as many as this process may use cores;
1 never starts a thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, cast

from harp.backends.load import Library, build_and_load
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.config import log, on_threads, settings
from harp.errors import ToolchainError
from harp.locks import forkable_lock

# Scalar operations, about: what takes as long as waking a thread, some microseconds.
_LEAST_WORK = 65536

_lock = forkable_lock(sys.modules[__name__])
_pool: list[Library | None] = []


def pool() -> Library | None:
    """The pool, with the number of threads that is wanted; None where it cannot be made."""
    with _lock:
        if not _pool:
            unit = Unit(f"#define HARP_POOL_LEAST_WORK {_LEAST_WORK}.0\n{_source()}", ("-pthread",), shared=True)
            names = ["harp_pool_run", "harp_pool_set_threads", "harp_pool_set_mine"]
            try:
                library = build_and_load(Source((unit,)), CompileOptions(), names=names)
                library.keep()
                _pool.append(library)
            except ToolchainError as error:
                log.warning("programs run in one thread, for the pool of threads cannot be made: %s", error)
                _pool.append(None)
            _apply(settings.threads)
            on_threads.append(_apply)
        return _pool[0]


def _source() -> str:
    """Through the loader, as importlib.resources has it, which takes longer to import than to find a program."""
    loader = cast(_Loader, __spec__.loader)
    return loader.get_data(os.path.join(os.path.dirname(__file__), "c", "pool.c")).decode()


class _Loader(Protocol):
    def get_data(self, path: str) -> bytes: ...


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
