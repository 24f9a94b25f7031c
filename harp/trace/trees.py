"""Trees of arrays (tuples, lists, dicts, named tuples): `optree`, with the types that harp needs.

It is imported with the first tree, for it takes half as long as the rest of harp.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, cast

from harp.errors import ArgumentError
from harp.trace.sites import where

Tree = object


class TreeSpec(Protocol):
    """The shape of a tree, as optree has it."""

    @property
    def num_leaves(self) -> int: ...

    @property
    def num_children(self) -> int: ...

    @property
    def type(self) -> builtins.type | None: ...

    def is_leaf(self) -> bool: ...

    def children(self) -> Sequence[TreeSpec]: ...

    def __hash__(self) -> int: ...


def flatten(tree: Tree, is_leaf: Callable[[object], bool] | None = None) -> tuple[list[object], TreeSpec]:
    """The leaves in a fixed order (dicts by key), and what is needed to put them back."""
    import optree

    try:
        leaves, spec = optree.tree_flatten(cast(Any, tree), is_leaf=is_leaf)
    except RecursionError:
        raise ArgumentError(f"a tree of arrays is nested too deep, or holds itself{where()}") from None
    return cast(list[object], leaves), spec


def leaves_or_none(tree: Tree, is_leaf: Callable[[object], bool]) -> list[object]:
    """The leaves, where None is a leaf too."""
    import optree

    return cast(list[object], optree.tree_leaves(cast(Any, tree), is_leaf=is_leaf, none_is_leaf=True))


def unflatten(spec: TreeSpec, leaves: Iterable[object]) -> Any:
    """The tree with these leaves."""
    import optree

    return optree.tree_unflatten(cast(Any, spec), leaves)


def map_leaves(
    function: Callable[[object], object], tree: Tree, is_leaf: Callable[[object], bool] | None = None
) -> Any:
    """The tree with a function applied to each leaf."""
    import optree

    return optree.tree_map(function, cast(Any, tree), is_leaf=is_leaf)


def labels(name: str, tree: Tree) -> list[str]:
    """What messages call each leaf of an argument: `x`, `params['w']`."""
    import optree

    return [name + "".join(f"[{entry!r}]" for entry in path) for path in optree.tree_paths(cast(Any, tree))]
