"""How often the body of nested loops is executed, as a count in the sizes: exact if it is a polynomial.

    for i < n, k < m                         n*m
    for i < n, k < n where i >= k            (n*n + n)/2     a condition bounds its innermost loop; powers of a loop
                                                             are summed by Faulhaber's formula
    for i < n, k < min(i, 5)                 ...             the range of i is split where the minimum changes
    for c < ceil(n/8), k < min(8, n - 8*c)   n               the same: at the last c

Other sums are bounded from above: a condition that does not bound a loop (on data, or on a remainder) counts as true, a
floor-division as the quotient, and max(p, 0) as the positive terms of p.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from math import comb
from typing import NamedTuple

from harp.lower.report.counts import NOTHING, ONCE, Count, ratio, total
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, ceildiv, floordiv, maximum, minimum
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Key,
    Loop,
    Monomial,
    Relu,
    from_terms,
    indirect_in,
    loops_in,
    occurs,
    of,
    split_linear,
    symbols_in,
    value_atoms,
)

# How often the range of a loop may be split in two, while the count inside has at most so many terms: each window along
# an axis whose size is a symbol makes it about ten times as long.
_SPLITS, _TERMS = 2, 64

_AS_LONG_AS_IT_IS: Mapping[Loop, Index] = {}


class Executions(NamedTuple):
    """A number of executions: exact, or an upper bound."""

    number: Count
    exact: bool


class Range(NamedTuple):
    """The positions of a loop that are executed: start <= position < stop."""

    start: Index
    stop: Index


def executions(
    loops: Sequence[Loop],
    conditions: Iterable[Index] = (),
    depth: int | None = None,
    steps: Mapping[Loop, Index] = _AS_LONG_AS_IT_IS,
) -> Executions:
    """How often the body of loops, given from the outside in, is executed, if all conditions must be >= 0.

    With `depth`, the count of a value that is computed in that many loops, before the others: once for each iteration
    in which anything inside is executed. `steps` are the numbers of steps of loops whose extent does not say them.
    """
    ranges = tuple(Range(ZERO, steps.get(loop, loop.extent)) for loop in loops)
    return _executions(tuple(loops), ranges, tuple(dict.fromkeys(conditions)), len(loops) if depth is None else depth)


@lru_cache(maxsize=1 << 12)
def _executions(
    loops: tuple[Loop, ...], ranges: tuple[Range, ...], conditions: tuple[Index, ...], depth: int
) -> Executions:
    """The best of several bounds: a condition that makes a sum intractable can make a bound worse."""
    whole = _all_of(loops, ranges, conditions, depth)
    if whole.exact:
        return whole
    fewer = sorted({conditions[:k] + conditions[k + 1 :] for k in range(len(conditions))} | {()}, key=_keys)
    bounds = [whole.number, *(_all_of(loops, ranges, some, depth).number for some in fewer)]
    return Executions(min(bounds, key=_typical), False)


def _keys(conditions: tuple[Index, ...]) -> list[Key]:
    return [p.key for p in conditions]


def _typical(number: Count) -> tuple[int, int, int]:
    """The order of bounds: by degree, then by the value for sizes of a thousand, then by length."""
    sizes = dict.fromkeys(symbols_in(number.numerator), 1000)
    return number.degree, number.at(sizes), len(number.numerator.terms)


def _all_of(loops: tuple[Loop, ...], given: tuple[Range, ...], conditions: tuple[Index, ...], depth: int) -> Executions:
    ranges = dict(zip(loops, given, strict=True))
    exact = True
    for condition in conditions:
        exact &= _narrow(ranges, condition)
    number = ONCE
    for at, loop in reversed(tuple(enumerate(loops))):
        start, stop = ranges[loop]
        over = ranges[loop] if start is ZERO else Range(start, maximum(stop, start))
        few = len(number.numerator.terms) <= _TERMS
        number, summed = _sum(number, loop, over, _SPLITS if few else 0)
        exact &= summed
        if at >= depth:  # whether there is any iteration
            number = ratio(minimum(number.numerator, number.denominator), number.denominator)
    return Executions(number, exact)


# --- conditions as ranges of loops


def _narrow(ranges: dict[Loop, Range], condition: Index) -> bool:
    """Restrict the range of a condition's innermost loop to where the condition holds; whether that is possible."""
    loops = loops_in(condition)
    if not loops or not loops <= ranges.keys() or indirect_in(condition):
        return False
    loop = next(loop for loop in reversed(ranges) if loop in loops)
    parts = split_linear(condition, loop)
    if parts is None:
        cleared = _without_division(condition, loop)
        return cleared is not None and _narrow(ranges, cleared)
    slope, rest = parts
    step = slope.constant
    if step is None:
        return False
    start, stop = ranges[loop]
    if step > 0:
        start = maximum(start, ceildiv(-rest, step))
    else:
        stop = maximum(minimum(stop, floordiv(rest, -step) + 1), ZERO)
    ranges[loop] = Range(start, stop)
    return True


def _without_division(condition: Index, loop: Loop) -> Index | None:
    """a//b + c >= 0  ->  a + b*c >= 0, and c - a//b >= 0  ->  b*c + b - 1 - a >= 0, where only `a` has the loop."""
    for atom in (a for m, _ in condition.terms for a in m):
        if isinstance(atom, FloorDiv) and occurs(loop, atom):
            parts = split_linear(condition, atom)
            if parts is None or any(occurs(loop, a) for p in (parts[1], atom.den) for a in value_atoms(p)):
                return None
            sign, rest = parts[0].constant, parts[1]
            if sign == 1:
                return atom.num + atom.den * rest
            return atom.den * (rest + 1) - 1 - atom.num if sign == -1 else None
    return None


# --- sums


def _sum(f: Count, loop: Loop, over: Range, splits: int) -> Executions:
    """The sum of f over the range."""
    if not _is_bent(f, loop):
        return Executions(_sum_of_powers(f, loop, over), True)
    maximum = _first_maximum(f.numerator, loop) if splits else None
    if maximum is None:
        return Executions(_sum(_bound(f, loop), loop, over, 0).number, False)
    atom, slope, rest = maximum
    at_zero, positive = (_with(f, atom, value) for value in (ZERO, atom.arg))
    below, above = (at_zero, positive) if slope > 0 else (positive, at_zero)
    tiles = _is_last_tile(loop, over, slope, rest) and not (_is_bent(below, loop) or _is_bent(above, loop))
    middle = over.stop - 1 if tiles else _sign_change(over, slope, rest)
    a = _sum(below, loop, Range(over.start, middle), splits - 1)
    b = _sum(above, loop, Range(middle, over.stop), splits - 1)
    return Executions(a.number + b.number, a.exact and b.exact)


def _is_bent(f: Count, loop: Loop) -> bool:
    """Whether f is not a polynomial in the loop."""
    return any(_is_compound(atom, loop) for m, _ in f.numerator.terms for atom in m)


def _is_compound(atom: Atom, loop: Loop) -> bool:
    return atom is not loop and occurs(loop, atom)


def _first_maximum(p: Index, loop: Loop) -> tuple[Relu, int, Index] | None:
    """A term max(slope*loop + rest, 0) in `p`, as (atom, slope, rest)."""
    for atom in value_atoms(p):
        parts = split_linear(atom.arg, loop) if isinstance(atom, Relu) else None
        if isinstance(atom, Relu) and parts is not None and parts[0].constant:
            return atom, parts[0].constant, parts[1]
    return None


def _sign_change(over: Range, slope: int, rest: Index) -> Index:
    """The first position of the range where the sign of slope*position + rest has changed."""
    position = ceildiv(-rest, slope) if slope > 0 else floordiv(rest, -slope) + 1
    return minimum(maximum(position, over.start), over.stop)


def _is_last_tile(loop: Loop, over: Range, slope: int, rest: Index) -> bool:
    """Whether a minimum is that of min(T, n - T*c) for c < ceil(n/T), which changes at the last c.

    Without tiles, at n = 0, both branches are the same at -1: their sums cancel.
    """
    tile = abs(slope)
    whole = rest + tile if slope < 0 else tile - rest
    return over.start is ZERO and over.stop is loop.extent and loop.extent is ceildiv(whole, tile)


def _with(f: Count, atom: Atom, value: Index) -> Count:
    return ratio(Substitution({atom: value})(f.numerator), f.denominator)


def _sum_of_powers(f: Count, loop: Loop, over: Range) -> Count:
    """The sum of a polynomial in the loop."""
    coefficients: dict[int, dict[Monomial, int]] = {}
    for monomial, c in f.numerator.terms:
        others = tuple(a for a in monomial if a is not loop)
        coefficients.setdefault(monomial.count(loop), {})[others] = c
    return total(
        ratio(from_terms(coefficient), f.denominator) * (_faulhaber(power, over.stop) - _faulhaber(power, over.start))
        for power, coefficient in coefficients.items()
    )


@lru_cache(maxsize=1 << 10)
def _faulhaber(power: int, stop: Index) -> Count:
    """0**power + 1**power + ... + (stop - 1)**power, where 0**0 is 1."""
    result, powers = NOTHING, [ONE]
    for _ in range(power + 1):
        powers.append(powers[-1] * stop)
    for k in range(power + 1):
        c = comb(power + 1, k) * _bernoulli(k) / (power + 1)
        result += ratio(powers[power + 1 - k] * c.numerator, c.denominator)
    return result


@cache
def _bernoulli(k: int) -> Fraction:
    return Fraction(k == 0) - sum((comb(k, j) * _bernoulli(j) / (k - j + 1) for j in range(k)), Fraction(0))


# --- bounds


def _bound(f: Count, loop: Loop) -> Count:
    """A polynomial in the loop that is nowhere less than f."""
    while _is_bent(f, loop):
        f = total(_bound_term(m, c, loop) for m, c in f.numerator.terms) * ratio(1, f.denominator)
    return f


def _bound_term(monomial: Monomial, c: int, loop: Loop) -> Count:
    compound = [atom for atom in monomial if _is_compound(atom, loop)]
    if not compound:
        return ratio(from_terms({monomial: c}))
    if any(_may_be_negative(atom) for atom in monomial):
        compound = [atom for atom in monomial if atom in compound or _may_be_negative(atom)]
        bounds, c = map(_most_absolute, compound), abs(c)
    elif c > 0:
        bounds = map(_most, compound)
    else:
        bounds = map(_least if len(compound) == 1 else _zero, compound)
    result = ratio(from_terms({tuple(atom for atom in monomial if atom not in compound): c}))
    for bound in bounds:
        result *= bound
    return result


def _may_be_negative(atom: Atom) -> bool:
    return isinstance(atom, FloorDiv) and not nonnegative(atom.num)


def _most(atom: Atom) -> Count:
    """An upper bound of an atom that is not negative."""
    if isinstance(atom, FloorDiv):
        return ratio(atom.num, atom.den.constant or 1)
    return _terms_added(atom.arg) if isinstance(atom, Relu) else ratio(of(atom))


def _least(atom: Atom) -> Count:
    """A lower bound of an atom that is not negative."""
    den = atom.den.constant if isinstance(atom, FloorDiv) else None
    return ratio(atom.num - den + 1, den) if isinstance(atom, FloorDiv) and den else NOTHING


def _zero(atom: Atom) -> Count:
    return NOTHING


def _most_absolute(atom: Atom) -> Count:
    """An upper bound of the absolute value of an atom."""
    if not _may_be_negative(atom):
        return _most(atom)
    assert isinstance(atom, FloorDiv)
    return _terms_added(atom.num) + _terms_added(-atom.num) + ONCE


def _terms_added(p: Index) -> Count:
    """An upper bound of max(p, 0): its positive terms."""
    terms = []
    for monomial, c in p.terms:
        negative = [atom for atom in monomial if _may_be_negative(atom)]
        term = ratio(from_terms({tuple(atom for atom in monomial if atom not in negative): abs(c)}))
        for atom in negative:
            term *= _most_absolute(atom)
        if c > 0 or negative:
            terms.append(term)
    return total(terms)
