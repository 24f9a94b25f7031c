"""The conditions on which values of statements depend; simplification of statements where some conditions are known,
and removal of stores that are then dead.

    x[i - 1] if i - 1 >= 0 else 0              ->  x[i - 1], where i - 1 >= 0 is known to hold
    select(lt([i], [n]), a, b)                 ->  b, where n - i - 1 >= 0 is known not to hold

A value depends on a condition p >= 0 if it loads elements under it, or compares positions.

Dead stores are those to variables that are not read, or are constants, and those of values that the element holds
already; so a sum that a mask hides is not computed:

    v = 0; for k: v += x[k]; out[i] = 1    ->    out[i] = 1
    v = 0; out[i] = out[i] - v*0           ->    out[i] = out[i] - 0*0    ->    nothing
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import attrs

from harp.lower.loopir.effects import loads, used_whole
from harp.lower.loopir.loops import Alloc, Buffer, If, Load, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import rebuilt
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.scalar.dtypes import bool_
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply, const, rewrite
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

Facts = Mapping[Index, bool]  # for conditions p >= 0: whether they hold


def conditions(s: Stmt) -> tuple[Index, ...]:
    """The index expressions p on whose condition p >= 0 the values of a straight statement depend, each once."""
    asked_of: dict[Index, None] = {}
    for store in (part for part in walk(s) if isinstance(part, Store)):
        for e in walk_expr((store.value,)):
            asked_of |= dict.fromkeys(e.conditions if isinstance(e, Load) else asked(e))
    return tuple(asked_of)


@lru_cache(maxsize=1 << 14)
def asked(e: Expr) -> tuple[Index, ...]:
    """The conditions of a comparison of positions, which holds if all of them do.

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
    """The statement, simplified by facts about conditions."""
    if isinstance(s, Store):
        return attrs.evolve(s, value=_value(s.value, facts))
    return rebuilt(s, lambda part: given(part, facts))


def _value(value: Expr, facts: Facts) -> Expr:
    """The value, simplified by facts; only the chosen operand of a decided select is visited."""
    new: dict[Expr, Expr] = {}
    stack = [value]
    while stack:
        e = stack[-1]
        needed = _deciding_operands(e, new)
        missing = [a for a in needed if a not in new]
        stack += missing
        if not missing:
            stack.pop()
            new[e] = _known(e, tuple(new[a] for a in needed), facts)
    return new[value]


def _deciding_operands(e: Expr, new: Mapping[Expr, Expr]) -> tuple[Expr, ...]:
    """The operands on which the value of an expression depends, given those that are simplified already."""
    if not isinstance(e, Apply) or e.op is not Op.SELECT:
        return e.operands if isinstance(e, Apply) else ()
    condition, yes, no = e.operands
    decided = new.get(condition)
    if decided is None:
        return (condition,)
    return (yes if decided.value else no,) if isinstance(decided, Const) else e.operands


def _known(e: Expr, args: tuple[Expr, ...], facts: Facts) -> Expr:
    """The expression over new operands, simplified by facts."""
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
    undecided = tuple(p for p in e.conditions if not facts.get(p, False))
    if any(p in facts for p in undecided):
        assert e.fill is not None
        return e.fill
    return e if undecided == e.conditions else Load(e.buffer, e.index, undecided, e.fill if undecided else None)


_NOTHING = Seq(())


def without_dead_stores(s: Stmt) -> Stmt:
    """The statement without dead stores: the same object if there are none."""
    made = _without_nothing(rebuilt(s, without_dead_stores))
    if isinstance(made, Store):
        return _NOTHING if is_there_already(made) else made
    if not isinstance(made, Alloc) or made.buffer.space is not Space.REG:
        return made
    known = _constant(made)
    if known is None and _is_read(made.buffer, made.body):
        return made
    return without_dead_stores(_without(made.buffer, known, made.body))


def _without_nothing(s: Stmt) -> Stmt:
    """The statement without parts that do nothing; a branch without its other side if that does nothing."""
    if isinstance(s, (Nest, Alloc)):
        return _NOTHING if _is_nothing(s.body) else s
    if isinstance(s, If) and (s.no is None or _is_nothing(s.no)):
        return _NOTHING if _is_nothing(s.yes) else s if s.no is None else If(s.conditions, s.yes)
    return s


def _is_nothing(s: Stmt) -> bool:
    return isinstance(s, Seq) and not s.parts


def is_there_already(s: Store) -> bool:
    """Whether a store leaves its element as it is."""
    value = s.value
    same = isinstance(value, Load) and (value.buffer, value.index, value.conditions) == (s.buffer, s.index, ())
    return same and s.reduce is None


def _is_read(variable: Buffer, s: Stmt) -> bool:
    """Whether anything but the variable's own next value depends on it."""
    others = (part for part in walk(s) if not (isinstance(part, Store) and part.buffer is variable))
    used = any(load.buffer is variable for part in others for load in loads(part))
    return used or variable in used_whole(s).touched


def _constant(s: Alloc) -> Const | None:
    """The constant of a variable that is set once, before all reads, and read in values only."""
    stores = [part for part in walk(s.body) if isinstance(part, Store) and part.buffer is s.buffer]
    at_once = isinstance(s.body, Seq) and any(part in stores for part in s.body.parts)
    others = (part for part in walk(s.body) if not isinstance(part, Store))
    is_asked = any(load.buffer is s.buffer for part in others for load in loads(part))
    is_whole = s.buffer in used_whole(s.body).touched
    if len(stores) != 1 or stores[0].reduce is not None or not at_once or is_asked or is_whole:
        return None
    value = stores[0].value
    # An integer may also be an index, which is not in a value.
    return value if isinstance(value, Const) and value.dtype.is_inexact else None


def _without(variable: Buffer, known: Const | None, s: Stmt) -> Stmt:
    """The statement without stores to a variable, whose loads become the constant."""
    if not isinstance(s, Store):
        return rebuilt(s, lambda part: _without(variable, known, part))
    if s.buffer is variable:
        return _NOTHING

    def leaf(e: Expr) -> Expr:
        return known if known is not None and isinstance(e, Load) and e.buffer is variable else e

    value = rewrite((s.value,), leaf)[0]
    return s if value is s.value else Store(s.buffer, s.index, value, s.reduce)
