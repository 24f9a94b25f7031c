"""Trees of arrays: tuples, lists, dicts, None, and what `optree` knows (named tuples, types that users register).

The shape of a tree is a nested tuple, so it is hashed and compared in C: `()` is a leaf, else the first element says
what the others, its children, are put into. optree is imported with the first tree that needs it: that takes as long as
tracing a function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

import attrs
import numpy as np

from harp.errors import ArgumentError
from harp.locks import importing
from harp.trace.interning import identity
from harp.trace.source_locations import where


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


Tree = object
_T = TypeVar("_T")
# (), (tuple, *children), (list, *children), (None,), (dict, keys, *children), (a shape of optree's, *children).
TreeSpec = tuple[object, ...]

LEAF: TreeSpec = ()
_NAMESPACE = "harp"  # of the classes that are registered here
_NONE: TreeSpec = (None,)
_leaf_types: set[type] = {np.ndarray, bool, int, float, complex, str}
_LEAF_BASES = (np.ndarray, np.generic, *_leaf_types)


def leaf_type(kind: type[_T]) -> type[_T]:
    """Says of a class that its instances are leaves; to ask optree would import it."""
    _leaf_types.add(kind)
    return kind


def flatten(tree: Tree, none_is_leaf: bool = False) -> tuple[list[object], TreeSpec]:
    """The leaves in a fixed order (dicts by key), and what is needed to put them back."""
    leaves: list[object] = []
    try:
        return leaves, _flatten(tree, leaves, none_is_leaf)
    except RecursionError:
        raise ArgumentError(f"a tree of arrays is nested too deep, or holds itself{where()}") from None


def _flatten(tree: Tree, leaves: list[object], none_is_leaf: bool) -> TreeSpec:
    if type(tree) in _leaf_types or (tree is None and none_is_leaf):
        leaves.append(tree)
        return LEAF
    start, parts = taken_apart(tree)
    if not start:
        leaves.append(tree)
        return LEAF
    return (*start, *[_flatten(part, leaves, none_is_leaf) for part in parts])


def taken_apart(tree: Tree) -> tuple[TreeSpec, Sequence[object]]:
    """The shape of a tree without those of its parts, and these; () for a leaf."""
    kind = type(tree)
    if kind in _leaf_types:
        return LEAF, ()
    if kind is tuple or kind is list:
        return (kind,), cast(Sequence[object], tree)
    if kind is dict:
        items = cast(dict[Any, object], tree)
        return (dict, _keys(items)), [items[key] for key in ordered(items)]
    if tree is None:
        return _NONE, ()
    head, parts = _one_level(tree)
    if head is None:
        return LEAF, ()
    # optree takes 2 and 2.0 for the same key
    return (_Keyed(head, _keys(tree)) if isinstance(tree, Mapping) else head,), parts


def flatten_with_path(
    tree: Tree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[Path, object]], TreeSpec]:
    """The leaves with the keys on the way to them; also what `is_leaf` says to be one."""
    leaves: list[tuple[Path, object]] = []
    try:
        return leaves, _flatten_with_path(tree, (), leaves, is_leaf)
    except RecursionError:
        raise ArgumentError(f"a tree of arrays is nested too deep, or holds itself{where()}") from None


def _flatten_with_path(
    tree: Tree, path: Path, leaves: list[tuple[Path, object]], is_leaf: Callable[[Any], bool] | None
) -> TreeSpec:
    start, parts = (LEAF, ()) if is_leaf is not None and is_leaf(tree) else taken_apart(tree)
    if not start:
        leaves.append((path, tree))
        return LEAF
    pairs = zip(keys(tree), parts, strict=True)
    return (*start, *[_flatten_with_path(part, (*path, key), leaves, is_leaf) for key, part in pairs])


def keys(tree: Tree) -> Sequence[Key]:
    """The keys of the parts of a tree that is no leaf."""
    kind = type(tree)
    if kind is tuple or kind is list:
        return [SequenceKey(k) for k in range(len(cast(Sequence[object], tree)))]
    if kind is dict:
        return [DictKey(key) for key in ordered(cast(dict[Any, object], tree))]
    if tree is None:
        return ()
    head = cast(Any, _one_level(tree)[0])
    return keys_of(tree, [path[0] for path in head.paths()])


def flatten_up_to(spec: TreeSpec, tree: Tree) -> list[object] | None:
    """What stands in a tree where another one has its leaves; None if it is another tree above them."""
    if not spec:
        return [tree]
    start, parts = taken_apart(tree)
    own = children(spec)
    if not start or not same_node((*start, *own), spec) or len(parts) != len(own):
        return None
    found = [flatten_up_to(part, below) for part, below in zip(own, parts, strict=True)]
    return None if None in found else [leaf for part in found for leaf in part or ()]


class _Keys(tuple[object, ...]):
    """Keys of a dict, equal if a function cannot tell them apart: 1 is not 1.0 or True, 0.0 is not -0.0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and [*map(_identity, self)] == [*map(_identity, other)]

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()


class _Keyed(NamedTuple):
    """The shape that optree gives a dict of another type, and its keys."""

    head: object
    keys: tuple[object, ...]


def _keys(items: Mapping[Any, object]) -> tuple[object, ...]:
    """The keys in their own order: a function may ask for it."""
    keys = (*items,)
    return keys if all(type(key) is str for key in keys) else _Keys(keys)


def _identity(key: object) -> Hashable:
    """A value that distinguishes the key from others; for a key that does not equal itself, such as NaN, the object."""
    try:
        return identity(key)
    except (TypeError, ValueError):
        return type(key), id(key)


def ordered(keys: Iterable[Any]) -> list[Any]:
    """The keys of a dict in the order of its leaves."""
    try:
        return sorted(keys)
    except TypeError:  # they do not compare
        return list(keys)


@cache
def _optree() -> Any:
    """The package optree, which only trees of other types need."""
    with importing:
        return import_module("optree")


def _one_level(tree: Tree) -> tuple[object, list[object]]:
    """The shape and the children that optree gives an object of another type; None for a leaf."""
    if isinstance(tree, _LEAF_BASES):
        return None, []
    optree = _optree()
    children, head = optree.tree_flatten(cast(Any, tree), is_leaf=lambda part: part is not tree, namespace=_NAMESPACE)
    return (None, []) if head.is_leaf() else (head, children)


def register_class(
    cls: type[_T], take_apart: Callable[[_T], tuple[object, ...]], put_together: Callable[[Any, Any], _T]
) -> None:
    """Make objects of a class trees: `take_apart` gives the parts, what else there is, and names of the parts if they
    have some. Raises ArgumentError for a class that is one."""
    optree = _optree()
    try:
        optree.register_pytree_node(
            cast(Any, cls), cast(Any, take_apart), cast(Any, put_together), namespace=_NAMESPACE
        )
    except ValueError as error:
        raise ArgumentError(f"{cls.__name__} is a tree already: {error}{where()}") from None


def unflatten(spec: TreeSpec, leaves: Iterable[object]) -> Any:
    """The tree with these leaves."""
    return _unflatten(spec, iter(leaves))


def _unflatten(spec: TreeSpec, leaves: Iterator[object]) -> object:
    if not spec:
        return next(leaves)
    head = spec[0]
    if head is dict:
        keys = cast(tuple[object, ...], spec[1])
        made = {key: _unflatten(child, leaves) for key, child in zip(ordered(keys), children(spec), strict=True)}
        return {key: made[key] for key in keys}
    if head is None:
        return None
    parts = [_unflatten(child, leaves) for child in children(spec)]
    if head is tuple:
        return tuple(parts)
    if head is list:
        return parts
    return _optree().tree_unflatten(cast(Any, head.head if isinstance(head, _Keyed) else head), parts)


def children(spec: TreeSpec) -> tuple[TreeSpec, ...]:
    """The shapes of the parts; none for a leaf."""
    return cast(tuple[TreeSpec, ...], spec[2:] if spec and spec[0] is dict else spec[1:])


def count_leaves(spec: TreeSpec) -> int:
    """How many leaves a tree of this shape has."""
    return 1 if spec == LEAF else sum(map(count_leaves, children(spec)))


def is_pair(spec: TreeSpec) -> bool:
    """Whether it is a tuple of two."""
    return len(spec) == 3 and spec[0] is tuple


def alike(a: TreeSpec, b: TreeSpec) -> bool:
    """Whether leaves of one tree fit the other: dicts may have their keys in another order."""
    if a == b or not a or not b:
        return a == b
    return same_node(a, b) and all(map(alike, children(a), children(b)))


def same_node(a: TreeSpec, b: TreeSpec) -> bool:
    """Whether two trees that are no leaves are alike above their parts."""
    if not a or not b:
        return False
    return _without_order(a) == _without_order(b) and len(children(a)) == len(children(b))


def _without_order(spec: TreeSpec) -> object:
    head = spec[0]
    if head is dict:
        return ordered(cast(tuple[object, ...], spec[1]))
    return head.head if isinstance(head, _Keyed) else head


def spread(prefix: TreeSpec, values: Sequence[object], spec: TreeSpec) -> list[object] | None:
    """For each leaf of a tree, the value that stands for it in a tree that is its start; None if it is not."""
    if not prefix:
        return list(values) * count_leaves(spec)
    if not same_node(prefix, spec):
        return None
    inner, outer = children(prefix), children(spec)
    found: list[object] = []
    for part, whole in zip(inner, outer, strict=True):
        count = count_leaves(part)
        below = spread(part, values[:count], whole)
        if below is None:
            return None
        found += below
        values = values[count:]
    return found


def spec_text(spec: TreeSpec) -> str:
    """For messages: `{'w': *, 'b': *}`, or "one array"."""
    text = repr(unflatten(spec, [_Star()] * count_leaves(spec)))
    return "one array" if text == "*" else text


def tree_text(spec: TreeSpec) -> str:
    """For messages: `a tree {'w': *, 'b': *}`, or "one array"."""
    text = spec_text(spec)
    return text if text == "one array" else f"a tree {text}"


class _Star:
    def __repr__(self) -> str:
        return "*"


def map_leaves(function: Callable[[object], object], tree: Tree) -> Any:
    """The tree with a function applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten(spec, map(function, leaves))


def labels(name: str, tree: Tree) -> list[str]:
    """What messages call each leaf of an argument: `x`, `params['w']`."""
    start, parts = taken_apart(tree)
    if not start:
        return [name]
    texts = [f"[{key.key}]" if isinstance(key, FlattenedIndexKey) else str(key) for key in keys(tree)]
    return [label for text, part in zip(texts, parts, strict=True) for label in labels(name + text, part)]
