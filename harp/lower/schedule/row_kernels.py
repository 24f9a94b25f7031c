"""Functions of whole rows as kernels: loops over the rows, and one statement for each of them.

    for row { allocate; out[row, :] = sort(in[row, :]) }
    for row, part { out[row, part] = search(table[row, :], in[row, part]) }

Threads share the rows. A search is also split into parts of rows, since its elements are independent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, ForeignCall, Head, Kernel, Row, Space, Stmt, Store, walk
from harp.lower.loopir.nests import nest
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.node import Foreign, HostCall, Node, RowWise, positions
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import ceildiv, floordiv, minimum
from harp.trace.index.polynomial import ZERO, Index, Loop, Shape, of, product
from harp.trace.scalar.dtypes import u64
from harp.trace.scalar.expr import const

# Calls of the user's code as kernels: each is the only one in its kernel, on whole arrays in memory.
#
# kernel fill: for i: out[i] = 0        since a kernel of the user may leave elements unchanged
# kernel call: out = kernel smoothed(in) over i < n


def callback_kernels(node: HostCall, memory: Mapping[Node, Buffer]) -> list[Kernel]:
    """The kernels of a call of Python with side effects, whose operands are in memory."""
    assert isinstance(node.function, int), "the functions of a program have numbers"
    sources = tuple(memory[i] for i in node.inputs)
    return [Kernel("callback", ForeignCall(node.function, node.shape, (memory[node],), sources, pure=False))]


def call_kernels(node: Foreign, memory: Mapping[Node, Buffer]) -> list[Kernel]:
    """The kernels of a call for its results; these and its operands are in memory."""
    routine = node.routine
    assert isinstance(routine, (int, KernelSource, MatrixFunction)), "the functions of a program have numbers"
    sources, targets = (tuple(memory[i] for i in group) for group in (node.operands, node.parts))
    call = Kernel("call", ForeignCall(routine, node.calls, targets, sources, node.sizes))
    filled = routine.filled if isinstance(routine, KernelSource) else ()
    return [*(_fill(target) for target, first in zip(targets, filled, strict=False) if first), call]


def _fill(target: Buffer) -> Kernel:
    index = positions(target.shape)
    loops = [a for p in index if isinstance(a := p.atom, Loop)]
    return Kernel("fill", nest(map(For, loops), Store(target, index, const(0, target.dtype))))


# Elements of a row that a thread searches at a time.
_PART = 1024

# Work memory of a row, in 64-bit numbers: for keys, or for keys and indices in one number.
_WORK: Mapping[RowOp, Callable[[Index, int], Index] | None] = {
    RowOp.SORT: lambda length, size: floordiv(length * size + 7, 8),
    RowOp.ORDER: lambda length, size: length,
    RowOp.SORT_BY: lambda length, size: length * 2,
    RowOp.SEARCH: None,
}


def row_kernel(node: RowWise, memory: Mapping[Node, Buffer]) -> Kernel:
    """The kernel of a node whose operands are in memory."""
    rows, length = node.shape[:-1], node.shape[-1]
    heads, first = _rows(rows), len(rows) + 1
    work, start, lane = _WORK[node.function], ZERO, Loop(first, length)
    if work is None:
        part = Loop(first, ceildiv(length, _PART))
        start = of(part) * _PART
        lane = Loop(first + 1, minimum(_PART, length - start))
        heads.append(For(part))
    index = (*(of(Loop(axis, extent)) for axis, extent in enumerate(rows)), start + of(lane))
    row = Row(node.function, node.reverse, memory[node], index, lane, tuple(memory[o] for o in node.operands))
    body: Stmt = row
    if work is not None:
        room = Buffer("work", u64, (work(length, node.operands[0].dtype.itemsize),), Space.THREAD)
        body = Alloc(room, attrs.evolve(row, work=room))
    return Kernel(node.function.value, nest(heads, body))


def _rows(shape: Shape) -> list[Head]:
    """One merged loop over all rows, which threads share; the rows' loops have the numbers of their axes."""
    loops = tuple(Loop(axis, extent) for axis, extent in enumerate(shape))
    if len(loops) < 2:
        return [For(loop) for loop in loops]
    every = Loop(len(shape), product(shape))
    return [For(every), Digits(loops, of(every))]


def rows_in(s: Stmt) -> Iterator[Row | ForeignCall]:
    """The statements on whole rows or arrays inside of a statement."""
    return (part for part in walk(s) if isinstance(part, (Row, ForeignCall)))
