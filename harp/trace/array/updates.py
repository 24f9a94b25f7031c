"""`x.at[index].set(value)` and the like: new arrays in which some elements are changed.

Slices and integers say for every element whether it is changed, and by which: a map over views. So do masks. Arrays
of indices make a scatter, into the part that slices and integers select, which is then put back.

An update that goes outside its axis is an error where the indices are known, as in `x[...]`; else it is dropped, or
does what `mode` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.errors import DTypeError, ShapeError
from harp.lazy import FUNCTIONS
from harp.trace.array.advanced import CLIP, gather, getitem, mode_of
from harp.trace.array.array import Array, node_of
from harp.trace.array.index_plan import as_index_array, integers_as_data, is_data, plan, single_bool, with_positions
from harp.trace.array.indexing import Selection, Taken, fill_ellipsis
from harp.trace.array.indexing import select as select_keys
from harp.trace.array.primitives import broadcast_shapes, common_dtype, emit, expand_to, map_
from harp.trace.graph import view
from harp.trace.graph.node import MapReduce, Node, Put, Scatter, positions
from harp.trace.index.bounds import bounded, nonnegative
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import ONE, ZERO, Index, Shape
from harp.trace.scalar.dtypes import Kind, bool_
from harp.trace.scalar.expr import Expr, Operand, Position, apply, const, overwritten, select
from harp.trace.scalar.ops import INFO
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import is_one, resolve_all, unify
from harp.trace.source_locations import plural, where


def get(array: Array, key: object, mode: str | None, fill_value: object) -> Array:
    """`array.at[key].get(...)`."""
    node = node_of(array)
    keys = with_positions(node, key if isinstance(key, tuple) else (key,))
    if mode_of(mode) is None:
        return getitem(array, keys)
    items = integers_as_data(node, keys)
    return (
        gather(array, items, mode, fill_value) if items is not keys or any(map(is_data, keys)) else getitem(array, keys)
    )


def put(array: Array, key: object, values: object, how: str, mode: str | None, unique: bool) -> Array:
    """`array.at[key].set(values)` and the others: `how` is "subtract" or the name of a kind in small letters."""
    if how == "subtract":
        return put(array, key, FUNCTIONS["negative"](values), "add", mode, unique)
    keys, kind = key if isinstance(key, tuple) else (key,), Put[how.upper()]
    bools = [single_bool(item) for item in keys]
    keys = tuple(None if known else item for item, known in zip(keys, bools, strict=True))  # x[True] is x[None]
    outside = mode_of(mode)
    updates = node_of(_converted(array, values, kind))
    if False in bools:
        return array
    node = node_of(array)
    placed_keys = with_positions(node, keys, leading=True)
    unique |= placed_keys is not keys  # positions of slices
    keys = placed_keys
    lead = _axes_before_a_mask(keys)
    if lead is not None:
        whole = _masked(node, node_of(as_index_array(keys[lead])), updates, kind, lead)
        if whole is not None:
            return emit(whole, array.weak)
    items = keys if outside is None else integers_as_data(node, keys)
    if items is keys and not any(map(is_data, keys)):
        selection = select_keys(node, fill_ellipsis(keys, len(node.shape)))
        fitted = _fitted(updates, selection.view(node).shape)
        if selection.misses:
            return array
        scattered = _scattered(node, selection, fitted, kind)
        return emit(scattered or placed(node, selection, fitted, kind), array.weak)
    keys = _by_element(node, items)
    unique |= keys is not items
    found = plan(node, keys, checks=mode is None, reaches=outside == CLIP)
    base = found.source(node)
    wanted = found.indices[0].shape + base.shape[len(found.indices) :]
    order = [wanted[axis] for axis in found.moved]
    for place in found.inserted:
        order.insert(place, ONE)
    updates = found.gathered(_fitted(updates, tuple(order)))
    clips = outside == CLIP and not found.misses
    made: Node = Scatter(base, found.indices, updates, kind, clips, unique, outside is None)
    made = view.permute(made, [found.order.index(axis) for axis in range(len(found.order))])
    return emit(placed(node, found.selection, made, Put.SET), array.weak)


def _by_element(node: Node, keys: tuple[object, ...]) -> tuple[object, ...]:
    """x[:, i] as x[arange(n), i], and x[i, 0] with 0 as data, for an integer i that is data: the same elements, which
    change where they are. A scatter is into leading axes of whole arrays, for which the array would be cut or
    transposed before."""
    if not all(_is_single(key) if is_data(key) else key is not None for key in keys):
        return keys
    items = fill_ellipsis(keys, len(node.shape))
    data = [axis for axis, item in enumerate(items) if is_data(item) or isinstance(item, Array)]
    others = select_keys(node, [slice(None) if axis in data else item for axis, item in enumerate(items)])
    last = max(*data, *others.fixed, *_cut(node, others), 0)
    rows = [axis for axis in range(last + 1) if axis not in data and axis not in others.fixed]
    if not rows and not others.fixed:
        return keys
    for axis in range(last + 1):
        if axis not in data:
            items[axis] = emit(_places(others, axis, rows))
    return tuple(items)


def _is_single(key: object) -> bool:
    return isinstance(key, Array) and not key.ndim and key.kind.kind is not Kind.BOOL


def _cut(node: Node, selection: Selection) -> list[int]:
    """The axes of which a slice takes some elements, or in another order."""
    pairs = enumerate(zip(selection.taken, resolve_all(node.shape), strict=True))
    return [axis for axis, (t, size) in pairs if (t.start, t.step, t.length) != (ZERO, ONE, size)]


def _takes_few(node: Node, selection: Selection) -> bool:
    """Whether slices take some elements, below a number, along an axis that is a size."""
    pairs = zip(selection.taken, resolve_all(node.shape), strict=True)
    return any(bounded(t.length) and not bounded(size) for t, size in pairs)


def _places(selection: Selection, axis: int, rows: Sequence[int]) -> Node:
    """The positions that are selected along an axis, as an array with an axis for each slice among `rows`."""
    if axis in selection.fixed:
        return MapReduce((ONE,) * len(rows), (), Position(selection.fixed[axis]))
    taken = selection.taken[axis]
    (position,) = positions((taken.length,))
    row = MapReduce((taken.length,), (), Position(taken.start + position * taken.step))
    return view.insert_axes(row, [k for k, other in enumerate(rows) if other != axis])


def _converted(array: Array, values: object, kind: Put) -> Array:
    """The values in the array's dtype. Raises DTypeError where numbers would be lost, or the operation is not there."""
    if kind.value is not None and array.kind.kind not in INFO[kind.value].kinds:
        raise DTypeError(f".{kind.name.lower()} does not accept {array.dtype} arrays; convert with astype{where()}")
    dtype, _ = common_dtype((values,))
    whole = {Kind.INT: Kind.UINT}
    if whole.get(dtype.kind, dtype.kind) > whole.get(array.kind.kind, array.kind.kind):
        raise DTypeError(f"values of {dtype.numpy} do not fit an array of {array.dtype}; convert with astype{where()}")
    return map_(lambda a: a, values, to=array.kind)


def _fitted(updates: Node, shape: Shape) -> Node:
    """The updates broadcast to the selected elements. Raises ShapeError where they do not fit."""
    if len(updates.shape) > len(shape):
        raise ShapeError(
            f"values with {plural(len(updates.shape), 'axes')} do not fit {plural(len(shape), 'axes')} that are "
            f"selected{where()}"
        )
    together = broadcast_shapes([shape, updates.shape], "the elements that are selected do not fit the values")
    for axis, (wanted, found) in enumerate(zip(shape, together, strict=True)):
        unify(wanted, found, lambda axis=axis: f"values do not fit axis {axis} of what is selected")  # type: ignore[misc]
    return expand_to(updates, resolve_all(shape))


def _changed(kind: Put, condition: Expr, before: Expr, update: Expr) -> Expr:
    """The element with its update, where the condition holds."""
    if kind.value is None:
        return overwritten(condition, update, before)
    return select(condition, apply(kind.value, before, update), before)


# --- slices and integers


def _scattered(node: Node, selection: Selection, updates: Node, kind: Put) -> Node | None:
    """The array with an update of what integers and slices of a few elements select, in the step of a loop: it costs as
    much as what it changes, for what is carried is updated in place."""
    level, fixed = current(), selection.fixed
    if level is None or not level.repeats or not (fixed or _takes_few(node, selection)) or selection.inserted:
        return None
    last = max(*fixed, *_cut(node, selection), 0)
    rows = [axis for axis in range(last + 1) if axis not in fixed]
    shape = tuple(selection.taken[axis].length for axis in rows)
    places = tuple(expand_to(_places(selection, axis, rows), shape) for axis in range(last + 1))
    return Scatter(node, places, updates, kind, False, True)


def placed(node: Node, selection: Selection, updates: Node, kind: Put) -> Node:
    """The array with updates where slices and integers select."""
    if selection.inserted:
        updates = view.drop_axes(updates, dict.fromkeys(selection.inserted, ZERO))
    shape = resolve_all(node.shape)
    index: list[Index] = []
    conditions: list[Index] = []
    for axis, (position, taken) in enumerate(zip(positions(shape), selection.taken, strict=True)):
        if axis in selection.fixed:
            difference = position - selection.fixed[axis]
            conditions += [difference, -difference]
            continue
        at, tests = _turned(position, taken, whole=taken.length is shape[axis])
        index.append(at)
        conditions += tests
    fill = const(0, node.dtype) if conditions else None
    placed = view.view(updates, shape, tuple(index), tuple(conditions), fill)
    before, update = Operand(node.dtype, 0), Operand(node.dtype, 1)
    expr = _changed(kind, _all_hold(conditions), before, update)
    return MapReduce(shape, (expand_to(node, shape), placed), expr)


def _turned(position: Index, taken: Taken, whole: bool) -> tuple[Index, list[Index]]:
    """Which element of a slice stands at a position of the axis, and conditions >= 0 under which one does."""
    step, distance = (taken.step, position - taken.start) if taken.forward else (-taken.step, taken.start - position)
    at = floordiv(distance, step)
    if whole and taken.step.constant in (1, -1):  # of all elements, each
        return at, []
    if step is ONE:
        return at, [at, taken.length - 1 - at]
    return at, [distance, taken.length * step - 1 - distance, at * step - distance]


def _all_hold(conditions: list[Index]) -> Expr:
    """Whether all are >= 0, as a value."""
    result: Expr = const(True, bool_)
    for condition in (c for c in dict.fromkeys(conditions) if not nonnegative(c)):
        position = Position(condition)
        result = result & ~(position < 0)
    return result


# --- masks


def _axes_before_a_mask(keys: tuple[object, ...]) -> int | None:
    """How many whole axes stand before the mask, where a key has nothing but those and one mask."""
    masks = [k for k, key in enumerate(keys) if is_data(key) and as_index_array(key).kind.kind is Kind.BOOL]
    whole = all(isinstance(key, slice) and key == slice(None) for k, key in enumerate(keys) if k not in masks)
    return masks[0] if len(masks) == 1 and whole else None


def _masked(node: Node, mask: Node, updates: Node, kind: Put, lead: int) -> Node | None:
    """The array with updates where a mask of the axes behind `lead` others holds, if it needs only those that are the
    same for all places of the mask.

    Raises ShapeError if the mask does not fit.
    """
    rank, shape = len(mask.shape), list(node.shape)
    rest = len(shape) - rank - lead
    if rest < 0:
        raise ShapeError(
            f"a mask with {plural(rank, 'axes')} behind {lead} others does not fit an array with {len(shape)}{where()}"
            if lead
            else f"a mask with {plural(rank, 'axes')} does not fit an array with {len(shape)}{where()}"
        )
    if not rank and len(updates.shape) == rest + lead + 1 and is_one(updates.shape[lead]):
        updates = view.drop_axes(updates, {lead: ZERO})  # the elements of a single bool stand along a new axis
    if len(updates.shape) > rest:
        return None
    for axis in range(lead, lead + rank):
        size = mask.shape[axis - lead]
        shape[axis] = unify(shape[axis], size, lambda axis=axis: f"a mask does not fit axis {axis}")  # type: ignore[misc]
    whole = resolve_all(tuple(shape))
    updates = expand_to(_fitted(updates, whole[lead + rank :]), whole)
    spread = view.view(mask, whole, positions(whole)[lead : lead + rank])
    before, update = Operand(node.dtype, 1), Operand(node.dtype, 2)
    expr = _changed(kind, Operand(bool_, 0), before, update)
    return MapReduce(whole, (spread, expand_to(node, whole), updates), expr)
