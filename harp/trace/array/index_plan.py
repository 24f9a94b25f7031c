"""The plan of an index: what a key with arrays in it selects, by NumPy's rules for integer arrays and masks among
slices, None and `...`.

All index arrays, and integers beside them, are broadcast together. The axes of the result stand where the first of
them does, if nothing but index arrays stands between the first and the last; else they come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from harp.errors import ArgumentError, IndexOutOfRangeError, ShapeError
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import Selection, Taken, bound, fill_ellipsis, select, slice_of
from harp.trace.array.primitives import (
    as_array,
    broadcast_shapes,
    emit,
    expand_to,
    known_numbers,
    map_,
    require_known,
)
from harp.trace.graph import view
from harp.trace.graph.node import Input, MapReduce, Node, positions, walk
from harp.trace.index.bounds import at_least_zero
from harp.trace.index.division import relu
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape, as_index, product
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import Kind, NDArray
from harp.trace.scalar.expr import Position, apply, cast, const
from harp.trace.scalar.ops import Op
from harp.trace.sizes.levels import current
from harp.trace.sizes.ranges import size_value
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import Size, ask, describe, may_miss, resolve, unify
from harp.trace.sizes.steps import counters_in, formula, most
from harp.trace.source_locations import plural, where

_LARGEST = 2**63 - 1
# Nodes below an index among which the number of a step is looked for; else an axis is held to have an element.
_NEAR = 32
_HAS_ONE = "an axis that is indexed has an element"


class Plan(NamedTuple):
    """`selection` takes slices and fixes axes; `order` puts the indexed axes first; `indices` are for those.

    What is gathered has the broadcast axes of the indices, then the other axes. `moved` is the order of these in the
    result, and `inserted` are the places of its axes of one element. It `misses` if it need not find elements, since it
    is not computed.
    """

    selection: Selection
    order: tuple[int, ...]
    indices: tuple[Node, ...]
    moved: tuple[int, ...]
    inserted: tuple[int, ...]
    misses: bool = False

    def source(self, node: Node) -> Node:
        """What is indexed: slices of the array, the indexed axes first."""
        return view.permute(self.selection.view(node), self.order)

    def result(self, gathered: Node) -> Node:
        """What was gathered, as the key's result."""
        node = view.permute(gathered, self.moved)
        return view.insert_axes(node, self.inserted) if self.inserted else node

    def gathered(self, result: Node) -> Node:
        """The other way round, for updates."""
        node = view.drop_axes(result, dict.fromkeys(self.inserted, ZERO)) if self.inserted else result
        return view.permute(node, [self.moved.index(axis) for axis in range(len(self.moved))])


def is_data(item: object) -> bool:
    """Whether an item of a key is an array of indices, a mask, or an integer of which only the program knows."""
    if isinstance(item, Array):
        return item.ndim > 0 or item.kind.kind is Kind.BOOL or known_numbers(item) is None
    if isinstance(item, (np.ndarray, np.generic)):
        return item.ndim > 0 or item.dtype.kind == "b"
    return isinstance(item, (list, bool))


def single_bool(item: object) -> bool | None:
    """The value of a single bool, where it is known."""
    if not is_data(item) or isinstance(item, list) or getattr(item, "ndim", None):
        return None
    mask = as_index_array(item)
    known = known_numbers(mask) if mask.kind.kind is Kind.BOOL else None
    return None if known is None else bool(known)


def as_index_array(item: object) -> Array:
    """Integers or a mask as an array. Raises ArgumentError for what is neither, ShapeError for rows of
    different lengths."""
    if isinstance(item, (list, bool)):
        try:
            item = np.zeros(0, np.int64) if item == [] else np.asarray(item)
        except ValueError as error:
            raise ShapeError(f"a list is no array of indices: {str(error).rstrip('.')}{where()}") from None
    array = as_array(item)
    if array.kind.is_inexact:
        raise ArgumentError(
            f"an array of {array.kind} is not supported as an index; convert it to integers with .astype(int){where()}"
        )
    return array.astype(dtypes.i64) if array.kind.is_tiny else array


def plan(node: Node, keys: Sequence[object], checks: bool, reaches: bool) -> Plan:
    """The plan for these items of a key.

    `checks` says that indices which are known are held to their axes, `reaches` that the others mean the nearest
    element, which must be there.

    Raises IndexOutOfRangeError for an index outside its axis, ConcretizationError for a mask that is not known.
    """
    items = _with_ellipsis(_without_masks(node.shape, keys), len(node.shape))
    basic: list[object] = []
    arrays: dict[int, Array] = {}  # by axis
    for item in items:
        if isinstance(item, Array):
            arrays[len(basic)] = item
        if item is not None and item is not Ellipsis:
            basic.append(slice(None) if isinstance(item, Array) else item)
    for axis, array in arrays.items():
        _order_by_steps(node_of(array), node.shape[axis], axis)
    selection = select(node, basic)
    indices = [node_of(_signed(array)) for array in arrays.values()]
    shape = broadcast_shapes([index.shape for index in indices])
    count, misses = _at_most_one(resolve(product(shape))), False
    for axis, array in arrays.items():
        size, known = resolve(node.shape[axis]), known_numbers(array)
        needed = count if array.ndim else ONE  # a single integer is held to its axis in any case, as in NumPy
        if checks and known is not None:
            misses |= not _is_found(known, size, axis, needed)
        elif reaches:
            misses |= not _has_element(size, needed * product(_steps(node_of(array))), axis)
    kept = [axis for axis in range(len(node.shape)) if axis not in selection.fixed]
    order = [kept.index(axis) for axis in arrays]
    order += [k for k, axis in enumerate(kept) if axis not in arrays]
    moved, inserted = _arrangement(items, len(shape), len(kept) - len(arrays))
    return Plan(selection, tuple(order), tuple(expand_to(i, shape) for i in indices), moved, inserted, misses)


def integers_as_data(node: Node, keys: tuple[object, ...]) -> tuple[object, ...]:
    """The items of a key with index arrays for integers that the sizes do not show to be inside their axes: what these
    mean says a mode, for each size. The same tuple where there are none."""
    widths, items = [_width(key) for key in keys], list(keys)
    for number, key in enumerate(keys):
        axis = _axis_of(number, keys, widths, len(node.shape))
        if (
            key is None
            or key is Ellipsis
            or isinstance(key, slice)
            or is_data(key)
            or axis not in range(len(node.shape))
        ):
            continue
        if not _is_inside(position := bound(key), resolve(node.shape[axis])):
            items[number] = emit(MapReduce((), (), size_value(position, dtypes.i64)))
    return keys if all(a is b for a, b in zip(items, keys, strict=True)) else tuple(items)


def _is_inside(position: Index, size: Index) -> bool:
    """Whether what is known of the sizes shows it, without a new guard."""
    level = current()
    known = at_least_zero if level is None else partial(level.scope.known, Relation.NONNEGATIVE)
    pairs = (position, size - 1 - position), (-1 - position, size + position)
    return any(known(a) is True and known(b) is True for a, b in pairs)


def with_positions(node: Node, keys: tuple[object, ...], leading: bool = False) -> tuple[object, ...]:
    """The items of a key with arrays of positions for slices by the number of a loop, as `x[i : i + 3]`, and for those
    between them and numbers (and before them, if `leading`), so that NumPy's rules keep the order of axes.

    Raises IndexOutOfRangeError for such a slice that is not inside its axis in each step.
    """
    if not any(map(_is_computed, keys)) or any(key is None or _is_array(key) for key in keys):
        return keys
    items = fill_ellipsis(keys, len(node.shape))
    computed = [axis for axis, item in enumerate(items) if _is_computed(item)]
    apart = [axis for axis, item in enumerate(items) if axis in computed or not isinstance(item, slice)]
    slices = [axis for axis in range(0 if leading else apart[0], apart[-1] + 1) if isinstance(items[axis], slice)]
    for place, axis in enumerate(slices):
        item, size = items[axis], resolve(node.shape[axis])
        assert isinstance(item, slice)
        found = _computed(item, size, axis) if axis in computed else slice_of(item, size)
        if found is None:
            return keys
        (position,) = positions((found.length,))
        row = MapReduce((found.length,), (), Position(found.start + position * found.step))
        places = emit(view.insert_axes(row, [k for k in range(len(slices)) if k != place]))
        items[axis] = map_(lambda a, b: a + b, places, item.start, to=dtypes.i64) if axis in computed else places
    return tuple(items)


def _is_computed(item: object) -> bool:
    return isinstance(item, slice) and any(isinstance(end, Array) and is_data(end) for end in (item.start, item.stop))


def _is_array(item: object) -> bool:
    return is_data(item) and (not isinstance(item, Array) or item.ndim > 0 or item.kind.kind is Kind.BOOL)


def _computed(item: slice, size: Index, axis: int) -> Taken | None:
    """What a slice between numbers of loops takes, counted from its start; None where its length is not known."""
    if item.step not in (None, 1) or not all(_is_integer(end) for end in (item.start, item.stop)):
        return None
    start, stop = (formula(node_of(as_array(end))) for end in (item.start, item.stop))
    if start is None or stop is None or counters_in(stop - start):
        return None
    below, above = most(-start), most(stop)
    if below is None or above is None:
        return None
    runs = product([relu(most(c.extent) or ONE) for c in {*counters_in(start), *counters_in(stop)}])
    for room in (-below, size - above):
        p = -relu(-room) * runs  # 0 or below, and 0 if the slice is inside its axis or the loop does not run
        if not ask(Relation.NONNEGATIVE, resolve(p), f"a slice by the number of a loop is inside axis {axis}"):
            raise IndexOutOfRangeError(
                f"it is not certain that the slice lies inside axis {axis} of size {describe(size)} in each step of "
                "the loop, and with all of its elements; begin later or end before, or use "
                f"harp.lax.dynamic_slice_in_dim(x, start, length), which moves the start{where()}"
            )
    return Taken(ZERO, ONE, relu(stop - start), True)


def _is_integer(end: object) -> bool:
    if isinstance(end, Array):
        return end.ndim == 0 and end.kind.is_integer
    return isinstance(end, (int, np.integer, Size)) and not isinstance(end, bool)


def _arrangement(items: Sequence[object], rank: int, others: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The order of the axes in the result, of which `rank` belong to the indices, and the places of None in it."""
    kinds = [item is None or item is Ellipsis or isinstance(item, slice) for item in items]
    first, last = kinds.index(False), len(kinds) - 1 - kinds[::-1].index(False)
    together = not any(kinds[first:last])
    before = sum(isinstance(item, slice) for item in items[:first]) if together else 0
    rest = [rank + k for k in range(others)]
    moved = (*rest[:before], *range(rank), *rest[before:])
    inserted: list[int] = []
    place = 0 if together else rank
    for number, item in enumerate(items):
        if together and number == first:
            place += rank
        if item is None:
            inserted.append(place)
        place += item is None or isinstance(item, slice)
    return moved, tuple(inserted)


def _with_ellipsis(items: Sequence[object], rank: int) -> list[object]:
    """The items with a slice for each axis that `...` stands for, which itself stays: it keeps arrays apart."""
    used = sum(item is not None and item is not Ellipsis for item in items)
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if used > rank or len(dots) > 1:
        what = (
            f"{plural(used, 'indices')} for an array with {plural(rank, 'axes')}"
            if used > rank
            else "an index can have one `...` only"
        )
        raise IndexOutOfRangeError(f"{what}{where()}")
    at = dots[0] + 1 if dots else len(items)
    return [*items[:at], *[slice(None)] * (rank - used), *items[at:]]


def _without_masks(shape: Shape, keys: Sequence[object]) -> list[object]:
    """The items with arrays as `Array`, and with the places of its true elements for each mask."""
    widths = [_width(key) for key in keys]
    items: list[object] = []
    for number, key in enumerate(keys):
        if not is_data(key):
            items.append(key)
            continue
        array = as_index_array(key)
        if array.kind.kind is not Kind.BOOL:
            items.append(array)
            continue
        items += _places(array, shape, _axis_of(number, keys, widths, len(shape)))
    return items


def _axis_of(number: int, keys: Sequence[object], widths: Sequence[int], rank: int) -> int:
    """The first axis that an item of a key takes, where each takes so many."""
    is_behind_dots = any(key is Ellipsis for key in keys[:number])
    return rank - sum(widths[number:]) if is_behind_dots else sum(widths[:number])


def _width(key: object) -> int:
    """How many axes an item of a key takes."""
    if key is None or key is Ellipsis:
        return 0
    if not is_data(key):
        return 1
    array = as_index_array(key)
    return array.ndim if array.kind.kind is Kind.BOOL else 1


def _places(mask: Array, shape: Shape, axis: int) -> list[Array]:
    """The indices of what a mask selects, from `axis` on."""
    if mask.ndim == 0:
        raise ArgumentError(
            f"a single bool is not supported as an index beside others, or inside a function that is traced{where()}"
        )
    if axis + mask.ndim > len(shape):
        raise IndexOutOfRangeError(
            f"a mask with {plural(mask.ndim, 'axes')} is too much for axis {axis} and behind it{where()}"
        )
    known = require_known(
        mask,
        "how many elements a mask selects is known only when the program runs, so the result has no size while a "
        "function is traced; use harp.numpy.where(mask, x, other), x.at[mask].set(value) with one value for all of "
        "them, x.at[:, mask].set(value) beside whole axes only, or harp.numpy.nonzero(mask, size=...) with a size of "
        "your own",
    )
    for k, size in enumerate(node_of(mask).shape):
        unify(shape[axis + k], size, partial(_of_mask, axis + k))
    return [as_array(np.asarray(places)) for places in np.nonzero(known)]


def _of_mask(axis: int) -> str:
    return f"a mask has the sizes of the axes that it selects from: axis {axis} of the array"


def _at_most_one(count: Index) -> Index:
    return count if count.constant is None else as_index(min(count.constant, 1))


def _is_found(known: NDArray, size: Index, axis: int, count: Index) -> bool:
    """Whether known indices are inside the axis, or with others they are none: by a guard where the sizes do not show
    it. False where they need not be. Raises IndexOutOfRangeError."""
    if known.size:
        low, high = int(known.min()), int(known.max())
        for index, room in ((low, size + low), (high, size - 1 - high)):
            p = room if count is ONE else -relu(-room) * count  # 0 or below, and 0 if either holds
            if not ask(Relation.NONNEGATIVE, p, f"an index is inside axis {axis}"):
                if may_miss(size):
                    return False
                raise IndexOutOfRangeError(
                    f"index {index} is out of range for axis {axis} of size {describe(size)}{where()}"
                )
    return True


def _steps(index: Node) -> list[Index]:
    """How many steps the loops have whose numbers an index is computed of: where they have none nothing is read."""
    level = current()
    counters = {} if level is None else level.scope.counters
    below = islice(walk((index,)), _NEAR) if counters else ()
    return [resolve(counters[i.uid]) for i in below if isinstance(i, Input) and i.uid in counters]


def _order_by_steps(index: Node, size: Index, axis: int) -> None:
    """Where the last step of a loop finds its element on the axis in the call at hand: a guard, so that programs need
    not look in each step. Calls in which it does not have a program of their own."""
    level = current()
    number = formula(index) if level is not None and level.scope.counters and not index.shape else None
    if level is not None and number is not None and counters_in(number):
        last = most(number, all_run=True)
        if last is not None:
            level.scope.order(size - 1 - last, f"the steps of a loop stay inside axis {axis}")


def _has_element(size: Index, count: Index, axis: int) -> bool:
    """Whether the axis has an element, or there are no indices: a guard where neither is certain. False where it need
    not have one. Raises IndexOutOfRangeError."""
    level = current()
    p = -relu(ONE - size) * count  # as above
    holds = at_least_zero(p) if level is None else level.scope.decide(Relation.NONNEGATIVE, p, _HAS_ONE)
    if holds is False and may_miss(size):
        return False
    if holds is False:
        raise IndexOutOfRangeError(f"axis {axis} has no element that an index could mean{where()}")
    if holds is None and level is not None:
        level.scope.guard(Relation.NONNEGATIVE, p, _HAS_ONE)  # declared sizes: the calls to come are held to it
    return True


def _signed(array: Array) -> Array:
    """The indices in a dtype that has negative ones; what no axis reaches stays so."""
    if array.kind is not dtypes.u64:
        return array
    largest = const(_LARGEST, dtypes.u64)
    return map_(lambda a: cast(apply(Op.MIN, a, largest), dtypes.i64), array)
