"""`map`: a function of each element of an array, one after the other or by blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.checks import as_count
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import reshape
from harp.trace.array.array import Array
from harp.trace.array.indexing import getitem
from harp.trace.array.primitives import as_array
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Index
from harp.trace.sizes.size import resolve, to_index, unify, wrap
from harp.trace.source_locations import where
from harp.trace.tracer import require_function
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.batching.vmap import vmap
from harp.transforms.control.scan import scan
from harp.transforms.control.staging import Leaves, leaves_of

Function = Callable[..., Any]


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
    count = _length(given)
    blocks = resolve(floordiv(count, size))
    taken = resolve(blocks * size)
    batched = vmap(f)
    whole = unflatten(given.treedef, [_in_blocks(x, blocks, size) for x in given.arrays])
    done, treedef = flatten(scan(lambda _, x: (None, batched(x)), None, whole)[1])
    results = [_in_a_row(as_array(y), taken) for y in done]
    if taken is not count:
        left = slice(wrap(taken), None)
        rest, _ = flatten(batched(unflatten(given.treedef, [getitem(x, left) for x in given.arrays])))
        results = [concatenate([first, last]) for first, last in zip(results, rest, strict=True)]
    return unflatten(treedef, results)


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


def _in_blocks(array: Array, blocks: Index, size: Index) -> Array:
    """The first elements, by whole blocks."""
    return reshape(getitem(array, slice(wrap(blocks * size))), (wrap(blocks), wrap(size), *array.shape[1:]))


def _in_a_row(array: Array, count: Index) -> Array:
    return reshape(array, (wrap(count), *array.shape[2:]))
