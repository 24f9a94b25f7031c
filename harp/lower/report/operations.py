"""The work of kernels: operations, and elements read and written, as polynomials in the sizes of the program.

Loop nests are counted before kernels are outlined (`Lowered.algorithm`). So the count is of what the program computes,
and does not depend on chunks, tiles and panels, nor on the machine's vectors. A value that is read again from a
register, or from a private row of a kernel, is not read from memory.

    operations   each scalar operation on elements counts 1, a fused multiply-add 2. Casts, the parts of
                 complex numbers, and comparisons of positions count 0. Complex arithmetic counts as the real
                 arithmetic that computes it
    special      those operations that take many instructions: exp, sin, pow and the like
    comparisons  of sorts and searches: log2(n) for each element, in rows of n elements
    reads        loads of elements of the program's arrays, as often as they are executed. A function of rows reads
                 its rows once
    arrays       bytes of the arrays that a kernel touches, each once: a lower bound of the memory traffic
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

import attrs

from harp.lower.loopir.effects import effects, loads, used_whole
from harp.lower.loopir.loops import (
    MEMORY,
    Buffer,
    For,
    ForeignCall,
    If,
    Kernel,
    Load,
    Nest,
    Repeat,
    Row,
    Stmt,
    Store,
    is_endless,
    parts,
)
from harp.lower.loopir.loops import walk as walk_statements
from harp.lower.loopir.products import is_contraction
from harp.lower.loopir.program import size_in_bytes
from harp.lower.report.counts import NOTHING, Count, log2, ratio, total
from harp.lower.report.executions import Executions, executions
from harp.lower.report.parts import EVERYWHERE, Round, Term, Where, all_of, parts_of
from harp.lower.schedule.build import Built
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MATRICES, MatrixFunction
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Loop, Symbol, loops_in, of, product
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Expr, walk
from harp.trace.scalar.ops import INFO, Op, Reduce
from harp.trace.source_locations import Site

Q = TypeVar("Q", Count, int)

# Operations that do not count as one.
OPERATIONS: Mapping[Op, int] = {
    **dict.fromkeys((Op.CAST, Op.BITCAST, Op.STOP, Op.OPAQUE, Op.COMPLEX, Op.REAL, Op.IMAG), 0),
    Op.FMA: 2,
}
# Operations of a reduction of complex numbers: two sums, or four products and two sums.
_OF_COMPLEX: Mapping[Reduce, int] = {Reduce.SUM: 2, Reduce.PROD: 6}
# An operation is special from this cost on (`harp.trace.scalar.ops.INFO`); a division costs less.
_SPECIAL = 12


@attrs.frozen
class Work(Generic[Q]):
    """Amounts of work: each is a `Count` in the sizes, or a number."""

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
        """All work as one number: operations (special ones count twelve times), comparisons, reads and writes."""
        return sum([self.special] * (_SPECIAL - 1), self.operations) + self.comparisons + self.reads + self.writes


@attrs.frozen
class KernelCost(Work[Q]):
    """The work of one kernel, and the user's line that it comes from. `exact` is False for upper bounds.

    `loops` are those whose number of steps is data: a symbol for that number, and their line.
    """

    name: str
    site: Site | None
    exact: bool
    loops: tuple[tuple[Symbol, Site | None], ...]


QUANTITIES = tuple(field.name for field in attrs.fields(Work))


def kernel_costs(built: Built, naming: Substitution, steps: Callable[[], Symbol]) -> tuple[KernelCost[Count], ...]:
    """The work of each kernel, with its sizes renamed. `steps` makes symbols for numbers of steps."""
    return tuple(_kernel_cost(kernel, built, naming, steps) for kernel in built.kernels)


def _kernel_cost(kernel: Kernel, built: Built, naming: Substitution, steps: Callable[[], Symbol]) -> KernelCost[Count]:
    tally = _Tally(naming, steps)
    stored: list[Buffer] = []
    for place in _statements(_Place(kernel.body), tally.steps_of):
        if isinstance(place.statement, Row):
            stored.append(place.statement.target)
            _count_row(tally, place.statement)
        elif isinstance(place.statement, ForeignCall):
            stored += place.statement.targets
            _count_callback(tally, place, place.statement)
        elif isinstance(place.statement, Store):
            stored.append(place.statement.buffer)
            _count_store(tally, place, place.statement)
        else:
            for load in dict.fromkeys(loads(place.statement)):
                tally.add_reads(load.buffer, tally.executed(place, all_of(load.conditions)))
    if _is_hidden_work(kernel.body, tally.read_everywhere):
        tally.exact = False
    for buffer in effects(kernel.body).touched:
        if buffer.space in MEMORY:
            tally.add(arrays=tally.size(size_in_bytes(buffer)))
    loops = tuple((symbol, _site(built, _stored_in(repeat.body))) for repeat, symbol in tally.steps.items())
    site = _site(built, stored)
    return KernelCost(**tally.sums, name=kernel.name, site=site, exact=tally.exact, loops=loops)


def _site(built: Built, stored: Iterable[Buffer]) -> Site | None:
    """The line of the last of these buffers that has one."""
    sites = (built.origins.of_store(buffer) for buffer in reversed([*stored]))
    return next((site for site in sites if site is not None), None)


def _is_hidden_work(body: Stmt, read_everywhere: Mapping[Buffer, bool]) -> bool:
    """Whether a mask hides a variable at some positions, where it may not be computed; matrix products are."""
    hidden = {buffer for buffer, everywhere in read_everywhere.items() if not everywhere}
    nests = [part for part in walk_statements(body) if isinstance(part, Nest)] if hidden else []
    return not hidden <= {buffer for s in nests if is_contraction(s) for buffer in _stored_in(s)}


class _Place(NamedTuple):
    """A statement in loops, executed if all conditions are >= 0; at most that often if not `exact`.

    Inside of a loop whose number of steps is data, loops round that loop are in `outside`: its steps are counted over
    all of their iterations.
    """

    statement: Stmt
    loops: tuple[Round, ...] = ()
    conditions: tuple[Index, ...] = ()
    exact: bool = True
    outside: tuple[Round, ...] = ()


def _statements(place: _Place, counted: Callable[[Repeat], None]) -> Iterator[_Place]:
    """The stores, functions of rows, branches and tests of a nest. Loops that end by a test are `counted`."""
    s = place.statement
    if isinstance(s, Nest):
        stored = _stored_in(s.body).keys()
        rounds = tuple(Round(head.loop, stored) for head in s.heads if isinstance(head, For))
        yield from _statements(place._replace(statement=s.body, loops=place.loops + rounds), counted)
    elif isinstance(s, Repeat):
        rounds = (Round(s.loop, _stored_in(s).keys(), whole=True),)
        if is_endless(s):
            counted(s)
            inside = _Place(s.body, rounds, outside=place.outside + place.loops)
        else:
            inside = place._replace(statement=s.body, loops=place.loops + rounds, exact=place.exact and s.test is None)
        if s.test is not None:
            yield from (place, inside._replace(statement=s))
        yield from _statements(inside, counted)
    elif isinstance(s, If):
        yield place
        yield from _statements(place._replace(statement=s.yes, conditions=place.conditions + s.conditions), counted)
        if s.no is not None:
            one = len(s.conditions) == 1
            others = tuple(-c - 1 for c in s.conditions) if one else ()  # not c >= 0: 0 <= -c - 1
            other = place._replace(statement=s.no, conditions=place.conditions + others, exact=place.exact and one)
            yield from _statements(other, counted)
    elif isinstance(s, (Store, Row, ForeignCall)):
        yield place
    else:
        for part in parts(s):
            yield from _statements(place._replace(statement=part), counted)


def _stored_in(s: Stmt) -> dict[Buffer, None]:
    """The buffers that a statement stores to, variables included, in order."""
    stored: dict[Buffer, None] = {}
    for part in walk_statements(s):
        if isinstance(part, Store):
            stored[part.buffer] = None
        else:
            stored |= dict.fromkeys(used_whole(part).writes) if isinstance(part, (Row, ForeignCall, Repeat)) else {}
    return stored


class _Tally:
    """Sums of quantities, in the user's names for sizes."""

    def __init__(self, naming: Substitution, names: Callable[[], Symbol]) -> None:
        self.sums = dict.fromkeys(QUANTITIES, NOTHING)
        self.exact = True
        self.steps: dict[Repeat, Symbol] = {}
        self.read_everywhere: dict[Buffer, bool] = {}  # for variables
        self._steps: dict[Loop, Index] = {}
        self._naming, self._names = naming, names

    def steps_of(self, repeat: Repeat) -> None:
        """Introduce a symbol for the number of steps of a loop."""
        self.steps[repeat] = self._names()
        self._steps[repeat.loop] = of(self.steps[repeat])

    def add(self, **quantities: Count) -> None:
        for name, count in quantities.items():
            self.sums[name] += count

    def add_reads(self, buffer: Buffer, number: Count) -> None:
        if buffer.space in MEMORY:
            self.add(reads=number, bytes_read=number * ratio(buffer.dtype.itemsize))

    def add_writes(self, buffer: Buffer, number: Count) -> None:
        if buffer.space in MEMORY:
            self.add(writes=number, bytes_written=number * ratio(buffer.dtype.itemsize))

    def size(self, p: Index) -> Count:
        return ratio(self._naming(p))

    def executed(self, place: _Place, where: Where = EVERYWHERE, depth: int | None = None) -> Count:
        """How often a place is executed at these positions; or a value that is computed in `depth` of its loops."""
        loops = tuple(r.loop for r in place.loops)
        depth = len(loops) if depth is None else depth - len(place.outside)
        together = where.conditions
        terms = where.terms if together is None else ((together, 1),)
        if _depends_on_outside(place, terms):  # the result is then a bound
            outside = tuple(r.loop for r in place.outside)
            loops, depth, place = outside + loops, depth + len(outside), place._replace(exact=False)

        def times(conditions: Iterable[Index]) -> Executions:
            of_term = sorted(conditions, key=lambda p: p.key)
            return executions(loops, (*place.conditions, *of_term), depth, self._steps)

        counted = [(times(term), n) for term, n in terms]
        number = total(times_term.number * ratio(n) for times_term, n in counted)
        is_bound = all(times_term.exact or n > 0 for times_term, n in counted)
        exact = place.exact and where.is_known and all(times_term.exact for times_term, _ in counted)
        if any(term for term, _ in terms) and (not is_bound or number.degree > times(()).number.degree):
            # The terms do not cancel: another bound is better.
            number, exact = times(()).number, False
        self.exact &= exact
        return ratio(self._naming(number.numerator), number.denominator)

    def log2(self, p: Index) -> Count:
        return log2(self._naming(p))


def _depends_on_outside(place: _Place, terms: Iterable[tuple[Term, int]]) -> bool:
    """Whether the number of executions per step depends on loops round the loop whose number of steps is data."""
    outside = {r.loop for r in place.outside}
    indices = (*(r.loop.extent for r in place.loops), *place.conditions, *(p for term, _ in terms for p in term))
    return any(not outside.isdisjoint(loops_in(p)) for p in indices)


@lru_cache(maxsize=1 << 12)
def _weights(store: Store) -> Mapping[Expr, tuple[int, int]]:
    """The number of operations of each part of a value, and how many are special. A select by position is free, since
    loops are split where it changes. A negation that is only added is free: the sum becomes a difference."""
    from_elements: set[Expr] = set()
    weights: dict[Expr, tuple[int, int]] = {}
    negated: dict[Expr, bool] = {store.value: store.reduce is Reduce.SUM}  # whether all uses of a part subtract it
    for e in walk((store.value,)):
        if isinstance(e, Load) or not from_elements.isdisjoint(e.args):
            from_elements.add(e)
        chooses = isinstance(e, Apply) and e.op is Op.SELECT and e.operands[0] not in from_elements
        if isinstance(e, Apply) and not chooses and (e in from_elements or e.dtype is not bool_):
            weights[e] = OPERATIONS.get(e.op, 1), INFO[e.op].weight >= _SPECIAL
        subtracted = _subtracted(e)
        for k, a in enumerate(e.args):
            negated[a] = negated.get(a, True) and k in subtracted
    return {e: weight for e, weight in weights.items() if not (_is_negative(e) and negated[e])}


def _subtracted(e: Expr) -> tuple[int, ...]:
    """The numbers of the operands, negations, that a sum subtracts; of a product in a sum, one of its factors."""
    if not isinstance(e, Apply) or e.op not in (Op.ADD, Op.FMA):
        return ()
    choices: tuple[tuple[int, ...], ...] = ((1, 0),) if e.op is Op.ADD else ((0, 1), (2,))
    return tuple(k for choice in choices for k in [k for k in choice if _is_negative(e.operands[k])][:1])


def _is_negative(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is Op.NEG


def _count_store(tally: _Tally, place: _Place, store: Store) -> None:
    weights = _weights(store)
    together: dict[tuple[Where, int], tuple[int, int]] = {}
    for part in parts_of(store, (*place.outside, *place.loops)):
        if isinstance(part.of, Load):
            buffer = part.of.buffer
            if buffer.space in MEMORY:
                tally.add_reads(buffer, tally.executed(place, part.where, part.depth))
            elif buffer is not store.buffer:
                tally.read_everywhere[buffer] = tally.read_everywhere.get(buffer, False) or part.where == EVERYWHERE
        elif isinstance(part.of, Store):
            number = tally.executed(place, part.where)
            tally.add_writes(store.buffer, number)
            if store.reduce is not None:
                tally.add_reads(store.buffer, number)
                added = _OF_COMPLEX[store.reduce] if store.buffer.dtype.is_complex else 1
                tally.add(operations=number * ratio(added))
        else:
            weight, before = weights.get(part.of, (0, 0)), together.get((part.where, part.depth), (0, 0))
            together[part.where, part.depth] = before[0] + weight[0], before[1] + weight[1]
    for (where, depth), (operations, special) in together.items():
        if operations:
            number = tally.executed(place, where, depth)
            tally.add(operations=number * ratio(operations), special=number * ratio(special))


def _count_row(tally: _Tally, row: Row) -> None:
    """A row function is alone in its kernel and covers its buffers."""
    for source in row.sources:
        tally.add_reads(source, tally.size(product(source.shape)))
    elements = tally.size(product(row.target.shape))
    tally.add_writes(row.target, elements)
    keys = row.sources[0] if row.function is RowOp.SEARCH else row.target
    tally.add(comparisons=elements * tally.log2(keys.shape[-1]))


def _count_callback(tally: _Tally, place: _Place, callback: ForeignCall) -> None:
    """The data that is passed, and the declared operations; those of the user's code are unknown."""
    times = tally.executed(place)
    routine, rank = callback.routine, len(callback.calls)
    if isinstance(routine, MatrixFunction):
        factor, sizes = routine.operations([source.shape[rank:] for source in callback.sources])
        count = tally.size(product(callback.calls) * sizes) * ratio(factor.numerator, factor.denominator)
        if MATRICES[routine.op].is_transform:
            count = count * tally.log2(callback.sources[0].shape[-2])
        tally.add(operations=times * count)
        tally.exact = False
    elif isinstance(routine, KernelSource) and routine.operations is not None:
        points = product((*callback.calls, *callback.sizes[: len(routine.grid)]))
        tally.add(operations=times * tally.size(points) * ratio(routine.operations))
    else:
        tally.exact = False
    for source in callback.sources:
        tally.add_reads(source, times * tally.size(product(source.shape)))
    for target in callback.targets:
        tally.add_writes(target, times * tally.size(product(target.shape)))
