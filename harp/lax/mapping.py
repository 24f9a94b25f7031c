"""`map`: a function of each element of an array, one after the other or by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from harp.errors import ArgumentError
from harp.numpy.checks import as_count
from harp.trace.array.primitives import as_array
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.sizes.size import resolve, to_index, unify
from harp.trace.source_locations import where
from harp.trace.tracer import require_function
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.batching.vmap import vmap
from harp.transforms.control.scan import in_blocks, joined, scan
from harp.transforms.control.staging import Leaves, leaves_of
from harp.transforms.typed import Container

Function = Callable[..., Any]


_X = TypeVar("_X")
_R = TypeVar("_R")


@overload
def map(f: Callable[[_X], _R], xs: _X, batch_size: object = None) -> _R: ...


@overload
def map(f: Callable[..., _R], xs: Container, batch_size: object = None) -> _R: ...


def map(f: Function, xs: Tree, batch_size: object = None) -> Any:
    """`f(x)` for each element along the first axis of `xs`, one after the other; the results are stacked.

    `xs` is a tree of arrays whose first axes have one size. With `batch_size`, an integer or a size, so many elements
    at a time go through `vmap(f)`: faster, for more memory. What is left at the end is a smaller batch.

    Raises ShapeError where the sizes of `xs` differ or the batch size is below 1, ArgumentError where there is nothing
    to map over.

    >>> import harp.numpy as hnp
    >>> map(lambda x: x * x, hnp.arange(3))
    Array([0, 1, 4])
    >>> map(hnp.sum, hnp.ones((5, 3)), batch_size=2)
    Array([3., 3., 3., 3., 3.])
    """
    require_function("map", f)
    if batch_size is None:
        return scan(lambda _, x: (None, f(x)), None, xs)[1]
    size = as_count("batch_size of map", batch_size, least=1)
    given = leaves_of(xs, "xs")
    front, rest, left = in_blocks(given.arrays, _length(given), size)
    batched = vmap(f)
    done, treedef = flatten(scan(lambda _, x: (None, batched(x)), None, unflatten(given.treedef, front))[1])
    last: list[object] = [None] * len(done)
    if resolve(left) is not ZERO:
        last, _ = flatten(batched(unflatten(given.treedef, rest)))
    pairs = zip(done, last, strict=True)
    return unflatten(treedef, [joined(as_array(y), None if more is None else as_array(more)) for y, more in pairs])


def _length(given: Leaves) -> Index:
    """The size that the first axes of all arrays share."""
    if not given.arrays:
        raise ArgumentError(f"map has no array to map over{where()}")
    for array, label in zip(given.arrays, given.names, strict=True):
        if not array.ndim:
            raise ArgumentError(f"{label} has no axis to map over{where()}")
    first, *others = (to_index(array.shape[0]) for array in given.arrays)
    for size, label in zip(others, given.names[1:], strict=True):
        unify(first, size, lambda label=label: f"map: {given.names[0]} and {label} are of different lengths")  # type: ignore[misc]
    return resolve(first)
