"""Named axes of batches: a function of one example uses them to ask about the other examples."""

from __future__ import annotations

from typing import NamedTuple

from harp.errors import BatchError
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import emit
from harp.trace.graph.node import Examples, Node
from harp.trace.index.polynomial import Index
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import Size, resolve, wrap
from harp.trace.source_locations import where


class NamedAxis(NamedTuple):
    """An axis of a batch, seen from one example: the example's number, and the number of examples."""

    number: Node
    size: Index


def named_axis(name: object) -> NamedAxis:
    """The innermost axis of this name. Raises BatchError if the function is no example of such a batch."""
    level = current()
    known: list[str] = []
    while level is not None:
        if level.named is not None:
            if level.named[0] == name:
                return NamedAxis(*level.named[1:])
            known.append(repr(level.named[0]))
        level = level.parent
    names = f"the names here are {', '.join(known)}" if known else "no axis has a name here"
    raise BatchError(
        f"no axis of a batch is called {name!r}: {names}; call the function by vmap(..., axis_name={name!r}){where()}"
    )


def size_of(axis: NamedAxis) -> Size | int:
    """The number of examples."""
    return wrap(resolve(axis.size))


def number_of(axis: NamedAxis) -> Array:
    """The number of the example."""
    return emit(axis.number)


def in_all_examples(x: Array, axis: NamedAxis) -> Array:
    """The array in all examples, along a new first axis."""
    return emit(Examples(node_of(x), axis.number, resolve(axis.size)))
