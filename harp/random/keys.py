"""Keys: made from a seed, split into many, and combined with data. A key is an ordinary array: uint32, shape (2,)."""

from __future__ import annotations

import numpy as np

from harp.errors import ArgumentError, DTypeError, IntegerRangeError, ShapeError
from harp.random.streams import chosen, derived, key_nodes, key_numbers, pair_of, split_off
from harp.random.threefry import EXPRESSIONS, INTEGERS, Words, threefry2x32
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, emit, expand_to, to_shape
from harp.trace.graph.node import MapReduce, Node
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import i64, u32, u64
from harp.trace.scalar.expr import Expr, Operand, cast, const
from harp.trace.sizes.levels import current
from harp.trace.sizes.ranges import size_value
from harp.trace.sizes.size import Size
from harp.trace.source_locations import plural, short, where

_PAIR = (as_index(2),)
_FOLD_IN = 0  # the stream of keys with data folded in


def key(seed: object) -> Array:
    """A key from a seed: an integer of up to 64 bits, a size, or an integer array without axes.

    Every seed gives another key. Raises ArgumentError for floats, bool and other objects, IntegerRangeError for Python
    integers outside -2**63 ... 2**64 - 1, DTypeError and ShapeError for other arrays.

    >>> key(7)
    Array([0, 7], dtype=uint32)
    """
    nodes: list[Node] = []
    number = _integer("a seed", seed, nodes)
    if isinstance(number, int):
        return pair_of(_halves(number))
    return emit(MapReduce(_PAIR, tuple(nodes), chosen(_PAIR, *_words(number))))


def split(key: object, num: object = 2) -> Array:
    """Independent keys, uint32 of shape (num, 2), or (*num, 2) if `num` is a tuple; sizes may be symbolic.

    Key number j depends on `key` and j only, so more keys never change the first ones. Raises the errors of a wrong
    key, and ShapeError for a negative `num`.

    >>> first, second = split(key(0))
    >>> first.shape, split(key(0), (3, 4)).shape
    ((2,), (3, 4, 2))
    """
    return split_off(key, to_shape(num))


def fold_in(key: object, data: object) -> Array:
    """The key for `key` and an integer (as `key` takes it): one for each step, worker or layer.

    Raises the errors of a wrong key, and those of `harp.random.key` for wrong data.

    >>> fold_in(key(0), 3).shape
    (2,)
    """
    base = derived(key, _FOLD_IN)
    known, nodes = key_numbers(base), [expand_to(word, _PAIR) for word in key_nodes(base)]
    number = _integer("data to fold in", data, nodes)
    if isinstance(number, int) and known is not None:
        return pair_of(threefry2x32(known, _halves(number), INTEGERS))
    counter = _words(const(number, i64) if isinstance(number, int) else number)
    block = threefry2x32((Operand(u32, 0), Operand(u32, 1)), counter, EXPRESSIONS)
    return emit(MapReduce(_PAIR, tuple(nodes), chosen(_PAIR, *block)))


def _halves(value: int) -> tuple[int, int]:
    """The upper and the lower 32 bits."""
    return value >> 32 & 0xFFFFFFFF, value & 0xFFFFFFFF


def _words(number: Expr) -> Words:
    """The same of an expression of 64 bits."""
    return cast(number >> const(32, number.dtype), u32), cast(number, u32)


def _integer(name: str, value: object, nodes: list[Node]) -> int | Expr:
    """A number that is known, or an expression of 64 bits; its node joins the operands."""
    if isinstance(value, Size):
        return size_value(value.index, i64)
    if isinstance(value, int) and not isinstance(value, bool):
        if not -(2**63) <= value < 2**64:
            raise IntegerRangeError(f"{name} has up to 64 bits; {short(value)} has more{where()}")
        return value
    if not isinstance(value, (Array, np.ndarray, np.generic)):
        raise ArgumentError(f"{name} must be an integer, not {value!r} of type {type(value).__name__}{where()}")
    array = as_array(value)
    if not array.kind.is_integer:
        raise DTypeError(f"{name} must be an integer, not {array.dtype}; convert it with .astype{where()}")
    if array.ndim:
        raise ShapeError(f"{name} is one number, not an array with {plural(array.ndim, 'axes')}{where()}")
    if current() is None:
        return int(array)
    nodes.append(expand_to(node_of(array), _PAIR))
    return cast(Operand(array.kind, len(nodes) - 1), u64 if array.kind is u64 else i64)
