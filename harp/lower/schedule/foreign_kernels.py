"""Calls of code of the user as kernels: each is alone in one, on whole arrays in memory.

kernel fill: for i: out[i] = 0        where a kernel of the user may leave elements as they are
kernel call: out = kernel smoothed(in) over i < n
"""

from __future__ import annotations

from collections.abc import Mapping

from harp.lower.loopir.loops import Buffer, For, ForeignCall, Kernel, Store
from harp.lower.loopir.nests import nest
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.node import Foreign, HostCall, Node, positions
from harp.trace.index.polynomial import Loop
from harp.trace.scalar.expr import const


def callback_kernels(node: HostCall, memory: Mapping[Node, Buffer]) -> list[Kernel]:
    """Of a call of Python for what it does, whose operands are in memory."""
    assert isinstance(node.function, int), "the functions of a program have numbers"
    sources = tuple(memory[i] for i in node.inputs)
    return [Kernel("callback", ForeignCall(node.function, node.shape, (memory[node],), sources, pure=False))]


def call_kernels(node: Foreign, memory: Mapping[Node, Buffer]) -> list[Kernel]:
    """Of a call for its results, all of which are in memory, as are its operands."""
    routine = node.routine
    assert isinstance(routine, (int, KernelSource)), "the functions of a program have numbers"
    sources, targets = (tuple(memory[i] for i in group) for group in (node.operands, node.parts))
    call = Kernel("call", ForeignCall(routine, node.calls, targets, sources, node.sizes))
    filled = () if isinstance(routine, int) else routine.filled
    return [*(_fill(target) for target, first in zip(targets, filled, strict=False) if first), call]


def _fill(target: Buffer) -> Kernel:
    index = positions(target.shape)
    loops = [a for p in index if isinstance(a := p.atom, Loop)]
    return Kernel("fill", nest(map(For, loops), Store(target, index, const(0, target.dtype))))
