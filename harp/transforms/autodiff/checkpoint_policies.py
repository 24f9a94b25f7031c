"""Which values a checkpointed function keeps for its gradient; all others are computed again.

The `policy` of `harp.checkpoint` is one of these. Of the values that it accepts, only those are kept that the reverse
pass reads. The names are those of `jax.checkpoint_policies`.

>>> import harp, harp.numpy as hnp
>>> layer = harp.checkpoint(lambda w, x: hnp.tanh(x @ w), policy=harp.checkpoint_policies.dots_saveable)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.trace.array.array import node_of
from harp.trace.array.primitives import as_array, emit
from harp.trace.graph.body import close
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Custom, MapReduce, Node, Part, fresh_input
from harp.trace.graph.view import multiplies_matrices
from harp.trace.scalar.dtypes import i64
from harp.trace.scalar.ops import Reduce
from harp.trace.sizes.levels import current
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.rules import Given

Policy = Callable[[Node], bool]


def everything_saveable(node: Node) -> bool:
    """Keep all that the reverse pass reads, as without `checkpoint`."""
    return True


def nothing_saveable(node: Node) -> bool:
    """Keep the arguments only: what `checkpoint` does without a policy."""
    return False


def dots_saveable(node: Node) -> bool:
    """Keep products of matrices, which cost most to compute again."""
    return isinstance(node, MapReduce) and node.reduce is Reduce.SUM and multiplies_matrices(node, node.axes)


def save_only_these_names(*names: str) -> Policy:
    """Keep the values to which `checkpoint_name` gave one of these names.

    >>> import harp
    >>> policy = harp.checkpoint_policies.save_only_these_names("hidden")
    """
    return lambda node: _name(node) in names


def save_anything_except_these_names(*names: str) -> Policy:
    """Keep all values but those to which `checkpoint_name` gave one of these names.

    >>> import harp
    >>> policy = harp.checkpoint_policies.save_anything_except_these_names("large")
    """
    return lambda node: _name(node) not in names


def save_from_both_policies(first: Policy, second: Policy) -> Policy:
    """Keep the values that at least one of the two policies keeps.

    >>> import harp
    >>> named = harp.checkpoint_policies.save_only_these_names("hidden")
    >>> policy = harp.checkpoint_policies.save_from_both_policies(harp.checkpoint_policies.dots_saveable, named)
    """
    return lambda node: first(node) or second(node)


def checkpoint_name(x: Tree, name: str) -> Tree:
    """The same arrays, with a name for the policies of `checkpoint`.

    >>> import harp, harp.numpy as hnp
    >>> f = lambda x: hnp.sin(harp.checkpoint_name(hnp.exp(x), "grown"))
    >>> kept = harp.checkpoint(f, policy=harp.checkpoint_policies.save_only_these_names("grown"))
    >>> round(float(harp.grad(kept)(0.0)), 4)
    0.5403
    """
    if current() is None:
        return x
    leaves, treedef = flatten(x)
    return unflatten(treedef, [emit(_named(node_of(as_array(leaf)), name)) for leaf in leaves])


def _named(node: Node, name: str) -> Node:
    number, same = fresh_input("0", (), i64), fresh_input(name, node.shape, node.dtype)
    body, _ = close(Graph((number, same), (same,)), 0, 0)
    return Custom((node,), body, _Named(name)).parts[0]


def _name(node: Node) -> str | None:
    """The name that `checkpoint_name` gave to a value."""
    derivative = node.whole.derivative if isinstance(node, Part) and isinstance(node.whole, Custom) else None
    return derivative.name if isinstance(derivative, Given) else None


class _Named(Given):
    """The derivatives of the identity."""

    count = 1
    is_own = False

    def __init__(self, name: str) -> None:
        self.name = name

    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        (x,) = self.arguments(body)
        fresh = [fresh_input(x.name, x.shape, x.dtype) for _ in range(1 + x.dtype.is_inexact)]
        return Graph(tuple(fresh), tuple(fresh[1:]))

    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        return self.forward(body, moving)
