"""The effects of statements, and their parts: index expressions, values, buffers read and written, and the sizes and
loops that they do not bind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from harp.lower.loopir.loops import (
    Alloc,
    Buffer,
    Digits,
    For,
    ForeignCall,
    Head,
    If,
    Let,
    Load,
    Nest,
    Repeat,
    Row,
    Stmt,
    Store,
    indirect_loads,
    parts,
    walk,
)
from harp.trace.index.polynomial import Index, Loop, Symbol, symbols_in, value_atoms
from harp.trace.scalar import expr
from harp.trace.scalar.expr import Position

Name = Loop | Symbol


class Effects(NamedTuple):
    """Buffers by first use; `touched` are all of them. Buffers that are allocated inside are left out."""

    touched: tuple[Buffer, ...]
    reads: frozenset[Buffer]
    writes: frozenset[Buffer]


def loads(stmt: Stmt) -> Iterator[Load]:
    """The loads of this statement itself, also those in index expressions."""
    if isinstance(stmt, Store):
        yield from indirect_loads(stmt.index)
        yield from value_loads(stmt.value)
    elif isinstance(stmt, If):
        yield from _tests(stmt.conditions)
    elif isinstance(stmt, Repeat):
        yield from () if stmt.test is None else value_loads(stmt.test)
    elif isinstance(stmt, Nest):
        yield from indirect_loads(head.index for head in stmt.heads if isinstance(head, Let))
        yield from indirect_loads(head.loop.extent for head in stmt.heads if isinstance(head, For))


@lru_cache(maxsize=1 << 12)
def value_loads(value: expr.Expr) -> tuple[Load, ...]:
    """The loads of a value, also those in index expressions."""
    result: list[Load] = []
    for x in expr.walk((value,)):
        if isinstance(x, Load):
            result += (x, *indirect_loads(x.index, x.conditions), *_tests(x.conditions))
        elif isinstance(x, Position):
            result += indirect_loads((x.index,))
    return tuple(result)


def _tests(conditions: Sequence[Index]) -> Iterator[Load]:
    """The loads in conditions, each under the conditions before it."""
    for number, condition in enumerate(conditions):
        yield from indirect_loads((condition,), tuple(conditions[:number]))


def head_indices(head: Head) -> tuple[Index, ...]:
    """The index expressions that a head evaluates."""
    if isinstance(head, For):
        return (head.loop.extent,)
    if isinstance(head, Let):
        return (head.index, *(p for load in indirect_loads((head.index,)) for p in _strided(load.buffer)))
    assert isinstance(head, Digits)
    return (head.flat, *(loop.extent for loop in head.loops))


def head_names(head: Head) -> tuple[Name, ...]:
    """The names that a head binds."""
    if isinstance(head, For):
        return (head.loop,)
    if isinstance(head, Let):
        return (head.symbol,)
    assert isinstance(head, Digits)
    return head.loops


def _strided(buffer: Buffer) -> tuple[Index, ...]:
    return buffer.shape[1:]


def indices(stmt: Stmt) -> Iterator[Index]:
    """The index expressions of this statement itself, without those of its heads."""
    for load in () if isinstance(stmt, Nest) else loads(stmt):
        yield from (*load.index, *load.conditions, *_strided(load.buffer))
    if isinstance(stmt, Store):
        yield from (*stmt.index, *_strided(stmt.buffer))
        yield from (x.index for x in expr.walk((stmt.value,)) if isinstance(x, Position))
    elif isinstance(stmt, Row):
        yield from (*stmt.at, stmt.start, stmt.lane.extent)
        for buffer in (stmt.target, *stmt.sources):
            yield from _strided(buffer)
            yield buffer.shape[-1]
    elif isinstance(stmt, ForeignCall):
        yield from (*stmt.calls, *stmt.sizes)
        yield from (p for buffer in (*stmt.targets, *stmt.sources) for p in buffer.shape)
    elif isinstance(stmt, If):
        yield from stmt.conditions
    elif isinstance(stmt, Alloc):
        yield from stmt.buffer.shape
    elif isinstance(stmt, Repeat):
        yield stmt.loop.extent
        for buffers in stmt.moves:
            yield from (extent for buffer in buffers for extent in buffer.shape)


def used_whole(stmt: Stmt) -> Effects:
    """The buffers that statements use as a whole: in functions of rows, and by double buffering."""
    reads: dict[Buffer, None] = {}
    writes: dict[Buffer, None] = {}
    for part in walk(stmt):
        used = _uses_whole(part)
        reads |= used.reads
        writes |= used.writes
    return Effects(tuple(reads | writes), frozenset(reads), frozenset(writes))


class _WholeBuffers(NamedTuple):
    reads: dict[Buffer, None]
    writes: dict[Buffer, None]


def _uses_whole(stmt: Stmt) -> _WholeBuffers:
    """The buffers that the statement itself uses as a whole."""
    if isinstance(stmt, Row):
        targets = (stmt.target,) if stmt.work is None else (stmt.target, stmt.work)
        return _WholeBuffers(dict.fromkeys(stmt.sources), dict.fromkeys(targets))
    if isinstance(stmt, ForeignCall):
        return _WholeBuffers(dict.fromkeys((*stmt.sources, *stmt.kept)), dict.fromkeys(stmt.targets))
    moves = stmt.moves if isinstance(stmt, Repeat) else ()
    return _WholeBuffers({source: None for _, source in moves}, {buffer: None for move in moves for buffer in move})


@lru_cache(maxsize=1 << 12)  # passes ask for those of all parts, and leave most parts as they are
def effects(stmt: Stmt) -> Effects:
    """The buffers from outside that a statement reads or writes."""
    used = _uses_whole(stmt)
    read = dict.fromkeys(load.buffer for load in loads(stmt)) | used.reads
    written = used.writes
    if isinstance(stmt, Store):
        written = {stmt.buffer: None}
        if stmt.reduce is not None:
            read[stmt.buffer] = None
    touched, reads, writes = read | written, set(read), set(written)
    for part in parts(stmt):
        inside = effects(part)
        touched |= dict.fromkeys(inside.touched)
        reads |= inside.reads
        writes |= inside.writes
    if isinstance(stmt, Alloc):
        own = {stmt.buffer}
        touched.pop(stmt.buffer, None)
        reads, writes = reads - own, writes - own
    return Effects(tuple(touched), frozenset(reads), frozenset(writes))


def symbols_of(stmt: Stmt, buffers: Sequence[Buffer]) -> tuple[Symbol, ...]:
    """The sizes that a statement over these buffers needs: extents, other sizes in shapes, and those in the
    statement."""
    extents = [extent for buffer in buffers for extent in buffer.shape]
    symbols = {p.atom: None for p in extents if isinstance(p.atom, Symbol)}
    for extent in extents:
        symbols |= dict.fromkeys(sorted(symbols_in(extent), key=lambda s: s.number))
    symbols |= {name: None for name in free_names(stmt) if isinstance(name, Symbol)}
    return tuple(symbols)


def free_names(stmt: Stmt) -> tuple[Name, ...]:
    """The sizes and loops that a statement evaluates and does not bind, in order of first use."""
    names: dict[Name, None] = {}
    _free(stmt, frozenset(), names)
    return tuple(names)


def _free(stmt: Stmt, bound: frozenset[Name], names: dict[Name, None]) -> None:
    """Collect the names that `stmt` evaluates and does not bind."""

    def add(p: Index) -> None:
        for atom in value_atoms(p):
            if isinstance(atom, (Loop, Symbol)) and atom not in bound:
                names[atom] = None

    if isinstance(stmt, Nest):
        for head in stmt.heads:
            for p in head_indices(head):
                add(p)
            bound |= frozenset(head_names(head))
    for p in indices(stmt):
        add(p)
    if isinstance(stmt, Repeat):
        bound |= {stmt.loop}
    for part in parts(stmt):
        _free(part, bound, names)
