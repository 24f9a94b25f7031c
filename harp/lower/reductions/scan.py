"""Running sums along long rows are split into chunks, which threads share, and of which several run side by side.

    for row { acc = id; for i < n { acc += v(row, i); out[row, i] = f(acc) } }
        ->  if n >= LONG:
                parts[rows, chunks]; carries[rows, chunks + 1];
                for row, chunk { part = id; for i < CHUNK { part += v; parts[row, chunk] = part } }
                for row { acc = id; for chunk { carries[row, chunk] = acc; acc += parts[row, chunk] } ... }
                for row, chunk { part = id; for i < CHUNK { part += v; out[...] = f(carries[row, chunk] + part) } }
                for row { acc = carries[row, the last]; for i (the remainder) { acc += v; out[...] = f(acc) } }
            else: as it was

Here `id` is the identity of the operation, such as 0 for sums. Each addition in a chunk waits for the one before it, so
ROWS chunks run side by side:

    for group, row { part[ROWS] = id;
                     for i < CHUNK { for unroll r < ROWS { part[r] += v; parts[row, ROWS*group + r] = part[r] } } }

Where a row is split depends on its length only, so its bits are the same for any number of rows and threads. A part is
added in the order of its elements both times: the sum at the end of a chunk is the carry of the next one, so running
sums of positive numbers never decrease. (G. E. Blelloch: "Prefix sums and their applications", 1990.) Products of
floats are not split: a part may overflow where the whole product is 0.
"""

from __future__ import annotations

import attrs

from harp.lower.cost_model import count_operations
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import MEMORY, Alloc, Buffer, For, Load, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import (
    FreshLoops,
    Renaming,
    Tile,
    begin,
    is_even,
    is_sequential,
    loads,
    nest,
    privatise,
    rebuilt,
    renamed,
    score,
    sequence,
    stride,
)
from harp.lower.rewrite.loop_primitives import Context, peel, specialise, split, strips
from harp.lower.schedule.build import holds
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import ZERO, Index, Loop, of
from harp.trace.scalar.expr import Expr, apply, rewrite, select
from harp.trace.scalar.ops import Reduce

# Rows or chunks that run side by side: as many as additions that are in flight at once.
ROWS = 8
# The elements of a chunk (consecutive chunks run side by side), and the length of the shortest row that is split.
CHUNK, LONG = (1 << 12) + 16, 1 << 16
# The most operations of a value that may be computed twice.
_TWICE = 8


@attrs.frozen(repr=False)
class Scan:
    """A running reduction: the loops over rows, the loop along a row with its body, the step in that body, and the
    initial store."""

    heads: tuple[For, ...]
    loop: Loop
    body: Stmt
    step: Store
    reduce: Reduce
    first: Store

    @property
    def acc(self) -> Buffer:
        return self.step.buffer

    @property
    def added(self) -> Expr:
        """The term of a step, computed from memory before the loop: values that the body stores replace the loads that
        follow these stores."""
        made: dict[tuple[Buffer, tuple[Index, ...]], Expr] = {}

        def leaf(e: Expr) -> Expr:
            if not isinstance(e, Load) or (e.buffer, e.index) not in made:
                return e
            value = made[e.buffer, e.index]
            return value if e.fill is None else select(holds(e.conditions), value, e.fill)

        for store in (part for part in walk(self.body) if isinstance(part, Store)):
            (value,) = rewrite((store.value,), leaf)
            if store is self.step:
                return value
            made[store.buffer, store.index] = value
        raise AssertionError("the step is in the body")

    @property
    def backward(self) -> bool:
        """Whether it runs against the order of memory."""
        stores = (part for part in walk(self.body) if isinstance(part, Store) and part.buffer.space in MEMORY)
        return any(stride(Load(store.buffer, store.index), self.loop) == -1 for store in stores)


def cut_scan(fresh: FreshLoops, s: Stmt, scratch: list[Buffer]) -> Stmt | None:
    """The statement with the rule applied, if it fits; new scratch buffers are appended to the list."""
    scan = _match(s)
    if scan is None:
        return None
    count, rows = floordiv(scan.loop.extent, ROWS * CHUNK), tuple(h.loop.extent for h in scan.heads)
    parts = Buffer(f"parts{len(scratch)}", scan.acc.dtype, (*rows, count * ROWS), Space.SCRATCH)
    carries = Buffer(f"carries{len(scratch)}", scan.acc.dtype, (*rows, count * ROWS + 1), Space.SCRATCH)
    scratch += [parts, carries]
    cut = sequence(
        (
            _totals(fresh, scan, parts),
            _carries(fresh, scan, parts, carries),
            _results(fresh, scan, carries),
            _left(fresh, scan, carries),
        )
    )
    return specialise((scan.loop.extent - LONG,), cut, s)


def _match(s: Stmt) -> Scan | None:
    scan = match_scan(s)
    return scan if scan is not None and scan.loop.extent.constant is None and _pays(scan) else None


def match_scan(s: Stmt) -> Scan | None:
    """The running reduction that a statement computes, if its terms are in memory before its loop."""
    heads = tuple(h for h in s.heads if isinstance(h, For)) if isinstance(s, Nest) else ()
    if isinstance(s, Nest) and (len(heads) < len(s.heads) or any(h.kind is not LoopKind.PLAIN for h in heads)):
        return None
    inner = s.body if isinstance(s, Nest) else s
    if not isinstance(inner, Alloc) or inner.buffer.space is not Space.REG or not isinstance(inner.body, Seq):
        return None
    start, *others = inner.body.parts
    along = others[0] if len(others) == 1 else None
    if not isinstance(start, Store) or start.buffer is not inner.buffer or not isinstance(along, Nest):
        return None
    head, inside = along.heads[0], list(walk(along.body))
    steps = [part for part in inside if isinstance(part, Store) and part.buffer is inner.buffer]
    if len(along.heads) > 1 or not isinstance(head, For) or not all(isinstance(p, (Alloc, Seq, Store)) for p in inside):
        return None
    if head.kind is not LoopKind.SEQUENTIAL:
        return None
    if len(steps) != 1 or steps[0].reduce is None:
        return None
    scan = Scan(heads, head.loop, along.body, steps[0], steps[0].reduce, start)
    return scan if _is_there(scan) else None


def _pays(scan: Scan) -> bool:
    """Whether it runs along memory, and is long enough for chunks."""
    value = scan.added
    accesses = loads(value)
    if score(accesses, scan.loop) <= 0 or any(score(accesses, head.loop) > 0 for head in scan.heads):
        return False
    if scan.reduce is Reduce.PROD and not scan.acc.dtype.is_integer:
        return False
    return count_operations(value) <= _TWICE


def _is_there(scan: Scan) -> bool:
    """Whether terms are in memory before the loop; an element may be overwritten at its own position."""
    stored = {part.buffer: part.index for part in walk(scan.body) if isinstance(part, Store) and part.reduce is None}
    return all(
        load.buffer.space in MEMORY and stored.get(load.buffer, load.index) == load.index
        for load in value_loads(scan.added)
    )


def _place(scan: Scan, at: Index) -> tuple[Index, ...]:
    return (*(of(head.loop) for head in scan.heads), at)


def _chunks(fresh: FreshLoops, scan: Scan) -> tuple[tuple[For, ...], Index, Index]:
    """The loops over all chunks, the index of a chunk in `parts`, and the position of its first element.

    Groups of chunks are numbered in the order of memory, so that parallel iterations are proved to be independent.
    """
    count = floordiv(scan.loop.extent, ROWS * CHUNK)
    group, g = fresh.loop(count)
    row, r = fresh.loop(ROWS)
    turn = count - 1 - g if scan.backward else g
    return (*group, *scan.heads, *row), g * ROWS + r, (turn * ROWS + r) * CHUNK


def _of_chunk(fresh: FreshLoops, scan: Scan, first: Index) -> tuple[Buffer, tuple[For, ...], Renaming]:
    """An accumulator, the loop along a chunk, and the renaming of the row's accumulator and loop to these."""
    head, i = fresh.loop(CHUNK, LoopKind.SEQUENTIAL)
    part = Buffer(f"{scan.acc.name}_part", scan.acc.dtype, (), Space.REG)
    return part, head, Renaming(Substitution({scan.loop: first + i}), {scan.acc: (part, ())})


def _totals(fresh: FreshLoops, scan: Scan, parts: Buffer) -> Stmt:
    """for row, chunk { part = id; for i < CHUNK { part += v; parts[row, chunk] = part } }"""
    heads, chunk, first = _chunks(fresh, scan)
    part, along, renaming = _of_chunk(fresh, scan, first)
    kept = Store(parts, _place(scan, chunk), Load(part, ()))
    step = attrs.evolve(scan.step, value=scan.added)
    loop = nest(along, sequence((renaming.statement(step), kept)))
    return nest(heads, Alloc(part, sequence((begin(part, scan.reduce), loop))))


def _carries(fresh: FreshLoops, scan: Scan, parts: Buffer, carries: Buffer) -> Stmt:
    """for row { acc = id; for chunk { carries[row, chunk] = acc; acc += parts[row, chunk] }; the last carry = acc }"""
    acc, count = scan.acc, floordiv(scan.loop.extent, ROWS * CHUNK)
    group, k = fresh.loop(count, LoopKind.SEQUENTIAL)
    row, r = fresh.loop(ROWS, LoopKind.SEQUENTIAL)
    place = _place(scan, (count - 1 - k if scan.backward else k) * ROWS + r)
    step = (Store(carries, place, Load(acc, ())), Store(acc, (), Load(parts, place), scan.reduce))
    last = Store(carries, _place(scan, count * ROWS), Load(acc, ()))
    return nest(scan.heads, Alloc(acc, sequence((scan.first, nest((*group, *row), Seq(step)), last))))


def _results(fresh: FreshLoops, scan: Scan, carries: Buffer) -> Stmt:
    """for row, chunk { part = id; for i < CHUNK { part += v; out[...] = f(carries[row, chunk] + part) } }"""
    heads, chunk, first = _chunks(fresh, scan)
    part, along, renaming = _of_chunk(fresh, scan, first)
    carry = Load(carries, _place(scan, chunk))
    loop = nest(along, _behind(carry, part, scan.reduce, renaming.statement(scan.body)))
    return nest(heads, Alloc(part, sequence((begin(part, scan.reduce), loop))))


def _behind(carry: Load, part: Buffer, reduce: Reduce, s: Stmt) -> Stmt:
    """The statement, in which all stores but that of a part's running value see it combined with the carry."""

    def carried(e: Expr) -> Expr:
        return apply(reduce.value, carry, e) if isinstance(e, Load) and e.buffer is part else e

    if isinstance(s, Store) and s.buffer is not part:
        return Store(s.buffer, s.index, rewrite((s.value,), carried)[0], s.reduce)
    return rebuilt(s, lambda inner: _behind(carry, part, reduce, inner))


def _left(fresh: FreshLoops, scan: Scan, carries: Buffer) -> Stmt:
    """for row { acc = the last carry; for i (the remainder) { acc += v; out[...] = f(acc) } }"""
    count = floordiv(scan.loop.extent, ROWS * CHUNK)
    head, i = fresh.loop(scan.loop.extent - count * (ROWS * CHUNK), LoopKind.SEQUENTIAL)
    rest = Renaming(Substitution({scan.loop: count * (ROWS * CHUNK) + i}), {}).statement(scan.body)
    start = Store(scan.acc, (), Load(carries, _place(scan, count * ROWS)))
    return nest(scan.heads, in_parts(fresh, Alloc(scan.acc, sequence((start, nest(head, rest))))))


def in_parts(fresh: FreshLoops, s: Stmt) -> Stmt:
    """The statement with long running float sums as running sums of parts, each added to the sum before it.

    acc = id; for i { acc += v(i); out[i] = f(acc) }
        ->  acc = id; for p { part = id; for i < CHUNK { part += v; out[p*CHUNK + i] = f(acc + part) }; acc += part }
    """
    if not isinstance(s, Alloc):
        return rebuilt(s, lambda part: in_parts(fresh, part)) if isinstance(s, Seq) else s
    steps = s.body.parts if isinstance(s.body, Seq) else (s.body,)
    scan = match_scan(Alloc(s.buffer, sequence(steps[:2]))) if len(steps) > 1 else None
    loop = None if scan is None else _in_parts(fresh, scan)
    if loop is None:
        return rebuilt(s, lambda part: in_parts(fresh, part))
    return Alloc(s.buffer, sequence((steps[0], loop, *(in_parts(fresh, step) for step in steps[2:]))))


def _in_parts(fresh: FreshLoops, scan: Scan) -> Stmt | None:
    """The loop of a running sum, by parts; None if the sum is exact, or one part is enough for all sizes."""
    acc = scan.acc
    blocks = split(fresh, scan.loop.extent, CHUNK, LoopKind.SEQUENTIAL)
    if scan.reduce is not Reduce.SUM or not acc.dtype.is_inexact or not blocks.heads:
        return None
    part = Buffer(f"{acc.name}_part", acc.dtype, (), Space.REG)
    head, i = fresh.loop(blocks.length, LoopKind.SEQUENTIAL)
    renaming = Renaming(Substitution({scan.loop: blocks.start + i}), {acc: (part, ())})
    body = _behind(Load(acc, ()), part, scan.reduce, renaming.statement(scan.body))
    step = Store(acc, (), Load(part, ()), scan.reduce)
    return nest(blocks.heads, Alloc(part, sequence((begin(part, scan.reduce), nest(head, body), step))))


def interleaved(context: Context, s: Stmt) -> Stmt | None:
    """A rule for `harp.lower.pipeline`.

    for row { acc = id; for i { acc += x[row, i]; out[row, i] = acc } }
        ->  for rb { acc[R] = id; for i { for unroll r: acc[r] += x[rb*R + r, i]; ... } }; for row (the remainder) ...
    for column { acc = id; for i { acc += x[i, column]; out[i, column] = acc } }
        ->  for jb { acc[W] = id; for i { for simd l: acc[l] += x[i, jb*W + l]; ... } }
    """
    if not isinstance(s, Nest) or not is_running(s.body):
        return None
    *outer, row = [h for h in s.heads if isinstance(h, For)]
    if not is_even(s.body, row.loop):
        return None
    stores = [part for part in walk(s.body) if isinstance(part, Store)]
    accesses = [load for store in stores for load in loads(store.value)]
    if score(accesses, row.loop) > 0:
        return nest(outer, strips(context, in_parts(context.fresh, s.body), row.loop))
    rows = peel(context.fresh, row.loop.extent, ROWS)
    parts: list[Stmt] = []
    if rows.whole is not ZERO:
        lane, r = context.fresh.loop(ROWS)
        tile = Tile(lane, (ROWS,), unroll=True)
        parts.append(nest(rows.heads, privatise(renamed(s.body, {row.loop: rows.block * ROWS + r}), tile)))
    if rows.rest is not ZERO:
        single, position = context.fresh.loop(rows.rest)
        parts.append(nest(single, renamed(s.body, {row.loop: rows.whole + position})))
    return nest(outer, sequence(parts))


def is_running(s: Stmt) -> bool:
    """Whether it is one sequential loop, or nested ones, with the variables that they carry."""
    inside = list(walk(s))
    nests = [part for part in inside if isinstance(part, Nest)]
    if isinstance(s, Nest) or not nests or any(len(part.heads) != 1 for part in nests):
        return False
    beside = len(nests) - sum(isinstance(part, Nest) for outer in nests for part in walk(outer.body))
    plain = all(isinstance(part, (Nest, Alloc, Seq, Store)) for part in inside)
    return plain and beside == 1 and all(map(is_sequential, nests))
