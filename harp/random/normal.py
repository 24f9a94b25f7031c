"""The normal distribution, by the method of Box and Muller, and between two bounds by its quantiles.

G. E. P. Box, M. E. Muller: "A note on the generation of random normal deviates", Ann. Math. Statist. 29 (1958): a
radius and an angle for each number. The cosine of an even angle is the sine of one between -90 and 90 degrees, so there
is nothing to reduce.

Between bounds both tails are exact. An interval that lies above 0 is mirrored, for small probabilities have all digits
and those near 1 have not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache, reduce

from harp.errors import ArgumentError
from harp.random.eager import Build
from harp.random.floats import float_dtype, is_number, positive, sample_shape, spread, symmetric, units
from harp.random.streams import derived, draw
from harp.scipy.special.errors import below, quantile
from harp.trace.array.array import Array
from harp.trace.array.primitives import map_, to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike, as_dtype, f32, f64, real_of
from harp.trace.scalar.expr import Expr, apply, cast, less_equal, select
from harp.trace.scalar.formulas import number
from harp.trace.scalar.ops import Op
from harp.trace.source_locations import where

# sin(pi/2 s)/s as a polynomial in s*s on [0, 1], of the least largest relative error: 5e-9, and 3e-19.
_SINE = {
    f32: (1.57079631844770577, -0.645963710599934582, 0.0796896789478123778, -0.00467376661204760665,
          0.000151485130450775825),
    f64: (1.57079632679489662, -0.645964097506246191, 0.0796926262461654356, -0.00468175413530264267,
          0.000160441184706822341, -3.5988430072092918e-6, 5.69213487279256261e-8, -6.6843217253261229e-10,
          5.8706111026427568e-12),
}  # fmt: skip
LANES = {f32: (0,), f64: (0, 1)}


def normal(key: object, shape: object = (), dtype: DTypeLike = float) -> Array:
    """Standard normal numbers in float64 or float32, with mean 0 and variance 1; of complex numbers, real and imaginary
    parts of variance 1/2. In 16 bits they are rounded from float32.

    The tails reach 9.4 standard deviations in float64, and 6.7 in float32. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.normal(harp.random.key(0), (2, 3), "float32").shape
    (2, 3)
    """
    target = as_dtype(dtype)
    if target.is_complex:
        real, scale = real_of(target), math.sqrt(0.5)
        return scale * normal(key, shape, real) + 1j * (scale * normal(derived(key, 1), shape, real))
    if target.is_stored:
        return normal(key, shape, f32).astype(target)
    float_dtype("normal", target)
    return draw(key, to_shape(shape), _build(target), LANES[target])


@cache
def _build(dtype: DType) -> Build:
    return lambda *words: deviate(words, dtype)


def deviate(words: Sequence[Expr], dtype: DType) -> Expr:
    """sqrt(-2 log u) * sin(pi/2 s) from two words (float32), or four (float64)."""
    for_radius, for_angle = (words[:1], words[1:]) if dtype is f32 else (words[:2], words[2:])
    u = positive(for_radius[0], for_radius[1] if len(for_radius) > 1 else None, dtype)
    s = symmetric(for_angle[0], for_angle[1] if len(for_angle) > 1 else None, dtype)
    radius = apply(Op.SQRT, -2 * apply(Op.LOG, u))
    return radius * _sine(s)


def _sine(s: Expr) -> Expr:
    square = s * s
    coefficients = [number(c, s.dtype) for c in reversed(_SINE[s.dtype])]
    return s * reduce(lambda total, c: total * square + c, coefficients)


_FARTHEST = 37  # up to where probabilities have all digits: from 38 on they are below the smallest normal number
_CERTAIN = 40  # the probability of a number below it is 1, below its negative 0, in float64


def truncated_normal(
    key: object, lower: object, upper: object, shape: object = None, dtype: DTypeLike = float
) -> Array:
    """Normal numbers given that they lie between the bounds, in float64 or float32.

    The bounds are numbers or arrays that broadcast to the shape, or infinite; derivatives flow to them, up to the
    fourth. NaN where an array has lower > upper, and for bounds that both lie 37 standard deviations or more on one
    side. Raises ArgumentError for such numbers, DTypeError for other dtypes.

    >>> import harp
    >>> sample = harp.random.truncated_normal(harp.random.key(0), 1.0, 2.0, 100)
    >>> bool(((1.0 <= sample) & (sample <= 2.0)).all())
    True
    """
    target, sizes = float_dtype("truncated_normal", dtype), sample_shape(shape, lower, upper)
    if is_number(lower) and is_number(upper) and not _is_interval(lower, upper):
        raise ArgumentError(
            f"truncated_normal draws from lower to a larger upper within {_FARTHEST} standard deviations, not "
            f"{lower!r} to {upper!r}{where()}"
        )
    drawn = draw(key, sizes, units(f64))
    low, high = (spread(bound, target, sizes) for bound in (lower, upper))
    return map_(lambda u, a, b: _bounded(cast(_between(u, cast(a, f64), cast(b, f64)), target), a, b), drawn, low, high,
                to=(f64, target, target))  # fmt: skip


def _is_interval(lower: object, upper: object) -> bool:
    return lower < upper and lower < _FARTHEST and upper > -_FARTHEST  # type: ignore[operator]


def _bounded(x: Expr, low: Expr, high: Expr) -> Expr:
    """Within the bounds, where rounding left them; NaN stays, and is all that there is beyond the farthest bounds."""
    inside = select(x < low, low, select(high < x, high, x))
    near = (low < _FARTHEST) & (high > -_FARTHEST)
    return select(near & less_equal(low, high), inside, number(math.nan, x))


def _between(u: Expr, low: Expr, high: Expr) -> Expr:
    """The quantile of the share `u` of the probability between the bounds."""
    over = -low < high  # more of the interval is above 0
    a, b = select(over, -high, low), select(over, -low, high)
    p, q = (below(_finite(x)) for x in (a, b))
    share = select(over, 1 - u, u)
    x = quantile(p + share * (q - p))
    return select(over, -x, x)


def _finite(x: Expr) -> Expr:
    """x, or what has the same probability below it: derivatives at an infinity are 0, of all orders."""
    low = select(x < (-_CERTAIN), number(-_CERTAIN, x), x)
    return select(low > _CERTAIN, number(_CERTAIN, x), low)
