"""`associative_scan`: what an operation makes of all elements up to each one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from harp.errors import ArgumentError
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import expand_dims, flip, moveaxis, squeeze
from harp.trace.array.array import Array, node_of
from harp.trace.array.indexing import getitem
from harp.trace.array.primitives import as_flag, emit, normalize_axis
from harp.trace.graph.node import positions
from harp.trace.graph.view import view
from harp.trace.index.polynomial import ONE, ZERO
from harp.trace.scalar.expr import const
from harp.trace.sizes.size import resolve_all, unify
from harp.trace.source_locations import plural, where
from harp.trace.tracer import function_name, require_function
from harp.trace.trees import Tree, unflatten
from harp.transforms.control.scan import scan
from harp.transforms.control.staging import leaves_of
from harp.transforms.staging import shape_of
from harp.transforms.typed import Container

Function = Callable[..., Any]


_T = TypeVar("_T")


@overload
def associative_scan(fn: Callable[[_T, _T], _T], elems: _T, reverse: bool = False, axis: int = 0) -> _T: ...


@overload
def associative_scan(fn: Callable[..., _T], elems: Container, reverse: bool = False, axis: int = 0) -> _T: ...


def associative_scan(fn: Function, elems: Tree, reverse: bool = False, axis: int = 0) -> Any:
    """For each element along an axis, `fn(... fn(fn(x0, x1), x2) ..., x)` of all elements up to it.

    `fn(a, b)` takes two trees like `elems`, and returns one: it works elementwise along `axis`, which stays. `elems` is
    a tree of arrays of one size along `axis`; the result is such a tree, of the same shapes and dtypes. With `reverse`
    it begins at the last element.

    This is a loop over single elements, in order: `fn` is given slices of length 1, is compiled once, and is run one
    time less than there are elements, whatever their number. (JAX joins elements as the leaves of a tree, in
    logarithmically many steps for parallel machines; rounding differs, and an operation that is not associative has
    another result.)

    Raises ShapeError where sizes along the axis differ, CarryError where `fn` changes the tree, a shape or a dtype.

    >>> import harp.numpy as hnp
    >>> associative_scan(hnp.multiply, hnp.asarray([1, 2, 3, 4]))
    Array([ 1,  2,  6, 24])
    """
    require_function("associative_scan", fn)
    given = leaves_of(elems, "elems")
    if not given.arrays:
        return elems
    along = normalize_axis(axis, given.arrays[0].ndim)
    for array, label in zip(given.arrays, given.names, strict=True):
        if along >= array.ndim:
            raise ArgumentError(
                f"{label} has {plural(array.ndim, 'axes')}, so none to scan along axis {along}{where()}"
            )
        unify(
            shape_of(given.arrays[0])[along],
            shape_of(array)[along],
            lambda label=label: (  # type: ignore[misc]
                f"associative_scan of {function_name(fn)!r}: {given.names[0]} and {label} are of different lengths "
                f"along axis {along}"
            ),
        )
    reverse = as_flag("reverse", reverse)
    arrays = [flip(a, along) for a in given.arrays] if reverse else given.arrays
    whole = (slice(None),) * along

    def step(carry: Tree, rows: list[Array]) -> tuple[Tree, Tree]:
        after = fn(carry, unflatten(given.treedef, [expand_dims(row, along) for row in rows]))
        return after, after

    step.__name__ = function_name(fn)  # messages name the user's function
    others = [moveaxis(getitem(a, (*whole, slice(1, None))), along, 0) for a in arrays]
    first = unflatten(given.treedef, [_first(a, along) for a in arrays])
    joined = leaves_of(scan(step, first, others)[1], "the result").arrays
    results = [
        concatenate([getitem(a, (*whole, slice(1))), moveaxis(squeeze(y, along + 1), 0, along)], along)
        for a, y in zip(arrays, joined, strict=True)
    ]
    return unflatten(given.treedef, [flip(r, along) for r in results] if reverse else results)


def _first(array: Array, axis: int) -> Array:
    """The first element along an axis, which stays; where there is none, zeros, of which nobody asks."""
    node = node_of(array)
    size = node.shape[axis]
    shape = resolve_all((*node.shape[:axis], ONE, *node.shape[axis + 1 :]))
    index = tuple(ZERO if k == axis else position for k, position in enumerate(positions(shape)))
    return emit(view(node, shape, index, (size - 1,), const(0, node.dtype)), array.weak)
