"""Padding: with a constant a view; otherwise joined from borders that are made of the array's own elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.borders import MODES, Pair, around
from harp.numpy.checks import as_count, require_held
from harp.numpy.joining import concatenate
from harp.numpy.manipulation import emit_like
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_array, as_tuple, known_numbers, python_constant
from harp.trace.graph import view
from harp.trace.index.polynomial import ZERO, Index
from harp.trace.scalar.expr import Const, const
from harp.trace.source_locations import plural, where


def pad(array: object, pad_width: object, mode: object = "constant", **options: object) -> Array:
    """More elements before and after each axis; `pad_width` is a number, a (before, after) pair, or one pair per axis.

    The mode says which elements, and some modes have an option. Except for `reflect_type`, an option is, like
    `pad_width`, one value, a pair, or a pair per axis.

    - "constant": `constant_values`, 0 by default; "empty": any, here 0
    - "edge": the last element again
    - "linear_ramp": numbers from the last element to `end_values`, 0 by default, in even steps
    - "maximum", "mean", "median", "minimum": of as many elements of that end as `stat_length` says, by default of all
    - "reflect": backwards from the element before the last; "symmetric": backwards from the last; both with
      `reflect_type="odd"`: twice the last element minus that
    - "wrap": from the other end

    Integers are rounded as in NumPy: means and medians to the nearest, ramps down. One axis is padded after the other,
    so that corners come from borders. Raises ArgumentError for other modes and for options of another mode, ShapeError
    for negative widths, a wrong number of pairs, and axes with too few elements.

    >>> import harp.numpy as hnp
    >>> hnp.pad(hnp.ones(2), (1, 2))
    Array([0., 1., 1., 0., 0.])
    >>> hnp.pad(hnp.arange(4), 2, mode="reflect")
    Array([2, 1, 0, 1, 2, 3, 2, 1])
    >>> hnp.pad(hnp.asarray([3.0, 5.0]), 2, mode="linear_ramp", end_values=(1, 9))
    Array([1., 2., 3., 5., 7., 9.])
    >>> hnp.pad(hnp.asarray([1, 2, 6]), 1, mode="mean", stat_length=(2, None))
    Array([2, 1, 2, 6, 3])
    """
    padded = as_array(array)
    name, given = _option(mode, options)
    pairs = _pairs("pad_width", pad_width, padded.ndim)
    widths = [tuple(as_count(f"pad_width of axis {k}", w) for w in pair) for k, pair in enumerate(pairs)]
    if mode in _CONSTANT:
        return _by_constant(padded, widths, _pairs(name, given, padded.ndim) if name else [(0, 0)] * padded.ndim)
    chosen = _READERS[name](padded, given) if name else [(None, None)] * padded.ndim
    for axis, ((low, high), option) in enumerate(zip(widths, chosen, strict=True)):
        if low is not ZERO or high is not ZERO:
            padded = concatenate(around(str(mode), padded, axis, low, high, option), axis)
    return padded


_CONSTANT = {"constant": "constant_values", "empty": ""}
_OPTIONS = {**_CONSTANT, **{mode: row.option for mode, row in MODES.items()}}
_DEFAULTS = {"constant_values": 0, "end_values": 0, "stat_length": None, "reflect_type": "even"}


def _option(mode: object, options: dict[str, object]) -> tuple[str, object]:
    """The name and the value of the option that the mode has, which is "" for modes without one."""
    if not isinstance(mode, str) or mode not in _OPTIONS:
        raise ArgumentError(f"pad has the modes {', '.join(map(repr, _OPTIONS))}, not {mode!r}{where()}")
    name = _OPTIONS[mode]
    for other in options:
        if other != name:
            takes = f"the option {name}" if name else "no option"
            modes = [repr(m) for m, option in _OPTIONS.items() if option == other]
            hint = f"; {other} belongs to {', '.join(modes)}" if modes else ""
            raise ArgumentError(f"pad with mode={mode!r} takes {takes}, not {other!r}{hint}{where()}")
    return name, options.get(name, _DEFAULTS.get(name))


# Constants


def _by_constant(array: Array, widths: Sequence[tuple[Index, ...]], values: Sequence[Pair]) -> Array:
    """One view where all values are the same; otherwise one for each border, axis after axis."""
    fills = [tuple(_constant(value, array) for value in pair) for pair in values]
    node, rank = node_of(array), array.ndim
    used = {
        fill for pair, fill_pair in zip(widths, fills, strict=True) for w, fill in zip(pair, fill_pair, strict=True)
    }
    if len(used) == 1:
        return emit_like(array, view.pad(node, [low for low, _ in widths], [high for _, high in widths], used.pop()))
    for axis in range(rank):
        for side in (0, 1):
            low, high = [ZERO] * rank, [ZERO] * rank
            (low, high)[side][axis] = widths[axis][side]
            node = view.pad(node, low, high, fills[axis][side])
    return emit_like(array, node)


def _constant(value: object, array: Array) -> Const:
    require_held("constant_values of pad", _number("constant_values", value), array.kind)
    plain = isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)
    return python_constant(value, array.kind) if plain else const(value, array.kind)  # type: ignore[arg-type]


def _number(name: str, value: object) -> object:
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        raise ArgumentError(f"{name} must be numbers, not {type(value).__name__}{where()}")
    return value


# Options of the other modes


def _end_values(array: Array, given: object) -> list[Pair]:
    pairs = _pairs("end_values", given, array.ndim)
    for value in (value for pair in pairs for value in pair):
        if isinstance(_number("end_values", value), (complex, np.complexfloating)) and not array.kind.is_complex:
            raise DTypeError(f"end_values has {value!r}, but x has dtype {array.dtype}; use its .real{where()}")
        if array.kind.is_integer:
            require_held("end_values of pad", float(value), array.kind)  # type: ignore[arg-type]
    return pairs


def _stat_length(array: Array, given: object) -> list[Pair]:
    return _pairs("stat_length", given, array.ndim)


def _reflect_type(array: Array, given: object) -> list[Pair]:
    if not isinstance(given, str) or given not in ("even", "odd"):
        raise ArgumentError(f"reflect_type of pad is 'even' or 'odd', not {given!r}{where()}")
    return [(given, given)] * array.ndim


_READERS: dict[str, Callable[[Array, object], list[Pair]]] = {
    "end_values": _end_values,
    "stat_length": _stat_length,
    "reflect_type": _reflect_type,
}


def _pairs(name: str, given: object, rank: int) -> list[Pair]:
    """For each axis what is before it and what is after it; one value or one pair stands for all axes."""
    numbers = known_numbers(given)
    entries = as_tuple(given if numbers is None else numbers.tolist())
    if all(isinstance(e, (tuple, list)) for e in entries):
        pairs = [_pair(name, as_tuple(e)) for e in entries]
    else:
        pairs = [_pair(name, entries)]
    if len(pairs) == 1:
        pairs *= rank
    if len(pairs) != rank:
        raise ShapeError(f"{name} of pad has {plural(len(pairs), 'pairs')} for {plural(rank, 'axes')}{where()}")
    return pairs


def _pair(name: str, entry: tuple[object, ...]) -> Pair:
    if len(entry) not in (1, 2):
        raise ShapeError(f"a pair in {name} of pad is (before, after), not {plural(len(entry), 'values')}{where()}")
    return entry[0], entry[-1]
