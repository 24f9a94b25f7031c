"""Functions of whole rows as kernels: loops over the rows, and one statement for each of them.

    for row { take memory; out[row, :] = sort(in[row, :]) }
    for row, part { out[row, part] = search(table[row, :], in[row, part]) }

Rows are shared by threads. A search also goes by parts of the rows, for no element waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from harp.lower.loops import Alloc, Buffer, For, Kernel, Row, Space, Stmt, walk
from harp.lower.rewrite import nest
from harp.trace.division import ceildiv, floordiv, minimum
from harp.trace.dtypes import u64
from harp.trace.index import Index, Loop, of
from harp.trace.node import Node, RowWise, positions
from harp.trace.rows import RowOp

# Elements of a row that one thread searches at a time.
_PART = 1024

# Memory that a row needs besides what it is stored to, in numbers of 64 bits: keys, or keys and places in one number.
_WORK: Mapping[RowOp, Callable[[Index, int], Index] | None] = {
    RowOp.SORT: lambda length, size: floordiv(length * size + 7, 8),
    RowOp.ORDER: lambda length, size: length,
    RowOp.SORT_BY: lambda length, size: length * 2,
    RowOp.SEARCH: None,
}


def row_kernel(node: RowWise, memory: Mapping[Node, Buffer]) -> Kernel:
    """The kernel of a node whose operands are in memory."""
    here = positions(node.shape)
    outer = [For(a) for p in here[:-1] if isinstance(a := p.atom, Loop)]
    sources = tuple(memory[operand] for operand in node.operands)
    work, length = _WORK[node.function], node.shape[-1]
    if work is None:
        part = For(Loop(len(here), ceildiv(length, _PART)))
        start = of(part.loop) * _PART
        lane = Loop(len(here) + 1, minimum(_PART, length - start))
        outer.append(part)
    else:
        start, lane = Index(()), Loop(len(here), length)
    body: Stmt
    if work is None:
        body = Row(node.function, node.reverse, memory[node], (*here[:-1], start + of(lane)), lane, sources)
    else:
        room = Buffer("work", u64, (work(length, node.operands[0].dtype.itemsize),), Space.THREAD)
        row = Row(node.function, node.reverse, memory[node], (*here[:-1], of(lane)), lane, sources, room)
        body = Alloc(room, row)
    return Kernel(node.function.value, nest(outer, body))


def rows_in(s: Stmt) -> Iterator[Row]:
    """The rows inside a statement."""
    return (part for part in walk(s) if isinstance(part, Row))
