"""The parts of a value: at which positions each is computed, and in which loops.

    for i < n: for j < n: v += select(lt([j], [i + 1]), mul(a[i], b[j]), 0)

    mul, b[j]    where i - j >= 0: loops are split at selects by position, which cost nothing
    a[i]         once for each i, since it is invariant along j
    v += ...     where i - j >= 0: adding the sum of nothing changes nothing

A set of positions is a polynomial over conditions, each of which is 1 where it holds and 0 elsewhere: `a*b` is where
both hold, `1 - a` where one does not, and `a + b - a*b` where at least one holds. It is summed over loops term by term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from harp.lower.loopir.conditions import asked
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Buffer, Load, Store, indirect_loads
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ZERO, Index, Indirect, Loop, indirect_in, loops_in, split_linear
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Const, Expr, Position, const, walk
from harp.trace.scalar.ops import Op

# The most terms of a polynomial over conditions; larger ones are unknown.
_MOST_TERMS = 32
# The budget of a proof that one condition implies another.
_FEW_STEPS = 100

Term = frozenset[Index]  # conditions that all hold


class Where(NamedTuple):
    """A set of positions: a sum of terms with coefficients; or an unknown subset of that sum."""

    terms: tuple[tuple[Term, int], ...]
    is_known: bool = True

    def __and__(self, other: Where) -> Where:
        if EVERYWHERE in (self, other):
            return other if self == EVERYWHERE else self
        if not (self.is_known and other.is_known):
            return UNKNOWN
        return _sum((_joined(a | b), m * n) for a, m in self.terms for b, n in other.terms)

    def __or__(self, other: Where) -> Where:
        if self == other or NOWHERE in (self, other):
            return other if self == NOWHERE else self
        both = self & other
        return self._plus(other)._plus(both, -1)

    def without(self, other: Where) -> Where:
        """The positions that are not in `other`."""
        return self._plus(self & other, -1)

    def _plus(self, other: Where, factor: int = 1) -> Where:
        if not (self.is_known and other.is_known):
            return UNKNOWN
        return _sum((*self.terms, *((term, factor * n) for term, n in other.terms)))

    @property
    def conditions(self) -> Term | None:
        """Conditions that hold exactly at these positions, if there are any: for a - a*b, a and not b."""
        (whole, sign), *rest = sorted(self.terms, key=lambda term: len(term[0])) or [(frozenset(), 0)]
        if not rest and sign == 1:
            return whole
        if len(rest) == 1 and (sign, rest[0][1]) == (1, -1) and whole < rest[0][0]:
            first, *others = rest[0][0] - whole
            return whole | {-first - 1} if not others else None
        return None


EVERYWHERE, NOWHERE = Where(((frozenset(), 1),)), Where(())
UNKNOWN = Where(EVERYWHERE.terms, False)


def _sum(terms: Iterable[tuple[Term | None, int]]) -> Where:
    coefficients: dict[Term, int] = {}
    for term, n in terms:
        if term is not None:
            coefficients[term] = coefficients.get(term, 0) + n
        if len(coefficients) > _MOST_TERMS:
            return UNKNOWN
    return Where(tuple((term, n) for term, n in coefficients.items() if n))


@lru_cache(maxsize=1 << 14)
def _joined(term: Term) -> Term | None:
    """The conditions without those that others imply; None if they exclude each other."""
    remaining = sorted(term, key=lambda p: p.key)
    for p in tuple(remaining):
        others = [q for q in remaining if q is not p]
        if any(nonnegative(-p - q - 1, _FEW_STEPS) for q in (ZERO, *others)):
            return None
        if any(nonnegative(p - q, _FEW_STEPS) for q in (ZERO, *others)):
            remaining = others
    return frozenset(remaining)


def all_of(conditions: Sequence[Index]) -> Where:
    """The positions at which all conditions hold."""
    term = _joined(frozenset(conditions))
    return NOWHERE if term is None else Where(((term, 1),))


class Part(NamedTuple):
    """An operation, a load, or the store itself; `depth` is the number of loops that it is computed in."""

    of: Expr | Store
    where: Where
    depth: int


class Round(NamedTuple):
    """A loop round a statement, and the buffers that are stored to inside of it. No part of a value is hoisted out of a
    loop that is `whole`, which repeats whole nests."""

    loop: Loop
    stored: Set[Buffer]
    whole: bool = False


def parts_of(store: Store, loops: Sequence[Round]) -> list[Part]:
    """The operations and loads of a store. A part that is invariant along a loop is computed before it, whichever
    positions of the loop need it."""
    depths: dict[Expr, int] = {}
    truths: dict[Expr, Where | None] = {}
    for e in walk((store.value,)):
        depths[e] = max([_depth(e, loops), *(depths[a] for a in e.args)])
        truths[e] = _truth(e, truths) if e.dtype is bool_ else None
    changed = _changed(store, store.value, truths)
    deepest = max((depths[e] for e in _choices(store.value, truths)), default=0)
    needed: dict[Expr, Where] = {}
    for depth in sorted(set(depths.values())):
        known = {e: where if depths[e] <= depth else None for e, where in truths.items()}
        whole = changed if deepest <= depth else EVERYWHERE
        needed |= {e: where for e, where in _needed_where(store.value, whole, known).items() if depths[e] == depth}
    parts = [Part(e, where, depths[e]) for e, where in needed.items() if isinstance(e, Apply)]
    loads: dict[Load, Where] = {}
    for e, where in needed.items():
        for load in value_loads(e) if isinstance(e, (Load, Position)) else ():
            loads[load] = loads.get(load, NOWHERE) | (where & all_of(load.conditions))
    for load in indirect_loads(store.index):
        loads[load] = loads.get(load, NOWHERE) | changed
    parts += [Part(load, where, _depth(load, loops)) for load, where in loads.items()]
    return [part for part in (Part(store, changed, len(loops)), *parts) if part.where != NOWHERE]


def _depth(e: Expr, loops: Sequence[Round]) -> int:
    """The number of loops that a leaf depends on, up to the innermost one."""
    least = max((k for k, around in enumerate(loops, 1) if around.whole), default=0)
    if isinstance(e, Load):
        return max(least, _of_load(e.buffer, (*e.index, *e.conditions), loops))
    return max(least, _of_load(None, (e.index,), loops)) if isinstance(e, Position) else least


def _of_load(buffer: Buffer | None, indices: Sequence[Index], loops: Sequence[Round]) -> int:
    mentioned = {loop for p in indices for loop in loops_in(p)}
    buffers = {buffer, *(_array(i) for p in indices for i in indirect_in(p))}
    changing = (k for k, r in enumerate(loops, 1) if r.loop in mentioned or not r.stored.isdisjoint(buffers))
    return max(changing, default=0)


def _array(indirect: Indirect) -> Buffer:
    assert isinstance(indirect.array, Buffer)
    return indirect.array


def _needed_where(value: Expr, whole: Where, truths: Mapping[Expr, Where | None]) -> dict[Expr, Where]:
    """The positions at which each part of a value is needed, given those of the value; users precede operands."""
    needed = {value: whole}
    for e in reversed(list(walk((value,)))):
        here, chosen = needed[e], _chosen(e, truths)
        places = [here] * len(e.args) if chosen is None else [NOWHERE, here & chosen, here.without(chosen)]
        for operand, where in zip(e.args, places, strict=True):
            needed[operand] = needed.get(operand, NOWHERE) | where
    return needed


def _chosen(e: Expr, truths: Mapping[Expr, Where | None]) -> Where | None:
    """The positions at which a select by position takes its first value."""
    return truths[e.operands[0]] if isinstance(e, Apply) and e.op is Op.SELECT else None


def _choices(e: Expr, truths: Mapping[Expr, Where | None]) -> Iterator[Expr]:
    """The conditions that select the operand, and the loads under conditions among the operands."""
    stack, seen = [e], set[Expr]()
    while stack:
        e = stack.pop()
        if e in seen:
            continue
        seen.add(e)
        if _chosen(e, truths) is not None:
            yield e.args[0]
            stack += e.args[1:]
        elif isinstance(e, Load) and e.conditions:
            yield e


def _truth(e: Expr, truths: Mapping[Expr, Where | None]) -> Where | None:
    """The positions at which a comparison of positions holds, if loops are split there."""
    if isinstance(e, Const):
        return EVERYWHERE if e.value else NOWHERE
    if not isinstance(e, Apply):
        return None
    conditions = asked(e)
    if conditions:
        return all_of(conditions) if all(map(_is_cut, conditions)) else None
    operands = [truths.get(a) for a in e.operands]
    known = [where for where in operands if where is not None]
    if len(known) < len(operands) or e.op not in (Op.AND, Op.OR, Op.NOT):
        return None
    if e.op is Op.NOT:
        return EVERYWHERE.without(known[0])
    return known[0] & known[1] if e.op is Op.AND else known[0] | known[1]


def _is_cut(p: Index) -> bool:
    """Whether a condition changes once along each of its loops."""
    splits = [split_linear(p, loop) for loop in loops_in(p)]
    return bool(splits) and not indirect_in(p) and all(s is not None and s[0].constant for s in splits)


def _changed(store: Store, value: Expr, truths: Mapping[Expr, Where | None]) -> Where:
    """The positions at which a store changes its element: not if it adds an empty sum, or stores the element's own
    value."""
    done: dict[Expr, Where] = {}
    waiting = [value]
    while waiting:
        e = waiting[-1]
        chosen = _chosen(e, truths)
        undone = [] if chosen is None else [arm for arm in e.args[1:] if arm not in done]
        if undone:
            waiting += undone
            continue
        waiting.pop()
        if chosen is None:
            done[e] = _changed_by(store, e)
        else:
            first, second = (done[arm] for arm in e.args[1:])
            everywhere = first == second == EVERYWHERE
            done[e] = EVERYWHERE if everywhere else (first & chosen) | second.without(chosen)
    return done[value]


def _changed_by(store: Store, e: Expr) -> Where:
    """The same for a value that is not a select."""
    nothing = None if store.reduce is None else const(store.reduce.identity(store.buffer.dtype), store.buffer.dtype)
    if not isinstance(e, Load):
        return NOWHERE if e is nothing else EVERYWHERE
    if nothing is not None and e.fill is nothing and all(map(_is_cut, e.conditions)):
        return all_of(e.conditions)
    same = (e.buffer, e.index, e.conditions) == (store.buffer, store.index, ())
    return NOWHERE if same and store.reduce is None else EVERYWHERE
