"""Locks that a forked child finds open: the thread that held one at that moment is not in the child."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from harp.errors import ToolchainError

T = TypeVar("T")


def forkable_lock(owner: object) -> threading.Lock:
    """A lock to keep as `owner._lock`, where a forked child gets another one. The owner lives as long as the process.

    >>> import sys
    >>> _lock = forkable_lock(sys.modules[__name__])
    """

    def renew() -> None:
        setattr(owner, "_lock", threading.Lock())  # noqa: B010 (a module or an object: no class has the name)

    os.register_at_fork(after_in_child=renew)
    return threading.Lock()


# Held while harp imports a module of its own in the middle of a program. A fork waits for it: the child has no thread
# that would finish the import, and whoever asks for the module there would wait for good. Modules that log while they
# are imported, as pyopencl does, are not imported inside: a fork holds the lock of `logging` while it waits.
# It is used as it is, for where an interrupt comes, a context manager in Python may not give it back.
importing = threading.RLock()


# Seconds for which a fork waits at most for statements such as `import harp.nn` of other threads.
_PATIENCE = 10.0


def _before_fork() -> None:
    importing.acquire()
    end = time.monotonic() + _PATIENCE  # one may wait for a module that this thread is importing
    while _others_import() and time.monotonic() < end:
        time.sleep(0.0005)


def _others_import() -> bool:
    """Whether another thread holds the lock of a module of harp, which it looks for, reads or runs."""
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    held = [lock() for name, lock in [*locks.items()] if name.partition(".")[0] == "harp"]
    return any(getattr(lock, "owner", None) not in (None, threading.get_ident()) for lock in held)


def _after_fork() -> None:
    with suppress(RuntimeError):  # an interrupt has ended the wait
        importing.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@contextmanager
def compiler_imports() -> Iterator[None]:
    """An import of the compiler that fails is a ToolchainError: there is no memory, or Python is about to end."""
    try:
        yield
    except ImportError as error:
        raise ToolchainError(
            f"the compiler of harp cannot be imported: {error}; if Python is about to end, or memory is short, call "
            "the function once before that"
        ) from error


class cached_property(Generic[T]):
    """As that of `functools`, which in Python 3.11 holds a lock of all objects: a child that is forked meanwhile would
    wait for good.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: object, owner: type | None = None) -> T:
        value = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return value
