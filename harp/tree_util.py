"""JAX's names for `harp.tree`, and its ways to register classes.

>>> tree_map(lambda x: x + 1, {"a": 1})
{'a': 2}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, TypeVar

from harp.errors import ArgumentError
from harp.trace.source_locations import where
from harp.trace.trees import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey
from harp.tree import PyTreeDef, keystr, register
from harp.tree import all as tree_all
from harp.tree import broadcast as tree_broadcast
from harp.tree import flatten as tree_flatten
from harp.tree import flatten_with_path as tree_flatten_with_path
from harp.tree import leaves as tree_leaves
from harp.tree import leaves_with_path as tree_leaves_with_path
from harp.tree import map as tree_map
from harp.tree import map_with_path as tree_map_with_path
from harp.tree import reduce as tree_reduce
from harp.tree import structure as tree_structure
from harp.tree import transpose as tree_transpose
from harp.tree import unflatten as tree_unflatten

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "all_leaves",
    "keystr",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "tree_all",
    "tree_broadcast",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_with_path",
    "tree_reduce",
    "tree_structure",
    "tree_transpose",
    "tree_unflatten",
    "treedef_children",
    "treedef_is_leaf",
    "treedef_tuple",
]

_C = TypeVar("_C", bound=type[Any])


class Partial(partial):  # type: ignore[type-arg]
    """`functools.partial` as a tree, whose parts are the arguments that are given already.

    >>> Partial(pow, 2)(5)
    32
    """

    def __new__(cls, function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Partial:
        """The function with these arguments."""
        _register_partial()
        return super().__new__(cls, function, *args, **keywords)


def register_pytree_node(
    nodetype: type[Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], Any],
) -> None:
    """Make objects of a class trees: `flatten_func` gives the parts, and what else there is; `unflatten_func` takes
    the latter and new parts.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, parts: Pair(*parts))
    """
    register(nodetype, flatten=flatten_func, unflatten=unflatten_func)


def register_pytree_node_class(cls: _C) -> _C:
    """The same for a class with methods `tree_flatten()` and `tree_unflatten(other, parts)`; a decorator."""
    register_pytree_node(cls, lambda tree: tree.tree_flatten(), cls.tree_unflatten)
    return cls


def register_pytree_with_keys(
    nodetype: type[Any],
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], Any],
    flatten_func: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:
    """As `register_pytree_node`, given pairs of a key and a part. Paths number the parts."""

    def parts(tree: Any) -> tuple[Iterable[Any], Any]:
        pairs, other = flatten_with_keys(tree)
        return [part for _, part in pairs], other

    register_pytree_node(nodetype, flatten_func or parts, unflatten_func)


def register_pytree_with_keys_class(cls: _C) -> _C:
    """The same for a class with methods `tree_flatten_with_keys()` and `tree_unflatten(other, parts)`; a decorator."""
    flatten = getattr(cls, "tree_flatten", None)
    register_pytree_with_keys(cls, lambda tree: tree.tree_flatten_with_keys(), cls.tree_unflatten, flatten)
    return cls


def register_dataclass(
    nodetype: _C,
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> _C:
    """Make a dataclass a tree, whose `meta_fields` are no parts, but compared; a decorator.

    Raises ArgumentError for `drop_fields`, and for a class whose fields are not known.
    """
    if drop_fields:
        raise ArgumentError(
            f"register_dataclass of harp drops no fields of {nodetype.__name__}: give those that its constructor does "
            f"not take init=False{where()}"
        )
    static = meta_fields
    if static is None:
        fields = getattr(nodetype, "__dataclass_fields__", {})
        of_field = [name for name, field in fields.items() if field.metadata.get("static")]
        static = of_field if data_fields is None else [name for name in fields if name not in data_fields]
    register(nodetype, static=static)
    return nodetype


def register_static(cls: _C) -> _C:
    """Make objects of a class trees without parts, which are compared; a decorator."""
    register(cls, flatten=lambda tree: ((), tree), unflatten=lambda tree, _: tree)
    return cls


def all_leaves(iterable: Iterable[Any], is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all elements are leaves.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)])
    (True, False)
    """
    given = list(iterable)
    found = tree_leaves(given, is_leaf)
    return len(found) == len(given) and all(a is b for a, b in zip(found, given, strict=True))


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether the structure is that of a leaf."""
    return not treedef


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of the parts; none of a leaf."""
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures."""
    return PyTreeDef((tuple, *treedefs))


@cache
def _register_partial() -> None:
    """Not before there is one: to register a class imports what knows classes of trees."""
    register_pytree_node(
        Partial,
        lambda f: ((f.args, f.keywords), f.func),
        lambda function, parts: Partial(function, *parts[0], **parts[1]),
    )
