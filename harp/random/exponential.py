"""The exponential distribution and its logarithm, that of Gumbel: both from -log(u), accurate at both ends."""

from __future__ import annotations

from functools import cache, partial

from harp.random.eager import Build
from harp.random.floats import float_dtype, minus_log
from harp.random.streams import draw
from harp.trace.array.array import Array
from harp.trace.array.primitives import to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike, f64
from harp.trace.scalar.expr import apply
from harp.trace.scalar.ops import Op


def exponential(key: object, shape: object = (), dtype: DTypeLike = f64) -> Array:
    """Positive numbers of density exp(-x), in float64 or float32; multiply for another mean.

    They lie between 2**-65 and 45.1. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.exponential(harp.random.key(0), 4).shape
    (4,)
    """
    target = float_dtype("exponential", dtype)
    return draw(key, to_shape(shape), waiting(target))


def gumbel(key: object, shape: object = (), dtype: DTypeLike = f64) -> Array:
    """Numbers of the distribution function exp(-exp(-x)), in float64 or float32: the extremes of many samples.

    They lie between -3.9 and 45.1. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.gumbel(harp.random.key(0), 4).shape
    (4,)
    """
    target = float_dtype("gumbel", dtype)
    return draw(key, to_shape(shape), _extreme(target))


@cache
def waiting(dtype: DType) -> Build:
    """-log(u)"""
    return partial(minus_log, dtype=dtype)


@cache
def _extreme(dtype: DType) -> Build:
    """-log(-log(u))"""
    return lambda a, b: -apply(Op.LOG, minus_log(a, b, dtype))
