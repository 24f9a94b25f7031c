"""Keys, and which counters belong to which use of one: keys are made from a seed, split into many, and combined with
data; arrays are computed from the blocks of their positions. A key is an ordinary array: uint32, shape (2,).

A counter has 64 bits. Numbers drawn from a key, keys split off it and keys with data folded in come from different
counters, so none of them repeats another:

    00 lane:14 position:48       element `position` of an array; further blocks of it have further lanes
    10 position:62               key number `position` of a split
    11 stream:62                 keys that functions of this package derive for themselves; stream 0 is fold_in's

Element k depends on the key and on k only: not on the shape, the number of threads, or what it is fused with.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from harp.errors import ArgumentError, DTypeError, IntegerRangeError, ShapeError
from harp.random import eager
from harp.random.eager import Build, Key
from harp.random.threefry import EXPRESSIONS, INTEGERS, Words, threefry2x32, word
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import as_array, emit, expand_to, known_numbers, to_shape
from harp.trace.graph import view
from harp.trace.graph.node import MapReduce, Node, positions
from harp.trace.index.polynomial import ZERO, Shape, as_index
from harp.trace.scalar.dtypes import i64, u32, u64
from harp.trace.scalar.expr import Const, Expr, Operand, Position, apply, cast, const
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.levels import current
from harp.trace.sizes.ranges import size_value
from harp.trace.sizes.size import Size, describe, pin, unify
from harp.trace.source_locations import plural, short, where

_SPLIT = 0b10 << 30
_DERIVED = 0b11 << 30
_LANE = 1 << 16


def checked(key: object) -> Array:
    """A key. Raises ArgumentError, DTypeError or ShapeError for what is none."""
    of_numpy = type(key).__module__.startswith("numpy.random")  # a generator
    if of_numpy or isinstance(key, (bool, int, float, list, tuple, type(None))):
        raise ArgumentError(f"a key is an array made by harp.random.key(seed), not {key!r}{where()}")
    array = as_array(key)
    if array.kind is not u32:
        raise DTypeError(f"a key is an array of uint32 made by harp.random.key(seed), not of {array.dtype}{where()}")
    shape = node_of(array).shape
    if len(shape) != 1:
        sizes = ", ".join(map(describe, shape))
        raise ShapeError(f"a key has shape (2,), not ({sizes}); index several keys to get one, as in keys[0]{where()}")
    unify(shape[0], as_index(2), lambda: f"a key has shape (2,), not ({describe(shape[0])},)")
    return array


def key_nodes(array: Array) -> tuple[Node, Node]:
    """The two words of a key, each an array without axes."""
    node = node_of(array)
    return view.drop_axes(node, {0: ZERO}), view.drop_axes(node, {0: as_index(1)})


def key_numbers(array: Array) -> Key | None:
    """The two words of a key, if they are numbers and what is drawn is computed at once."""
    if current() is not None:
        return None
    value = known_numbers(array)
    return None if value is None else (int(value[0]), int(value[1]))


def pair_of(words: tuple[int, int]) -> Array:
    """A key of two numbers."""
    return from_numpy(np.array(words, np.uint32))


def position(shape: Shape) -> Expr:
    """The row-major number of each element, as an int64."""
    return Position(view.flatten_index(positions(shape), shape))


def block(key: Words, number: Expr, high: int) -> Words:
    """The block of element `number`, an int64, and of what else belongs to the upper half of the counter."""
    above = word(0) if isinstance(number, Const) else cast(number >> const(32, i64), u32)
    return threefry2x32(key, (above + word(high), cast(number, u32)), EXPRESSIONS)


def draw(
    key: object,
    shape: Shape,
    build: Build,
    lanes: Sequence[int] = (0,),
    operands: Sequence[Array] = (),
    number: Build | None = None,
    reduce: Reduce | None = None,
) -> Array:
    """An array of this shape: each element is `build` of the words of its blocks, and of the operands' elements.

    The operands have the array's shape. `number` of an element's position and these gives its number, where that is
    another one. `reduce` folds the last axis. Functions `build` and `number` are kept, so they should be few.
    """
    array, highs = checked(key), [lane * _LANE for lane in lanes]
    known = key_numbers(array)
    if known is not None:
        values = [np.asarray(o) for o in operands]
        return from_numpy(eager.draw(known, _sizes(shape), build, highs, values, number, reduce))
    words, nodes = _expanded(array, shape)
    nodes += [node_of(o) for o in operands]
    given = [Operand(o.kind, slot) for slot, o in enumerate(operands, 2)]
    here = position(shape)
    counted = here if number is None else number(here, *given)
    blocks = [w for high in highs for w in block(words, counted, high)]
    axes = (len(shape) - 1,) if reduce is not None else ()
    return emit(MapReduce(shape, tuple(nodes), build(*blocks, *given), reduce, axes))


def split_off(key: object, shape: Shape) -> Array:
    """Keys numbered by their positions, with their two words along a last axis."""
    array, pair = checked(key), (*shape, as_index(2))
    known = key_numbers(array)
    if known is not None:
        sizes = _sizes(shape)
        words = eager.blocks(known, np.arange(prod(sizes), dtype=np.int64), _SPLIT)
        return from_numpy(np.stack(words, axis=-1).reshape(*sizes, 2))
    halves, nodes = _expanded(array, pair)
    number = Position(view.flatten_index(positions(pair)[:-1], shape))
    return emit(MapReduce(pair, tuple(nodes), chosen(pair, *block(halves, number, _SPLIT))))


def derived(key: object, stream: int) -> Array:
    """The key of a stream of its own."""
    array, pair = checked(key), (as_index(2),)
    known = key_numbers(array)
    if known is not None:
        return pair_of(eager.integer_block(known, stream, _DERIVED))
    halves, nodes = _expanded(array, pair)
    return emit(MapReduce(pair, tuple(nodes), chosen(pair, *block(halves, const(stream, i64), _DERIVED))))


def chosen(shape: Shape, first: Expr, second: Expr) -> Expr:
    """The first word where the last position is 0, the second where it is 1."""
    is_first = apply(Op.EQ, Position(positions(shape)[-1]), const(0, i64))
    return apply(Op.SELECT, is_first, first, second)


def _expanded(key: Array, shape: Shape) -> tuple[Words, list[Node]]:
    first, second = (expand_to(node, shape) for node in key_nodes(key))
    return (Operand(u32, 0), Operand(u32, 1)), [first, second]


def _sizes(shape: Shape) -> tuple[int, ...]:
    """As numbers, which they are outside of traces."""
    return tuple(pin(size) for size in shape)


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


PRNGKey = key


def key_data(keys: object) -> Array:
    """Keys (..., 2), which are arrays: `wrap_key_data` and `clone` return them, too. Raises ArgumentError for others.

    >>> key_data(key(7))
    Array([0, 7], dtype=uint32)
    """
    array = as_array(keys)
    if array.kind is not u32 or not array.ndim or array.shape[-1] != 2:
        raise ArgumentError(f"keys are uint32 of shape (..., 2), not {array.dtype} of shape {array.shape}{where()}")
    return array


clone = wrap_key_data = key_data


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
