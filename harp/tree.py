"""Trees of arrays: what functions of harp take and return. Tuples, lists, dicts, None and named tuples are trees, and
classes that are registered.

Names and arguments are those of `jax.tree`. `is_leaf` is asked about each part of a tree, from above, and what it says
to be a leaf is one: `is_leaf=lambda x: x is None` keeps the places of None.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import reduce as fold
from typing import Any, TypeVar, overload

import attrs

from harp.errors import ArgumentError, TreeError
from harp.trace.interning import identity
from harp.trace.source_locations import plural, where
from harp.trace.trees import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Key,
    Path,
    SequenceKey,
    TreeSpec,
    children,
    count_leaves,
    flatten_up_to,
    register_class,
    spec_text,
    spread,
    tree_text,
)
from harp.trace.trees import flatten as flatten_tree
from harp.trace.trees import flatten_with_path as flatten_tree_with_path
from harp.trace.trees import unflatten as unflatten_tree

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "PyTreeDef",
    "SequenceKey",
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "keystr",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "register",
    "structure",
    "transpose",
    "unflatten",
]

_C = TypeVar("_C")
_IsLeaf = Callable[[Any], bool] | None
_NOTHING = object()


class PyTreeDef(tuple[object, ...]):
    """The structure of a tree, which is a tree without its leaves: two are equal if their trees have the same shape.

    >>> structure({"a": (1, 2)})
    PyTreeDef({'a': (*, *)})
    >>> structure({"a": (1, 2)}).unflatten([3, 4])
    {'a': (3, 4)}
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"PyTreeDef({spec_text(self) if self else '*'})"

    @property
    def num_leaves(self) -> int:
        """How many leaves the tree has."""
        return count_leaves(self)

    @property
    def num_nodes(self) -> int:
        """How many leaves, and things that hold them."""
        return 1 + sum(part.num_nodes for part in self.children())

    def children(self) -> list[PyTreeDef]:
        """The structures of the parts; none of a leaf."""
        return [PyTreeDef(part) for part in children(self)]

    def unflatten(self, leaves: Iterable[object]) -> Any:
        """The tree with these leaves. Raises TreeError for another number of them."""
        return unflatten(self, leaves)

    def flatten_up_to(self, tree: object) -> list[Any]:
        """What stands in a tree where this one has its leaves. Raises TreeError for another tree."""
        found = flatten_up_to(self, tree)
        if found is None:
            raise TreeError(f"flatten_up_to: {tree_text(structure(tree))} does not begin as {self!r}{where()}")
        return found


def leaves(tree: object, is_leaf: _IsLeaf = None) -> list[Any]:
    """The leaves of a tree, in a fixed order: dicts by their keys.

    >>> leaves({"b": (1, 2), "a": 3})
    [3, 1, 2]
    >>> leaves({"b": (1, 2), "a": 3}, is_leaf=lambda x: isinstance(x, tuple))
    [3, (1, 2)]
    """
    return flatten(tree, is_leaf)[0]


def structure(tree: object, is_leaf: _IsLeaf = None) -> PyTreeDef:
    """What a tree is without its leaves: two of them are equal if the trees have the same shape.

    >>> structure((1, 2)) == structure((3, 4))
    True
    """
    return flatten(tree, is_leaf)[1]


def flatten(tree: object, is_leaf: _IsLeaf = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves, and the structure that puts them back.

    >>> import harp
    >>> leaves, structure = harp.tree.flatten({"a": 1.0, "b": (2.0, 3.0)})
    >>> leaves
    [1.0, 2.0, 3.0]
    >>> harp.tree.unflatten(structure, [x * 10 for x in leaves])
    {'a': 10.0, 'b': (20.0, 30.0)}
    """
    if is_leaf is None:
        found, spec = flatten_tree(tree)
        return found, PyTreeDef(spec)
    pairs, definition = flatten_with_path(tree, is_leaf)
    return [leaf for _, leaf in pairs], definition


def flatten_with_path(tree: object, is_leaf: _IsLeaf = None) -> tuple[list[tuple[Path, Any]], PyTreeDef]:
    """The leaves, each with the keys on the way to it, and the structure that puts them back.

    >>> flatten_with_path({"a": [1.0]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 1.0)]
    """
    found, spec = flatten_tree_with_path(tree, is_leaf)
    return found, PyTreeDef(spec)


def leaves_with_path(tree: object, is_leaf: _IsLeaf = None) -> list[tuple[Path, Any]]:
    """The leaves, each with the keys on the way to it.

    >>> [(keystr(path), leaf) for path, leaf in leaves_with_path({"b": (1, 2), "a": 3})]
    [("['a']", 3), ("['b'][0]", 1), ("['b'][1]", 2)]
    """
    return flatten_tree_with_path(tree, is_leaf)[0]


def keystr(path: Iterable[Key], *, simple: bool = False, separator: str = "") -> str:
    """The keys on the way to a leaf as Python reads them, or, if `simple`, without brackets and dots.

    >>> path = (DictKey("w"), SequenceKey(0))
    >>> keystr(path), keystr(path, simple=True, separator="/")
    ("['w'][0]", 'w/0')
    """
    return separator.join(str(_plain(key)) if simple else str(key) for key in path)


def _plain(key: Key) -> object:
    if isinstance(key, SequenceKey):
        return key.idx
    return key.name if isinstance(key, GetAttrKey) else key.key


def unflatten(treedef: TreeSpec, leaves: Iterable[object]) -> Any:
    """The tree of this structure with these leaves. Raises TreeError for another number of leaves.

    >>> values, spec = flatten({"a": (1, 2)})
    >>> unflatten(spec, [10, 20])
    {'a': (10, 20)}
    """
    if not isinstance(treedef, tuple):
        raise ArgumentError(
            f"unflatten takes a structure first, as harp.tree.structure gives, not {treedef!r}{where()}"
        )
    given, count = list(leaves), count_leaves(treedef)
    if len(given) != count:
        raise TreeError(
            f"{tree_text(treedef)} has {plural(count, 'leaves')}, but unflatten is given {len(given)}{where()}"
        )
    return unflatten_tree(treedef, given)


class _Static:
    """What an object has besides the parts of its tree, compared as static arguments are: 1 is not 1.0."""

    __slots__ = ("key", "value")

    def __init__(self, cls: type[Any], value: object) -> None:
        try:
            self.key: Hashable = identity(value)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"what is static in a {cls.__name__} is {value!r}, which cannot be hashed or compared ({error}): a "
                f"compiled function would not see it change; use tuples instead of lists, or make it a part{where()}"
            ) from None
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Static) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def map(function: Callable[..., object], tree: object, *rest: object, is_leaf: _IsLeaf = None) -> Any:
    """The tree of what the function makes of each leaf; of several trees, of what stands at its place:
    they have the same structure, or more below it. Raises TreeError where structures differ.

    >>> map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    >>> map(lambda x, shape: len(shape), {"a": 1, "b": 2}, {"a": (2, 3), "b": ()})
    {'a': 2, 'b': 0}
    """
    first, spec = flatten(tree, is_leaf)
    return unflatten_tree(spec, [function(*values) for values in _columns(first, spec, rest)])


def map_with_path(function: Callable[..., object], tree: object, *rest: object, is_leaf: _IsLeaf = None) -> Any:
    """As `map`, of a function that takes the keys on the way to a leaf first.

    >>> map_with_path(lambda path, x: keystr(path), {"a": 1, "b": (2,)})
    {'a': "['a']", 'b': ("['b'][0]",)}
    """
    found, spec = flatten_tree_with_path(tree, is_leaf)
    columns = _columns([leaf for _, leaf in found], spec, rest)
    return unflatten_tree(spec, [function(path, *values) for (path, _), values in zip(found, columns, strict=True)])


def _columns(first: Sequence[object], spec: TreeSpec, rest: Sequence[object]) -> list[tuple[object, ...]]:
    """For each leaf of a tree, it, and what stands in its place in others."""
    columns = [first]
    for other in rest:
        values = flatten_up_to(spec, other)
        if values is None:
            texts = f"{spec_text(structure(other))}, but the first one is {spec_text(spec)}"
            raise TreeError(f"map takes trees of one shape; one is {texts}{where()}")
        columns.append(values)
    return [*zip(*columns, strict=True)]


def reduce(
    function: Callable[[Any, Any], Any], tree: object, initializer: object = _NOTHING, is_leaf: _IsLeaf = None
) -> Any:
    """All leaves combined, from the first one on, or from `initializer`. Raises ArgumentError for a tree without leaves
    if that is missing.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 0)
    6
    """
    found = leaves(tree, is_leaf)
    if initializer is not _NOTHING:
        return fold(function, found, initializer)
    if not found:
        raise ArgumentError(f"the tree has no leaves to combine; give reduce an initializer{where()}")
    return fold(function, found)


def all(tree: object, *, is_leaf: _IsLeaf = None) -> bool:
    """Whether all leaves are true; those of a function being traced are not known yet.

    >>> all({"a": True, "b": (1, 0)}), all(())
    (False, True)
    """
    return builtins.all(leaves(tree, is_leaf))


def transpose(outer_treedef: TreeSpec, inner_treedef: TreeSpec | None, pytree_to_transpose: object) -> Any:
    """A tree of trees the other way round: the tree has a tree of the inner structure at each leaf of the outer one.
    If that is None it is the structure of the first of these. Raises TreeError for a tree that is another one.

    >>> transpose(structure([0, 0]), structure({"a": 0, "b": 0}), [{"a": 1, "b": 2}, {"a": 3, "b": 4}])
    {'a': [1, 3], 'b': [2, 4]}
    """
    outer, inner, tree = outer_treedef, inner_treedef, pytree_to_transpose
    parts = flatten_up_to(outer, tree)
    if parts and inner is None:
        inner = structure(parts[0])
    rows = None if parts is None or inner is None else [flatten_up_to(inner, part) for part in parts]
    if rows is None or inner is None or None in rows:
        below = "" if inner is None else f" of trees {spec_text(inner)}"
        raise TreeError(
            f"transpose is given {tree_text(structure(tree))}, but said to be {tree_text(outer)}{below}{where()}"
        )
    columns = [[row[k] for row in rows if row is not None] for k in range(count_leaves(inner))]
    return unflatten_tree(inner, [unflatten_tree(outer, column) for column in columns])


def broadcast(prefix: object, tree: object, is_leaf: _IsLeaf = None) -> Any:
    """A tree of the structure of `tree`, in which a leaf of `prefix`, its start, stands at all leaves below it.
    Raises TreeError if it is not the start of it.

    >>> broadcast({"a": 1, "b": 2}, {"a": (0, 0), "b": 0})
    {'a': (1, 1), 'b': 2}
    """
    values, start = flatten(prefix, is_leaf)
    spec = structure(tree)
    found = spread(start, values, spec)
    if found is None:
        raise TreeError(f"{tree_text(start)} is not the start of {tree_text(spec)}{where()}")
    return unflatten_tree(spec, found)


@overload
def register(
    cls: type[_C],
    *,
    static: Sequence[str] = (),
    flatten: Callable[[_C], tuple[Iterable[object], object]] | None = None,
    unflatten: Callable[[Any, Any], _C] | None = None,
) -> type[_C]: ...


@overload
def register(
    cls: None = None,
    *,
    static: Sequence[str] = (),
    flatten: Callable[[Any], tuple[Iterable[object], object]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> Callable[[type[_C]], type[_C]]: ...


def register(
    cls: type[_C] | None = None,
    *,
    static: Sequence[str] = (),
    flatten: Callable[[Any], tuple[Iterable[object], object]] | None = None,
    unflatten: Callable[[Any, Any], Any] | None = None,
) -> type[_C] | Callable[[type[_C]], type[_C]]:
    """Say of a class that its objects are trees; use it as `@harp.tree.register`.

    Of dataclasses and attrs classes, all fields of the constructor are parts of the tree but those named by `static`:
    these are compared, as static arguments are, so they can be hashed. Of other classes, `flatten` gives the parts of
    an object, and anything else that can be hashed; `unflatten` makes an object of the latter and new parts.

    Raises ArgumentError for a class whose parts are not known; and so does a use of an object whose static values
    cannot be hashed.

    >>> import dataclasses
    >>> @register
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    ...     y: float
    >>> map(lambda v: v * 2, Point(1.0, 2.0)).y
    4.0
    """
    if cls is None:
        return lambda given: register(given, static=static, flatten=flatten, unflatten=unflatten)
    if (flatten is None) != (unflatten is None):
        raise ArgumentError(f"register takes flatten and unflatten, or neither of them{where()}")
    if flatten is not None and unflatten is not None:
        _register(cls, flatten, unflatten)
        return cls
    fields = _fields(cls)
    for name in static:
        if name not in fields:
            raise ArgumentError(f"{cls.__name__} has no field {name!r}, which register is told to be static{where()}")
    parts = [name for name in fields if name not in static]

    def take_apart(value: _C) -> tuple[Iterable[object], object]:
        return [getattr(value, name) for name in parts], tuple(getattr(value, name) for name in static)

    def put_together(fixed: Any, values: Any) -> _C:
        both = zip((*parts, *static), (*values, *fixed), strict=True)
        return cls(**{fields[name]: value for name, value in both})

    _register(cls, take_apart, put_together, parts)
    return cls


def _register(
    cls: type[_C],
    take_apart: Callable[[_C], tuple[Iterable[object], object]],
    put_together: Callable[[Any, Any], _C],
    names: Sequence[str] | None = None,
) -> None:
    def flatten(value: _C) -> tuple[object, ...]:
        parts, fixed = take_apart(value)
        return (parts, _Static(cls, fixed)) if names is None else (parts, _Static(cls, fixed), names)

    register_class(cls, flatten, lambda fixed, parts: put_together(fixed.value, parts))


def _fields(cls: type[Any]) -> dict[str, str]:
    """What the constructor takes: names of fields, and of its arguments."""
    of_dataclass = getattr(cls, "__dataclass_fields__", None)
    if of_dataclass is not None:
        return {name: name for name, field in of_dataclass.items() if field.init}
    if attrs.has(cls):
        return {field.name: field.alias or field.name for field in attrs.fields(cls) if field.init}
    raise ArgumentError(
        f"{cls.__name__} is neither a dataclass nor an attrs class; tell register how to take it apart with flatten, "
        f"and how to make it again with unflatten{where()}"
    )
