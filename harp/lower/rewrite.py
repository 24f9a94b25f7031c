"""What the rewrites of loop nests are made of: renaming, the strides of loads, and the distribution of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import attrs

from harp.lower.cost import mentioned
from harp.lower.loops import (
    Alloc,
    Buffer,
    For,
    Head,
    If,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.trace.division import Substitution
from harp.trace.expr import Expr, Position, rewrite
from harp.trace.expr import walk as walk_expr
from harp.trace.index import Atom, Index, Loop, of, split_linear

# An element of a scalar variable that has become an array: the array, and the position in it.
Element = tuple[Buffer, tuple[Index, ...]]


@attrs.frozen
class Renaming:
    """Puts index expressions for loops, and elements of arrays for scalar variables."""

    loops: Substitution
    scalars: Mapping[Buffer, Element]

    def value(self, e: Expr) -> Expr:
        return rewrite((e,), self._leaf)[0]

    def _leaf(self, e: Expr) -> Expr:
        if isinstance(e, Position):
            return Position(self.loops(e.index))
        if isinstance(e, Load):
            buffer, index = self.scalars.get(e.buffer, (e.buffer, e.index))
            return Load(buffer, self.loops.each(index), self.loops.each(e.conditions), e.fill)
        return e

    def store(self, s: Store) -> Store:
        buffer, index = self.scalars.get(s.buffer, (s.buffer, s.index))
        return Store(buffer, self.loops.each(index), self.value(s.value), s.reduce)

    def statement(self, s: Stmt) -> Stmt:
        """A statement of nests, sequences, stores and variables."""
        if isinstance(s, Store):
            return self.store(s)
        if isinstance(s, Seq):
            return Seq(tuple(map(self.statement, s.parts)))
        if isinstance(s, Alloc):
            return Alloc(s.buffer, self.statement(s.body))
        assert isinstance(s, Nest)
        return Nest(s.heads, self.statement(s.body))


def renamed(s: Stmt, loops: Mapping[Atom, Index]) -> Stmt:
    return Renaming(Substitution(loops), {}).statement(s)


def scalar_to(s: Stmt, scalar: Buffer, array: Buffer, index: tuple[Index, ...]) -> Stmt:
    """The statement with an element of an array for a scalar variable."""
    return Renaming(Substitution({}), {scalar: (array, index)}).statement(s)


class Numbers:
    """Fresh loop numbers of a kernel. A later loop has a higher number, as proofs of bounds want it."""

    def __init__(self, kernel: Kernel) -> None:
        heads = [h for s in walk(kernel.body) if isinstance(s, Nest) for h in s.heads]
        self._next = 1 + max((h.loop.axis for h in heads if isinstance(h, For)), default=-1)

    def loop(self, extent: Index) -> Loop:
        self._next += 1
        return Loop(self._next - 1, extent)


def plain_nest(s: Stmt) -> bool:
    """Whether a statement is made of loops, sequences, stores and scalar variables only."""
    for part in walk(s):
        if isinstance(part, Nest):
            if not all(isinstance(h, For) for h in part.heads):
                return False
        elif isinstance(part, Alloc):
            if part.buffer.shape:
                return False
        elif not isinstance(part, (Seq, Store)):
            return False
    return True


def accumulations(s: Stmt) -> Iterator[tuple[tuple[For, ...], Store]]:
    """The reduce nests: loops whose body only adds to a scalar variable."""
    for part in walk(s):
        if isinstance(part, Nest) and isinstance(part.body, Store) and is_accumulation(part.body):
            heads = tuple(h for h in part.heads if isinstance(h, For))
            if len(heads) == len(part.heads):
                yield heads, part.body


def is_accumulation(s: Store) -> bool:
    """acc reduce= value, or acc = fma(a, b, acc), for a scalar variable."""
    if s.buffer.shape or s.buffer.space is not Space.REG:
        return False
    return s.reduce is not None or any(isinstance(e, Load) and e.buffer is s.buffer for e in s.value.args)


def loads(e: Expr) -> Iterator[Load]:
    """The loads of arrays in a value; scalar variables are left out."""
    return (x for x in walk_expr((e,)) if isinstance(x, Load) and x.index)


def stride(index: tuple[Index, ...], loop: Loop) -> int | None:
    """By how much the last index moves with the loop: 0 if nothing moves, None if it is no number or another moves."""
    if all(loop not in mentioned(p) for p in index):
        return 0
    if any(loop in mentioned(p) for p in index[:-1]):
        return None
    split = split_linear(index[-1], loop)
    return None if split is None else split[0].constant


def score(values: Iterator[Load], loop: Loop) -> int:
    """Loads that move by one element with the loop, less those that move otherwise."""
    strides = [stride(load.index, loop) for load in values]
    return sum(1 if s in (1, -1) else 0 if s == 0 else -1 for s in strides)


def distribute(s: Stmt, heads: tuple[For, ...], unroll: bool = False) -> Stmt:
    """Move loops with independent iterations inwards, to the single stores; scalar variables become arrays.

    for l { acc = 0; for k: acc += v; out = acc }
        ->  acc[..]; for l: acc[l] = 0; for k { for l: acc[l] += v }; for l: out = acc[l]

    With `unroll` the first of the loops is unrolled where it stands inside another one.
    """
    return _distribute(s, heads, unroll, {}, False)


def _distribute(s: Stmt, heads: tuple[For, ...], unroll: bool, arrays: Mapping[Buffer, Element], inside: bool) -> Stmt:
    if isinstance(s, Alloc):
        shape = tuple(_room(h.loop) for h in heads)
        array = Buffer(s.buffer.name, s.buffer.dtype, shape, Space.TILE)
        element = array, tuple(of(h.loop) for h in heads)
        return Alloc(array, _distribute(s.body, heads, unroll, {**arrays, s.buffer: element}, inside))
    if isinstance(s, Seq):
        return Seq(tuple(_distribute(part, heads, unroll, arrays, inside) for part in s.parts))
    if isinstance(s, Nest):
        return Nest(s.heads, _distribute(s.body, heads, unroll, arrays, True))
    assert isinstance(s, Store)
    if unroll and inside:
        heads = (For(heads[0].loop, LoopKind.UNROLL), *heads[1:])
    return Nest(heads, Renaming(Substitution({}), arrays).store(s))


def _room(loop: Loop) -> Index:
    raise NotImplementedError


__all__ = ["Callable", "Head", "If"]
