"""The methods that NumPy's ufuncs have, for the functions of elements of harp.numpy: `add.reduce`, `maximum.outer`.

A function stays a function. Where there is a reduction or a running one of its own, such as `sum` for `add`, a method
is that one; other functions go along the axis row by row, in a loop.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import attrs
import numpy as np

from harp.errors import ArgumentError
from harp.locks import importing
from harp.numpy import cumulative, reductions
from harp.numpy.checks import require_in_new_array
from harp.numpy.creation import full
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import broadcast_to, expand_dims, moveaxis, reshape
from harp.trace.array.array import Array, node_of
from harp.trace.array.index_plan import as_index_array
from harp.trace.array.primitives import Axis, as_array, as_named, normalize_axes, normalize_axis, require_elements
from harp.trace.scalar.dtypes import DTypeLike, accumulator, as_dtype, bool_
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, resolve
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place

_REDUCTIONS: dict[str, Callable[..., Array]] = {
    "add": reductions.sum,
    "multiply": reductions.prod,
    "maximum": reductions.max,
    "minimum": reductions.min,
    "logical_and": reductions.all,
    "logical_or": reductions.any,
}
_RUNNING: dict[str, Callable[..., Array]] = {
    "add": cumulative.cumsum,
    "multiply": cumulative.cumprod,
    "maximum": cumulative.cummax,
    "minimum": cumulative.cummin,
}
_OF_AT = {
    **{name: name for name in ("add", "subtract", "multiply", "divide", "power")},
    "maximum": "max",
    "minimum": "min",
}
_COUNTS = {"add", "multiply"}  # which have sums and products of small integers in 64 bits


def _loops() -> Any:
    """Loops of programs, which few functions use: they are not imported with the namespace."""
    with importing:
        return import_module("harp.transforms.control.scan")


def with_methods(function: Callable[..., Any], ufunc: np.ufunc) -> None:
    """Give a function the methods of NumPy's ufunc of that name."""
    methods = Methods(function, ufunc)
    for name in ("reduce", "accumulate", "outer", "at", "reduceat") if ufunc.nin == 2 else ("at",):
        setattr(function, name, getattr(methods, name))


@attrs.frozen
class Methods:
    """The methods of a function of elements."""

    function: Callable[..., Array]
    ufunc: np.ufunc

    @property
    def name(self) -> str:
        """NumPy's name of it."""
        return self.ufunc.__name__

    def reduce(
        self,
        a: object,
        axis: Axis = 0,
        dtype: DTypeLike | None = None,
        keepdims: bool = False,
        initial: object = None,
        where: object = None,
    ) -> Array:
        """The elements along axes joined by the function, from the first one on, or from `initial`.

        `where` is a mask: elements where it does not hold are left out. Raises ShapeError over no elements where the
        function has no number that changes nothing, as 0 for `add`.
        """
        array = self._converted(a, dtype, counts=dtype is not None)
        given = {"initial": initial, "where": where}
        options = {key: value for key, value in given.items() if value is not None and value is not True}
        if self.name in _REDUCTIONS and not (self.name.startswith("logical") and initial is not None):
            if self.name in _COUNTS:
                options["dtype"] = dtype
            return _REDUCTIONS[self.name](array, axis=axis, keepdims=keepdims, **options)
        axes = normalize_axes(axis, array.ndim)
        rows, start = _in_rows(array, axes), self.ufunc.identity if initial is None else initial
        mask = broadcast_to(as_named(options.get("where", True), "the mask where").astype(bool_), array.shape)
        masks = _in_rows(mask, axes)
        if start is None:
            if "where" in options:
                raise ArgumentError(f"{self.name}.reduce with where needs an initial{place()}")
            require_elements(f"{self.name}.reduce", array, axes)
            first, rows, masks = self._settled(rows[0], rows), rows[1:], masks[1:]
        else:
            dtype = self.function(rows[:0], rows[:0]).kind
            first = self._settled(full(rows.shape[1:], start, dtype=dtype), rows)

        def step(now: Array, row: tuple[Array, Array]) -> tuple[Array, None]:
            after = self.function(now, row[0])
            return (choose(row[1], after, now) if "where" in options else after), None

        result: Array = _loops().scan(step, first, (rows, masks))[0]
        return expand_dims(result, axes) if keepdims and axes else result

    def accumulate(self, a: object, axis: Axis = 0, dtype: DTypeLike | None = None) -> Array:
        """The elements up to each one along an axis joined by the function."""
        array = self._converted(a, dtype, counts=dtype is not None)
        # Programs have no running maximum of complex numbers, which have an order of their own.
        by_steps = array.kind.is_complex and array._value is None and self.name in ("maximum", "minimum")
        if self.name in _RUNNING and not by_steps:
            return _RUNNING[self.name](array, axis=axis, **({"dtype": dtype} if self.name in _COUNTS else {}))
        along = normalize_axis(axis, array.ndim)
        if not ask(Relation.NONNEGATIVE, resolve(node_of(array).shape[along]) - 1, "an axis has elements"):
            return array.astype(self.function(array, array).kind)
        rows = moveaxis(array, along, 0)
        first = self._settled(rows[0], rows)

        def step(now: Array, row: Array) -> tuple[Array, Array]:
            after = self.function(now, row)
            return after, after

        return moveaxis(concatenate([first[None], _loops().scan(step, first, rows[1:])[1]]), 0, along)

    def outer(self, a: object, b: object) -> Array:
        """The function of each element of `a` and each one of `b`: the axes of `a` come first."""
        first, second = as_array(a), as_array(b)
        return self.function(reshape(first, (*first.shape, *(1,) * second.ndim)), second)

    def at(self, a: object, indices: object, b: object = None, *, inplace: bool = False) -> Array:
        """The array with the function of the elements at these indices, and of `b`, in their place: arrays do not
        change, so it is returned. Raises ArgumentError for `inplace=True`, and for functions without such an update,
        MutationError in a statement that drops it."""
        require_in_new_array(f"{self.name}.at", inplace)
        elements = as_array(a).at[indices]
        if self.ufunc.nin == 1:
            return elements.apply(self.function)
        if self.name not in _OF_AT:
            raise ArgumentError(
                f"{self.name} has no method at; where no index stands twice, write "
                f"x.at[index].set(harp.numpy.{self.name}(x[index], values)){place()}"
            )
        result: Array = getattr(elements, _OF_AT[self.name])(b)
        return result

    def reduceat(self, a: object, indices: object, axis: Axis = 0, dtype: DTypeLike | None = None) -> Array:
        """`reduce` of the parts of an axis from each index to the next one, and from the last one to the end; the one
        element where the next index is not larger. Raises ArgumentError unless the indices are integers on one axis."""
        array, starts = self._converted(a, dtype, counts=True), as_index_array(indices)
        if starts.ndim != 1 or not starts.kind.is_integer:
            raise ArgumentError(
                f"the indices of {self.name}.reduceat are integers along one axis, not {starts.dtype} with "
                f"{plural(starts.ndim, 'axes')}{place()}"
            )
        along = normalize_axis(axis, array.ndim)
        rows = moveaxis(array, along, 0)
        ends = concatenate([starts[1:], as_array(array.shape[along]).astype(starts.kind)[None]])

        def part(_: None, ends: tuple[Array, Array]) -> tuple[None, Array]:
            first = self._settled(rows[ends[0]], rows)
            return None, _loops().fori_loop(ends[0] + 1, ends[1], lambda k, now: self.function(now, rows[k]), first)

        return moveaxis(_loops().scan(part, None, (starts, ends))[1], 0, along)

    def _converted(self, a: object, dtype: DTypeLike | None, counts: bool) -> Array:
        array = as_array(a)
        if dtype is not None:
            return array.astype(as_dtype(dtype))
        return array.astype(accumulator(array.kind)) if counts and self.name in _COUNTS else array

    def _settled(self, first: Array, rows: Array) -> Array:
        """The first value in the dtype that the function gives."""
        return first.astype(self.function(first, rows[:0]).kind)


def _in_rows(array: Array, axes: tuple[int, ...]) -> Array:
    """The array with axes in front, as one."""
    moved = moveaxis(array, axes, tuple(range(len(axes))))
    return moved if len(axes) == 1 else reshape(moved, (-1, *moved.shape[len(axes) :]))
