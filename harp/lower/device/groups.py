"""Groups of work-items: what the loop nests of a launch are made of where many share the work of each iteration.

    for grid i {                        a group for each iteration
        group parts[256]                memory that they share
        for item t < 256 { ... }        the iterations, shared by the work-items of the group
        for item t < 16 { ... }         begins when all of them are done: between the two there is a barrier
        acc = 0; acc += parts[0]        what is outside of such loops each of them does, so that all know `acc`;
        out[i] = acc                    but a store to memory is done by one of them
    }

A barrier is no statement, which could stand where not all work-items come by: it follows from the loops. Read from top
to bottom, one iteration after the other, they say what is computed, and how many work-items a group has changes
nothing: if there are fewer than iterations, each does several. Only where there is a private array they are exactly
ITEMS.
"""

from __future__ import annotations

from collections.abc import Iterator

from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    For,
    Head,
    If,
    Load,
    LoopKind,
    Nest,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    parts,
    walk,
)
from harp.lower.loopir.nests import FreshLoops, nest, sequence
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.expr import const
from harp.trace.scalar.ops import Reduce

# Work-items that share a sum, as far as its order goes: that is the same on all devices.
ITEMS = 256
# Parts that are added up first.
BRANCHES = 16


class Unsuited(Exception):
    """A group cannot share the statement."""


def items(fresh: FreshLoops, extent: Index | int = ITEMS) -> tuple[tuple[For, ...], Index]:
    """The head of a loop that work-items share, and the position in it."""
    return fresh.loop(extent, LoopKind.ITEM)


def is_item(head: Head) -> bool:
    """Whether the work-items of a group share the loop."""
    return isinstance(head, For) and head.kind is LoopKind.ITEM


def is_shared(s: Stmt) -> bool:
    """Whether the work-items of a group share a part of the statement."""
    return any(isinstance(part, Nest) and any(map(is_item, part.heads)) for part in walk(s))


def suits(s: Stmt) -> bool:
    """Whether a group can do what one work-item would do: no loop of each stores to memory and to variables."""
    if isinstance(s, (Alloc, Seq, If)):
        return all(map(suits, parts(s)))
    if isinstance(s, Nest) and any(isinstance(h, For) and h.kind is LoopKind.GRID for h in s.heads):
        return True
    spaces = {buffer.space for buffer in effects(s).writes}
    return is_shared(s) or Space.REG not in spaces or len(spaces) == 1


def sorted_by_many(s: Stmt) -> Row | None:
    """The function of a statement that sorts all rows of its arrays at once: its loops are those of a grid, and it has
    no memory for a row of its own."""
    row = s.body if isinstance(s, Nest) else s
    return row if isinstance(row, Row) and row.work is None and row.function is not RowOp.SEARCH else None


def private_arrays(s: Stmt) -> Iterator[Buffer]:
    """The arrays of which each work-item has a part."""
    return (part.buffer for part in walk(s) if isinstance(part, Alloc) and part.buffer.space is Space.PRIVATE)


def shared(acc: Buffer, name: str, count: int) -> Buffer:
    """Memory of a group for values such as an accumulator has."""
    return Buffer(f"{acc.name}_{name}", acc.dtype, (as_index(count),), Space.GROUP)


def begin(part: Buffer, reduce: Reduce) -> Store:
    """part = what leaves each number as it is that it is added to: for a sum of floats that is -0.0."""
    zero = const(reduce.identity(part.dtype), part.dtype)
    signed = part.dtype.is_float or part.dtype.is_complex
    return Store(part, (), -zero if reduce is Reduce.SUM and signed else zero)


def branches(fresh: FreshLoops, given: Buffer, sums: Buffer, reduce: Reduce, before: Buffer | None = None) -> Stmt:
    """The sums of branches of parts, and what stands before each part in its branch.

    for item h { part = id; for u { before[h, u] = part; part += parts[h, u] }; sums[h] = part }
    """
    each = ITEMS // BRANCHES
    head, h = items(fresh, BRANCHES)
    along, u = fresh.loop(each, LoopKind.PLAIN if before is None else LoopKind.SEQUENTIAL)
    part = Buffer(f"{given.name}_part", given.dtype, (), Space.REG)
    step: Stmt = Store(part, (), Load(given, (h * each + u,)), reduce)
    if before is not None:
        step = sequence((Store(before, (h * each + u,), Load(part, ())), step))
    kept = Store(sums, (h,), Load(part, ()))
    return nest(head, Alloc(part, sequence((begin(part, reduce), nest(along, step), kept))))
