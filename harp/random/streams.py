"""Which counters belong to which use of a key, and arrays computed from the blocks of their positions.

A counter has 64 bits. Numbers drawn from a key, keys split off it and keys with data folded in come from different
counters, so none of them repeats another:

    00 lane:14 position:48       element `position` of an array; further blocks of it have further lanes
    10 position:62               key number `position` of a split
    11 stream:62                 keys that functions of this package derive for themselves; stream 0 is fold_in's

Element k depends on the key and on k only: not on the shape, the number of threads, or what it is fused with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.random.threefry import Words, threefry2x32, word
from harp.trace import view
from harp.trace.array import Array, node_of
from harp.trace.dtypes import i64, u32
from harp.trace.expr import Const, Expr, Operand, Position, apply, cast, const
from harp.trace.index import ZERO, as_index
from harp.trace.node import MapReduce, Node, Shape, positions
from harp.trace.ops import Op, Reduce
from harp.trace.primitives import as_array, emit, expand_to
from harp.trace.sites import where
from harp.trace.sizes import describe, unify

_SPLIT = 0b10 << 30
_DERIVED = 0b11 << 30
_LANE = 1 << 16


def key_words(key: object) -> tuple[Node, Node]:
    """The two words of a key, each an array without axes. Raises ArgumentError, DTypeError or ShapeError for others."""
    if isinstance(key, (bool, int, float, list, tuple)):
        raise ArgumentError(f"a key is an array made by harp.random.key(seed), not {key!r}{where()}")
    array = as_array(key)
    if array.kind is not u32:
        raise DTypeError(f"a key is an array of uint32 made by harp.random.key(seed), not of {array.dtype}{where()}")
    node = node_of(array)
    if len(node.shape) != 1:
        sizes = ", ".join(map(describe, node.shape))
        raise ShapeError(f"a key has shape (2,), not ({sizes}); index several keys to get one, as in keys[0]{where()}")
    size = node.shape[0]
    unify(size, as_index(2), lambda: f"a key has shape (2,), not ({describe(size)},)")
    return view.drop_axes(node, {0: ZERO}), view.drop_axes(node, {0: as_index(1)})


def position(shape: Shape) -> Expr:
    """The row-major number of each element, as an int64."""
    return Position(view.flatten_index(positions(shape), shape))


def block(key: Words, number: Expr, lane: int = 0, tag: int = 0) -> Words:
    """The block of element `number`, an int64."""
    high = word(0) if isinstance(number, Const) else cast(apply(Op.SHR, number, const(32, i64)), u32)
    return threefry2x32(key, (apply(Op.ADD, high, word(tag + lane * _LANE)), cast(number, u32)))


def draw(
    key: object,
    shape: Shape,
    build: Callable[..., Expr],
    lanes: Sequence[int] = (0,),
    operands: Sequence[Array] = (),
    number: Callable[..., Expr] | None = None,
    reduce: Reduce | None = None,
) -> Array:
    """An array of this shape: each element is `build` of the words of its blocks, and of the operands' elements.

    The operands have the array's shape. `number` of these gives an element's number where that is not its position.
    `reduce` folds the last axis.
    """
    words, nodes = _expanded(key, shape)
    nodes += [node_of(o) for o in operands]
    given = [Operand(o.kind, slot) for slot, o in enumerate(operands, 2)]
    counted = position(shape) if number is None else number(*given)
    blocks = [w for lane in lanes for w in block(words, counted, lane)]
    axes = (len(shape) - 1,) if reduce is not None else ()
    return emit(MapReduce(shape, tuple(nodes), build(*blocks, *given), reduce, axes))


def split_off(key: object, shape: Shape) -> Array:
    """Keys numbered by their positions, with their two words along a last axis."""
    pair = (*shape, as_index(2))
    words, nodes = _expanded(key, pair)
    number = Position(view.flatten_index(positions(pair)[:-1], shape))
    first, second = block(words, number, tag=_SPLIT)
    return emit(MapReduce(pair, tuple(nodes), chosen(pair, first, second)))


def derived(key: object, stream: int) -> Array:
    """The key of a stream of its own."""
    pair = (as_index(2),)
    words, nodes = _expanded(key, pair)
    first, second = block(words, const(stream, i64), tag=_DERIVED)
    return emit(MapReduce(pair, tuple(nodes), chosen(pair, first, second)))


def chosen(shape: Shape, first: Expr, second: Expr) -> Expr:
    """The first word where the last position is 0, the second where it is 1."""
    is_first = apply(Op.EQ, Position(positions(shape)[-1]), const(0, i64))
    return apply(Op.SELECT, is_first, first, second)


def _expanded(key: object, shape: Shape) -> tuple[Words, list[Node]]:
    first, second = (expand_to(node, shape) for node in key_words(key))
    return (Operand(u32, 0), Operand(u32, 1)), [first, second]
