"""Initial weights: functions of a key, a shape and a dtype.

    variance_scaling(scale, mode, distribution)     variance scale/fan, where fan counts inputs or outputs of a unit

X. Glorot, Y. Bengio, 2010; K. He and others, 2015; Y. LeCun and others, 1998.

>>> import harp
>>> weights = harp.nn.initializers.he_normal()(harp.random.key(0), (784, 10))
>>> weights.shape
(784, 10)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import full
from harp.numpy.creation import ones as ones_of
from harp.numpy.creation import zeros as zeros_of
from harp.numpy.elementwise import sqrt
from harp.numpy.manipulation import moveaxis, reshape
from harp.random.normal import normal as normal_of
from harp.random.normal import truncated_normal as truncated_of
from harp.random.uniform import uniform as uniform_of
from harp.random.vectors import orthogonal as orthogonal_of
from harp.trace.array.arithmetic import divide, multiply
from harp.trace.array.array import Array
from harp.trace.array.primitives import normalize_axis, to_shape
from harp.trace.scalar.dtypes import DTypeLike, as_dtype, computing
from harp.trace.sizes.size import wrap
from harp.trace.source_locations import where

__all__ = [
    "Initializer",
    "constant",
    "delta_orthogonal",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "zeros",
]

# The standard deviation of normal numbers between -2 and 2.
_TRUNCATED = 0.87962566103423978


class Initializer(Protocol):
    """The type of initial weights: of a key, a shape and a dtype.

    >>> import harp
    >>> halves: Initializer = lambda key, shape, dtype=harp.f64: harp.numpy.full(shape, 0.5, dtype)
    """

    def __call__(self, key: Any, shape: Any, dtype: DTypeLike = float) -> Array:
        """Weights of this shape and dtype, by the numbers of a key."""
        ...


def zeros(key: object, shape: object, dtype: DTypeLike = float) -> Array:
    """Zeros, whatever the key.

    >>> zeros(None, 2)
    Array([0., 0.])
    """
    return zeros_of(shape, dtype)


def ones(key: object, shape: object, dtype: DTypeLike = float) -> Array:
    """Ones, whatever the key.

    >>> ones(None, 2)
    Array([1., 1.])
    """
    return ones_of(shape, dtype)


def constant(value: object, dtype: DTypeLike = float) -> Initializer:
    """Elements that are all this value.

    >>> constant(2.0)(None, 2)
    Array([2., 2.])
    """
    return lambda key, shape, dtype=dtype: full(shape, value, dtype)


def uniform(scale: object = 1e-2, dtype: DTypeLike = float) -> Initializer:
    """Numbers of the range 0 <= x < scale.

    >>> import harp
    >>> uniform(0.5)(harp.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return lambda key, shape, dtype=dtype: multiply(uniform_of(key, shape, dtype), scale)


def normal(stddev: object = 1e-2, dtype: DTypeLike = float) -> Initializer:
    """Normal numbers of this standard deviation.

    >>> import harp
    >>> normal()(harp.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return lambda key, shape, dtype=dtype: multiply(normal_of(key, shape, dtype), stddev)


def truncated_normal(
    stddev: object = 1e-2, dtype: DTypeLike = float, lower: object = -2.0, upper: object = 2.0
) -> Initializer:
    """Normal numbers between two bounds, times stddev.

    >>> import harp
    >>> truncated_normal()(harp.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return lambda key, shape, dtype=dtype: multiply(truncated_of(key, lower, upper, shape, dtype), stddev)


def variance_scaling(
    scale: object,
    mode: str,
    distribution: str,
    in_axis: int | Sequence[int] = -2,
    out_axis: int | Sequence[int] = -1,
    batch_axis: Sequence[int] = (),
    dtype: DTypeLike = float,
) -> Initializer:
    """Numbers of mean 0 and variance scale/fan.

    `mode` says what fan counts: "fan_in", "fan_out", their mean "fan_avg", or "fan_geo_avg"; of a kernel of a
    convolution each time the places of the window. `distribution` is "normal", "truncated_normal" or "uniform".
    Raises ArgumentError for others, ShapeError for fewer than two axes.

    >>> import harp
    >>> variance_scaling(2.0, "fan_in", "uniform")(harp.random.key(0), (3, 2)).shape
    (3, 2)
    """
    draw = _DISTRIBUTIONS.get(distribution)
    if mode not in _FANS or draw is None:
        given, known = ("mode", _FANS) if mode not in _FANS else ("distribution", _DISTRIBUTIONS)
        wrong = mode if mode not in _FANS else distribution
        raise ArgumentError(f"{given} of variance_scaling is one of {', '.join(known)}, not {wrong!r}{where()}")

    def weights(key: Any, shape: Any, dtype: DTypeLike = dtype) -> Array:
        sizes = to_shape(shape)
        if len(sizes) < 2:
            raise ShapeError(f"weights of {len(sizes)} axes have no inputs and outputs to count{where()}")
        extents: list[Any] = [wrap(size) for size in sizes]
        window: Any = math.prod(_taken(extents, [in_axis, out_axis, batch_axis], others=True))
        fan_in, fan_out = (math.prod(_taken(extents, [axes])) * window for axes in (in_axis, out_axis))
        deviation = sqrt(divide(scale, _FANS[mode](fan_in, fan_out)))
        return multiply(draw(key, shape, dtype), deviation.astype(dtype))

    return weights


def orthogonal(scale: object = 1.0, column_axis: int = -1, dtype: DTypeLike = float) -> Initializer:
    """Matrices of which the columns, along `column_axis`, or the rows if there are fewer, have length `scale` and are
    at right angles; all other axes together are the rows. A. Saxe, J. McClelland, S. Ganguli, 2014.

    Raises ShapeError for fewer than two axes.

    >>> import harp
    >>> w = orthogonal()(harp.random.key(0), (4, 2))
    >>> (abs(w.T @ w - harp.numpy.eye(2)) < 1e-12).all()
    Array(True)
    """

    def weights(key: Any, shape: Any, dtype: DTypeLike = dtype) -> Array:
        sizes: list[Any] = [wrap(size) for size in to_shape(shape)]
        if len(sizes) < 2:
            raise ShapeError(f"orthogonal weights have at least two axes, not {len(sizes)}{where()}")
        columns = sizes.pop(normalize_axis(column_axis, len(sizes)))
        matrix = orthogonal_of(key, math.prod(sizes), (), computing(as_dtype(dtype)), columns)
        return multiply(moveaxis(reshape(matrix, (*sizes, columns)), -1, column_axis), scale).astype(dtype)

    return weights


def delta_orthogonal(scale: object = 1.0, column_axis: int = -1, dtype: DTypeLike = float) -> Initializer:
    """Kernels (places of a window, inputs, outputs) that are 0 but in the middle, where they are `orthogonal`.

    L. Xiao and others, Dynamical isometry, 2018. Raises ShapeError for other than 3 to 5 axes, or fewer outputs than
    inputs.

    >>> import harp
    >>> delta_orthogonal()(harp.random.key(0), (3, 2, 2))[0]
    Array([[0., 0.],
           [0., 0.]])
    """

    def weights(key: Any, shape: Any, dtype: DTypeLike = dtype) -> Array:
        sizes: list[Any] = [wrap(size) for size in to_shape(shape)]
        if not 3 <= len(sizes) <= 5 or sizes[-1] < sizes[-2]:
            raise ShapeError(f"delta_orthogonal kernels have 3 to 5 axes, and as many outputs as inputs{where()}")
        middle = orthogonal(scale, column_axis, dtype)(key, sizes[-2:], dtype)
        at = tuple((size - 1) // 2 for size in sizes[:-2])
        return zeros_of(sizes, dtype).at[at].set(middle)

    return weights


def _taken(extents: Sequence[Any], groups: Sequence[int | Sequence[int]], others: bool = False) -> list[Any]:
    """The extents of these axes, or of all others."""
    axes = {axis % len(extents) for group in groups for axis in ([group] if isinstance(group, int) else group)}
    return [extent for axis, extent in enumerate(extents) if (axis in axes) is not others]


_FANS: dict[str, Callable[[Any, Any], Any]] = {
    "fan_in": lambda given, made: given,
    "fan_out": lambda given, made: made,
    "fan_avg": lambda given, made: divide(given + made, 2),
    "fan_geo_avg": lambda given, made: sqrt(multiply(given, made)),
}
# Numbers of mean 0 and variance 1.
_DISTRIBUTIONS: dict[str, Callable[[Any, Any, DTypeLike], Array]] = {
    "normal": normal_of,
    "truncated_normal": lambda key, shape, dtype: divide(truncated_of(key, -2.0, 2.0, shape, dtype), _TRUNCATED),
    "uniform": lambda key, shape, dtype: uniform_of(key, shape, dtype, -math.sqrt(3), math.sqrt(3)),
}


def _named(scale: float, mode: str, distribution: str) -> Callable[..., Initializer]:
    made = partial(variance_scaling, scale, mode, distribution)
    made.__doc__ = f"""`variance_scaling({scale}, {mode!r}, {distribution!r})`, with its other arguments.

    >>> import harp
    >>> weights = harp.nn.initializers.variance_scaling({scale}, {mode!r}, {distribution!r})
    >>> weights(harp.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return made


glorot_uniform = xavier_uniform = _named(1.0, "fan_avg", "uniform")
glorot_normal = xavier_normal = _named(1.0, "fan_avg", "truncated_normal")
lecun_uniform = _named(1.0, "fan_in", "uniform")
lecun_normal = _named(1.0, "fan_in", "truncated_normal")
he_uniform = kaiming_uniform = _named(2.0, "fan_in", "uniform")
he_normal = kaiming_normal = _named(2.0, "fan_in", "truncated_normal")
