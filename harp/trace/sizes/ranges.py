"""Sizes as numbers: that the exact value of an index expression fits the integers that the program computes with.

An `Index` never wraps, but a program holds it as an int64, and an array that it meets gives it its own dtype. Where
bounds do not show that it fits, the call at hand does: a guard, or an IntegerRangeError. Sums and products of the
program's integers are exact modulo 2**64, so it is enough that the result fits, and all that is divided or compared.

What bounds know: the bytes of an array are an int64, where axes of no elements are left out of the product, so any
product of axes of one array of float64 is below 2**60.
"""

from __future__ import annotations

from harp.errors import IntegerRangeError
from harp.trace.eval.intervals import Interval
from harp.trace.index.polynomial import (
    Atom,
    FloorDiv,
    Index,
    Loop,
    Monomial,
    Relu,
    as_index,
    children,
    depends_on,
    divide_term,
    of,
    split_linear,
)
from harp.trace.scalar.dtypes import DType, f64, i64, integer_limits
from harp.trace.scalar.expr import Expr, Position, cast, const
from harp.trace.sizes.levels import current
from harp.trace.sizes.scope import Relation, Scope
from harp.trace.sizes.size import ask, describe, hint, resolve
from harp.trace.source_locations import where

_INT64 = Interval(-(2**63), 2**63 - 1)
_REASON = "fits the integers"


def size_value(p: Index, dtype: DType) -> Expr:
    """The value of an index expression in a dtype. Raises IntegerRangeError if it does not fit there."""
    p = resolve(p)
    if dtype.is_integer:
        p = require_int64(p)
        if dtype is not i64:
            limits = integer_limits(dtype)
            if not _within(p, Interval(limits.min, limits.max), str(dtype.numpy)):
                raise IntegerRangeError(f"{describe(p)} does not fit {dtype.numpy}; convert the array first{where()}")
    elif not _fits(p) and _only_adds(p):
        return cast(_as_float(p), dtype)
    else:
        p = require_int64(p)
    return cast(Position(p), dtype)


def require_int64(p: Index) -> Index:
    """`p`, which fits an int64, and so does what it is computed from. Raises IntegerRangeError."""
    p = resolve(p)
    if not _fits(p):
        way_out = "" if p.constant is not None else "; make a float of it before it grows, as in 1.0 * x.shape[0]"
        raise IntegerRangeError(f"{describe(p)} does not fit int64{way_out}{where()}")
    return p


def _fits(p: Index) -> bool:
    """Whether `p`, and all that is divided or compared on the way to it, fits an int64: by a guard if need be."""
    atoms = sorted(depends_on(p), key=lambda atom: atom.key)
    inside = [q for atom in atoms if isinstance(atom, (FloorDiv, Relu)) for q in children(atom)]
    return all(_within(q, _INT64, "int64") for q in (*dict.fromkeys(inside), p))


def _within(p: Index, allowed: Interval, integers: str) -> bool:
    level = current()
    if p.constant is not None:
        return allowed.low <= p.constant <= allowed.high
    low, high = _Bounds(None if level is None else level.scope).of(p)
    for certain, room in ((low >= allowed.low, p - allowed.low), (high <= allowed.high, as_index(allowed.high) - p)):
        if certain:
            continue
        if hint(room) is None:  # declared sizes: the calls to come are held to it
            if level is not None:
                level.scope.guard(Relation.NONNEGATIVE, room, f"{_REASON} of {integers}")
        elif not ask(Relation.NONNEGATIVE, room, f"{_REASON} of {integers}"):
            return False
    return True


# -- floats: any size fits


def _only_adds(p: Index) -> bool:
    """Whether a sum of floats is as accurate as the exact sum: no two terms cancel."""
    return len({c > 0 for _, c in p.terms}) == 1


def _as_float(p: Index) -> Expr:
    total: Expr | None = None
    for monomial, coefficient in p.terms:
        term: Expr = const(coefficient, f64)
        for atom in monomial:
            term = term * cast(Position(require_int64(of(atom))), f64)
        total = term if total is None else total + term
    assert total is not None, "zero fits an int64"
    return total


# -- bounds for all sizes that arrays can have


class _Bounds:
    """What expressions are never below and never above; each one is asked once."""

    def __init__(self, scope: Scope | None) -> None:
        self._limits = [] if scope is None else list(scope.limits())
        self._known: dict[Index, Interval] = {}

    def of(self, p: Index) -> Interval:
        found = self._known.get(p)
        if found is None:
            found = self._known[p] = self._of_sum(p)
        return found

    def _of_sum(self, p: Index) -> Interval:
        remainder = _remainder(p)
        if remainder is not None:
            multiple, den, rest = remainder
            ends = sorted((0, multiple * (self.of(den).high - 1)))
            below = self.of(rest)
            return Interval(below.low + min(ends[0], 0), below.high + max(ends[1], 0))
        low = high = 0
        for monomial, coefficient in p.terms:
            ends = sorted(coefficient * end for end in self._of_product(monomial))
            low, high = low + ends[0], high + ends[1]
        return Interval(low, high)

    def _of_product(self, monomial: Monomial) -> Interval:
        for whole, limit in self._limits:
            if monomial and divide_term(whole, (monomial, 1)) is not None:
                return Interval(0, limit)
        low = high = 1
        for atom in monomial:
            factor = self._of_atom(atom)
            ends = [a * b for a in (low, high) for b in factor]
            low, high = min(ends), max(ends)
        return Interval(low, high)

    def _of_atom(self, atom: Atom) -> Interval:
        if isinstance(atom, FloorDiv):  # divisors are at least 1
            num = self.of(atom.num)
            return Interval(min(num.low, 0), max(num.high, 0))
        if isinstance(atom, Relu):
            return Interval(0, max(self.of(atom.arg).high, 0))
        if isinstance(atom, Loop):
            return Interval(0, max(self.of(atom.extent).high - 1, 0))
        return Interval(0, _INT64.high)


def _remainder(p: Index) -> tuple[int, Index, Index] | None:
    """(k, den, rest) with p == k * (num % den) + rest, for a remainder is num - den * (num // den)."""
    for monomial, _ in p.terms:
        for atom in monomial:
            parts = split_linear(p, atom) if isinstance(atom, FloorDiv) else None
            if isinstance(atom, FloorDiv) and parts is not None:
                slope, rest = parts
                multiple = -dict(slope.terms).get(atom.den.terms[-1][0], 0) // atom.den.terms[-1][1]
                if multiple and slope is -multiple * atom.den:
                    return multiple, atom.den, rest - multiple * atom.num
    return None
