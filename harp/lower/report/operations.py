"""What kernels do: operations, elements read and written, as polynomials in the sizes of the program.

Loop nests are counted as they are before kernels are outlined (`Lowered.algorithm`). So what is counted is what the
program computes, and neither chunks, tiles and panels nor the machine's vectors change it. What is read again
from a register, or from a row that a kernel keeps for itself, is not read from memory.

    operations   each scalar operation on elements is one, and a fused multiply-add two. Casts, the parts of
                 complex numbers, and comparisons of positions count 0. Complex arithmetic is the real one that it
                 becomes
    special      those of the operations that take many instructions: exp, sin, pow and the like
    comparisons  of sorts and searches: log2(n) for each element, in rows of n elements
    reads        loads of elements of the program's arrays, as often as they are executed. A function of rows reads its
                 rows once
    arrays       bytes of the arrays that a kernel touches, each once: memory moves at least these
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import attrs

from harp.lower.loopir.effects import effects, loads
from harp.lower.loopir.loops import (
    MEMORY,
    Buffer,
    Callback,
    For,
    If,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Stmt,
    Store,
    parts,
)
from harp.lower.loopir.memory import size_in_bytes
from harp.lower.report.counts import NOTHING, Count, log2, ratio
from harp.lower.report.executions import executions
from harp.lower.schedule.build import Built
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Loop, product
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Expr, walk
from harp.trace.scalar.ops import INFO, Op, Reduce
from harp.trace.source_locations import Site

Q = TypeVar("Q", Count, int)

# Scalar operations by how many they count as; all others are one.
OPERATIONS: Mapping[Op, int] = {
    **dict.fromkeys((Op.CAST, Op.STOP, Op.OPAQUE, Op.COMPLEX, Op.REAL, Op.IMAG), 0),
    Op.FMA: 2,
}
# Of a complex accumulator: two sums, or four products and two sums.
_OF_COMPLEX: Mapping[Reduce, int] = {Reduce.SUM: 2, Reduce.PROD: 6}
# The rough cost of an operation (`harp.trace.scalar.ops.INFO`) from which on it is special; a division is less.
_SPECIAL = 12


@attrs.frozen
class Work(Generic[Q]):
    """What is done: each is a `Count` in the sizes, or a number."""

    operations: Q
    special: Q
    comparisons: Q
    reads: Q
    writes: Q
    bytes_read: Q
    bytes_written: Q
    arrays: Q

    @property
    def steps(self) -> Q:
        """All of it in one: operations, of which a special one counts twelve times, comparisons, reads and writes."""
        return sum([self.special] * (_SPECIAL - 1), self.operations) + self.comparisons + self.reads + self.writes


@attrs.frozen
class KernelCost(Work[Q]):
    """The work of one kernel, and the line of the user that it is for. `exact` is False for upper bounds."""

    name: str
    site: Site | None
    exact: bool


QUANTITIES = tuple(field.name for field in attrs.fields(Work))


def kernel_costs(built: Built, naming: Substitution) -> tuple[KernelCost[Count], ...]:
    """The work of each kernel, with its sizes named so."""
    return tuple(_kernel_cost(kernel, built, naming) for kernel in built.kernels)


def _kernel_cost(kernel: Kernel, built: Built, naming: Substitution) -> KernelCost[Count]:
    tally = _Tally(naming)
    stored: list[Buffer] = []
    for place in _statements(_Place(kernel.body)):
        if isinstance(place.statement, Row):
            stored.append(place.statement.target)
            _count_row(tally, place.statement)
            continue
        if isinstance(place.statement, Callback):
            stored += place.statement.targets
            _count_callback(tally, place, place.statement)
            continue
        if isinstance(place.statement, Store):
            stored.append(place.statement.buffer)
            _count_store(tally, place, place.statement)
        for load in dict.fromkeys(loads(place.statement)):
            if load.buffer.space in MEMORY:
                tally.add_reads(load.buffer, tally.executed(place, load.conditions))
    for buffer in effects(kernel.body).touched:
        if buffer.space in MEMORY:
            tally.add(arrays=tally.size(size_in_bytes(buffer)))
    sites = (built.origins.of_store(buffer) for buffer in reversed(stored))
    site = next((site for site in sites if site is not None), None)
    return KernelCost(**tally.sums, name=kernel.name, site=site, exact=tally.exact)


class _Place(NamedTuple):
    """A statement in loops, executed where all conditions are >= 0; or less often, if that is not exact."""

    statement: Stmt
    loops: tuple[Loop, ...] = ()
    conditions: tuple[Index, ...] = ()
    exact: bool = True


def _statements(place: _Place) -> Iterator[_Place]:
    """The stores, functions of rows and branches of a nest."""
    s = place.statement
    if isinstance(s, Nest):
        own = tuple(head.loop for head in s.heads if isinstance(head, For))
        yield from _statements(place._replace(statement=s.body, loops=place.loops + own))
    elif isinstance(s, Repeat):  # where data ends it, once
        own = (s.loop,) if s.test is None else ()
        yield from _statements(place._replace(statement=s.body, loops=place.loops + own, exact=s.test is None))
    elif isinstance(s, If):
        yield place
        yield from _statements(place._replace(statement=s.yes, conditions=place.conditions + s.conditions))
        if s.no is not None:
            one = len(s.conditions) == 1
            others = tuple(-c - 1 for c in s.conditions) if one else ()  # not c >= 0: 0 <= -c - 1
            other = place._replace(statement=s.no, conditions=place.conditions + others, exact=place.exact and one)
            yield from _statements(other)
    elif isinstance(s, (Store, Row, Callback)):
        yield place
    else:
        for part in parts(s):
            yield from _statements(place._replace(statement=part))


class _Tally:
    """Sums of quantities, in the names of the user."""

    def __init__(self, naming: Substitution) -> None:
        self.sums = dict.fromkeys(QUANTITIES, NOTHING)
        self.exact = True
        self._naming = naming

    def add(self, **quantities: Count) -> None:
        for name, count in quantities.items():
            self.sums[name] += count

    def add_reads(self, buffer: Buffer, number: Count) -> None:
        self.add(reads=number, bytes_read=number * ratio(buffer.dtype.itemsize))

    def add_writes(self, buffer: Buffer, number: Count) -> None:
        self.add(writes=number, bytes_written=number * ratio(buffer.dtype.itemsize))

    def size(self, p: Index) -> Count:
        return ratio(self._naming(p))

    def executed(self, place: _Place, conditions: tuple[Index, ...] = ()) -> Count:
        """How often a place is reached with more conditions."""
        number, exact = executions(place.loops, place.conditions + conditions)
        self.exact &= exact and place.exact
        return ratio(self._naming(number.numerator), number.denominator)

    def log2(self, p: Index) -> Count:
        return log2(self._naming(p))


@lru_cache(maxsize=1 << 12)
def _in_value(value: Expr) -> tuple[int, int]:
    """How many operations a value is, and how many of them are special. To choose by position is none: loops are split
    where the choice changes."""
    from_elements: set[Expr] = set()
    operations = special = 0
    for e in walk((value,)):
        if isinstance(e, Load) or not from_elements.isdisjoint(e.args):
            from_elements.add(e)
        chooses = isinstance(e, Apply) and e.op is Op.SELECT and e.operands[0] not in from_elements
        if isinstance(e, Apply) and not chooses and (e in from_elements or e.dtype is not bool_):
            operations += OPERATIONS.get(e.op, 1)
            special += INFO[e.op].weight >= _SPECIAL
    return operations, special


def _count_store(tally: _Tally, place: _Place, store: Store) -> None:
    number = tally.executed(place)
    operations, special = _in_value(store.value)
    if store.reduce is not None:
        operations += _OF_COMPLEX[store.reduce] if store.buffer.dtype.is_complex else 1
    tally.add(operations=number * ratio(operations), special=number * ratio(special))
    if store.buffer.space in MEMORY:
        tally.add_writes(store.buffer, number)
        if store.reduce is not None:
            tally.add_reads(store.buffer, number)


def _count_row(tally: _Tally, row: Row) -> None:
    """A row function is alone in its kernel and covers its buffers."""
    for source in row.sources:
        tally.add_reads(source, tally.size(product(source.shape)))
    elements = tally.size(product(row.target.shape))
    tally.add_writes(row.target, elements)
    keys = row.sources[0] if row.function is RowOp.SEARCH else row.target
    tally.add(comparisons=elements * tally.log2(keys.shape[-1]))


def _count_callback(tally: _Tally, place: _Place, callback: Callback) -> None:
    """What is handed over; nobody knows what the function does."""
    times = tally.executed(place)
    for source in callback.sources:
        tally.add_reads(source, times * tally.size(product(source.shape)))
    for target in callback.targets:
        tally.add_writes(target, times * tally.size(product(target.shape)))
