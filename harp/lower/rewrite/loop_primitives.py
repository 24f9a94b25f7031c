"""The primitives from which the schedules of loop nests are composed. Rules decide when they are applied.

    split       for i < n: s(i)    ->  for b < ceil(n/size) { for l < min(size, n - b*size): s(b*size + l) }
    peel        for i < n: s(i)    ->  for b < n//size { for l < size: s(b*size + l) };
                                       for r < n % size: s(n//size*size + r)
    specialise  s                  ->  if conditions: fast, else: s
    rfactor     for k: acc += v(k) ->  for b { part = 0; for k in block b: part += v(k); kept(part) }
    stage       s(x[...])          ->  copy = x[...]; s(copy)
    shrink      x[i, j] = v; s(x)  ->  part[j] = v; s(part)
    privatise   for l { acc; s }   ->  acc[l]; the parts of s, each with a loop over l    (`nests.privatise`)
    strips      for j: s(j)        ->  for b { s, with `for simd l` round its stores }      (split and privatise)
    flat        for i, j: s        ->  for f { digits (i, j) = f: s }
    coalesce    for i, j: s(i, j)  ->  for f: s(f//n, f % n)                              (`coalesce`)

In the literature, `split` is strip mining, `peel` strip mining with a loop for the remainder, `privatise` scalar
expansion and then loop distribution, and `shrink` array contraction. They are legal if the iterations of the loop may
run in the new order: split, peel and coalesce keep the order; privatise needs independent iterations; rfactor adds in
another order, which the blocks determine; staged operands must not be stored to meanwhile. A version of `specialise`
must compute the same bits, or depend only on sizes that all rows of a batch share.

`everywhere` applies a rule to the outermost statements that it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import attrs

from harp.lower.loopir.loops import Alloc, Buffer, Digits, For, Head, If, Load, LoopKind, Space, Stmt, Store
from harp.lower.loopir.nests import (
    FreshLoops,
    Renaming,
    Tile,
    is_plain,
    is_sequential,
    is_unrolled,
    nest,
    privatise,
    rebuilt,
    renamed,
    sequence,
    start,
)
from harp.lower.target import Target
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv, minimum
from harp.trace.index.polynomial import ZERO, Index, Loop
from harp.trace.index.polynomial import product as product_of
from harp.trace.scalar.expr import Expr, rewrite
from harp.trace.scalar.ops import Reduce


class Blocks(NamedTuple):
    """`heads` is the loop over blocks, none if there is certainly one block; `block` is the number of a block, `start`
    its first position, and `length` its size."""

    heads: tuple[For, ...]
    block: Index
    start: Index
    length: Index


def split(fresh: FreshLoops, extent: Index, size: int, kind: LoopKind = LoopKind.PLAIN) -> Blocks:
    """A loop in blocks of this size, the last of which may be shorter. An extent that is certain to fit, and not 0, is
    one block; for 0 there must be no block, since statements that run once for each block may read elements."""
    if nonnegative(size - extent) and nonnegative(extent - 1):
        return Blocks((), ZERO, ZERO, extent)
    heads, block = fresh.loop(ceildiv(extent, size), kind)
    start = block * size
    return Blocks(heads, block, start, minimum(size, extent - start))


class Peeled(NamedTuple):
    """`heads` is the loop over whole blocks, and `block` the number of one; `whole` is the number of positions in all
    of them, and `rest` the number of remaining ones."""

    heads: tuple[For, ...]
    block: Index
    whole: Index
    rest: Index


def peel(fresh: FreshLoops, extent: Index, size: Index | int, kind: LoopKind = LoopKind.PLAIN) -> Peeled:
    """A loop in whole blocks of this size, at least 1, and the remainder."""
    count = floordiv(extent, size)
    heads, block = fresh.loop(count, kind)
    return Peeled(heads, block, count * size, extent - count * size)


def rfactor(
    fresh: FreshLoops, heads: Sequence[For], store: Store, blocks: Blocks, kept: Callable[[Load], Stmt]
) -> Stmt:
    """The partial result of a block of the outermost loop in which `store` reduces, and the statement that uses it.

    After P. Suriana, A. Adams and S. Kamil: "Parallel associative reductions in Halide", 2017.
    """
    (outer, *inner), reduce = heads, store.reduce or Reduce.SUM
    part = Buffer(f"{store.buffer.name}_part", store.buffer.dtype, (), Space.REG)
    head, k = fresh.loop(blocks.length)
    renaming = Renaming(Substitution({outer.loop: blocks.start + k}), {store.buffer: (part, ())})
    reduced = nest((*head, *inner), renaming.statement(store))
    return Alloc(part, sequence((start(part, reduce), reduced, kept(Load(part, ())))))


def specialise(conditions: Iterable[Index], fast: Stmt, otherwise: Stmt) -> Stmt:
    """`fast` if all conditions are >= 0. Conditions that are decided for all sizes are not tested."""
    left = tuple(dict.fromkeys(p for p in conditions if not nonnegative(p)))
    if any(nonnegative(-p - 1) for p in left):
        return otherwise
    return If(left, fast, otherwise) if left else fast


def stage(s: Stmt, copies: Mapping[Load, Load]) -> Stmt:
    """The statement with copies in place of these loads."""

    def leaf(e: Expr) -> Expr:
        return copies.get(e, e) if isinstance(e, Load) else e

    def statement(s: Stmt) -> Stmt:
        if isinstance(s, Store):
            return Store(s.buffer, s.index, rewrite((s.value,), leaf)[0], s.reduce)
        return rebuilt(s, statement)

    return statement(s)


def shrink(s: Stmt, parts: Mapping[Buffer, Buffer], place: Callable[[tuple[Index, ...]], tuple[Index, ...]]) -> Stmt:
    """The statement with parts in place of these arrays; `place` has the index of an element in a part."""

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.buffer not in parts:
            return e
        return Load(parts[e.buffer], place(e.index), e.conditions, e.fill)

    def statement(s: Stmt) -> Stmt:
        if not isinstance(s, Store):
            return rebuilt(s, statement)
        (value,) = rewrite((s.value,), leaf)
        part = parts.get(s.buffer)
        return Store(part or s.buffer, s.index if part is None else place(s.index), value, s.reduce)

    return statement(s)


@attrs.frozen(repr=False)
class Context:
    """The target, and new loops, for rules."""

    target: Target
    fresh: FreshLoops


def strips(context: Context, body: Stmt, column: Loop, width: int | None = None) -> Stmt:
    """for j: body  ->  for jb { for l < min(width, remainder) inside the body }"""
    extent, count, width = column.extent, column.extent.constant, width or context.target.strip
    room = width if count is None else min(max(count, 1), width)
    blocks = split(context.fresh, extent, room)
    head, lane = context.fresh.loop(blocks.length, LoopKind.SIMD)
    inner = renamed(body, {column: blocks.start + lane})
    return nest(blocks.heads, privatise(inner, Tile(head, (room,))) if head else inner)


def flat(context: Context, heads: Sequence[For]) -> tuple[Head, ...]:
    """One merged loop in place of several, so that threads can share all iterations."""
    if len(heads) < 2:
        return tuple(heads)
    head, flat = context.fresh.loop(product_of(h.loop.extent for h in heads))
    return (*head, Digits(tuple(h.loop for h in heads), flat))


Rule = Callable[[Context, Stmt], Stmt | None]  # None where it does not fit


def everywhere(context: Context, rule: Rule, s: Stmt) -> Stmt:
    """The statement with the rule applied to the outermost parts that it fits."""
    if is_plain(s):
        return _in_plain(context, rule, s)
    return rebuilt(s, lambda part: everywhere(context, rule, part))


def _in_plain(context: Context, rule: Rule, s: Stmt) -> Stmt:
    """The same for a plain statement, whose parts are all plain."""
    found = None if is_sequential(s) or is_unrolled(s) else rule(context, s)
    return found if found is not None else rebuilt(s, lambda part: _in_plain(context, rule, part))
