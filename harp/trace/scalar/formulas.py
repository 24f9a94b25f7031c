"""What scalar formulas are written with: shorthands for real expressions."""

from __future__ import annotations

import math

from harp.trace.scalar.dtypes import DType
from harp.trace.scalar.expr import Expr, apply, const
from harp.trace.scalar.ops import Op


def number(value: float, like: Expr | DType) -> Expr:
    """A number in the dtype of an expression."""
    return const(value, like if isinstance(like, DType) else like.dtype)


def add(*terms: Expr) -> Expr:
    """From left to right."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def mul(*factors: Expr) -> Expr:
    """From left to right."""
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


def absolute(a: Expr) -> Expr:
    return apply(Op.ABS, a)


def equals(a: Expr, value: float) -> Expr:
    return apply(Op.EQ, a, number(value, a))


def is_infinite(a: Expr) -> Expr:
    return equals(absolute(a), math.inf)


def is_finite(a: Expr) -> Expr:
    return absolute(a) < math.inf


def is_nan(a: Expr) -> Expr:
    return ~apply(Op.EQ, a, a)
