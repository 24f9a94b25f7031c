"""Trees of arrays: what functions of harp take and return. Tuples, lists, dicts, None and named tuples are trees, and
classes that are registered."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from functools import reduce as fold
from typing import Any, TypeVar

import attrs

from harp.errors import ArgumentError
from harp.trace.identity import identity
from harp.trace.source_locations import plural, where
from harp.trace.trees import TreeSpec, alike, count_leaves, register_class, spec_text
from harp.trace.trees import flatten as flatten_tree
from harp.trace.trees import unflatten as unflatten_tree

_C = TypeVar("_C")


def leaves(tree: object) -> list[Any]:
    """The leaves of a tree, in a fixed order: dicts by their keys.

    >>> leaves({"b": (1, 2), "a": 3})
    [3, 1, 2]
    """
    return flatten_tree(tree)[0]


def structure(tree: object) -> TreeSpec:
    """What a tree is without its leaves: two of them are equal if the trees have the same shape.

    >>> structure((1, 2)) == structure((3, 4))
    True
    """
    return flatten_tree(tree)[1]


def flatten(tree: object) -> tuple[list[Any], TreeSpec]:
    """The leaves, and the structure that puts them back.

    >>> import harp
    >>> leaves, structure = harp.tree.flatten({"a": 1.0, "b": (2.0, 3.0)})
    >>> leaves
    [1.0, 2.0, 3.0]
    >>> harp.tree.unflatten(structure, [x * 10 for x in leaves])
    {'a': 10.0, 'b': (20.0, 30.0)}
    """
    return flatten_tree(tree)


def unflatten(spec: TreeSpec, leaves: Iterable[object]) -> Any:
    """The tree of this structure with these leaves. Raises ArgumentError for another number of leaves.

    >>> values, spec = flatten({"a": (1, 2)})
    >>> unflatten(spec, [10, 20])
    {'a': (10, 20)}
    """
    if not isinstance(spec, tuple):
        raise ArgumentError(f"unflatten takes a structure first, as harp.tree.structure gives, not {spec!r}{where()}")
    given, count = list(leaves), count_leaves(spec)
    if len(given) != count:
        raise ArgumentError(
            f"a tree {spec_text(spec)} has {plural(count, 'leaves')}, but unflatten is given {len(given)}{where()}"
        )
    return unflatten_tree(spec, given)


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


def map(function: Callable[..., object], tree: object, *rest: object) -> Any:
    """The tree of what the function makes of each leaf; of several trees of the same structure, of the leaves at one
    place. Raises ArgumentError where structures differ.

    >>> map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    {'a': 11, 'b': (22,)}
    """
    first, spec = flatten_tree(tree)
    columns: list[Sequence[object]] = [first]
    for other in rest:
        values, same = flatten_tree(other)
        if not alike(same, spec):
            raise ArgumentError(f"a tree is {spec_text(same)}, but the first one is {spec_text(spec)}{where()}")
        columns.append(values)
    return unflatten_tree(spec, [function(*values) for values in zip(*columns, strict=True)])


def reduce(function: Callable[[Any, Any], Any], tree: object, *initial: object) -> Any:
    """All leaves combined, from the first one on, or from `initial`.

    >>> reduce(lambda total, x: total + x, {"a": 1, "b": (2, 3)}, 0)
    6
    """
    return fold(function, leaves(tree), *initial)


def register(
    cls: type[_C] | None = None,
    *,
    static: Sequence[str] = (),
    flatten: Callable[[_C], tuple[Iterable[object], object]] | None = None,
    unflatten: Callable[[Any, Any], _C] | None = None,
) -> Any:
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
        return partial(register, static=static, flatten=flatten, unflatten=unflatten)
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

    _register(cls, take_apart, put_together)
    return cls


def _register(
    cls: type[_C],
    take_apart: Callable[[_C], tuple[Iterable[object], object]],
    put_together: Callable[[Any, Any], _C],
) -> None:
    def flatten(value: _C) -> tuple[Iterable[object], object]:
        parts, fixed = take_apart(value)
        return parts, _Static(cls, fixed)

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
