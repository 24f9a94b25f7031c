"""A `Program`: buffers, sizes and calls of kernels, ready to be printed as source. A backend that compiles
programs is given nothing else.

    program = inputs, outputs, sizes, slots of scratch memory, distinct kernels, calls in order
    call    = number of a kernel (buffers, or parts of them, for its parameters, index expressions for its sizes)

The caller passes one pointer for each input and output and one integer for each size. The program takes its scratch
memory from one arena, whose layout it computes from the sizes; scratch buffers that never live at the same time share
a slot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import attrs

from harp.lower.loopir.loops import Buffer, ForeignCall, Kernel, walk
from harp.trace.eval.inside import Access
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import Index, Symbol


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
