"""The normal distribution, by the method of Box and Muller: a radius and an angle for each number.

G. E. P. Box, M. E. Muller: "A note on the generation of random normal deviates", Ann. Math. Statist. 29 (1958).
The cosine of an even angle is the sine of one between -90 and 90 degrees, so there is nothing to reduce.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce

from harp.random.eager import Build
from harp.random.floats import float_dtype, positive, symmetric
from harp.random.streams import draw
from harp.trace.array.array import Array
from harp.trace.array.primitives import to_shape
from harp.trace.scalar.dtypes import DType, DTypeLike, f32, f64
from harp.trace.scalar.expr import Expr, apply
from harp.trace.scalar.formulas import number
from harp.trace.scalar.ops import Op

# sin(pi/2 s)/s as a polynomial in s*s on [0, 1], of the least largest relative error: 5e-9, and 3e-19.
_SINE = {
    f32: (1.57079631844770577, -0.645963710599934582, 0.0796896789478123778, -0.00467376661204760665,
          0.000151485130450775825),
    f64: (1.57079632679489662, -0.645964097506246191, 0.0796926262461654356, -0.00468175413530264267,
          0.000160441184706822341, -3.5988430072092918e-6, 5.69213487279256261e-8, -6.6843217253261229e-10,
          5.8706111026427568e-12),
}  # fmt: skip
LANES = {f32: (0,), f64: (0, 1)}


def normal(key: object, shape: object = (), dtype: DTypeLike = f64) -> Array:
    """Standard normal numbers in float64 or float32, with mean 0 and variance 1.

    The tails reach 9.4 standard deviations in float64, and 6.7 in float32. Raises DTypeError for other dtypes.

    >>> import harp
    >>> harp.random.normal(harp.random.key(0), (2, 3), "float32").shape
    (2, 3)
    """
    target = float_dtype("normal", dtype)
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
