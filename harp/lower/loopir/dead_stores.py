"""Dead stores: to variables that nothing reads, or that are known, and of what an element holds already.

    v = 0; for k: v += x[k]; out[i] = 1    ->    out[i] = 1
    v = 0; out[i] = out[i] - v*0           ->    out[i] = out[i] - 0*0    ->    nothing

They are left where a condition on the position is known: so a sum that a mask hides is not computed.
"""

from __future__ import annotations

from harp.lower.loopir.effects import loads, used_whole
from harp.lower.loopir.loops import Alloc, Buffer, If, Load, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import rebuilt
from harp.trace.scalar.expr import Const, Expr, rewrite

_NOTHING = Seq(())


def without_dead_stores(s: Stmt) -> Stmt:
    """The statement without them: the same object, if there are none."""
    made = _without_nothing(rebuilt(s, without_dead_stores))
    if isinstance(made, Store):
        return _NOTHING if is_there_already(made) else made
    if not isinstance(made, Alloc) or made.buffer.space is not Space.REG:
        return made
    known = _known(made)
    if known is None and _is_read(made.buffer, made.body):
        return made
    return without_dead_stores(_without(made.buffer, known, made.body))


def _without_nothing(s: Stmt) -> Stmt:
    """Nothing, if that is all that it does; a branch without its other side, if that is nothing."""
    if isinstance(s, (Nest, Alloc)):
        return _NOTHING if _is_nothing(s.body) else s
    if isinstance(s, If) and (s.no is None or _is_nothing(s.no)):
        return _NOTHING if _is_nothing(s.yes) else s if s.no is None else If(s.conditions, s.yes)
    return s


def _is_nothing(s: Stmt) -> bool:
    return isinstance(s, Seq) and not s.parts


def is_there_already(s: Store) -> bool:
    """Whether an element gets what it holds."""
    value = s.value
    same = isinstance(value, Load) and (value.buffer, value.index, value.conditions) == (s.buffer, s.index, ())
    return same and s.reduce is None


def _is_read(variable: Buffer, s: Stmt) -> bool:
    """Whether anything but its own next value depends on it."""
    others = (part for part in walk(s) if not (isinstance(part, Store) and part.buffer is variable))
    used = any(load.buffer is variable for part in others for load in loads(part))
    return used or variable in used_whole(s).touched


def _known(s: Alloc) -> Const | None:
    """The constant that a variable holds, which is set once, and so before all that reads it, and read by values."""
    stores = [part for part in walk(s.body) if isinstance(part, Store) and part.buffer is s.buffer]
    at_once = isinstance(s.body, Seq) and any(part in stores for part in s.body.parts)
    others = (part for part in walk(s.body) if not isinstance(part, Store))
    is_asked = any(load.buffer is s.buffer for part in others for load in loads(part))
    is_whole = s.buffer in used_whole(s.body).touched
    if len(stores) != 1 or stores[0].reduce is not None or not at_once or is_asked or is_whole:
        return None
    value = stores[0].value
    # An integer may also be a place in an array, which is no value.
    return value if isinstance(value, Const) and value.dtype.is_inexact else None


def _without(variable: Buffer, known: Const | None, s: Stmt) -> Stmt:
    """The statement without stores to a variable, which is known where it is read."""
    if not isinstance(s, Store):
        return rebuilt(s, lambda part: _without(variable, known, part))
    if s.buffer is variable:
        return _NOTHING

    def leaf(e: Expr) -> Expr:
        return known if known is not None and isinstance(e, Load) and e.buffer is variable else e

    value = rewrite((s.value,), leaf)[0]
    return s if value is s.value else Store(s.buffer, s.index, value, s.reduce)
