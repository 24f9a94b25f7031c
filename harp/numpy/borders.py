"""What `pad` puts before and after an axis: copies of elements, ramps to given values, statistics of elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs

from harp.errors import ShapeError
from harp.numpy.checks import as_count
from harp.numpy.creation import arange
from harp.numpy.elementwise import astype, floor, round
from harp.numpy.elementwise import where as choose
from harp.numpy.joining import repeat, take
from harp.numpy.manipulation import flip, reshape
from harp.numpy.quantiles import median
from harp.numpy.reductions import any, max, mean, min
from harp.trace.array.arithmetic import divide, equal
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import contiguous
from harp.trace.index.division import minimum, relu
from harp.trace.index.polynomial import ONE, ZERO, Index
from harp.trace.scalar.dtypes import DType, bool_, c128, f64, i8
from harp.trace.sizes.scope import Relation
from harp.trace.sizes.size import ask, describe, resolve, wrap
from harp.trace.source_locations import where

Pair = tuple[object, object]  # an option of `pad`: for what comes before the axis and for what comes after it
Borders = tuple[Array, Array]


@attrs.frozen
class Padded:
    """An axis that grows: its array and number, its size, and the number of elements to put before and after it."""

    array: Array
    axis: int
    size: Index
    low: Index
    high: Index

    def part(self, start: Index, length: Index) -> Array:
        """Elements of the axis, which the caller knows to be there."""
        return take(self.array, self.axis, start, length)

    def ends(self) -> Borders:
        """The first and the last element."""
        return self.part(ZERO, ONE), self.part(self.size - 1, ONE)

    def repeated(self, before: Array, after: Array) -> Borders:
        """One element before and one after, as often as they are wanted."""
        return repeat(before, wrap(self.low), self.axis), repeat(after, wrap(self.high), self.axis)

    def flipped(self, array: Array) -> Array:
        """In reverse order along the axis."""
        return flip(array, self.axis)


def _edge(x: Padded, option: Pair) -> Borders:
    return x.repeated(*x.ends())


def _wrap(x: Padded, option: Pair) -> Borders:
    return x.part(x.size - x.low, x.low), x.part(ZERO, x.high)


def _mirrored(skipped: int, x: Padded, reflect_type: Pair) -> Borders:
    """The elements backwards from each end, of which `skipped` are left out; by "odd", 2*end minus these."""
    sides = (
        x.flipped(x.part(ZERO + skipped, x.low)),
        x.flipped(x.part(x.size - skipped - x.high, x.high)),
    )
    if reflect_type[0] == "even":
        return sides
    before, after = (_through(end, side) for end, side in zip(x.ends(), sides, strict=True))
    return before, after


def _through(end: Array, side: Array) -> Array:
    """2*end - side. Of bool as NumPy does, by arithmetic of integers: whether the difference is not 0."""
    if end.kind is bool_:
        return astype(2 * astype(end, i8) - astype(side, i8), bool_)
    return 2 * end - side


def _linear_ramp(x: Padded, end_values: Pair) -> Borders:
    (first, last), (start, end) = x.ends(), end_values
    return _ramp(first, start, x.low, x.axis), x.flipped(_ramp(last, end, x.high, x.axis))


def _ramp(edge: Array, start: object, width: Index, axis: int) -> Array:
    """Evenly spaced numbers from `start` up to before the edge, in float64 or complex128, as NumPy computes them.

    Where the step rounds to 0, NumPy divides before it multiplies. Of integers, which are rounded down, it does so
    for the whole array if one step is 0, and this can be less by 1. Of floats it changes the last digit, and here each
    element is computed by its own step, so that rows do not depend on each other.

    The result is kept: the array with its borders is then made of plain copies, and costs nothing to read again.
    """
    inner = c128 if edge.kind.is_complex else f64
    count = wrap(relu(width - 1) + 1)  # no division by zero where no numbers are wanted
    place = reshape(arange(wrap(width), dtype=inner), [-1 if k == axis else 1 for k in range(edge.ndim)])
    distance = astype(edge, inner) - start
    step = divide(distance, count)
    vanishes = equal(step, 0)
    if not edge.kind.is_inexact:
        vanishes = any(vanishes)
    ramp = choose(vanishes, divide(place, count) * distance, place * step) + start
    return contiguous(astype(floor(ramp) if edge.kind.is_integer else ramp, edge.kind))


def _statistic(reduce: Callable[..., Array], x: Padded, stat_length: Pair) -> Borders:
    """What `reduce` makes of the elements at both ends, as many as `stat_length` says, or of all of them."""
    first, last = (_at_most(length, x.size) for length in stat_length)
    parts = x.part(ZERO, first), x.part(x.size - last, last)
    before, after = (_of_dtype(reduce(part, axis=x.axis, keepdims=True), x.array.kind) for part in parts)
    return x.repeated(before, after)


def _at_most(length: object, size: Index) -> Index:
    return size if length is None else resolve(minimum(as_count("stat_length of pad", length, 1), size))


def _of_dtype(value: Array, dtype: DType) -> Array:
    """Rounded to the nearest integer, of two the even one, where the dtype is one of integers."""
    if value.kind is dtype:
        return value
    return astype(round(value) if dtype.is_integer else value, dtype)


@attrs.frozen
class Mode:
    """How both borders are made, which option of `pad` this takes, and what must be there to make them from."""

    borders: Callable[[Padded, Pair], Borders]
    option: str = ""
    spare: int | None = None  # the axis needs so many elements more than are put on each side; None: it needs one


MODES = {
    "edge": Mode(_edge),
    "linear_ramp": Mode(_linear_ramp, "end_values"),
    "maximum": Mode(partial(_statistic, max), "stat_length"),
    "mean": Mode(partial(_statistic, mean), "stat_length"),
    "median": Mode(partial(_statistic, median), "stat_length"),
    "minimum": Mode(partial(_statistic, min), "stat_length"),
    "reflect": Mode(partial(_mirrored, 1), "reflect_type", spare=1),
    "symmetric": Mode(partial(_mirrored, 0), "reflect_type", spare=0),
    "wrap": Mode(_wrap, spare=0),
}


def around(mode: str, array: Array, axis: int, low: Index, high: Index, option: Pair) -> list[Array]:
    """The borders of an axis, and the array between them. Raises ShapeError where it has too few elements."""
    size, spare = resolve(node_of(array).shape[axis]), MODES[mode].spare
    empty = MODES[mode].spare is None or option[0] == "odd"  # then an element at the end is needed
    if empty and not ask(Relation.NONNEGATIVE, resolve(size - 1), "an axis has an element to pad with"):
        if ask(Relation.ZERO, resolve(low + high), "nothing is padded"):
            return [array]
        raise ShapeError(
            f"pad of axis {axis} of size {describe(size)} with mode={mode!r} has no element to start from; pad "
            f"an empty axis with mode='constant'{where()}"
        )
    for width in (low, high) if spare is not None else ():
        if not ask(Relation.NONNEGATIVE, resolve(size - (spare or 0) - width), "an axis has the elements to pad with"):
            raise ShapeError(
                f"pad of axis {axis} of size {describe(size)} by {describe(width)} with mode={mode!r} needs "
                f"more elements; pad in several steps{where()}"
            )
    before, after = MODES[mode].borders(Padded(array, axis, size, low, high), option)
    return [before, array, after]
