"""Symbols and positions as vectors."""

from __future__ import annotations

import math

from harp.errors import DTypeError, ShapeError
from harp.numpy.creation import arange
from harp.numpy.elementwise import cos, exp, sin, where
from harp.numpy.indexing import take
from harp.numpy.joining import concatenate, split, stack
from harp.numpy.manipulation import expand_dims, reshape
from harp.trace.array.arithmetic import equal
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_flag, normalize_axis
from harp.trace.scalar.dtypes import DTypeLike, computing, f64
from harp.trace.source_locations import where as place


def embedding(indices: object, table: object) -> Array:
    """The rows of a table for integers. Its gradient adds up, for each row, what all of its readers say.

    Integers outside are treated as those of indexing are. Raises DTypeError for what are no integers.

    >>> import harp.numpy as hnp
    >>> embedding(hnp.asarray([1, 0]), hnp.asarray([[1.0, 2.0], [3.0, 4.0]]))
    Array([[3., 4.],
           [1., 2.]])
    """
    at = as_array(indices)
    if not at.kind.is_integer:
        raise DTypeError(f"embedding takes integers first, not {at.dtype}{place()}")
    return take(table, at, 0)


def sinusoidal_positions(length: object, width: object, *, base: float = 1e4, dtype: DTypeLike = float) -> Array:
    """A row for each position p: sin(p/base**(2i/width)) in column 2i, and the cosine of that in column 2i + 1.

    A. Vaswani and others, Attention is all you need, 2017.

    >>> sinusoidal_positions(2, 3)
    Array([[0.        , 1.        , 0.        ],
           [0.84147098, 0.54030231, 0.00215443]])
    """
    columns = arange(width)
    angles = _angles(arange(length), columns // 2, columns.shape[0], base)
    return where(equal(columns % 2, 0), sin(angles), cos(angles)).astype(dtype)


def rotary_embedding(
    x: object, positions: object = None, *, base: float = 1e4, interleaved: bool = False, axis: int = -3
) -> Array:
    """x with pairs of elements of the last axis turned by an angle in proportion to the position: p/base**(2i/width).

    A product of two such vectors depends on the distance of their positions only. Positions are those along `axis`,
    which is that of lengths in (batch, T, N, H), or an array that has this axis last.
    Pair i is elements i and i + width/2, or, `interleaved`, 2i and 2i + 1, as in the paper: J. Su and others, RoFormer,
    2021. Angles are computed in float64. Raises ShapeError for an odd width, AxisError.

    >>> import harp.numpy as hnp
    >>> rotary_embedding(hnp.ones((2, 1, 2)))[1]
    Array([[-0.30116868,  1.38177329]])
    """
    array = as_array(x)
    if not array.kind.is_float:
        raise DTypeError(f"rotary_embedding takes floats, not {array.dtype}; convert with astype{place()}")
    place_of = normalize_axis(axis, array.ndim)
    width = array.shape[-1]
    if place_of == array.ndim - 1 or width % 2 != 0:
        raise ShapeError(f"rotary_embedding turns pairs of elements of the last axis, which has {width}{place()}")
    at = arange(array.shape[place_of]) if positions is None else as_array(positions)
    angles = _angles(at, arange(width // 2), width, base)
    behind = array.ndim - 2 - place_of
    angles = reshape(angles, (*angles.shape[:-1], *(1,) * behind, width // 2))
    dtype, inner = array.kind, computing(array.kind)
    c, s = cos(angles).astype(inner), sin(angles).astype(inner)
    array = array.astype(inner)
    if not as_flag("interleaved", interleaved):
        a, b = split(array, 2, -1)
        return concatenate((a * c - b * s, b * c + a * s), -1).astype(dtype)
    pairs = reshape(array, (*array.shape[:-1], width // 2, 2))
    a, b = pairs[..., 0], pairs[..., 1]
    return reshape(stack((a * c - b * s, b * c + a * s), -1), array.shape).astype(dtype)


def _angles(positions: Array, pair: Array, width: object, base: float) -> Array:
    """Position times frequency, for each pair, in float64."""
    rates = exp(pair.astype(f64) * (-2 * math.log(base)) / as_array(width).astype(f64))
    return expand_dims(positions, -1).astype(f64) * rates
