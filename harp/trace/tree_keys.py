"""Where a part of a tree is: the keys on the way to it, which are printed as Python reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs


@attrs.frozen
class SequenceKey:
    """The place in a tuple or a list: `[0]`.

    >>> str(SequenceKey(0))
    '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


@attrs.frozen
class DictKey:
    """The key of a dict: `['w']`.

    >>> str(DictKey("w"))
    "['w']"
    """

    key: object

    def __str__(self) -> str:
        return f"[{self.key!r}]"


@attrs.frozen
class GetAttrKey:
    """The name of a field, of named tuples, dataclasses and attrs classes: `.w`.

    >>> str(GetAttrKey("w"))
    '.w'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


@attrs.frozen
class FlattenedIndexKey:
    """The number of a part, of classes whose parts have no names: `[<flat index 0>]`.

    >>> str(FlattenedIndexKey(0))
    '[<flat index 0>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


Key = SequenceKey | DictKey | GetAttrKey | FlattenedIndexKey
Path = tuple[Key, ...]


def keys_of(tree: object, entries: Sequence[object]) -> list[Key]:
    """The keys of the parts of a tree that is none of Python's own, by what optree calls them."""
    fields = getattr(type(tree), "_fields", None)
    if isinstance(tree, tuple) and fields is not None:
        return [GetAttrKey(name) for name in fields]
    if isinstance(tree, Mapping):
        return [DictKey(entry) for entry in entries]
    if isinstance(tree, Sequence):
        return [SequenceKey(k) for k in range(len(entries))]
    return [GetAttrKey(e) if isinstance(e, str) else FlattenedIndexKey(k) for k, e in enumerate(entries)]
