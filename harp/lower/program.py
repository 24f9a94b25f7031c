"""A `Program`: buffers, sizes and calls of kernels, ready to be printed as source. Backends see nothing else.

    program = inputs, outputs, sizes, slots of scratch memory, distinct kernels, calls in order
    call    = number of a kernel (buffers for its parameters, index expressions for its sizes)

The caller passes one pointer for each input and output and one integer for each size. The program takes its scratch
memory from one arena, whose layout it computes from the sizes; scratch buffers that never live at the same time share
a slot.
"""

from __future__ import annotations

import attrs

from harp.lower.loops import Buffer, Kernel
from harp.trace.index import Index, Symbol
from harp.trace.inside import Access


@attrs.frozen(eq=False)
class Slot:
    """A part of the arena: as many bytes as the largest of the buffers that take turns in it."""

    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]  # in bytes, one for each buffer


@attrs.frozen(eq=False)
class Call:
    """A kernel, by its number, runs on these buffers and sizes, which stand in the order of its parameters.

    The kernel's scratch memory comes after its other buffers.
    """

    kernel: int
    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]


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


def formals(kernel: Kernel) -> tuple[Buffer, ...]:
    """The buffers that a call of the kernel gives, in order."""
    return (*kernel.buffers, *kernel.scratch)
