"""Counts: polynomials in the sizes of a program with rational coefficients, as they result from sums over loops.

    (n*n + n)/2     the number of pairs i >= k below n
    n*log2(n)       the comparisons of a sort

A `Count` is an index expression over a common denominator, so that equal counts are equal objects. Its value is an
integer if it is exact; an upper bound is rounded up. Values are right for sizes of 0, too; the text holds for sizes of
1 or more, where it is often much simpler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import gcd, lcm

import attrs

from harp.trace.index import polynomial
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    FloorDiv,
    Fold,
    Index,
    Key,
    Loop,
    Monomial,
    Relu,
    Symbol,
    as_index,
    content,
    evaluate,
    from_terms,
    of,
    symbols_in,
    value_atoms,
)

_ABOVE_ONE = -2  # a scope of sizes that no trace has


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Log2(Atom):
    """The logarithm to base 2, rounded up: how often a number of elements can be halved."""

    arg: Index
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (5, self.arg.key)

    def __repr__(self) -> str:
        return f"log2({self.arg})"


@attrs.frozen(repr=False)
class Count:
    """numerator / denominator, in lowest terms; made by `ratio`."""

    numerator: Index
    denominator: int = 1

    def __add__(self, other: Count) -> Count:
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return ratio(numerator, self.denominator * other.denominator)

    def __sub__(self, other: Count) -> Count:
        return self + other * ratio(-1)

    def __mul__(self, other: Count) -> Count:
        return ratio(self.numerator * other.numerator, self.denominator * other.denominator)

    @property
    def degree(self) -> int:
        """The largest number of sizes in a product; logarithms do not count."""
        return _degree(_where_positive(self.numerator))

    @property
    def terms(self) -> tuple[tuple[Fraction, tuple[str, ...]], ...]:
        """Coefficients and the names of their factors, highest degree first, for sizes of 1 or more."""
        return tuple((Fraction(c, self.denominator), tuple(map(repr, m))) for m, c in self._ordered())

    def at(self, sizes: Mapping[Symbol, int]) -> int:
        """The number for these sizes."""
        return -(-evaluate(self.numerator, _valued(sizes)) // self.denominator)

    def text(self, width: int | None = None) -> str:
        """The polynomial for sizes of 1 or more, without the lowest terms where it is longer than `width`."""
        shown = ""
        for monomial, c in self._ordered():
            term = _term_text(monomial, Fraction(abs(c), self.denominator))
            sign = "-" if c < 0 else "+"
            longer = f"{shown} {sign} {term}" if shown else term if c > 0 else f"-{term}"
            if shown and width is not None and len(longer) > width:
                return f"{shown} + ..."
            shown = longer
        return shown or "0"

    def __repr__(self) -> str:
        return self.text()

    def _ordered(self) -> list[tuple[Monomial, int]]:
        terms = _where_positive(self.numerator).terms
        return sorted(terms, key=lambda term: (-_degree(from_terms({term[0]: 1})), term[1] < 0))


def ratio(numerator: Index | int, denominator: int = 1) -> Count:
    """The count numerator / denominator."""
    numerator = as_index(numerator)
    common = gcd(content(numerator), denominator)
    if common > 1:
        numerator = from_terms({m: c // common for m, c in numerator.terms})
    return Count(numerator, denominator // common)


NOTHING, ONCE = ratio(ZERO), ratio(ONE)


def total(counts: Iterable[Count]) -> Count:
    """The sum of counts."""
    summands = tuple(counts)
    whole = lcm(*(count.denominator for count in summands))
    return ratio(polynomial.total(count.numerator * (whole // count.denominator) for count in summands), whole)


def log2(p: Index) -> Count:
    """The logarithm of `p` to base 2, rounded up."""
    if p.constant is not None:
        return ratio(_halvings(p.constant))
    return ratio(of(Log2(p)))


def _halvings(number: int) -> int:
    return max(number - 1, 0).bit_length()


def _valued(sizes: Mapping[Symbol, int]) -> Callable[[Atom], int]:
    def value(atom: Atom) -> int:
        if isinstance(atom, Log2):
            return _halvings(evaluate(atom.arg, value))
        assert isinstance(atom, Symbol), atom
        return sizes[atom]

    return value


@lru_cache(maxsize=1 << 12)
def _where_positive(p: Index) -> Index:
    """A simpler expression that is equal for sizes of 1 or more: n - 1 for max(n - 1, 0).

    Only maxima and quotients are rewritten, in sizes - 1: the whole would have 2**k times as many terms for products of
    k sizes.
    """
    compound = {a for m, _ in p.terms for a in m if isinstance(a, (Relu, FloorDiv))}
    above = {size: Symbol(_ABOVE_ONE, size.number, size.name) for size in symbols_in(p)}  # size - 1
    less = Substitution({size: of(more) + 1 for size, more in above.items()})
    back = Substitution({more: of(size) - 1 for size, more in above.items()})
    simpler = Substitution({a: back(less(of(a))) for a in compound})(p)
    return min(p, simpler, key=_complexity)


def _complexity(p: Index) -> int:
    return len(p.terms) + 2 * sum(not isinstance(a, (Symbol, Log2)) for a in value_atoms(p))


def _degree(p: Index) -> int:
    fold = Fold[int](_largest, lambda _, factors: sum(factors), lambda a, b: max(a - b, 0), lambda a: a, _leaf_degree)
    return fold(p)


def _largest(degrees: list[int]) -> int:
    return max(degrees, default=0)


def _leaf_degree(atom: Atom) -> int:
    return _degree(atom.extent) if isinstance(atom, Loop) else isinstance(atom, Symbol)


def _term_text(monomial: Monomial, coefficient: Fraction) -> str:
    text = repr(from_terms({monomial: coefficient.numerator}))
    return text if coefficient.denominator == 1 else f"{text}/{coefficient.denominator}"
