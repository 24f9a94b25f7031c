"""A `Program`: buffers, sizes and kernels, ready to be printed as source. Backends see nothing else.

The caller passes one pointer for each input and output and one integer for each size. The program takes its scratch
memory from one arena, whose layout it computes from the sizes; scratch buffers that never live at the same time share
a slot.
"""

from __future__ import annotations

import attrs

from harp.lower.loops import Buffer, Kernel, Let
from harp.trace.index import Index, Symbol
from harp.trace.inside import Access


@attrs.frozen(eq=False)
class Slot:
    """A part of the arena: as many bytes as the largest of the buffers that take turns in it."""

    buffers: tuple[Buffer, ...]
    sizes: tuple[Index, ...]  # in bytes, one for each buffer


@attrs.frozen(eq=False)
class Program:
    """`inputs` are the parameters, then the captured arrays; `lets` name derived sizes, in order, for all kernels.

    `donated` are pairs (input, output) by number: the output holds the input's elements when the program starts, and no
    kernel touches the input itself.

    A checked program has `accesses`, and one more output than its graph, of three numbers: 0, or which of them was
    outside, counted from 1; the index; and the size of the axis.
    """

    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    sizes: tuple[Symbol, ...]
    lets: tuple[Let, ...]
    scratch: tuple[Slot, ...]
    kernels: tuple[Kernel, ...]
    donated: tuple[tuple[int, int], ...] = ()
    accesses: tuple[Access, ...] = ()
