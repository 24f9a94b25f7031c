"""What rules of batching are given: nodes, some of which have the axis of the batch."""

from __future__ import annotations

from typing import NamedTuple

from harp.trace.graph.node import Node, positions
from harp.trace.graph.view import view
from harp.trace.index.polynomial import Index


class Given(NamedTuple):
    """An input of a node that is batched, and whether it has the axis of the batch, in front."""

    node: Node
    batched: bool


def lifted(given: Given, size: Index) -> Node:
    """The input with the axis of the batch, along which it may be the same."""
    if given.batched:
        return given.node
    shape = (size, *given.node.shape)
    return view(given.node, shape, positions(shape)[1:])
