"""Reductions by a function of one's own, of whole axes and of windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from harp.errors import ArgumentError, ShapeError
from harp.lax.padding import pad
from harp.lax.slicing import slice as slice_
from harp.numpy.elementwise import add, maximum, minimum, multiply
from harp.numpy.manipulation import broadcast_to, moveaxis, reshape
from harp.numpy.reductions import max, min, prod, sum
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_integer, normalize_axes
from harp.trace.index.division import floordiv, relu
from harp.trace.index.polynomial import Index
from harp.trace.sizes.size import resolve, to_index, wrap
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


def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array:
    """The elements of each window of an array, put together by `computation` from `init_value` on.

    Windows have so many elements along each axis, `window_dilation` apart, and begin `window_strides` apart. `padding`
    is how many initial values stand before and behind each axis, "VALID" for none, or "SAME" for as many windows as
    there are strides. `base_dilation` moves elements apart. The program has a step for each element of a window, so
    these are small; sizes of the array are symbols. `computation` is elementwise.

    Raises ShapeError unless there is one number for each axis, ArgumentError for another padding.

    >>> import harp.numpy as hnp
    >>> reduce_window(hnp.asarray([3.0, 1.0, 4.0, 1.0, 5.0]), -hnp.inf, hnp.maximum, (3,), (2,), "VALID")
    Array([4., 5.])
    """
    array, ones = as_array(operand), (1,) * as_array(operand).ndim
    given = {
        "window_dimensions": window_dimensions,
        "window_strides": window_strides,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    numbers = {name: _each(name, ones if value is None else value, array.ndim) for name, value in given.items()}
    window, strides, apart, spread = numbers.values()
    first = as_array(init_value).astype(array.kind)
    reach = [(w - 1) * d + 1 for w, d in zip(window, spread, strict=True)]
    sizes = [s + relu(s - 1) * (d - 1) for s, d in zip(map(resolve, node_of(array).shape), apart, strict=True)]
    ends = _padding(padding, sizes, reach, strides)
    counts, config = [], []
    for size, (low, high), d, r, step in zip(sizes, ends, apart, reach, strides, strict=True):
        counts.append(relu(floordiv(size + to_index(low) + to_index(high) - r, step) + 1))
        config.append((low, high + r + step, d - 1))  # so many more that each slice has room
    whole = pad(array, first, config)
    result = broadcast_to(first, tuple(map(wrap, counts)))
    for place in product(*map(range, window)):
        start = [k * d for k, d in zip(place, spread, strict=True)]
        stop = [wrap(begin + n * step) for begin, n, step in zip(start, counts, strides, strict=True)]
        result = computation(result, slice_(whole, start, stop, strides))
    return as_array(result)


def _each(name: str, numbers: Sequence[int], ndim: int) -> list[int]:
    found = [as_integer(f"{name} of reduce_window", number) for number in numbers]
    if len(found) != ndim or any(number < 1 for number in found):
        raise ShapeError(f"{name} of reduce_window has {ndim} numbers from 1 on, not {tuple(numbers)}{where()}")
    return found


def _padding(padding: Any, sizes: list[Index], reach: list[int], strides: list[int]) -> list[tuple[Any, Any]]:
    if not isinstance(padding, str):
        if len(padding) != len(sizes):
            raise ShapeError(f"padding of reduce_window has {len(padding)} pairs for {len(sizes)} axes{where()}")
        return [(low, high) for low, high in padding]
    if padding.upper() == "VALID":
        return [(0, 0)] * len(sizes)
    if padding.upper() != "SAME":
        raise ArgumentError(f"padding of reduce_window is 'VALID', 'SAME' or pairs, not {padding!r}{where()}")
    found = []
    for size, r, step in zip(sizes, reach, strides, strict=True):
        missing = relu((floordiv(size + step - 1, step) - 1) * step + r - size)
        low = floordiv(missing, 2)
        found.append((wrap(low), wrap(missing - low)))
    return found
