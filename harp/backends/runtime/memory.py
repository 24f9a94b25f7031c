"""Memory for large results: blocks that results no longer need are kept and used again.

Fresh memory costs a page fault for every four kilobytes at its first use, which for large results takes longer than
filling them. When none was wanted for some seconds, the free ones go back to the system: a thread looks for that, as
long as blocks are kept.

There is no lock, and no Python code runs when a result is dropped: a signal can raise an exception between any two
instructions of Python, where it would leave a lock held or, in a finaliser, be lost. A block that dies is put into a
deque by C, and whoever takes it out has it alone. How much is kept is therefore decided when a block is made.
"""

from __future__ import annotations

import _thread
import itertools
import math
import os
import sys
import time
from collections import deque
from weakref import ref

import numpy as np

from harp.trace.scalar.dtypes import NDArray

# Results of at least so many bytes come from here.
LARGE = 1 << 20
# Bytes of the blocks that come back when they are dropped, those in use and the free ones together.
_MOST_KEPT = 1 << 30
# When that is reached, free blocks of other sizes are given up; once in so many times, for that looks at all blocks.
_SELDOM = 64
# Seconds after which nobody wanted a block: it is free for between one and two times as long.
_PATIENCE = 10.0
_ALIGNMENT = 64
_GRAIN = 1 << 16
# Fresh blocks begin at the same place of a page, and a cache has room for few lines of the same place: loops over many
# arrays would wait. So each block begins so many bytes behind the place where the one before it does.
_PAGE, _STEP = 4096, 11 * 64

_free: dict[int, deque[_Return]] = {}  # by size
_kept: dict[int, _Return] = {}  # of each block that comes back, by the identity of its memory
_kept_bytes = 0  # too many, if an interrupt came at the wrong moment: then it is counted again
_taken = 0  # how many blocks were wanted so far, about
_watched = False  # whether a thread looks for idle blocks
_steps, _full = itertools.count(), itertools.count()


class _Memory(np.ndarray):
    """The bytes of a block. NumPy skips an owner of the same type as the array, so this type is one of its own."""

    start: int  # the first byte that is used


class _Block(np.ndarray):
    """Owns the memory of one array: when the last of NumPy's arrays and their views is gone, so is this."""


class _Return(ref[_Block]):
    """Puts itself among the free ones when its block dies. It has the memory of that."""

    __slots__ = ("memory",)
    memory: _Memory  # missing if an interrupt came before it was set


def large_among(results: int) -> int:
    """The bytes from which on each of so many results of a call comes from here: all together, they are large. The C
    library gives memory back to the system when much of it is freed at the same time, whatever the blocks."""
    return max(LARGE // max(results, 1), _GRAIN)


def large(shape: tuple[int, ...], dtype: np.dtype[np.generic]) -> NDArray:
    """An array whose elements are not set; its memory is used again when nothing refers to it any more.

    Raises MemoryError or ValueError as numpy.empty does.
    """
    count = math.prod(shape) * dtype.itemsize
    size = -(-count // _GRAIN) * _GRAIN + _ALIGNMENT + _PAGE
    free = _free.get(size)
    memory = _take(free) if free else None
    if memory is None:
        memory = _fresh(size)
        keep = _has_room(size)
        free = _free.setdefault(size, deque()) if keep else None
    return _array(shape, dtype, memory, free)


def _array(
    shape: tuple[int, ...], dtype: np.dtype[np.generic], memory: _Memory, free: deque[_Return] | None = None
) -> NDArray:
    """An array in this memory, which is put among the free ones in the end."""
    block = _Block(memory.nbytes, np.uint8, memory)
    if free is not None:
        back = _Return(block, free.append)
        back.memory = memory
        _kept[id(memory)] = back
        _watch()  # last: a thread that has given everything up in the meantime is followed by another one
    return np.ndarray(shape, dtype, block, memory.start)


def _take(free: deque[_Return]) -> _Memory | None:
    global _taken
    _taken += 1
    try:
        memory: _Memory | None = getattr(free.pop(), "memory", None)
    except IndexError:  # another thread was faster
        return None
    if memory is not None:
        memory.setflags(write=True)  # whoever had it may have closed it
    return memory


def _fresh(size: int) -> _Memory:
    global _taken
    _taken += 1
    memory = _Memory(size, np.uint8)
    memory.start = -memory.ctypes.data % _ALIGNMENT + next(_steps) * _STEP % _PAGE
    return memory


def _has_room(size: int) -> bool:
    """Whether a fresh block may come back; then it counts."""
    global _kept_bytes
    if _kept_bytes + size > _MOST_KEPT and next(_full) % _SELDOM == 0:
        release()
    if _kept_bytes + size > _MOST_KEPT:
        return False
    _kept_bytes += size
    return True


def _watch() -> None:
    """Start the thread that gives idle blocks back, if there is none.

    Not one of `threading`, which has locks: a collection of garbage can run this in a thread that holds them.
    """
    global _watched
    if _watched:
        return
    try:
        _thread.start_new_thread(_give_idle_back, ())
    except RuntimeError:  # no more threads, or the interpreter ends
        _give_up()
    else:
        _watched = True  # two threads, if an interrupt comes before this: both end


def _give_idle_back() -> None:
    global _watched
    noticed = -1
    while True:
        time.sleep(_PATIENCE)
        if noticed == _taken:
            _watched = False
            _give_up()
            return
        noticed = _taken


def _forked() -> None:
    """A forked child has the blocks, and no thread that looks at them."""
    global _watched
    _watched = False


os.register_at_fork(after_in_child=_forked)


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
    return sum(size * len(blocks) for size, blocks in _free.copy().items())


def release() -> None:
    """Give all free blocks back to the system."""
    global _free, _kept, _kept_bytes
    for blocks in _free.copy().values():
        blocks.clear()
    _kept = {key: back for key, back in _kept.copy().items() if back() is not None}
    sizes = [back.memory.nbytes for back in _kept.copy().values()]
    wanted = {*sizes}
    _free = {size: blocks for size, blocks in _free.copy().items() if size in wanted}
    _kept_bytes = sum(sizes)


def _give_up() -> None:
    """Give all free blocks back to the system, and those in use when they are dropped."""
    global _free, _kept, _kept_bytes
    _free, _kept, _kept_bytes = {}, {}, 0


_ONE_VARIABLE, _BASE = _counted()
