"""A `Program`: buffers, sizes and calls of kernels, ready to be printed as source; and the plan of its memory. A
backend that compiles programs is given nothing else.

    program = inputs, outputs, sizes, slots of scratch memory, distinct kernels, calls in order
    call    = number of a kernel (buffers, or parts of them, for its parameters, index expressions for its sizes)

The caller passes one pointer for each input and output and one integer for each size. The program takes its scratch
memory from one arena, whose layout it computes from the sizes; scratch buffers that never live at the same time take
turns in one slot of it. A buffer lives from the first call that touches it to the last. A call needs all buffers that
it touches at once, so the one that dies in a call and the one that is born there do not share.

Arrays that take turns in a loop are read and stored at the same places, one after the other. Processors take a load for
one of a recent store if the last twelve bits of the addresses are equal, and wait. So such buffers have a page more, in
which backends begin them half a page apart, as far as addresses within a page go.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import NamedTuple

import attrs

from harp.lower.loopir.loops import Buffer, ForeignCall, Kernel, Repeat, Space, walk
from harp.trace.eval.inside import Access
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import Index, Symbol, product


@attrs.frozen(eq=False)
class Slot:
    """A part of the arena: as many bytes as the largest of the buffers that take turns in it."""

    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]  # in bytes, one for each buffer


@attrs.frozen(eq=False)
class Call:
    """A kernel, by its number, runs on these buffers and sizes, which stand in the order of its parameters.

    The kernel's scratch memory comes after its other buffers. Of a buffer with indices in `at`, which has an entry for
    each, or none at all, the kernel is given the part with these indices along the first axes.
    """

    kernel: int
    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]
    at: tuple[tuple[Index, ...], ...] = ()

    @property
    def arguments(self) -> tuple[Subarray, ...]:
        """The buffers with the indices of their parts."""
        missing = ((),) * (len(self.buffers) - len(self.at))
        return tuple(map(Subarray, self.buffers, (*self.at, *missing)))


class Subarray(NamedTuple):
    """The part of a buffer that has these indices along the first axes; all of it without."""

    buffer: Buffer
    at: tuple[Index, ...] = ()

    @property
    def shape(self) -> tuple[Index, ...]:
        """Of the part."""
        return self.buffer.shape[len(self.at) :]


@attrs.frozen(eq=False)
class Program:
    """`inputs` are the parameters, then the captured arrays; `calls` run the kernels.

    `donated` are pairs (input, output) by number: the output holds the input's elements when the program starts, and no
    kernel touches the input itself.

    A checked program has `accesses`, and one more output than its graph, of three numbers: 0, or which of them was
    outside, counted from 1; the index; and the size of the axis.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    scratch: tuple[Slot, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    donated: tuple[tuple[int, int], ...] = ()
    accesses: tuple[Access, ...] = ()


def custom_kernels(program: Program) -> Iterator[KernelSource]:
    """The kernels of the user that the program calls."""
    for kernel in program.kernels:
        for s in walk(kernel.body):
            if isinstance(s, ForeignCall) and isinstance(s.routine, KernelSource):
                yield s.routine


def formals(kernel: Kernel) -> tuple[Buffer, ...]:
    """The buffers that a call of the kernel gives, in order."""
    return (*kernel.buffers, *kernel.scratch)


def lifetimes(touched: Iterable[Sequence[Buffer]]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last call that touches each buffer, by first use; given what each call touches."""
    found: dict[Buffer, tuple[int, int]] = {}
    for number, buffers in enumerate(touched):
        for buffer in buffers:
            first, _ = found.get(buffer, (number, number))
            found[buffer] = (first, number)
    return found


PAGE = 4096


def turns(kernels: Sequence[Kernel], calls: Iterable[Call]) -> dict[Buffer, Buffer]:
    """Scratch buffers that take turns with another array in a loop, each with that array."""
    found: dict[Buffer, Buffer] = {}
    for call in calls:
        kernel = kernels[call.kernel]
        given = dict(zip(formals(kernel), call.arguments, strict=True))
        for move in (m for s in walk(kernel.body) if isinstance(s, Repeat) for m in s.moves):
            target, source = given.get(move[0]), given.get(move[1])
            if target is None or source is None or target.at or source.at:
                continue
            one, other = source.buffer, target.buffer
            if one.space is Space.SCRATCH and one not in found and other not in found and one not in found.values():
                found[one] = other
    return found


def size_in_bytes(buffer: Buffer) -> Index:
    """What the buffer takes."""
    return product(buffer.shape) * buffer.dtype.itemsize


def plan(touched: Iterable[Sequence[Buffer]], turning: Container[Buffer] = ()) -> tuple[Slot, ...]:
    """Slots for the scratch buffers that some call touches, in order of first use; `turning` ones have a page more."""
    lives = {b: life for b, life in lifetimes(touched).items() if b.space is Space.SCRATCH}
    slots: list[list[Buffer]] = []
    sizes: list[set[Index]] = []  # by slot, those of its buffers
    free_from: list[int] = []  # by slot: the first call in which nothing of it lives any more
    for buffer in sorted(lives, key=lambda b: lives[b][0]):
        first, last = lives[buffer]
        free = [s for s, call in enumerate(free_from) if call <= first]
        size = size_in_bytes(buffer)
        # The identical size wastes nothing; else the slot that became free last, for its memory is still in cache.
        same = [s for s in free if size in sizes[s]]
        chosen = max(same or free, key=lambda s: (free_from[s], -s), default=len(slots))
        if chosen == len(slots):
            slots.append([])
            sizes.append(set())
            free_from.append(0)
        slots[chosen].append(buffer)
        sizes[chosen].add(size)
        free_from[chosen] = last + 1

    def reserved(buffer: Buffer) -> Index:
        return size_in_bytes(buffer) + (PAGE if buffer in turning else 0)

    return tuple(Slot(tuple(slot), tuple(map(reserved, slot))) for slot in slots)
