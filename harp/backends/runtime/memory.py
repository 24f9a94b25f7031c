"""Memory for large results: blocks of dropped results are kept and reused.

Fresh memory costs a page fault for every four kilobytes at its first use, which for large results takes longer than
filling them. When no block was wanted for some seconds, free blocks go back to the system; a thread checks for that as
long as blocks are kept.

There is no lock, and no Python code runs when a result is dropped: a signal can raise an exception between any two
instructions of Python, which would leave a lock held, or be lost in a finaliser. C puts the block of a dropped result
into a deque, and whoever takes it out has it alone. So how much is kept is decided when a block is made.
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

# Results of at least this many bytes come from here.
LARGE = 1 << 20
# The most bytes of blocks that are kept when they are dropped, used and free ones together.
_MOST_KEPT = 1 << 30
# When that is reached, free blocks of other sizes are released; once in so many times, since that looks at all blocks.
_SELDOM = 64
# The interval of the thread, in seconds: a block is released after one to two intervals without demand.
_PATIENCE = 10.0
_ALIGNMENT = 64
_GRAIN = 1 << 16
# If all fresh blocks began at the same offset in a page, their lines would compete for few sets of a cache in loops
# over many arrays. So each block begins so many bytes further into its page than the block before.
_PAGE, _STEP = 4096, 11 * 64

_free: dict[int, deque[_Return]] = {}  # by size
_kept: dict[int, _Return] = {}  # each block that is kept, by the identity of its memory
_kept_bytes = 0  # too large if an interrupt came at the wrong moment: then it is counted again
_taken = 0  # about how many blocks were wanted so far
_watched = False  # whether a thread looks for idle blocks
_steps, _full = itertools.count(), itertools.count()


class _Memory(np.ndarray):
    """The bytes of a block. NumPy skips owners of the array's own type, so this is another type."""

    start: int  # the first byte that is used


class _Block(np.ndarray):
    """Owns the memory of one array: it dies with the last array or view that uses the memory."""


class _Return(ref[_Block]):
    """A weak reference that puts itself among the free ones when its block dies. It owns the block's memory."""

    __slots__ = ("memory",)
    memory: _Memory  # missing if an interrupt came before it was set


def large_among(results: int) -> int:
    """The bytes from which on a result comes from here, if a call has so many results: all together, they are large.
    The C library returns memory to the system when much of it is freed at once, whatever the sizes of the parts."""
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
    """An array in this memory, which goes to `free` when the array dies."""
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
        memory.setflags(write=True)  # its last owner may have made it read-only
    return memory


def _fresh(size: int) -> _Memory:
    global _taken
    _taken += 1
    memory = _Memory(size, np.uint8)
    memory.start = -memory.ctypes.data % _ALIGNMENT + next(_steps) * _STEP % _PAGE
    return memory


def _has_room(size: int) -> bool:
    """Whether a fresh block may be kept when it is dropped; if so, it is counted."""
    global _kept_bytes
    if _kept_bytes + size > _MOST_KEPT and next(_full) % _SELDOM == 0:
        release()
    if _kept_bytes + size > _MOST_KEPT:
        return False
    _kept_bytes += size
    return True


def _watch() -> None:
    """Start the thread that releases idle blocks, if there is none.

    Not a thread of `threading`, which has locks: a garbage collection can run this in a thread that holds them.
    """
    global _watched
    if _watched:
        return
    try:
        _thread.start_new_thread(_give_idle_back, ())
    except RuntimeError:  # no more threads, or the interpreter ends
        _give_up()
    else:
        _watched = True  # if an interrupt comes before this there are two threads: both end


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
    """A forked child has the blocks, but not the thread."""
    global _watched
    _watched = False


os.register_at_fork(after_in_child=_forked)


def alone(buffer: NDArray) -> bool:
    """Whether its memory is NumPy's own or a block, and the caller's variable is the only reference to it."""
    base: object = buffer.base
    if sys.getrefcount(buffer) != _ONE_VARIABLE:
        return False
    return buffer.flags.owndata if base is None else type(base) is _Block and sys.getrefcount(base) == _BASE


def _references(buffer: NDArray) -> tuple[int, int]:
    base = buffer.base
    return sys.getrefcount(buffer), sys.getrefcount(base)


def _counted_references() -> tuple[int, int]:
    """The reference counts that Python reports in `alone`, including its own variables: versions differ."""
    buffer = _array((0,), np.dtype(np.uint8), _fresh(_ALIGNMENT + _PAGE))
    return _references(buffer)


def free_bytes() -> int:
    """The bytes of free blocks."""
    return sum(size * len(blocks) for size, blocks in _free.copy().items())


def release() -> None:
    """Release all free blocks to the system."""
    global _free, _kept, _kept_bytes
    for blocks in _free.copy().values():
        blocks.clear()
    _kept = {key: back for key, back in _kept.copy().items() if back() is not None}
    sizes = [back.memory.nbytes for back in _kept.copy().values()]
    wanted = {*sizes}
    _free = {size: blocks for size, blocks in _free.copy().items() if size in wanted}
    _kept_bytes = sum(sizes)


def _give_up() -> None:
    """Release all free blocks to the system, and used ones when they are dropped."""
    global _free, _kept, _kept_bytes
    _free, _kept, _kept_bytes = {}, {}, 0


_ONE_VARIABLE, _BASE = _counted_references()
