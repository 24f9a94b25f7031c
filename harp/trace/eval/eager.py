"""Eager evaluation: what arrays compute outside of a trace, without nodes. It serves a scalar expression over buffers,
reduced or not; parts of arrays, and arrays joined.

It calls what the interpreter calls for a `MapReduce`, so that the numbers are the same. None says that the sizes do not
fit or memory does not suffice; then the interpreter goes the long way, which raises the errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harp.trace.eval import interpret
from harp.trace.scalar.dtypes import NDArray
from harp.trace.scalar.expr import Expr
from harp.trace.scalar.ops import Reduce


def elementwise(expr: Expr, operands: Sequence[NDArray]) -> NDArray | None:
    """The expression for each element of operands that broadcast."""
    try:
        domain = operands[0].shape
        if any(o.shape != domain for o in operands):
            domain = np.broadcast(*operands).shape
            operands = [np.broadcast_to(o, domain) for o in operands]
        return interpret.map_reduce(expr, operands, domain, None, ())
    except (ValueError, MemoryError):
        return None


def part(value: NDArray, key: object) -> NDArray | None:
    """`value[key]` for numbers of Python, slices of them, None and `...`, where it is not an error."""
    keys = key if isinstance(key, tuple) else (key,)
    if not all(type(k) in _PLAIN or (type(k) is slice and _is_plain(k)) for k in keys):
        return None
    try:
        return np.asarray(value[keys])
    except (IndexError, ValueError, OverflowError):
        return None


_PLAIN = (int, type(None), type(...))


def _is_plain(item: slice) -> bool:
    return all(bound is None or type(bound) is int for bound in (item.start, item.stop, item.step))


def aligned(
    expr: Expr, operands: Sequence[NDArray], domain: tuple[int, ...], reduce: Reduce | None, axes: tuple[int, ...]
) -> NDArray | None:
    """The expression at every index of the domain, over which operands are repeated, then reduced over the axes."""
    try:
        spread = [np.broadcast_to(o, domain) for o in operands]
        return interpret.map_reduce(expr, spread, domain, reduce, axes)
    except (ValueError, MemoryError):
        return None


def joined(values: Sequence[NDArray | None], axis: int) -> NDArray | None:
    """Arrays of one dtype one after the other, where all have numbers and their sizes fit."""
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    try:
        return np.concatenate(known, axis)
    except (ValueError, MemoryError):
        return None


def reduction(expr: Expr, operand: NDArray, reduce: Reduce, axes: tuple[int, ...], keepdims: bool) -> NDArray | None:
    """The expression for each element, then reduced over the axes, of which there is at least one."""
    try:
        result = interpret.map_reduce(expr, (operand,), operand.shape, reduce, axes)
    except (ValueError, MemoryError):
        return None
    if keepdims:
        return result.reshape([1 if axis in axes else size for axis, size in enumerate(operand.shape)])
    return result
