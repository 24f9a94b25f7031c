"""Interning: objects with equal content are the same object, so equality is `is` and hashing costs nothing.

The table is weak: a node lives as long as somebody outside holds it. The lock guards only the miss path, where two
threads could otherwise both insert.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

import attrs

from harp.locks import forkable_lock

T = TypeVar("T")

_table: weakref.WeakValueDictionary[tuple[Hashable, ...], Any] = weakref.WeakValueDictionary()
# What `_table.get` looks at, a call less; a trace asks some thousand times.
_references: dict[tuple[Hashable, ...], Callable[[], Any]] = _table.data  # type: ignore[attr-defined]
_lock = forkable_lock(sys.modules[__name__])
_defaults: dict[type, tuple[Hashable, ...]] = {}


def _padding(cls: type) -> tuple[Hashable, ...]:
    """For each field the value that it has when it is left out, so that leaving it out makes no other key."""
    found = _defaults[cls] = tuple(cast(Hashable, a.default) for a in attrs.fields(cls) if a.init)
    return found


class Interned(type):
    """Metaclass: `Class(*fields)` returns the one object with these fields.

    The key is the fields themselves. A class whose fields do not compare by content (floats: NaN, -0.0) stores them
    in a form that does.
    """

    def __call__(cls: type[T], *fields: Hashable) -> T:
        padding = _defaults.get(cls) or _padding(cls)
        key: tuple[Hashable, ...] = (cast(Hashable, cls), *fields)
        if len(fields) < len(padding):
            key += padding[len(fields) :]
        reference = _references.get(key)
        if reference is not None:
            found: T | None = reference()
            if found is not None:
                return found
        fresh: T = type.__call__(cls, *fields)
        with _lock:
            kept: T = _table.setdefault(key, fresh)
            return kept


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
