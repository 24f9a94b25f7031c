"""The program that kernels and their calls make: each call gets the memory that its kernel needs, and arrays get slots
of the arena."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import attrs

from harp.lower.loopir.effects import effects, symbols_of
from harp.lower.loopir.loops import Buffer, Kernel
from harp.lower.loopir.memory import plan, turns
from harp.lower.loopir.program import Call, Program
from harp.lower.schedule.build import Built
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Symbol, of


def assemble(built: Built, sizes: Sequence[Symbol]) -> Program:
    """The program over these sizes; kernels that have not been outlined are called one after the other."""
    built = built if built.calls else as_they_are(built)
    numbers = count()
    calls = tuple(_with_scratch(call, built.kernels[call.kernel], numbers) for call in built.calls)
    slots = plan((call.buffers for call in calls), turns(built.kernels, calls))
    return Program(
        built.inputs, built.outputs, tuple(sizes), slots, built.kernels, calls, built.donated, built.accesses
    )


def as_they_are(built: Built) -> Built:
    """Each kernel as a function of its own, whose parameters are what it uses of the program."""
    kernels = []
    for kernel in built.kernels:
        touched = effects(kernel.body).touched
        buffers = tuple(buffer for buffer in touched if buffer not in kernel.scratch)
        kernels.append(attrs.evolve(kernel, buffers=buffers, sizes=symbols_of(kernel.body, touched)))
    calls = (Call(number, k.buffers, tuple(map(of, k.sizes))) for number, k in enumerate(kernels))
    return attrs.evolve(built, kernels=tuple(kernels), calls=tuple(calls))


def _with_scratch(call: Call, kernel: Kernel, numbers: Iterator[int]) -> Call:
    """The call with memory for what the kernel keeps in scratch."""
    sizes = Substitution(dict(zip(kernel.sizes, call.sizes, strict=True)))
    own = (Buffer(f"work{next(numbers)}", b.dtype, sizes.each(b.shape), b.space) for b in kernel.scratch)
    return attrs.evolve(call, buffers=(*call.buffers, *own))
