"""Products of integers wider than 64 bits, of which the leading bits are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.scalar.dtypes import u64
from harp.trace.scalar.expr import Expr, cast, const


def scaled(words: Sequence[Expr], last: Expr) -> Expr:
    """floor(x * (last + 1)) for the fraction 0 <= x < 1 whose digits are `words`, as uint64.

    Two words take any `last` below 2**32, four words any of 64 bits.
    """
    wide = [cast(word, u64) for word in words]
    if len(wide) == 2:
        count = last + 1
        return _high(wide[0] * count + _high(wide[1] * count))
    first, second = (_join(*wide[k : k + 2]) for k in (0, 2))
    # x*(last + 1) = x*last + x, from the lowest 64 bits up
    carry = _product_high(second, last) + _carry(second * last, second)
    low = first * last
    total = low + first
    return _product_high(first, last) + _carry(low, first) + _carry(total, carry)


def _high(a: Expr) -> Expr:
    return a >> const(32, u64)


def _low(a: Expr) -> Expr:
    return a & 0xFFFFFFFF


def _join(high: Expr, low: Expr) -> Expr:
    return high << const(32, u64) | low


def _carry(a: Expr, b: Expr) -> Expr:
    """1 where a + b does not fit 64 bits."""
    return cast(a + b < b, u64)


def _product_high(a: Expr, b: Expr) -> Expr:
    """The upper 64 bits of a*b, by the school's method on halves."""
    cross, other = _low(a) * _high(b), _high(a) * _low(b)
    middle = _high(_low(a) * _low(b)) + _low(cross) + _low(other)
    return _high(a) * _high(b) + _high(cross) + (_high(other) + _high(middle))
