"""Equations between sizes, reduced to the strongest simple facts that imply them.

    6*n - 4*m == 0      ->  3*n - 2*m == 0             the numbers that all terms have in common are cancelled
    64*n - n*m == 0     ->  m == 64                    so are factors that all terms share, where the call allows it
                        ->  n == 0                     where it does not, the factor that is 0
    n + m*k == 0        ->  n == 0, m*k == 0           a sum of what is never negative
    n*m - 1 == 0        ->  n == 1, m == 1             a product of natural numbers that is 1
    n*n - 9 == 0        ->  n == 3
    max(n - 3, 0) - max(m - 3, 0) == 0   ->  n == m    where the call shows that

Facts on the right may be stronger than the equation (the second and the last): a call for which only the weaker one
holds gets a trace of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harp.trace.index.bounds import nonnegative, without_content
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    Index,
    Monomial,
    Relu,
    as_index,
    divide_term,
    from_terms,
    of,
    product,
)

Value = Callable[[Index], int]


class Facts(NamedTuple):
    """All `zeros` are 0, and the equation follows from that. `stronger`: they do not follow from the equation."""

    zeros: tuple[Index, ...]
    stronger: bool = False


def take_apart(p: Index, value: Value) -> Facts:
    """The strongest facts that imply 0 == p and hold for the sizes of `value`; p over its content, if nothing else."""
    p = without_content(p)
    factors = common_atoms(p)
    if factors:
        rest = _quotient(p, factors)
        if value(rest) == 0:
            return Facts((rest,), stronger=True)
        zero = next(of(a) for a in factors if value(of(a)) == 0)
        return Facts((zero,), stronger=zero is not p)  # another factor could be 0 instead
    found = _sum_of_naturals(p) or _product_that_is_one(p) or _power(p, value)
    if found:
        return Facts(found)
    same = _same_below_zero(p, value)
    return Facts((p,)) if same is None else Facts((same,), stronger=True)


def common_atoms(p: Index) -> Monomial:
    """The atoms that are factors of every term, as often as they are."""
    if not p.terms:
        return ()
    first, *others = (m for m, _ in p.terms)
    found: list[Atom] = []
    for atom in dict.fromkeys(first):
        found += [atom] * min([first.count(atom), *(m.count(atom) for m in others)])
    return tuple(found)


def _quotient(p: Index, factors: Monomial) -> Index:
    divided = (divide_term(term, (factors, 1)) for term in p.terms)
    return from_terms(dict(term for term in divided if term is not None))


def _natural(monomial: Monomial) -> bool:
    return all(nonnegative(of(atom)) for atom in monomial)


def _sum_of_naturals(p: Index) -> tuple[Index, ...]:
    """Each term, where no two can cancel."""
    signs = {c > 0 for _, c in p.terms}
    if len(p.terms) < 2 or len(signs) != 1 or not all(_natural(m) for m, _ in p.terms):
        return ()
    return tuple(product(map(of, m)) for m, _ in p.terms)


def _constant_and_rest(p: Index) -> tuple[int, Index]:
    """(c, q) with p == +-(q - c), where q has no constant and c is not negative."""
    constant = dict(p.terms).get((), 0)
    return (constant, as_index(constant) - p) if constant > 0 else (-constant, p - constant)


def _product_that_is_one(p: Index) -> tuple[Index, ...]:
    one, rest = _constant_and_rest(p)
    factors = common_atoms(rest)
    if one != 1 or not factors or p.atom is not None or not _natural(factors):
        return ()
    other = _quotient(rest, factors)
    if other is ONE and len(factors) == 1:
        return ()  # it says so already
    return (*(of(a) - 1 for a in dict.fromkeys(factors)), *([other - 1] if other is not ONE else []))


def _power(p: Index, value: Value) -> tuple[Index, ...]:
    """One natural number to a power."""
    number, rest = _constant_and_rest(p)
    if number == 0 or len(rest.terms) != 1:
        return ()
    ((monomial, coefficient),) = rest.terms
    if coefficient != 1 or len(monomial) < 2 or len(set(monomial)) != 1 or not _natural(monomial[:1]):
        return ()
    base = of(monomial[0])
    return (base - value(base),)


def _same_below_zero(p: Index, value: Value) -> Index | None:
    """x - y for max(x, 0) - max(y, 0), where x and y are equal in the call at hand."""
    if len(p.terms) != 2 or sum(c for _, c in p.terms) != 0:
        return None
    (left, _), (right, _) = p.terms
    if len(left) == len(right) == 1 and isinstance(left[0], Relu) and isinstance(right[0], Relu):
        difference = left[0].arg - right[0].arg
        return difference if difference is not ZERO and value(difference) == 0 else None
    return None
