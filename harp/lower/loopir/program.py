"""A `Program`: buffers, sizes and calls of kernels; and the plan of its memory. It is all that a backend gets to
compile.

    program = inputs, outputs, sizes, slots of scratch memory, distinct kernels, calls in order
    call    = number of a kernel (buffers, or parts of them, for its parameters, index expressions for its sizes)

The caller passes one pointer for each input and output and one integer for each size. The program takes its scratch
memory from one arena, whose layout it computes from the sizes; scratch buffers whose lifetimes do not overlap share a
slot. A buffer lives from the first to the last call that touches it. A call needs all of its buffers at once, so the
one that dies in a call and the one that is born in it do not share.

Double-buffered arrays are read and stored at the same indices, one right after the other. Processors take a load for a
recent store, and stall, if the last twelve bits of their addresses are equal. So such buffers get one more page, in
which backends place them half a page apart, modulo the page size.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import attrs

from harp.lower.loopir.loops import Buffer, ForeignCall, Kernel, Repeat, Space, walk
from harp.trace.eval.inside import Access
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import Index, Symbol, product
from harp.trace.scalar.expr import Const


@attrs.frozen(eq=False, repr=False)
class Slot:
    """A part of the arena, as large as the largest of the buffers that share it."""

    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]  # in bytes, one for each buffer


@attrs.frozen(eq=False, repr=False)
class Call:
    """A call of a kernel, by its number, with buffers and sizes in the order of its parameters.

    The kernel's scratch memory follows its other buffers. `at` has an entry for each buffer, or none at all: the kernel
    gets the part of the buffer at these indices along the first axes.
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
    """The part of a buffer at these indices along the first axes; without indices, all of it."""

    buffer: Buffer
    at: tuple[Index, ...] = ()

    @property
    def shape(self) -> tuple[Index, ...]:
        """The shape of the part."""
        return self.buffer.shape[len(self.at) :]


@attrs.frozen(eq=False, repr=False)
class Program:
    """`inputs` are the parameters, then the captured arrays; `calls` run the kernels.

    `donated` are pairs (input, output) by number: at the start the output holds the input's elements, and no kernel
    touches the input.

    A checked program has `accesses`, and one more output than its graph, of three numbers: 0, or the number of the
    failed access, counted from 1; its index; and the size of the axis.

    `constants` are arrays of one number each, which calls pass to kernels that serve several numbers.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    scratch: tuple[Slot, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    donated: tuple[tuple[int, int], ...] = ()
    accesses: tuple[Access, ...] = ()
    constants: Mapping[Buffer, Const] = attrs.field(factory=dict)


def custom_kernels(program: Program) -> Iterator[KernelSource]:
    """The kernels of the user that the program calls."""
    for kernel in program.kernels:
        for s in walk(kernel.body):
            if isinstance(s, ForeignCall) and isinstance(s.routine, KernelSource):
                yield s.routine


def formals(kernel: Kernel) -> tuple[Buffer, ...]:
    """The buffers that a call of the kernel passes, in order."""
    return (*kernel.buffers, *kernel.scratch)


def lifetimes(touched: Iterable[Sequence[Buffer]]) -> dict[Buffer, tuple[int, int]]:
    """The first and the last call that touches each buffer, in order of first use, given the buffers of each call."""
    result: dict[Buffer, tuple[int, int]] = {}
    for number, buffers in enumerate(touched):
        for buffer in buffers:
            first, _ = result.get(buffer, (number, number))
            result[buffer] = (first, number)
    return result


PAGE = 4096


def turns(kernels: Sequence[Kernel], calls: Iterable[Call]) -> dict[Buffer, Buffer]:
    """Scratch buffers that are double-buffered with another array, each with that array."""
    pairs: dict[Buffer, Buffer] = {}
    for call in calls:
        kernel = kernels[call.kernel]
        passed = dict(zip(formals(kernel), call.arguments, strict=True))
        for move in (m for s in walk(kernel.body) if isinstance(s, Repeat) for m in s.moves):
            target, source = passed.get(move[0]), passed.get(move[1])
            if target is None or source is None or target.at or source.at:
                continue
            one, other = source.buffer, target.buffer
            if one.space is Space.SCRATCH and one not in pairs and other not in pairs and one not in pairs.values():
                pairs[one] = other
    return pairs


def size_in_bytes(buffer: Buffer) -> Index:
    """The bytes that a buffer takes."""
    return product(buffer.shape) * buffer.dtype.itemsize


def plan(touched: Iterable[Sequence[Buffer]], turning: Container[Buffer] = ()) -> tuple[Slot, ...]:
    """Slots for the scratch buffers that calls touch, in order of first use; those in `turning` get one more page."""
    lives = {b: life for b, life in lifetimes(touched).items() if b.space is Space.SCRATCH}
    slots: list[list[Buffer]] = []
    sizes: list[set[Index]] = []  # for each slot, the sizes of its buffers
    free_from: list[int] = []  # for each slot, the first call after all of its buffers are dead
    for buffer in sorted(lives, key=lambda b: lives[b][0]):
        first, last = lives[buffer]
        free = [s for s, call in enumerate(free_from) if call <= first]
        size = size_in_bytes(buffer)
        # A slot of equal size wastes nothing; else the slot that became free last, since it is still in cache.
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
