"""Blocks of the elements of arrays, for loops over blocks of steps.

A loop keeps for reverse mode what each step carries, but of a loop within its steps only what goes into it:

    scan(f, c, xs)  ->  scan(lambda c, block: scan(f, c, block), c, blocks of xs); scan(f, c, what is left)
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import emit
from harp.trace.graph.node import MapReduce, positions
from harp.trace.graph.view import pad, view
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Index
from harp.trace.scalar.expr import Operand, Position, apply, const, select
from harp.trace.scalar.ops import Op


def in_blocks(arrays: Sequence[Array], count: Index, every: Index) -> tuple[list[Array], list[Array], Index]:
    """Blocks of elements along the first axis, of which there are `count`; those that are left; the number of these."""
    blocks = floordiv(count, every)
    left = count - blocks * every
    front: list[Array] = []
    rest: list[Array] = []
    for array in arrays:
        node = node_of(array)
        shape = (blocks, every, *node.shape[1:])
        block, place, *others = positions(shape)
        front.append(emit(view(node, shape, (block * every + place, *others))))
        shape = (left, *node.shape[1:])
        place, *others = positions(shape)
        rest.append(emit(view(node, shape, (blocks * every + place, *others))))
    return front, rest, left


def joined(front: Array, rest: Array | None) -> Array:
    """The elements of blocks, and those behind them, if there are any, in one array."""
    blocks = node_of(front)
    whole = blocks.shape[0] * blocks.shape[1]
    shape = (whole, *blocks.shape[2:])
    place, *along = positions(shape)
    block = floordiv(place, blocks.shape[1])
    flat = view(blocks, shape, (block, place - block * blocks.shape[1], *along))
    if rest is None:
        return emit(flat)
    others = node_of(rest)
    left = others.shape[0]
    fill, none = const(0, blocks.dtype), (0,) * (len(shape) - 1)
    first, last = pad(flat, (0, *none), (left, *none), fill), pad(others, (whole, *none), (0, *none), fill)
    is_first = apply(Op.LT, Position(positions(first.shape)[0]), Position(whole))
    chosen = select(is_first, Operand(blocks.dtype, 0), Operand(blocks.dtype, 1))
    return emit(MapReduce(first.shape, (first, last), chosen))
