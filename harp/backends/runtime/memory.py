"""Memory for large results: blocks that results no longer need are kept and used again.

Fresh memory costs a page fault for every four kilobytes at its first use, which for large results takes longer than
filling them. When none was wanted for some seconds, the free ones go back to the system: a thread looks for that, as
long as blocks are kept.
"""

from __future__ import annotations

import _thread
import itertools
import math
import os
import sys
import time

import numpy as np

from harp.locks import forkable_lock
from harp.trace.scalar.dtypes import NDArray

# Results of at least so many bytes come from here.
LARGE = 1 << 20
# Bytes of free blocks that are kept, all together.
_MOST_FREE = 1 << 29
# Seconds after which nobody wanted a block: it is free for between one and two times as long.
_PATIENCE = 10.0
_ALIGNMENT = 64
_GRAIN = 1 << 16
# Fresh blocks begin at the same place of a page, and a cache has room for few lines of the same place: loops over many
# arrays would wait. So each block begins so many bytes behind the place where the one before it does.
_PAGE, _STEP = 4096, 11 * 64

_lock = forkable_lock(sys.modules[__name__])
_free: dict[int, list[_Memory]] = {}  # by size
_free_bytes = 0
_taken = 0  # how many blocks were wanted so far
_watched = False  # whether a thread looks for idle blocks: without one no free block is kept
_steps = itertools.count()


class _Memory(np.ndarray):
    """The bytes of a block. NumPy skips an owner of the same type as the array, so this type is one of its own."""

    start: int  # the first byte that is used


class _Block(np.ndarray):
    """Owns the memory of one array: what NumPy's arrays and their views keep alive gives it back in the end."""

    def __del__(self) -> None:
        memory = self.base
        if type(memory) is _Memory:  # not a view of a block
            _give_back(memory)


def large_among(results: int) -> int:
    """The bytes from which on each of so many results of a call comes from here: all together, they are large. The C
    library gives memory back to the system when much of it is freed at the same time, whatever the blocks."""
    return max(LARGE // max(results, 1), _GRAIN)


def large(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray:
    """An array whose elements are not set; its memory is used again when nothing refers to it any more.

    Raises MemoryError or ValueError as numpy.empty does.
    """
    count = math.prod(shape) * dtype.itemsize
    return _array(shape, dtype, _take(-(-count // _GRAIN) * _GRAIN + _ALIGNMENT + _PAGE))


def _array(shape: tuple[int, ...], dtype: np.dtype[np.generic], memory: _Memory) -> NDArray:
    return np.ndarray(shape, dtype, _Block(memory.nbytes, np.uint8, memory), memory.start)


def _take(size: int) -> _Memory:
    # Nothing is waited for: a signal, or a collection of garbage, may run this in a thread that holds the lock.
    global _free_bytes, _taken
    _watch()
    if not _lock.acquire(blocking=False):
        return _fresh(size)
    try:
        _taken += 1
        blocks = _free.get(size)
        if not blocks:
            return _fresh(size)
        _free_bytes -= size
        memory = blocks.pop()
    finally:
        _lock.release()
    memory.setflags(write=True)  # whoever had it may have closed it
    return memory


def _fresh(size: int) -> _Memory:
    memory = _Memory(size, np.uint8)
    memory.start = -memory.ctypes.data % _ALIGNMENT + next(_steps) * _STEP % _PAGE
    return memory


def _watch() -> None:
    """Start the thread that gives idle blocks back, if there is none.

    Not one of `threading`, which has locks: a collection of garbage can run this in a thread that holds them.
    """
    global _watched
    if _watched:
        return
    _watched = True
    try:
        _thread.start_new_thread(_give_idle_back, ())
    except RuntimeError:  # no more threads, or the interpreter ends
        _watched = False


def _give_idle_back() -> None:
    global _watched
    noticed = -1
    while True:
        time.sleep(_PATIENCE)
        with _lock:
            if noticed == _taken:
                _clear()
                _watched = False
                return
            noticed = _taken


def _forked() -> None:
    """A forked child has the blocks, and no thread that looks at them."""
    global _watched
    _watched = False


os.register_at_fork(after_in_child=_forked)


def _give_back(memory: _Memory) -> None:
    # As in `_take`.
    global _free_bytes
    if not _lock.acquire(blocking=False):
        return
    try:
        if _watched and _free_bytes + memory.nbytes <= _MOST_FREE:
            _free.setdefault(memory.nbytes, []).append(memory)
            _free_bytes += memory.nbytes
    finally:
        _lock.release()


def alone(buffer: NDArray) -> bool:
    """Whether its memory is NumPy's own or a block, and nothing refers to it but one variable of the caller."""
    base: object = buffer.base
    if sys.getrefcount(buffer) != _ONE_VARIABLE:
        return False
    return buffer.flags.owndata if base is None else type(base) is _Block and sys.getrefcount(base) == _BASE


def _references(buffer: NDArray) -> tuple[int, int]:
    base = buffer.base
    return sys.getrefcount(buffer), sys.getrefcount(base)


def _counted() -> tuple[int, int]:
    """What Python counts in `alone`, its own variables included: versions differ."""
    buffer = _array((0,), np.dtype(np.uint8), _fresh(_ALIGNMENT + _PAGE))
    return _references(buffer)


def free_bytes() -> int:
    """The bytes of free blocks."""
    return _free_bytes


def release() -> None:
    """Give all free blocks back to the system."""
    with _lock:
        _clear()


def _clear() -> None:
    global _free_bytes
    _free.clear()
    _free_bytes = 0


_ONE_VARIABLE, _BASE = _counted()
