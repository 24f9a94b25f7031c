"""Trees of arrays (tuples, lists, dicts, named tuples): `optree`, with the types that harp needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

import optree

Tree = object
TreeSpec = optree.PyTreeSpec


def flatten(tree: Tree, is_leaf: Callable[[object], bool] | None = None) -> tuple[list[object], TreeSpec]:
    """The leaves in a fixed order (dicts by key), and what is needed to put them back."""
    leaves, spec = optree.tree_flatten(cast(Any, tree), is_leaf=is_leaf)
    return cast(list[object], leaves), spec


def leaves_or_none(tree: Tree, is_leaf: Callable[[object], bool]) -> list[object]:
    """The leaves, where None is a leaf too."""
    return cast(list[object], optree.tree_leaves(cast(Any, tree), is_leaf=is_leaf, none_is_leaf=True))


def unflatten(spec: TreeSpec, leaves: Iterable[object]) -> Any:
    """The tree with these leaves."""
    return optree.tree_unflatten(cast(Any, spec), leaves)


def map_leaves(
    function: Callable[[object], object], tree: Tree, is_leaf: Callable[[object], bool] | None = None
) -> Any:
    """The tree with a function applied to each leaf."""
    return optree.tree_map(function, cast(Any, tree), is_leaf=is_leaf)


def labels(name: str, tree: Tree) -> list[str]:
    """What messages call each leaf of an argument: `x`, `params['w']`."""
    return [name + "".join(f"[{entry!r}]" for entry in path) for path in optree.tree_paths(cast(Any, tree))]
