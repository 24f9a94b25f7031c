"""Reductions of axes by a function of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.elementwise import add, maximum, minimum, multiply
from harp.numpy.manipulation import broadcast_to, moveaxis, reshape
from harp.numpy.reductions import max, min, prod, sum
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, normalize_axes
from harp.trace.source_locations import where
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.batching.vmap import vmap
from harp.transforms.control.scan import scan

# Functions whose reductions there are, and these from a first value on.
_KNOWN: dict[Any, Callable[[Array, tuple[int, ...], Array], Array]] = {
    add: lambda x, axes, init: sum(x, axes, dtype=x.kind) + init,
    multiply: lambda x, axes, init: prod(x, axes, dtype=x.kind) * init,
    maximum: lambda x, axes, init: max(x, axes, initial=init),
    minimum: lambda x, axes, init: min(x, axes, initial=init),
}


def reduce(operands: Tree, init_values: Tree, computation: Callable[[Any, Any], Any], dimensions: Sequence[int]) -> Any:
    """The elements over these axes, put together by `computation`, from `init_values` on.

    `computation` takes what there is so far and an element, which are trees if the operands are, such as tuples of
    arrays of one shape. It is computed in the order of the elements, as a loop; `lax.add`, `mul`, `max` and `min` are
    the reductions of these names. Raises ArgumentError for trees that differ, AxisError.

    >>> import harp.numpy as hnp
    >>> reduce(hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), 0.0, lambda a, b: 2 * a + b, (1,))
    Array([ 4., 10.])
    """
    leaves, treedef = flatten(operands)
    starts, of_starts = flatten(init_values)
    if len(leaves) != len(starts) or not leaves:
        raise ArgumentError(f"reduce takes an initial value for each operand: {of_starts} for {treedef}{where()}")
    arrays = [as_array(leaf) for leaf in leaves]
    axes = normalize_axes(tuple(dimensions), arrays[0].ndim)
    first = [as_array(start).astype(a.kind) for start, a in zip(starts, arrays, strict=True)]
    known = _KNOWN.get(computation)
    if known is not None and len(arrays) == 1:
        return unflatten(treedef, [known(arrays[0], axes, first[0])])
    rows = [moveaxis(a, axes, tuple(range(len(axes)))) for a in arrays]
    rest = rows[0].shape[len(axes) :]
    one = computation
    for _ in rest:
        one = vmap(one)

    def step(carry: list[Array], elements: list[Array]) -> tuple[list[Array], None]:
        found, _ = flatten(one(unflatten(treedef, carry), unflatten(treedef, elements)))
        return [as_array(each).astype(a.kind) for each, a in zip(found, arrays, strict=True)], None

    flat = [reshape(row, (math.prod(row.shape[: len(axes)]), *rest)) for row in rows]
    made, _ = scan(step, [broadcast_to(start, rest) for start in first], flat)
    return unflatten(treedef, made)
