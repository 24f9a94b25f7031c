"""Building blocks of rewrites of loop nests: renaming, strides of loads, and loop distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

import attrs

from harp.lower.loopir.effects import indices
from harp.lower.loopir.effects import loads as all_loads
from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Kernel,
    Let,
    LibraryCall,
    Load,
    LocalCall,
    LoopKind,
    Nest,
    Repeat,
    Row,
    Seq,
    Space,
    Stmt,
    Store,
    offset,
    parts,
    walk,
)
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    Index,
    Indirect,
    Loop,
    as_index,
    indirect_in,
    loops_in,
    of,
    split_linear,
)
from harp.trace.scalar.expr import Expr, Position, const, rewrite
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Reduce

_MEMORY = (Space.INPUT, Space.OUTPUT, Space.SCRATCH, Space.THREAD)


@attrs.frozen(repr=False)
class Renaming:
    """Substitutes index expressions for loops, and an array with further indices for each variable.

    The further indices stand before the variable's own, or behind them in the space THREAD.
    """

    loops: Substitution
    variables: Mapping[Buffer, tuple[Buffer, tuple[Index, ...]]]

    indices: Substitution = attrs.field(init=False)

    @indices.default
    def _indices(self) -> Substitution:
        return _Moved(self.loops, self._place) if self.variables else self.loops

    def value(self, e: Expr) -> Expr:
        return rewrite((e,), self._leaf)[0]

    def _leaf(self, e: Expr) -> Expr:
        if isinstance(e, Position):
            return Position(self.indices(e.index))
        if isinstance(e, Load):
            buffer, index = self._place(e.buffer, e.index)
            return Load(buffer, index, self.indices.each(e.conditions), e.fill)
        return e

    def _place(self, buffer: Buffer, index: tuple[Index, ...]) -> tuple[Buffer, tuple[Index, ...]]:
        array, place = self.variables.get(buffer, (buffer, ()))
        here = self.indices.each(index)
        return array, here + place if array.space is Space.THREAD else place + here

    def _heads(self, head: Head) -> tuple[Head, ...]:
        """The head with renamed extents; none for a loop that has become a single iteration."""
        if isinstance(head, For):
            extent = self.indices(head.loop.extent)
            if extent is head.loop.extent:
                return (head,)
            return () if extent is ONE else (For(Loop(head.loop.axis, extent), head.kind),)
        if isinstance(head, Let):
            return (Let(head.symbol, self.indices(head.index)),)
        assert isinstance(head, Digits)
        digits = tuple(Loop(loop.axis, self.indices(loop.extent)) for loop in head.loops)
        return (Digits(digits, self.indices(head.flat)),)

    def whole(self, buffer: Buffer) -> Buffer:
        """The replacement of a buffer that is used as a whole or by rows: another one of its shape."""
        array, place = self.variables.get(buffer, (buffer, ()))
        assert not place, "a part of an array"
        return array

    def statement(self, s: Stmt) -> Stmt:
        if isinstance(s, Store):
            buffer, index = self._place(s.buffer, s.index)
            return Store(buffer, index, self.value(s.value), s.reduce)
        if isinstance(s, Row):
            lane = Loop(s.lane.axis, self.indices(s.lane.extent))
            index = (*self.indices.each(s.at), self.indices(s.start) + of(lane))
            target, *sources = (self.whole(buffer) for buffer in (s.target, *s.sources))
            return attrs.evolve(s, lane=lane, index=index, target=target, sources=tuple(sources))
        if isinstance(s, ForeignCall):
            targets, operands = (tuple(map(self.whole, group)) for group in (s.targets, s.sources))
            return attrs.evolve(
                s, calls=self.indices.each(s.calls), targets=targets, sources=operands, sizes=self.indices.each(s.sizes)
            )
        if isinstance(s, Repeat):
            loop = Loop(s.loop.axis, self.indices(s.loop.extent))
            test = None if s.test is None else self.value(s.test)
            assert test is None or isinstance(test, Load)
            moves = tuple((self.whole(target), self.whole(source)) for target, source in s.moves)
            return Repeat(loop, test, self.statement(s.body), moves)
        inner = rebuilt(s, self.statement)
        if isinstance(inner, Nest):
            return nest([new for head in inner.heads for new in self._heads(head)], inner.body)
        return attrs.evolve(inner, conditions=self.indices.each(inner.conditions)) if isinstance(inner, If) else inner


class _Moved(Substitution):
    """A substitution that also replaces the arrays of indirect indices."""

    def __init__(self, loops: Substitution, place: Callable[..., tuple[Buffer, tuple[Index, ...]]]) -> None:
        super().__init__(loops.mapping)
        self._place = place

    def indirect(self, atom: Indirect) -> Indirect:
        array, at = self._place(atom.array, atom.at)
        return Indirect(array, at, self(atom.size), atom.misses)


def rebuilt(s: Stmt, part: Callable[[Stmt], Stmt]) -> Stmt:
    """The statement with `part` applied to the statements directly inside of it, if `is_plain` accepts it.

    It is the same object if all parts are, so identity tells whether a pass has changed a statement.
    """
    inside = parts(s)
    if not inside:
        return s
    new = tuple(map(part, inside))
    if all(a is b for a, b in zip(inside, new, strict=True)):
        return s
    if isinstance(s, Seq):
        return sequence(new)
    if isinstance(s, Alloc):
        return Alloc(s.buffer, *new)
    if isinstance(s, Nest):
        return nest(s.heads, *new)
    if isinstance(s, Repeat):
        return attrs.evolve(s, body=new[0])
    if isinstance(s, (LibraryCall, LocalCall)):
        return new[0]  # other loops than those of the function
    assert isinstance(s, If)
    return If(s.conditions, *new)


def renamed(s: Stmt, loops: Mapping[Atom, Index]) -> Stmt:
    """The statement with index expressions in place of loops."""
    return Renaming(Substitution(loops), {}).statement(s)


def nest(heads: Iterable[Head], body: Stmt) -> Stmt:
    """`body` inside of heads, from the outside in; merged with a body that is a nest."""
    heads = tuple(heads)
    if not heads:
        return body
    return Nest(heads + body.heads, body.body) if isinstance(body, Nest) else Nest(heads, body)


def sequence(statements: Iterable[Stmt]) -> Stmt:
    """A sequence of statements."""
    flat = [s for part in statements for s in (part.parts if isinstance(part, Seq) else (part,))]
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def start(acc: Buffer, reduce: Reduce) -> Store:
    """acc = the reduction of nothing."""
    return Store(acc, (), const(reduce.identity(acc.dtype), acc.dtype))


def begin(acc: Buffer, reduce: Reduce) -> Store:
    """acc = the neutral element: for a sum of floats that is -0.0."""
    zero = const(reduce.identity(acc.dtype), acc.dtype)
    signed = acc.dtype.is_float or acc.dtype.is_complex
    return Store(acc, (), -zero if reduce is Reduce.SUM and signed else zero)


class FreshLoops:
    """Makes loops of a kernel with new numbers. A later loop has a higher number, as proofs of bounds require."""

    def __init__(self, kernel: Kernel) -> None:
        heads = [h for s in walk(kernel.body) if isinstance(s, Nest) for h in s.heads]
        loops = [h.loop for h in heads if isinstance(h, For)]
        loops += [s.loop for s in walk(kernel.body) if isinstance(s, Repeat)]
        self._next = 1 + max((loop.axis for loop in loops), default=-1)

    def loop(self, extent: Index | int, kind: LoopKind = LoopKind.PLAIN) -> tuple[tuple[For, ...], Index]:
        """The head of a loop and its position; a loop of one iteration has no head."""
        extent = as_index(extent)
        if extent is ONE:
            return (), ZERO
        self._next += 1
        fresh = Loop(self._next - 1, extent)
        return (For(fresh, kind),), of(fresh)


def with_loops(fresh: FreshLoops, s: Stmt, places: Mapping[Atom, Index]) -> Stmt:
    """The statement with new loops in place of its own, and index expressions in place of those outside of it."""
    if isinstance(s, Nest):
        heads: list[For] = []
        for head in s.heads:
            assert isinstance(head, For)
            made, position = fresh.loop(Substitution(places)(head.loop.extent), head.kind)
            heads += made
            places = {**places, head.loop: position}
        return nest(heads, with_loops(fresh, s.body, places))
    if isinstance(s, Store):
        return Renaming(Substitution(places), {}).statement(s)
    inner = rebuilt(s, lambda part: with_loops(fresh, part, places))
    conditions = Substitution(places).each(inner.conditions) if isinstance(inner, If) else ()
    return attrs.evolve(inner, conditions=conditions) if isinstance(inner, If) else inner


@lru_cache(maxsize=1 << 12)
def is_plain(s: Stmt) -> bool:
    """Whether a statement consists of loops, sequences, branches, stores and variables only."""
    if isinstance(s, Nest) and not all(isinstance(h, For) for h in s.heads):
        return False
    return isinstance(s, (Nest, Alloc, Seq, Store, If)) and all(map(is_plain, parts(s)))


def is_sequential(s: Stmt) -> bool:
    """Whether it is a nest with sequential loops."""
    return isinstance(s, Nest) and any(isinstance(h, For) and h.kind is LoopKind.SEQUENTIAL for h in s.heads)


def is_unrolled(s: Stmt) -> bool:
    """Whether some loops of a nest are unrolled; such nests are not rewritten further."""
    return isinstance(s, Nest) and any(isinstance(h, For) and h.kind is LoopKind.UNROLL for h in s.heads)


def is_even(s: Stmt, *loops: Loop) -> bool:
    """Whether inner loops and branches do not depend on these loops, which may then be moved inside of them."""
    inside = list(walk(s))
    asked = [p for part in inside if isinstance(part, If) for p in part.conditions]
    asked += [h.loop.extent for part in inside if isinstance(part, Nest) for h in part.heads if isinstance(h, For)]
    return not any(loop in loops_in(p) for p in asked for loop in loops)


def is_straight(s: Stmt) -> bool:
    """Whether it contains no loops and branches, and stores to each buffer once."""
    inside = list(walk(s))
    stores = [part for part in inside if isinstance(part, Store)]
    plain = all(isinstance(part, (Store, Alloc, Seq)) for part in inside) and not any(store.reduce for store in stores)
    return plain and len({store.buffer for store in stores}) == len(stores)


def is_elementwise_or_sums(s: Nest) -> bool:
    """Whether a nest only stores elements, or reduces: then its loops may be split."""
    return is_straight(s.body) or any(True for _ in accumulations(s))


def makes_index_arrays(s: Stmt) -> bool:
    """Whether an index array is made here. Its elements are named by their index, not by their value, so they may
    depend on loops that the index does not contain."""
    stored = {part.buffer for part in walk(s) if isinstance(part, Store)}
    return any(indirect.array in stored for part in walk(s) for p in indices(part) for indirect in indirect_in(p))


def accumulation(s: Stmt) -> tuple[tuple[For, ...], Store] | None:
    """(loops, store) of a reduction: loops whose body only accumulates into a scalar variable."""
    if not isinstance(s, Nest) or not isinstance(s.body, Store) or s.body.index or s.body.buffer.space is not Space.REG:
        return None
    store = s.body
    chained = any(isinstance(e, Load) and e.buffer is store.buffer for e in store.value.args)
    heads = tuple(h for h in s.heads if isinstance(h, For))
    return (heads, store) if (store.reduce is not None or chained) and len(heads) == len(s.heads) else None


def accumulations(s: Stmt) -> Iterator[tuple[tuple[For, ...], Store]]:
    """The reductions inside of a statement."""
    for part in walk(s):
        one = accumulation(part)
        if one is not None:
            yield one


def loads(e: Expr) -> list[Load]:
    """The loads of a value from memory, without those from registers and tiles."""
    return [x for x in walk_expr((e,)) if isinstance(x, Load) and x.buffer.space in _MEMORY]


def reads(s: Stmt) -> Iterator[Load]:
    """The loads from memory inside of a statement, also those in index expressions."""
    return (load for part in walk(s) for load in all_loads(part) if load.buffer.space in _MEMORY)


def stride(load: Load, loop: Loop) -> int | None:
    """The number of elements by which a loop moves a load; None if it is not constant."""
    moving = [axis for axis, p in enumerate(load.index) if loop in loops_in(p)]
    if not moving:
        return 0
    alone = moving == [len(load.index) - 1]
    split = split_linear(load.index[-1] if alone else offset(load.buffer, load.index), loop)
    return None if split is None else split[0].constant


def score(accesses: Iterable[Load], loop: Loop) -> int:
    """The number of loads that the loop moves by one element, minus those that it moves otherwise."""
    strides = [stride(load, loop) for load in accesses]
    return sum(1 if s in (1, -1) else 0 if s == 0 else -1 for s in strides)


@attrs.frozen(repr=False)
class Tile:
    """Loops with independent iterations that are moved inside; `room` bounds the extent of each."""

    heads: tuple[For, ...]
    room: tuple[int, ...]
    unroll: bool = False  # unroll the first of them, if it is inside of other loops


Places = Mapping[Buffer, tuple[Buffer, tuple[Index, ...]]]


def privatise(s: Stmt, tile: Tile) -> Stmt:
    """Move the loops of a tile in to single stores, or SIMD loops; each variable gets an element for each iteration.

    for l { acc = 0; for k: acc += v; out = acc }
        ->  acc[room]; for l: acc[l] = 0; for k { for l: acc[l] += v }; for l: out = acc[l]
    """
    return _privatise(s, tile, {}, False)


def _privatise(s: Stmt, tile: Tile, places: Places, inside: bool) -> Stmt:
    if isinstance(s, Alloc):
        extents = tuple(map(as_index, tile.room))
        array = Buffer(s.buffer.name, s.buffer.dtype, extents + s.buffer.shape, Space.LOCAL)
        if s.buffer.space is Space.THREAD:  # a row for each iteration; vectors run across the rows
            array = Buffer(s.buffer.name, s.buffer.dtype, s.buffer.shape + extents, Space.THREAD)
        place = array, tuple(of(h.loop) for h in tile.heads)
        return Alloc(array, _privatise(s.body, tile, {**places, s.buffer: place}, inside))
    if isinstance(s, Store) or _is_simd(s):
        return _in_tile(s, tile, places, inside)
    if isinstance(s, If) and _differs(s.conditions, tile, places):
        apart = attrs.evolve(tile, heads=tuple(For(h.loop) for h in tile.heads))
        return _in_tile(s, apart, places, inside)
    if isinstance(s, Nest):
        return nest(s.heads[:1], _privatise(nest(s.heads[1:], s.body), tile, places, True))
    if isinstance(s, Seq):
        return sequence(_sharing_loops(s.parts, tile, places, inside))
    return rebuilt(s, lambda part: _privatise(part, tile, places, inside))


def _sharing_loops(parts: Sequence[Stmt], tile: Tile, places: Places, inside: bool) -> Iterator[Stmt]:
    """Consecutive stores share loops."""
    for are_stores, group in groupby(parts, lambda part: isinstance(part, Store)):
        if are_stores:
            yield _in_tile(sequence(group), tile, places, inside)
        else:
            yield from (_privatise(part, tile, places, inside) for part in group)


def _in_tile(s: Stmt, tile: Tile, places: Places, inside: bool) -> Stmt:
    heads = tile.heads
    if tile.unroll and inside:
        heads = (For(heads[0].loop, LoopKind.UNROLL), *heads[1:])
    return nest(heads, Renaming(Substitution({}), places).statement(s))


def _differs(conditions: Sequence[Index], tile: Tile, places: Places) -> bool:
    """Whether the iterations of a tile may take different branches."""
    of_tile = {h.loop for h in tile.heads}
    return any(of_tile & loops_in(p) or any(i.array in places for i in indirect_in(p)) for p in conditions)


def _is_simd(s: Stmt) -> bool:
    head = s.heads[0] if isinstance(s, Nest) else None
    return isinstance(head, For) and head.kind is LoopKind.SIMD
