"""Padding: with a constant a view; with copies of the array's own elements joined from slices of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from harp.errors import ArgumentError, ShapeError
from harp.numpy.checks import require_held
from harp.numpy.joining import concatenate, known_integers, repeat, take
from harp.numpy.manipulation import as_tuple, emit_like, flip
from harp.trace import view
from harp.trace.array import Array, node_of
from harp.trace.expr import const
from harp.trace.index import ZERO, Index
from harp.trace.primitives import as_array, python_constant, to_shape
from harp.trace.scope import Relation
from harp.trace.sites import where
from harp.trace.sizes import ask, describe, require_at_least_one, resolve, wrap


def pad(x: object, pad_width: object, mode: str = "constant", constant_values: bool | int | float = 0) -> Array:
    """More elements before and after each axis; `pad_width` is a number, a (before, after) pair, or one pair per axis.

    By the mode they are "constant", "edge" (the last element again), "reflect" (backwards from the one before that),
    "symmetric" (backwards from the last), or "wrap" (from the other end). Raises ArgumentError for other modes,
    ShapeError for negative widths, a wrong number of pairs, and widths for which an axis has too few elements.

    >>> import harp.numpy as hnp
    >>> hnp.pad(hnp.ones(2), (1, 2))
    Array([0., 1., 1., 0., 0.])
    >>> hnp.pad(hnp.arange(4), 2, mode="reflect")
    Array([2, 1, 0, 1, 2, 3, 2, 1])
    """
    array = as_array(x)
    pairs = _pad_pairs(pad_width, array.ndim)
    low, high = to_shape([p[0] for p in pairs]), to_shape([p[1] for p in pairs])
    if isinstance(mode, str) and mode == "constant":
        return _by_constant(array, low, high, constant_values)
    if not isinstance(mode, str) or mode not in _MODES:
        known = ", ".join(map(repr, ("constant", *_MODES)))
        raise ArgumentError(f"pad has the modes {known}, not {mode!r}{where()}")
    for axis, widths in enumerate(zip(low, high, strict=True)):
        if any(width is not ZERO for width in widths):
            array = concatenate(_around(mode, array, axis, *widths), axis)
    return array


def _by_constant(array: Array, low: tuple[Index, ...], high: tuple[Index, ...], value: object) -> Array:
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise ArgumentError(f"constant_values must be one number, not {type(value).__name__}{where()}")
    require_held("constant_values of pad", value, array.kind)
    plain = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    fill = python_constant(value, array.kind) if plain else const(value, array.kind)  # type: ignore[arg-type]
    return emit_like(array, view.pad(node_of(array), low, high, fill))


# What comes before and after: of an array, an axis, its size, and both widths.
_Sides = Callable[[Array, int, Index, Index, Index], tuple[Array, Array]]


def _edge(array: Array, axis: int, size: Index, low: Index, high: Index) -> tuple[Array, Array]:
    first, last = take(array, axis, ZERO, ZERO + 1), take(array, axis, size - 1, ZERO + 1)
    return repeat(first, wrap(low), axis), repeat(last, wrap(high), axis)


def _reflect(array: Array, axis: int, size: Index, low: Index, high: Index) -> tuple[Array, Array]:
    return flip(take(array, axis, ZERO + 1, low), axis), flip(take(array, axis, size - 1 - high, high), axis)


def _symmetric(array: Array, axis: int, size: Index, low: Index, high: Index) -> tuple[Array, Array]:
    return flip(take(array, axis, ZERO, low), axis), flip(take(array, axis, size - high, high), axis)


def _wrap(array: Array, axis: int, size: Index, low: Index, high: Index) -> tuple[Array, Array]:
    return take(array, axis, size - low, low), take(array, axis, ZERO, high)


# And how many elements an axis may have fewer than are padded; None: any number.
_MODES: dict[str, tuple[_Sides, int | None]] = {
    "edge": (_edge, None),
    "reflect": (_reflect, 1),
    "symmetric": (_symmetric, 0),
    "wrap": (_wrap, 0),
}


def _around(mode: str, array: Array, axis: int, low: Index, high: Index) -> list[Array]:
    sides, spare = _MODES[mode]
    size = resolve(node_of(array).shape[axis])
    if spare is None:
        require_at_least_one(size, lambda: f"pad of axis {axis} of size {describe(size)} with mode={mode!r}")
    else:
        for width in (low, high):
            if not ask(Relation.NONNEGATIVE, resolve(size - spare - width), "an axis has the elements to pad with"):
                raise ShapeError(
                    f"pad of axis {axis} of size {describe(size)} by {describe(width)} with mode={mode!r} needs "
                    f"more elements; pad in several steps{where()}"
                )
    before, after = sides(array, axis, size, low, high)
    return [before, array, after]


def _pad_pairs(pad_width: object, rank: int) -> list[tuple[object, object]]:
    entries = as_tuple(known_integers(pad_width))
    if all(isinstance(e, (tuple, list)) for e in entries):
        pairs = [_pair(as_tuple(e)) for e in entries]
    else:
        pairs = [_pair(entries)]
    if len(pairs) == 1:
        pairs *= rank
    if len(pairs) != rank:
        raise ShapeError(f"pad_width has {len(pairs)} pairs for {rank} axes{where()}")
    return pairs


def _pair(entry: tuple[object, ...]) -> tuple[object, object]:
    if len(entry) not in (1, 2):
        raise ShapeError(f"a pad_width of pad is (before, after), not {len(entry)} numbers{where()}")
    return entry[0], entry[-1]
