"""`pad` of `jax.lax`: elements before, behind and between those of an array, or fewer of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.checks import as_count
from harp.numpy.elementwise import where
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import integer
from harp.trace.array.primitives import as_array, emit, from_positions, known_numbers, python_constant, to_shape
from harp.trace.graph.node import positions
from harp.trace.graph.view import view
from harp.trace.index.division import floordiv, relu
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, bool_
from harp.trace.scalar.expr import Const, Expr, Position, const
from harp.trace.sizes.size import resolve_all
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as location


class _Widths(NamedTuple):
    """How many elements come before and behind those of an axis, and between any two of them."""

    low: Index
    high: Index
    interior: Index

    def size(self, size: Index) -> Index:
        return size + relu(size - 1) * self.interior + self.low + self.high


def pad(operand: object, padding_value: object, padding_config: Sequence[Sequence[object]]) -> Array:
    """An array with a value around and between its elements.

    `padding_config` has `(low, high, interior)` for each axis: so many come before the first element, behind the last,
    and between any two. Negative `low` and `high` take elements away, of those between as well. `padding_value` is a
    number or an array without axes, which may be computed.

    Raises ShapeError for another number of triples, a negative `interior`, and an axis that loses more than it has,
    ArgumentError for a padding value with axes.

    >>> import harp.numpy as hnp
    >>> pad(hnp.asarray([1.0, 2.0, 3.0]), 0.0, [(1, -1, 1)])
    Array([0., 1., 0., 2., 0.])
    """
    array = as_array(operand)
    widths = [_widths(axis, triple) for axis, triple in enumerate(padding_config)]
    if len(widths) != array.ndim:
        raise ShapeError(
            f"pad has {plural(len(widths), 'triples')} (low, high, interior) for "
            f"{plural(array.ndim, 'axes')}{location()}"
        )
    node = node_of(array)
    sizes = resolve_all(node.shape)
    shape = to_shape(tuple(w.size(size) for w, size in zip(widths, sizes, strict=True)))
    index: list[Index] = []
    conditions: list[Index] = []
    for position, size, w in zip(positions(shape), sizes, widths, strict=True):
        step, distance = w.interior + 1, position - w.low
        index.append(floordiv(distance, step))
        conditions += [distance, (size - 1) * step - distance, index[-1] * step - distance]
    known = known_fill(padding_value, array.kind)
    fill = const(0, array.kind) if known is None else known
    padded = emit(view(node, shape, tuple(index), tuple(conditions), fill), array.weak and known is not None)
    if known is not None:
        return padded
    value = as_array(padding_value).astype(array.kind)
    if value.ndim:
        raise ArgumentError(
            f"the padding_value of pad is one number, not an array with {plural(value.ndim, 'axes')}{location()}"
        )
    inside: Expr = const(True, bool_)
    for condition in dict.fromkeys(conditions):
        inside = inside & ~(Position(condition) < 0)
    return where(from_positions(shape, inside), padded, value)


def _widths(axis: int, triple: Sequence[object]) -> _Widths:
    if not isinstance(triple, (tuple, list)) or len(triple) != 3:
        raise ShapeError(f"pad takes (low, high, interior) for axis {axis}, not {triple!r}{location()}")
    low, high, interior = triple
    return _Widths(integer(low), integer(high), as_count(f"interior of axis {axis}", interior))


def known_fill(value: object, dtype: DType) -> Const | None:
    """The padding value as a constant, where it is known before the program runs. Raises DTypeError for fractions in
    an array of integers."""
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        known: bool | int | float | complex = value
    else:
        numbers = known_numbers(value)
        if numbers is None or numbers.ndim:
            return None
        known = numbers.item()
    if dtype.is_integer and isinstance(known, float) and known % 1:
        raise DTypeError(f"{known} is not a number of {dtype.numpy}, which the array has{location()}")
    return python_constant(known, dtype)
