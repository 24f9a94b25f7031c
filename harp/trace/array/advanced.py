"""`x[...]`: views for integers and slices, a gather for arrays of indices.

An index outside its axis is an error where the indices are known: outside of traced functions, and for arrays that a
traced function has from outside. In a traced function a gather takes the nearest element, or what `mode` says. A loop
or branch that does not run finds no elements where there are none: there it reads what stands for those outside, and
so does one that data decides about, of an axis without elements.
"""

from __future__ import annotations

from types import NoneType
from typing import cast

import numpy as np

from harp.errors import ArgumentError
from harp.trace.array import indexing
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.foreign import honest
from harp.trace.array.index_plan import is_data, plan, single_bool, with_positions
from harp.trace.array.primitives import emit, python_constant
from harp.trace.graph.node import Gather
from harp.trace.scalar.dtypes import DType, NDArray
from harp.trace.scalar.expr import Const, const
from harp.trace.sizes.levels import current
from harp.trace.source_locations import where

CLIP, FILL = "clip", "fill"
# What a mode means for reading, and for writing; None is the default, which also checks indices that are known.
MODES = {None: None, "clip": CLIP, "promise_in_bounds": None, "fill": FILL, "drop": FILL}


def getitem(array: Array, key: object) -> Array:
    """`array[key]`: integers, slices, None, `...`, arrays of integers, and masks that are known.

    Raises IndexOutOfRangeError for an index outside its axis and for too many indices, ConcretizationError for a mask
    of which only the program knows.
    """
    keys = key if isinstance(key, tuple) else (key,)
    if array._value is not None and current() is None:
        found = _at_once(array._value, keys)
        if found is not None:
            return from_numpy(found, array.weak)
    keys = tuple(honest(item, "an index") for item in keys)
    keys = with_positions(node_of(array), keys) if current() is not None else keys
    if not any(map(is_data, keys)):
        return indexing.getitem(array, keys)
    if len(keys) == 1 and (known := single_bool(keys[0])) is not None:
        return indexing.getitem(indexing.getitem(array, None), slice(int(known)))  # x[True] is x[None]
    return gather(array, keys, None)


def _at_once(value: NDArray, keys: tuple[object, ...]) -> NDArray | None:
    """What NumPy gives for numbers, where the items are such that it means the same; None also for its errors."""
    items: list[object] = []
    for item in keys:
        if issubclass(type(item), Array):
            item = cast(Array, item)._value
        if type(item) is slice:
            if not all(type(end) in _PLAIN for end in (item.start, item.stop, item.step)):
                return None
        elif type(item) not in _PLAIN and not (type(item) is np.ndarray and _is_plain(item)):
            return None
        items.append(item)
    try:
        return np.asarray(value[tuple(items)])  # type: ignore[arg-type]
    except (IndexError, ValueError, MemoryError):
        return None


_PLAIN = (int, type(None), type(Ellipsis), list)


def _is_plain(item: NDArray) -> bool:
    """Not a single bool, and not of a dtype whose largest numbers NumPy takes for negative ones."""
    return bool(item.ndim) if item.dtype.kind == "b" else item.dtype != np.uint64


def gather(array: Array, keys: tuple[object, ...], mode: str | None, fill: object = None) -> Array:
    """`array[keys]`, of which some are arrays."""
    node = node_of(array)
    outside = mode_of(mode)
    found = plan(node, keys, checks=mode is None, reaches=outside != FILL)
    otherwise = _fill(fill, array.kind) if outside == FILL or found.misses else None
    return emit(found.result(Gather(found.source(node), found.indices, otherwise, outside is None)), array.weak)


def mode_of(mode: str | None, *others: str) -> str | None:
    """CLIP, FILL, or None for the default. Raises ArgumentError, which names the `others` that a function knows."""
    if not isinstance(mode, (str, NoneType)) or mode not in MODES:
        known = ", ".join(repr(m) for m in (*MODES, *others) if m)
        raise ArgumentError(f"mode must be one of {known}, not {mode!r}{where()}")
    return MODES[mode]


def _fill(value: object, dtype: DType) -> Const:
    """The number that stands for what is outside, which a user may choose."""
    if value is None:
        return indexing.outside(dtype)
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return python_constant(value, dtype)
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        return const(value, dtype)
    raise ArgumentError(f"fill_value must be a number, not {value!r} of type {type(value).__name__}{where()}")
