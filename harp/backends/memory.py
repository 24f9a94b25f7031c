"""Memory for large results: blocks that results no longer need are kept and used again.

Fresh memory costs a page fault for every four kilobytes at its first use, which for large results takes longer than
filling them.
"""

from __future__ import annotations

import math
import os
import sys
import threading

import numpy as np

from harp.trace.dtypes import Buffer

# Results of at least so many bytes come from here.
LARGE = 1 << 20
# Bytes of free blocks that are kept, all together.
_MOST_FREE = 1 << 29
_ALIGNMENT = 64
_GRAIN = 1 << 16

_lock = threading.Lock()
_free: dict[int, list[Buffer]] = {}
_free_bytes = 0


def _after_fork() -> None:
    """The thread that held the lock is not in the child."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class _Block:
    """Owns the memory of one array: what NumPy's arrays and their views keep alive gives it back in the end."""

    __slots__ = ("__array_interface__", "_memory")

    def __init__(self, memory: Buffer, shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> None:
        self._memory = memory
        start = memory.ctypes.data
        address = start + -start % _ALIGNMENT
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": dtype.str, "version": 3}

    def __del__(self) -> None:
        _give_back(self._memory)


def large(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> Buffer:
    """An array whose elements are not set; its memory is used again when nothing refers to it any more.

    Raises MemoryError or ValueError as numpy.empty does.
    """
    count = math.prod(shape) * dtype.itemsize
    size = -(-count // _GRAIN) * _GRAIN + _ALIGNMENT
    return np.asarray(_Block(_take(size), shape, dtype))


def _take(size: int) -> Buffer:
    global _free_bytes
    with _lock:
        blocks = _free.get(size)
        if blocks:
            _free_bytes -= size
            return blocks.pop()
    return np.empty(size, np.uint8)


def _give_back(memory: Buffer) -> None:
    # Not with the lock: a collection of garbage can run this in a thread that holds it.
    global _free_bytes
    if not _lock.acquire(blocking=False):
        return
    try:
        if _free_bytes + memory.nbytes <= _MOST_FREE:
            _free.setdefault(memory.nbytes, []).append(memory)
            _free_bytes += memory.nbytes
    finally:
        _lock.release()


def alone(buffer: Buffer) -> bool:
    """Whether its memory is NumPy's own or a block, and nothing refers to it but one variable of the caller."""
    base: object = buffer.base
    if sys.getrefcount(buffer) != _ONE_VARIABLE:
        return False
    return buffer.flags.owndata if base is None else type(base) is _Block and sys.getrefcount(base) == _BASE


def _references(buffer: Buffer) -> tuple[int, int]:
    base = buffer.base
    return sys.getrefcount(buffer), sys.getrefcount(base)


def _counted() -> tuple[int, int]:
    """What Python counts in `alone`, its own variables included: versions differ."""
    buffer = large((0,), np.dtype(np.uint8))
    return _references(buffer)


def free_bytes() -> int:
    """The bytes of free blocks."""
    return _free_bytes


def release() -> None:
    """Give all free blocks back to the system."""
    global _free_bytes
    with _lock:
        _free.clear()
        _free_bytes = 0


_ONE_VARIABLE, _BASE = _counted()
