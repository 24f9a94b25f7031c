"""Views of nodes: index maps for permute, expand, reshape, slice, flip and pad. No data moves, no size is guessed.

Callers have checked ranks and axes. Composition is substitution: a view of a view is one view, unless both have
conditions with different fills, or its index would have quotients of very large numbers: then the inner one is stored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, combinations
from math import prod

from harp.trace.graph.node import Contiguous, MapReduce, Node, View, at, positions
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import floordiv, mod
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    IndexLike,
    Loop,
    Monomial,
    Shape,
    Symbol,
    loops_in,
    of,
    product,
    symbols_in,
    value_atoms,
)
from harp.trace.scalar.expr import Apply, Const
from harp.trace.scalar.ops import Op

# Which sums of products are matrix products.


def multiplies_matrices(node: MapReduce, axes: Sequence[int]) -> bool:
    """Whether a node's values, summed over some axes, are a matrix product: rows of one operand meet columns of another
    one, and both move along what is summed."""
    if not isinstance(node.expr, Apply) or node.expr.op is not Op.MUL:
        return False
    inner = {a for axis, p in enumerate(positions(node.domain)) if axis in axes and (a := p.atom) is not None}
    views = [operand for operand in node.operands if isinstance(operand, View)]
    moving = [{a for p in view.index for a in loops_in(p)} for view in views]
    return any(a & inner and b & inner and a - b - inner and b - a - inner for a, b in combinations(moving, 2))


def view(
    src: Node, shape: Shape, index: tuple[Index, ...], conditions: tuple[Index, ...] = (), fill: Const | None = None
) -> Node:
    """The view, composed with `src` where that is one, and dropped where it shows `src` as it is."""
    conditions = tuple(dict.fromkeys(c for c in conditions if not nonnegative(c)))
    fill = fill if conditions else None
    if isinstance(src, View) and (not conditions or not src.conditions or src.fill is fill):
        inner = at(src.shape, index)
        outer = tuple(dict.fromkeys((*inner.each(src.conditions), *conditions)))
        composed = inner.each(src.index)
        if not quotients_fit(composed, src.shape, shape):
            return View(Contiguous(src), shape, index, conditions, fill)
        return view(src.src, shape, composed, outer, fill or src.fill)
    if not conditions and shape == src.shape and index == positions(src.shape):
        return src
    return View(src, shape, index, conditions, fill)


# A product of steps, strides and the like, by which positions along axes may be multiplied.
_STEPS = 1 << 12


@lru_cache(maxsize=1 << 10)
def quotients_fit(index: tuple[Index, ...], *shapes: Shape) -> bool:
    """Whether the numerators of quotients are at most about as large as arrays of these shapes. With each reshape of a
    transposed matrix they would get larger, until they do not fit into 64 bits."""
    numerators = [atom.num for p in index for atom in value_atoms(p) if isinstance(atom, FloorDiv)]
    if not numerators:
        return True
    most: Counter[Symbol] = Counter()
    for shape in shapes:
        most |= Counter(size for p in shape for size in symbols_in(p))
    largest = max(prod(_number(p) for p in shape) for shape in shapes) * _STEPS
    for monomial, coefficient in (term for p in numerators for term in p.terms):
        if abs(coefficient) * prod(_number(a.extent) for a in monomial if isinstance(a, Loop)) > largest:
            return False
        counts = Counter(chain.from_iterable(map(_sizes, monomial)))
        if any(count > max(most[size], 1) for size, count in counts.items()):
            return False
    return True


def _number(size: Index) -> int:
    """A size that is a number; 1 for others."""
    return max(size.constant or 1, 1)


def _sizes(atom: Atom) -> Iterable[Symbol]:
    """The sizes whose product is about as large as an atom may be."""
    if isinstance(atom, Loop):
        largest: Monomial = max((monomial for monomial, _ in atom.extent.terms), key=len, default=())
        return chain.from_iterable(map(_sizes, largest))
    return (atom,) if isinstance(atom, Symbol) else symbols_in(of(atom))


def permute(src: Node, order: Sequence[int]) -> Node:
    """Axis k of the result is axis order[k] of `src`."""
    shape = tuple(src.shape[axis] for axis in order)
    loops = positions(shape)
    return view(src, shape, tuple(loops[order.index(axis)] for axis in range(len(order))))


def expand(src: Node, shape: Shape, stretched: Sequence[bool]) -> Node:
    """Broadcast: trailing axes align; axis k of `src` repeats its one element where stretched[k]."""
    loops = positions(shape)[len(shape) - len(src.shape) :]
    index = tuple(ZERO if repeat else loop for loop, repeat in zip(loops, stretched, strict=True))
    return view(src, shape, index)


def insert_axes(src: Node, axes: Sequence[int]) -> Node:
    """Axes of one element at these places of the result."""
    sizes = list(src.shape)
    for axis in sorted(axes):
        sizes.insert(axis, ONE)
    shape = tuple(sizes)
    return view(src, shape, tuple(p for axis, p in enumerate(positions(shape)) if axis not in axes))


def drop_axes(src: Node, at_positions: dict[int, Index]) -> Node:
    """Fix some axes at a position and leave them out."""
    kept = tuple(size for axis, size in enumerate(src.shape) if axis not in at_positions)
    loops = iter(positions(kept))
    index = tuple(at_positions[axis] if axis in at_positions else next(loops) for axis in range(len(src.shape)))
    return view(src, kept, index)


def reshape(src: Node, shape: Shape) -> Node:
    """Unflatten of flatten, in row-major order; the caller guarantees equal numbers of elements.

    Leading axes that stay are read as they are, for it may be a guard alone that says that the others have as many.
    """
    loops, kept = positions(shape), 0
    while kept < min(len(src.shape) - 1, len(shape)) and src.shape[kept] is shape[kept]:
        kept += 1
    flat = flatten_index(loops[kept:], shape[kept:])
    return view(src, shape, (*loops[:kept], *unflatten_index(flat, src.shape[kept:])))


def flatten_index(index: Sequence[Index], shape: Shape) -> Index:
    """The row-major position of an index."""
    flat = ZERO
    for position, size in zip(index, shape, strict=True):
        flat = flat * size + position
    return flat


def unflatten_index(flat: Index, shape: Shape) -> tuple[Index, ...]:
    """The index at a row-major position: mixed-radix digits."""
    digits = []
    for axis, size in enumerate(shape):
        digit = floordiv(flat, product(shape[axis + 1 :]))
        outermost = all(s is ONE for s in shape[:axis])
        digits.append(ZERO if size is ONE else digit if outermost else mod(digit, size))
    return tuple(digits)


def take_slices(src: Node, starts: Sequence[Index], steps: Sequence[int], lengths: Shape) -> Node:
    """Element i of axis k is element starts[k] + steps[k]*i of `src`; the caller guarantees that it exists."""
    loops = positions(lengths)
    index = tuple(start + loop * step for start, step, loop in zip(starts, steps, loops, strict=True))
    return view(src, lengths, index)


def flip(src: Node, axes: Sequence[int]) -> Node:
    """Reverse some axes."""
    index = tuple(
        size - 1 - loop if axis in axes else loop
        for axis, (size, loop) in enumerate(zip(src.shape, positions(src.shape), strict=True))
    )
    return view(src, src.shape, index)


def pad(src: Node, low: Sequence[IndexLike], high: Sequence[IndexLike], fill: Const) -> Node:
    """`fill` before and after each axis; negative amounts crop."""
    shape = tuple(size + before + after for size, before, after in zip(src.shape, low, high, strict=True))
    index = tuple(loop - before for loop, before in zip(positions(shape), low, strict=True))
    conditions = tuple(c for p, size in zip(index, src.shape, strict=True) for c in (p, size - 1 - p))
    return view(src, shape, index, conditions, fill)
