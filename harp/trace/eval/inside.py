"""Whether what a node reads or changes lies inside the array, and the error where it does not.

A graph of harp never leaves an array: sizes that it relies on are guards. `require_inside` looks at the positions
themselves before the interpreter touches memory; compiled programs are checked by `harp.lower.kernels.bounds_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import NamedTuple, cast

import attrs
import numpy as np

from harp.errors import AddressError, HarpError, IndexOutOfRangeError
from harp.trace.graph.node import Constant, Gather, Input, Node, Scatter, View
from harp.trace.index.polynomial import ZERO, Atom, Fold, Index, Loop, Symbol, evaluate
from harp.trace.scalar.dtypes import NDArray
from harp.trace.source_locations import Site, plural, user_site

# The values of index expressions at all positions of a shape at once, as NumPy arrays that broadcast to it.

Sizes = Callable[[Atom], int]


def numbers(shape: tuple[Index, ...], sizes: Sizes) -> tuple[int, ...]:
    """A shape with sizes as numbers."""
    return tuple(evaluate(p, sizes) for p in shape)


def on_grid(p: Index, shape: tuple[int, ...], sizes: Sizes) -> NDArray:
    """The values of an index expression at all positions; an axis on which they do not depend has one element."""

    def value(atom: Atom) -> NDArray:
        if isinstance(atom, Loop):
            ends = [1] * len(shape)
            ends[atom.axis] = shape[atom.axis]
            return np.arange(shape[atom.axis], dtype=np.int64).reshape(ends)
        return np.asarray(sizes(atom))

    return Fold(_total, _term, _quotient, _at_least_zero, value)(p)


# Modulo 2**64, as in a compiled program: what fits is exact, whatever the terms are.


def _total(terms: list[NDArray]) -> NDArray:
    return reduce(_sum, terms, np.asarray(0, np.int64))


def _sum(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(np.add(a, b))


def _term(coefficient: int, factors: list[NDArray]) -> NDArray:
    return reduce(_product, factors, np.asarray((coefficient + 2**63) % 2**64 - 2**63, np.int64))


def _product(a: NDArray, b: NDArray) -> NDArray:
    return np.asarray(np.multiply(a, b))


def _quotient(a: NDArray, b: NDArray) -> NDArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.floor_divide(a, b))


def _at_least_zero(a: NDArray) -> NDArray:
    return np.asarray(np.maximum(a, 0))


@attrs.frozen
class Access:
    """A place of a program that reads or stores to an array, as an error names it: along one axis, at an index."""

    array: str
    index: tuple[Index, ...]
    axis: int
    site: Site | None
    stores: bool = False
    by_data: bool = False  # the index is an element of an array of the user

    def error(self, index: int, size: int) -> HarpError:
        """The error for an index outside an axis of this size."""
        if self.by_data:
            return outside_by_data(self.array, index, self.axis, size, self.site)
        made = f"\n  at {self.site[0]}:{self.site[1]}" if self.site else ""
        return AddressError(
            f"{self.array} is {'stored to' if self.stores else 'read'} at [{', '.join(map(repr, self.index))}], where "
            f"axis {self.axis} has {plural(size, 'elements')} and the index is {index}: a bug in harp; please "
            "report it, with the "
            f"function and the shapes and dtypes of its arguments{made}"
        )


def outside_by_data(array: str, index: int, axis: int, size: int, site: Site | None) -> IndexOutOfRangeError:
    """The error for an index of the user; one that counts from the end has been added to the size."""
    made = f"\n  at {site[0]}:{site[1]}" if site else ""
    raw = index if index >= 0 else index - size
    named = f"index {raw}" if abs(raw) < 1 << 58 else "an index of more than 18 digits"
    return IndexOutOfRangeError(
        f"{named} is outside axis {axis} of {array}, which has {plural(size, 'elements')}; use an index from {-size} "
        f"to {size - 1}, or say by `mode` what others mean, as in x.at[i].get(mode='clip') and x.at[i].add(v, "
        f"mode='drop'){made}"
    )


class Outside(NamedTuple):
    """The first axis on which an index is outside, with that position and the size of the axis."""

    axis: int
    position: int
    size: int


def is_plain(p: Index, extent: Index) -> bool:
    """Whether an index is inside an axis by its form alone: a loop over the axis, or a number. Nothing is proved."""
    if p.constant is not None and extent.constant is not None:
        return 0 <= p.constant < extent.constant
    return isinstance(p.atom, Loop) and p.atom.extent is extent


def outside(node: View | Gather | Scatter, sizes: Mapping[Symbol, int]) -> Outside | None:
    """Where the node leaves the array that it reads or changes; None if it stays inside."""
    value = cast(Sizes, sizes.__getitem__)
    return _view(node, value) if isinstance(node, View) else _nearest(node, value)


def _view(node: View, sizes: Sizes) -> Outside | None:
    """A position that is outside where all conditions hold."""
    shape = numbers(node.shape, sizes)
    if min(shape, default=1) <= 0:
        return None
    holds = np.asarray(True)
    for condition in node.conditions:
        holds = np.logical_and(holds, np.greater_equal(on_grid(condition, shape, sizes), 0))
    for axis, (p, extent) in enumerate(zip(node.index, node.src.shape, strict=True)):
        if is_plain(p, extent):
            continue
        index, (size,) = on_grid(p, shape, sizes), numbers((extent,), sizes)
        leaves = np.logical_and(holds, np.less(index, 0) | np.greater_equal(index, size))
        if leaves.any():
            return Outside(axis, int(np.broadcast_to(index, leaves.shape)[leaves][0]), size)
    return None


def _nearest(node: Gather | Scatter, sizes: Sizes) -> Outside | None:
    """An axis without elements, of which the nearest one is wanted; all other positions are moved inside."""
    array, clips = (node.src, node.fill is None) if isinstance(node, Gather) else (node.base, node.clips)
    if not clips or 0 in numbers(node.shape if isinstance(node, Gather) else node.updates.shape, sizes):
        return None
    empty = [axis for axis, size in enumerate(numbers(array.shape[: len(node.indices)], sizes)) if size == 0]
    return Outside(empty[0], 0, 0) if empty else None


def require_inside(node: Node, sizes: Mapping[Symbol, int], site: Site | None) -> None:
    """Raise AddressError if the node leaves the array that it reads or changes."""
    found = outside(node, sizes) if isinstance(node, (View, Gather, Scatter)) else None
    if found is not None:
        array = node.base if isinstance(node, Scatter) else node.inputs[0]
        index = node.index if isinstance(node, View) else (ZERO,) * len(array.shape)
        access = Access(_name(array), index, found.axis, site or user_site(), isinstance(node, Scatter))
        raise access.error(found.position, found.size)


def require_indices(
    node: Gather | Scatter, indices: Sequence[NDArray], sizes: Mapping[Symbol, int], site: Callable[[], Site | None]
) -> None:
    """Raise IndexOutOfRangeError if one of the indices of a strict node is outside; `site` finds its line."""
    array = node.base if isinstance(node, Scatter) else node.src
    if 0 in numbers(node.indices[0].shape, cast(Sizes, sizes.__getitem__)):
        return
    for axis, (index, extent) in enumerate(zip(indices, array.shape, strict=False)):
        (size,) = numbers((extent,), cast(Sizes, sizes.__getitem__))
        outside = np.less(index, -size) | np.greater_equal(index, size)
        if outside.any():
            found = int(index[outside][0])
            counted = found + size if found < 0 else found
            whole, place = _behind_views(array, axis)
            raise outside_by_data(_name(whole), counted, place, size, site() or user_site())


def _behind_views(node: Node, axis: int) -> tuple[Node, int]:
    """The array of which an axis is shown, with its axes in another order."""
    while isinstance(node, View) and not node.conditions:
        places = [k for k, p in enumerate(node.index) if isinstance(p.atom, Loop) and p.atom.axis == axis]
        if not places or node.src.shape[places[0]] is not node.shape[axis]:
            break
        node, axis = node.src, places[0]
    return node, axis


def _name(node: Node) -> str:
    if isinstance(node, Input):
        return node.name if node.uid >= 0 else "an array of a loop or branch"
    return "a captured array" if isinstance(node, Constant) else "an intermediate array"
