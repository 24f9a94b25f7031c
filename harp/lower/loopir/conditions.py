"""The conditions on which the values of statements depend, and statements where some of these are known.

    x[i - 1] if i - 1 >= 0 else 0              ->  x[i - 1], where i - 1 >= 0 is known to hold
    select(lt([i], [n]), a, b)                 ->  b, where n - i - 1 >= 0 is known not to hold

A value depends on a condition p >= 0 if it loads elements that are there only then, or compares positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import attrs

from harp.lower.loopir.loops import Load, Stmt, Store, walk
from harp.lower.loopir.nests import rebuilt
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply, const
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

Facts = Mapping[Index, bool]  # of conditions p >= 0


def conditions(s: Stmt) -> tuple[Index, ...]:
    """The index expressions p for which the values of a straight statement ask whether p >= 0, each once."""
    found: dict[Index, None] = {}
    for store in (part for part in walk(s) if isinstance(part, Store)):
        for e in walk_expr((store.value,)):
            found |= dict.fromkeys(e.conditions if isinstance(e, Load) else asked(e))
    return tuple(found)


@lru_cache(maxsize=1 << 14)
def asked(e: Expr) -> tuple[Index, ...]:
    """The conditions of a comparison of positions: all hold, or the comparison does not.

    P < Q  ->  Q - P - 1 >= 0;  P == Q  ->  P - Q >= 0 and Q - P >= 0
    """
    if not isinstance(e, Apply) or e.op not in (Op.LT, Op.EQ):
        return ()
    sides = [_index(a) for a in e.operands]
    if sides[0] is None or sides[1] is None:
        return ()
    difference = sides[1] - sides[0]
    return (difference - 1,) if e.op is Op.LT else (difference, -difference)


def _index(e: Expr) -> Index | None:
    if isinstance(e, Position):
        return e.index
    return ZERO + int(e.value) if isinstance(e, Const) and e.dtype.is_integer else None


def given(s: Stmt, facts: Facts) -> Stmt:
    """The statement where these conditions are known to hold, or not to."""
    if isinstance(s, Store):
        return attrs.evolve(s, value=_value(s.value, facts))
    return rebuilt(s, lambda part: given(part, facts))


def _value(value: Expr, facts: Facts) -> Expr:
    """The value; of a choice by what is known, only the part that is chosen is looked at."""
    new: dict[Expr, Expr] = {}
    stack = [value]
    while stack:
        e = stack[-1]
        needed = _needed(e, new)
        missing = [a for a in needed if a not in new]
        stack += missing
        if not missing:
            stack.pop()
            new[e] = _known(e, tuple(new[a] for a in needed), facts)
    return new[value]


def _needed(e: Expr, new: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The operands on which the value of an expression depends, as far as is known."""
    if not isinstance(e, Apply) or e.op is not Op.SELECT:
        return e.operands if isinstance(e, Apply) else ()
    condition, yes, no = e.operands
    made = new.get(condition)
    if made is None:
        return (condition,)
    return (yes if made.value else no,) if isinstance(made, Const) else e.operands


def _known(e: Expr, args: tuple[Expr, ...], facts: Facts) -> Expr:
    """An expression of new operands, or what it is known to be."""
    if isinstance(e, Load):
        return _load(e, facts)
    if not isinstance(e, Apply):
        return e
    if e.op is Op.SELECT and len(args) == 1:
        return args[0]
    answers = [facts.get(p) for p in asked(e)]
    if False in answers:
        return const(False, bool_)
    if answers and None not in answers:
        return const(True, bool_)
    return e if args == e.operands else apply(e.op, *args, cast_to=e.dtype)


def _load(e: Load, facts: Facts) -> Expr:
    left = tuple(p for p in e.conditions if not facts.get(p, False))
    if any(p in facts for p in left):
        assert e.fill is not None
        return e.fill
    return e if left == e.conditions else Load(e.buffer, e.index, left, e.fill if left else None)
