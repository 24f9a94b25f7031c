"""Sums of two doubles, one of which is what rounding takes from the other: some 32 digits.

T. J. Dekker: "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971.
"""

from __future__ import annotations

from typing import NamedTuple

from harp.trace.array.array import Array

_SPLIT = 2.0**27 + 1


class Two(NamedTuple):
    """A number, rounded, and the rest."""

    high: Array
    low: Array


def added(a: Array, b: Array) -> Two:
    """The sum of two doubles, exactly."""
    total = a + b
    part = total - a
    return Two(total, (a - (total - part)) + (b - part))


def _halves(a: Array) -> tuple[Array, Array]:
    scaled = _SPLIT * a
    high = scaled - (scaled - a)
    return high, a - high


def _product(a: Array, b: Array) -> Two:
    total = a * b
    (p, q), (r, s) = _halves(a), _halves(b)
    return Two(total, ((p * r - total) + p * s + q * r) + q * s)


def _normal(high: Array, low: Array) -> Two:
    total = high + low
    return Two(total, low - (total - high))


def plus(a: Two, b: Two) -> Two:
    """The sum."""
    total = added(a.high, b.high)
    return _normal(total.high, total.low + (a.low + b.low))


def times(a: Two, b: Two) -> Two:
    """The product."""
    total = _product(a.high, b.high)
    return _normal(total.high, total.low + (a.high * b.low + a.low * b.high))


def over(a: Two, b: Two) -> Two:
    """The quotient."""
    quotient = a.high / b.high
    back = _product(quotient, b.high)
    rest = (((a.high - back.high) - back.low) + a.low) - quotient * b.low
    return _normal(quotient, rest / b.high)
