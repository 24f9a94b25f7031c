"""Memory planning: scratch buffers that never live at the same time take turns in one slot of the arena.

A buffer lives from the first kernel that touches it to the last. A kernel needs all buffers that it touches at once,
so the one that dies in a kernel and the one that is born there do not share.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.lower.loops import Buffer, Kernel
from harp.lower.program import Slot
from harp.lower.uses import regions, uses
from harp.trace.index import Index, product


def lifetimes(kernels: Sequence[Kernel]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last kernel that touches each buffer, by first use."""
    functions = regions(kernels)
    found: dict[Buffer, tuple[int, int]] = {}
    for number, kernel in enumerate(kernels):
        for buffer in uses(kernel.body, functions).touched:
            first, _ = found.get(buffer, (number, number))
            found[buffer] = (first, number)
    return found


def size_in_bytes(buffer: Buffer) -> Index:
    """What the buffer takes, with the elements behind its end that may be read."""
    return (product(buffer.shape) + buffer.slack) * buffer.dtype.itemsize


def plan(kernels: tuple[Kernel, ...], scratch: tuple[Buffer, ...]) -> tuple[Slot, ...]:
    """Slots for the scratch buffers that some kernel touches, in order of first use."""
    wanted = set(scratch)
    lives = {b: life for b, life in lifetimes(kernels).items() if b in wanted}
    slots: list[list[Buffer]] = []
    free_from: list[int] = []  # by slot: the first kernel in which nothing of it lives any more
    for buffer in sorted(lives, key=lambda b: lives[b][0]):
        first, last = lives[buffer]
        free = [s for s, kernel in enumerate(free_from) if kernel <= first]
        size = size_in_bytes(buffer)
        # The identical size wastes nothing; else the slot that became free last, for its memory is still in cache.
        same = [s for s in free if any(size_in_bytes(b) is size for b in slots[s])]
        chosen = max(same or free, key=lambda s: (free_from[s], -s), default=len(slots))
        if chosen == len(slots):
            slots.append([])
            free_from.append(0)
        slots[chosen].append(buffer)
        free_from[chosen] = last + 1
    return tuple(Slot(tuple(slot), tuple(map(size_in_bytes, slot))) for slot in slots)
