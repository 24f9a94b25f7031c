"""Floor-division, remainder, maximum and minimum of index expressions, in canonical form; and substitution.

Each rule is exact for divisors >= 1. A divisor is known to be that by a guard, or by standing inside its loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd

from harp.trace.index.bounds import below, divmod_polynomial, nonnegative
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    Counter,
    FloorDiv,
    Index,
    IndexLike,
    Indirect,
    Loop,
    Monomial,
    Relu,
    Symbol,
    as_index,
    atoms_in,
    content,
    divide_term,
    from_terms,
    loop,
    of,
    product,
    total,
)


def floordiv(a: IndexLike, b: IndexLike) -> Index:
    """a // b, rounding down; x // 0 is 0."""
    return _floordiv(as_index(a), as_index(b))


def mod(a: IndexLike, b: IndexLike) -> Index:
    """a % b := a - b*(a//b)."""
    a, b = as_index(a), as_index(b)
    return a - b * _floordiv(a, b)


def ceildiv(a: IndexLike, b: IndexLike) -> Index:
    """a / b rounded up."""
    a, b = as_index(a), as_index(b)
    return _floordiv(a + b - 1, b)


@lru_cache(maxsize=1 << 14)
def _floordiv(a: Index, b: Index) -> Index:
    if b is ZERO or a is ZERO:
        return ZERO
    if b is ONE:
        return a
    if b.constant is not None and b.constant < 0:  # a // -c  ->  -a // c
        return _floordiv(-a, -b)
    quotient, rest = divmod_polynomial(a, b)  # (q*b + r) // b  ->  q + r//b
    if rest is ZERO or below(rest, b):
        return quotient
    outside = _relu_outside(rest, b)
    return quotient + (_proper(rest, b) if outside is None else outside)


def _relu_outside(num: Index, den: Index) -> Index | None:
    """(relu(x) + c) // d  ->  relu((x + c) // d) for numbers 0 <= c < d: how many places a slice with steps has, n//2
    for x[1::2] and any n."""
    if den.constant is None or len(num.terms) > 2:
        return None
    relus = [m[0] for m, c in num.terms if c == 1 and len(m) == 1 and isinstance(m[0], Relu)]
    if len(relus) != 1:
        return None
    (atom,) = relus
    assert isinstance(atom, Relu)
    rest = (num - of(atom)).constant
    if rest is None or not 0 <= rest < den.constant:
        return None
    return relu(_floordiv(atom.arg + rest, den))


def _proper(num: Index, den: Index) -> Index:
    """num // den where no multiple of the divisor can be taken out."""
    num, den = _lowest_terms(num, den)
    if den is ONE:
        return num
    if _leading_coefficient(num) < 0:  # -x // d  ->  -((x + d - 1) // d)
        quotient, rest = divmod_polynomial(den - 1 - num, den)
        if _leading_coefficient(rest) > 0:  # else it would be turned around again, without end
            return -(quotient + (ZERO if below(rest, den) else _proper(rest, den)))
    nested = _inner_division(num)
    if nested is not None:  # (x//a + k) // b  ->  (x + a*k) // (a*b)
        inner, others = nested
        return _floordiv(inner.num + inner.den * others, inner.den * den)
    coarser = _drop_low_part(num, den)
    return coarser if coarser is not None else of(FloorDiv(num, den))


def _lowest_terms(num: Index, den: Index) -> tuple[Index, Index]:
    """(g*x) // (g*y)  ->  x // y, for the common number and the common atoms of all terms."""
    number = gcd(content(num), content(den))
    terms = num.terms + den.terms
    common: list[Atom] = []
    for atom in terms[0][0]:
        if atom not in common:
            common += [atom] * min(m.count(atom) for m, _ in terms)
    factor = tuple(common), number
    return _divide_all(num, factor), _divide_all(den, factor)


def _divide_all(p: Index, by: tuple[Monomial, int]) -> Index:
    divided = [divide_term(term, by) for term in p.terms]
    return from_terms(dict(d for d in divided if d is not None))


def _leading_coefficient(p: Index) -> int:
    return next((c for m, c in reversed(p.terms) if m), 1)


def _inner_division(p: Index) -> tuple[FloorDiv, Index] | None:
    for monomial, coefficient in p.terms:
        if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], FloorDiv):
            return monomial[0], p - of(monomial[0])
    return None


def _drop_low_part(num: Index, den: Index) -> Index | None:
    """(g*x + y) // (g*z)  ->  x // z, where 0 <= y < g."""
    if len(den.terms) != 1:
        return None
    for term in num.terms:
        shared = _common_factor(term, den.terms[0])
        if shared == ((), 1):
            continue
        high = from_terms({m: c for m, c in num.terms if divide_term((m, c), shared) is not None})
        if high is not num and below(num - high, from_terms(dict([shared]))):
            return _floordiv(_divide_all(high, shared), _divide_all(den, shared))
    return None


def _common_factor(a: tuple[Monomial, int], b: tuple[Monomial, int]) -> tuple[Monomial, int]:
    left, shared = list(b[0]), []
    for atom in a[0]:
        if atom in left:
            left.remove(atom)
            shared.append(atom)
    return tuple(shared), gcd(a[1], b[1])


def relu(p: IndexLike) -> Index:
    """max(p, 0)."""
    p = as_index(p)
    if nonnegative(p):
        return p
    if nonnegative(-p):
        return ZERO
    if _leading_coefficient(p) < 0:  # relu(-x)  ->  relu(x) - x
        return relu(-p) + p
    common = content(p)
    if common > 1:  # relu(g*x)  ->  g*relu(x)
        return relu(_divide_all(p, ((), common))) * common
    return of(Relu(p))


def maximum(a: IndexLike, b: IndexLike) -> Index:
    """max(a, b) := b + relu(a - b)."""
    a, b = as_index(a), as_index(b)
    return b + relu(a - b)


def minimum(a: IndexLike, b: IndexLike) -> Index:
    """min(a, b) := a - relu(a - b)."""
    a, b = as_index(a), as_index(b)
    return a - relu(a - b)


class Substitution:
    """Replaces atoms in index expressions and brings the result back to canonical form. Remembers its answers."""

    def __init__(self, mapping: Mapping[Atom, Index]) -> None:
        self.mapping = mapping
        self._atoms: dict[Atom, Index] = {}
        self._memo: dict[Index, Index] = {}

    def __call__(self, p: Index) -> Index:
        found = self._memo.get(p)
        if found is None:
            found = self._memo[p] = self._rebuild(p) if self._concerns(p) else p
        return found

    def _concerns(self, p: Index) -> bool:
        """Whether an atom in `p` is replaced, or may be by a subclass."""
        atoms = atoms_in(p)
        return not self.mapping.keys().isdisjoint(atoms) or any(isinstance(atom, Indirect) for atom in atoms)

    def each(self, shape: tuple[Index, ...]) -> tuple[Index, ...]:
        return tuple(map(self, shape))

    def _rebuild(self, p: Index) -> Index:
        if p.constant is not None:
            return p
        single = p.atom
        if single is not None:
            return self._atom(single)
        atoms = {a for m, _ in p.terms for a in m}
        new = {a: self._atom(a) for a in atoms}
        if all(new[a].atom is a for a in atoms):
            return p
        return total(product((coefficient, *map(new.__getitem__, monomial))) for monomial, coefficient in p.terms)

    def _atom(self, atom: Atom) -> Index:
        found = self._atoms.get(atom)
        if found is None:
            found = self.mapping.get(atom)
            if found is None:
                found = self._replace(atom, self._rebuild_atom(atom))
            self._atoms[atom] = found
        return found

    def _replace(self, atom: Atom, p: Index) -> Index:
        """What an atom was rebuilt to, with atoms replaced that came about: max(1 - n - m, 0) has max(2*n - 1, 0) for
        m := n. Sizes and loops in it have been replaced, and are not again: max(n - m, 0) is n - m + max(m - n, 0)."""
        new = {a for monomial, _ in p.terms for a in monomial if a in self.mapping}
        if not isinstance(atom, Loop):
            new = {a for a in new if not isinstance(a, (Symbol, Loop))}
        if not new:
            return p
        return total(product((c, *(self.mapping[a] if a in new else of(a) for a in m))) for m, c in p.terms)

    def _rebuild_atom(self, atom: Atom) -> Index:
        if isinstance(atom, Loop):
            return loop(atom.axis, self(atom.extent))
        if isinstance(atom, Counter):
            return of(Counter(atom.number, self(atom.extent)))
        if isinstance(atom, FloorDiv):
            return floordiv(self(atom.num), self(atom.den))
        if isinstance(atom, Relu):
            return relu(self(atom.arg))
        if isinstance(atom, Indirect):
            return of(self.indirect(atom))
        return of(atom)

    def indirect(self, atom: Indirect) -> Indirect:
        """An element of the same array elsewhere."""
        return Indirect(atom.array, self.each(atom.at), self(atom.size), atom.misses)
