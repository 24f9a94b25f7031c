"""JAX's names for `harp.tree`, and its ways to register classes.

>>> tree_map(lambda x: x + 1, {"a": 1})
{'a': 2}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from harp.lazy import Names, namespace
from harp.trace.trees import LEAF, TreeSpec
from harp.tree import leaves, register

_C = TypeVar("_C", bound=type[Any])

_NAMES = Names(
    {
        "harp.tree": "tree_all=all tree_broadcast=broadcast tree_flatten=flatten "
        "tree_flatten_with_path=flatten_with_path tree_leaves=leaves tree_leaves_with_path=leaves_with_path "
        "tree_map=map tree_map_with_path=map_with_path tree_reduce=reduce tree_structure=structure "
        "tree_transpose=transpose tree_unflatten=unflatten keystr DictKey FlattenedIndexKey GetAttrKey SequenceKey",
        "harp.trace.trees": "PyTreeDef=TreeSpec treedef_children=children",
        "harp.tree_util": "Partial all_leaves register_dataclass register_pytree_node register_pytree_node_class "
        "register_pytree_with_keys register_pytree_with_keys_class register_static treedef_is_leaf treedef_tuple",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)


class Partial(partial):  # type: ignore[type-arg]
    """`functools.partial` as a tree, whose parts are the arguments that are given already.

    >>> Partial(pow, 2)(5)
    32
    """


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
    static = meta_fields
    if static is None:
        fields = getattr(nodetype, "__dataclass_fields__", {})
        of_field = [name for name, field in fields.items() if field.metadata.get("static")]
        static = of_field if data_fields is None else [name for name in fields if name not in data_fields]
    register(nodetype, static=[name for name in static if name not in drop_fields])
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
    found = leaves(given, is_leaf)
    return len(found) == len(given) and all(a is b for a, b in zip(found, given, strict=True))


def treedef_is_leaf(treedef: TreeSpec) -> bool:
    """Whether the structure is that of a leaf."""
    return treedef == LEAF


def treedef_tuple(treedefs: Iterable[TreeSpec]) -> TreeSpec:
    """The structure of a tuple of trees of these structures."""
    return (tuple, *treedefs)


register_pytree_node(
    Partial,
    lambda f: ((f.args, f.keywords), f.func),
    lambda function, parts: Partial(function, *parts[0], **parts[1]),
)
