"""When two objects are the same: interning, and what tells apart static arguments and keys of dicts of arrays.

Interned objects with equal content are the same object, so equality is `is` and hashing costs nothing. The table is
weak: a node lives as long as somebody outside holds it. The lock guards only the miss path, where two threads could
otherwise both insert. C takes a dead node out of the table: Python code would run the handlers of signals, and what
these raise is lost there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import partial
from operator import methodcaller
from typing import Any, TypeVar, cast
from weakref import _remove_dead_weakref, ref  # type: ignore[attr-defined]  # what WeakValueDictionary uses

import attrs
import numpy as np

from harp.locks import forkable_lock

T = TypeVar("T")


class _Entry(ref[Any]):
    """Calls `remove` of itself when its object dies."""

    __slots__ = ("remove",)
    remove: Callable[[], object]


_table: dict[tuple[Hashable, ...], _Entry] = {}
_removal: Callable[[_Entry], object] = methodcaller("remove")
_lock = forkable_lock(sys.modules[__name__])
_defaults: dict[type, tuple[Hashable, ...]] = {}


def _padding(cls: type) -> tuple[Hashable, ...]:
    """For each field the value that it has when it is left out, so that leaving it out makes no other key."""
    found = _defaults[cls] = tuple(cast(Hashable, a.default) for a in attrs.fields(cls) if a.init)
    return found


class Interned(type):
    """Metaclass: `Class(*fields)` returns the one object with these fields.

    The key is the fields themselves. Their hashes are computed by C, or an object would run Python when it dies. A
    class whose fields do not compare by content (floats: NaN, -0.0) stores them in a form that does.
    """

    def __call__(cls: type[T], *fields: Hashable) -> T:
        padding = _defaults.get(cls) or _padding(cls)
        key: tuple[Hashable, ...] = (cast(Hashable, cls), *fields)
        if len(fields) < len(padding):
            key += padding[len(fields) :]
        reference = _table.get(key)
        if reference is not None:
            found: T | None = reference()
            if found is not None:
                return found
        fresh: T = type.__call__(cls, *fields)
        remove = partial(_remove_dead_weakref, _table, key)
        with _lock:
            reference = _table.get(key)
            faster: T | None = None if reference is None else reference()
            if faster is not None:  # another thread was
                return faster
            entry = _Entry(fresh, _removal)
            entry.remove = remove
            _table[key] = entry
            return fresh


class InternedByName(Interned):
    """The same for classes whose fields may be named, as `attrs.evolve` does."""

    def __call__(cls: type[T], *fields: Hashable, **named: Hashable) -> T:
        rest = [a for a in attrs.fields(cast(Any, cls)) if a.init][len(fields) :]
        return Interned.__call__(cls, *fields, *(named.get(a.name, a.default) for a in rest))


class InternedBase:
    """Copying gives the same object back; pickling re-interns."""

    __slots__ = ("__weakref__",)

    def __copy__(self: T) -> T:
        return self

    def __deepcopy__(self: T, memo: dict[int, object]) -> T:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        fields = [a.name for a in type(self).__attrs_attrs__ if a.init]  # type: ignore[attr-defined]
        return type(self), tuple(getattr(self, name) for name in fields)


_TOLD_APART_BY_EQUALITY = frozenset((int, str, bool, bytes, type(None)))


def identity(value: object) -> Hashable:
    """Equal for values that a function cannot tell apart: 1 is not 1.0 or True, 0.0 is not -0.0, NaN is NaN.

    Raises TypeError or ValueError for what cannot be hashed or compared.
    """
    kind = type(value)
    if kind in _TOLD_APART_BY_EQUALITY:
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, float):
        return kind, float.hex(value)
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return kind, tuple(map(identity, value))
    if isinstance(value, frozenset) and kind.__eq__ is frozenset.__eq__:
        return kind, frozenset(map(identity, value))
    hash(value)
    if not bool(value == value):  # asks what a look-up would ask: an array of answers has no truth value
        raise ValueError("a value must equal itself")
    return kind, value
