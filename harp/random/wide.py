"""Products of integers wider than 64 bits, of which the leading bits are wanted."""

from __future__ import annotations

from collections.abc import Sequence

from harp.trace.dtypes import u64
from harp.trace.expr import Expr, apply, cast, const
from harp.trace.formulas import add, mul
from harp.trace.ops import Op


def scaled(words: Sequence[Expr], last: Expr) -> Expr:
    """floor(x * (last + 1)) for the fraction 0 <= x < 1 whose digits are `words`, as uint64.

    Two words take any `last` below 2**32, four words any of 64 bits.
    """
    wide = [cast(word, u64) for word in words]
    if len(wide) == 2:
        count = add(last, const(1, u64))
        return _high(add(mul(wide[0], count), _high(mul(wide[1], count))))
    first, second = (_join(*wide[k : k + 2]) for k in (0, 2))
    # x*(last + 1) = x*last + x, from the lowest 64 bits up
    carry = add(_product_high(second, last), _carry(mul(second, last), second))
    low = mul(first, last)
    total = add(low, first)
    return add(add(_product_high(first, last), _carry(low, first)), _carry(total, carry))


def _high(a: Expr) -> Expr:
    return apply(Op.SHR, a, const(32, u64))


def _low(a: Expr) -> Expr:
    return apply(Op.AND, a, const(0xFFFFFFFF, u64))


def _join(high: Expr, low: Expr) -> Expr:
    return apply(Op.OR, apply(Op.SHL, high, const(32, u64)), low)


def _carry(a: Expr, b: Expr) -> Expr:
    """1 where a + b does not fit 64 bits."""
    return cast(apply(Op.LT, add(a, b), b), u64)


def _product_high(a: Expr, b: Expr) -> Expr:
    """The upper 64 bits of a*b, by the school's method on halves."""
    cross, other = mul(_low(a), _high(b)), mul(_high(a), _low(b))
    middle = add(add(_high(mul(_low(a), _low(b))), _low(cross)), _low(other))
    return add(add(mul(_high(a), _high(b)), _high(cross)), add(_high(other), _high(middle)))
