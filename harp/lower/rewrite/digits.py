"""Loops whose position is divided become loops over its digits, so that no index contains a division.

    for i < m*n: out[i] = x[i % n]         ->  for q < m, r < n: out[n*q + r] = x[r]          a tile
    for i < n: out[i] = v[i//2] if i % 2 == 0 else x[i]
        ->  for q < n//2, r < 2: ...; for i (the remainder): ...                               every second element

    for i < n, j < m: out[i, j] = v[i//2, j] if i % 2 == 0 else x[i, j]
        ->  for q < n//2 { for j < m: out[2*q, j] = ...; for j < m: out[2*q + 1, j] = ... }; ...        every second row

A quotient that cancels in the offset of an element, as in a view of an array as a vector, does not count. If the extent
is not known to be a multiple of the divisor, which must then be a small constant, the remaining positions get a loop of
their own. Few positions of an innermost loop are unrolled: out[2*q] = ...; out[2*q + 1] = ...
"""

from __future__ import annotations

from collections.abc import Iterator

from harp.lower.loopir.conditions import conditions
from harp.lower.loopir.effects import loads
from harp.lower.loopir.loops import MEMORY, For, Kernel, LoopKind, Nest, Stmt, Store, offset, walk
from harp.lower.loopir.nests import (
    FreshLoops,
    is_elementwise_or_sums,
    is_plain,
    is_sequential,
    is_straight,
    nest,
    rebuilt,
    renamed,
    sequence,
    with_loops,
)
from harp.lower.loopir.products import is_contraction
from harp.trace.index.bounds import exact_quotient, nonnegative
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import FloorDiv, Index, Loop, loops_in, of, value_atoms
from harp.trace.scalar.expr import Position
from harp.trace.scalar.expr import walk as walk_expr

# The largest divisor that need not divide the extent, and the most positions that are unrolled.
_SMALL, _WRITTEN_OUT = 16, 8


def digits(kernel: Kernel) -> Kernel:
    """The kernel, with loops over digits."""
    return kernel.with_body(over_digits(FreshLoops(kernel), kernel.body))


def over_digits(fresh: FreshLoops, s: Stmt) -> Stmt:
    """The statement, with loops over digits."""
    if not is_plain(s) or is_sequential(s) or is_contraction(s):
        return s
    if isinstance(s, Nest) and is_elementwise_or_sums(s):
        divided = _divided(fresh, s)
        if divided is not s:
            return divided
    return rebuilt(s, lambda part: over_digits(fresh, part))


def _divided(fresh: FreshLoops, s: Nest) -> Stmt:
    heads = [h for h in s.heads if isinstance(h, For)]
    for place, head in enumerate(heads):
        loop = head.loop
        if head.kind is not LoopKind.PLAIN or loops_in(loop.extent):
            continue
        for divisor in _divisors(s.body, loop):
            parts = _by_digits(fresh, heads, place, divisor, s.body)
            if parts is not None:
                return sequence(over_digits(fresh, part) for part in parts)
    return s


def _by_digits(fresh: FreshLoops, heads: list[For], place: int, divisor: Index, body: Stmt) -> list[Stmt] | None:
    loop = heads[place].loop
    count = exact_quotient(loop.extent, divisor)
    exact = count is not None
    if count is None:
        if divisor.constant is None or divisor.constant > _SMALL or loop.extent.constant is not None:
            return None
        count = floordiv(loop.extent, divisor)
    high, q = fresh.loop(count)
    if place == len(heads) - 1 and (divisor.constant or _WRITTEN_OUT + 1) <= _WRITTEN_OUT and is_straight(body):
        each = sequence(renamed(body, {loop: q * divisor + r}) for r in range(divisor.constant or 0))
        whole = nest((*heads[:place], *high), each)
    elif (divisor.constant or _WRITTEN_OUT + 1) <= _WRITTEN_OUT and is_straight(body) and _is_asked(body, loop):
        inner = [nest(heads[place + 1 :], body)] * (divisor.constant or 0)
        each = sequence(with_loops(fresh, s, {loop: q * divisor + r}) for r, s in enumerate(inner))
        whole = nest((*heads[:place], *high), each)
    else:
        low, r = fresh.loop(divisor)
        whole = nest((*heads[:place], *high, *low, *heads[place + 1 :]), renamed(body, {loop: q * divisor + r}))
    if exact:
        return [whole]
    rest, position = fresh.loop(loop.extent - count * divisor)
    left = renamed(body, {loop: count * divisor + position})
    return [whole, nest((*heads[:place], *rest, *heads[place + 1 :]), left)]


def _is_asked(body: Stmt, loop: Loop) -> bool:
    """Whether conditions depend on the position; these are decided once its digits are constants."""
    return any(loop in loops_in(p) for p in conditions(body))


def _divisors(body: Stmt, loop: Loop) -> list[Index]:
    """The divisors of the position along the loop, smallest digits first."""
    found = {a.den for p in _indices(body) for a in value_atoms(p) if isinstance(a, FloorDiv) and _is_digit(a, loop)}
    return sorted(found, key=lambda den: (len(den.terms), den.key))


def _is_digit(quotient: FloorDiv, loop: Loop) -> bool:
    """Whether a quotient is i//d, or (i + 1)//d, which is known when the last digit is a constant."""
    shift, divisor = (quotient.num - of(loop)).constant, quotient.den.constant
    if shift is None or shift == 0:
        return shift == 0
    return divisor is not None and divisor <= _WRITTEN_OUT and not nonnegative(quotient.den - loop.extent)


def _indices(body: Stmt) -> Iterator[Index]:
    """The offsets of loads and stores, and the positions and conditions in values."""
    for s in walk(body):
        if not isinstance(s, Store):
            continue
        for buffer, index in [(s.buffer, s.index), *((e.buffer, e.index) for e in loads(s))]:
            yield from (offset(buffer, index),) if buffer.space in MEMORY else index
        for e in walk_expr((s.value,)):
            if isinstance(e, Position):
                yield e.index
        for load in loads(s):
            yield from load.conditions
