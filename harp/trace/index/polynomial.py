"""Exact integers about sizes: canonical polynomials, so that equality is identity.

    index = sum of coefficient * product of atoms          coefficients are Python integers: nothing wraps
    atom  = Symbol                a size, >= 0
          | Loop(axis, extent)    0 <= value < extent
          | FloorDiv(num, den)    rounds down; x // 0 is 0, for extents are evaluated outside the loops that make
                                  a divisor positive
          | Relu(arg)             max(arg, 0)
          | Counter(number, extent)  0 <= value < extent: the number of the iteration of a loop round this one
          | Indirect(array, at, size)   an element of an integer array, as a position along an axis
          Only lowering makes the last two.

There is no remainder and no maximum: `a % b := a - b*(a//b)` and `max(a, b) := b + relu(a - b)`, which makes many
different spellings one object. Sort keys are structural (never `id` or `hash`), so the order is the same in every
process. Element values never go through this file: floats do not associate and int32 wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import gcd
from typing import Generic, Protocol, TypeVar

import attrs

from harp.trace.interning import Interned, InternedBase

Key = tuple[object, ...]
Monomial = tuple["Atom", ...]
T = TypeVar("T")


class Atom(InternedBase, metaclass=Interned):
    """What a polynomial is made of. `key` orders atoms in the same way in every process."""

    __slots__ = ()
    key: Key


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Symbol(Atom):
    """A size: a non-negative integer known at the call. `scope` keeps the sizes of different traces apart."""

    scope: int
    number: int
    name: str
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (0, self.number, self.scope)

    def __repr__(self) -> str:
        return self.name


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Loop(Atom):
    """The position along an axis (of a graph node) or of a loop (of a loop nest), below `extent`."""

    axis: int
    extent: Index
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (1, self.axis, self.extent.key)

    def __repr__(self) -> str:
        return f"i{self.axis}"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class FloorDiv(Atom):
    """num // den, in lowest terms; made only by `harp.trace.index.division`."""

    num: Index
    den: Index
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (2, self.num.key, self.den.key)

    def __repr__(self) -> str:
        return f"{_group(self.num)}//{_group(self.den)}"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Relu(Atom):
    """max(arg, 0); made only by `harp.trace.index.division`."""

    arg: Index
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (3, self.arg.key)

    def __repr__(self) -> str:
        return f"max({self.arg}, 0)"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Counter(Atom):
    """The number of an iteration, below `extent`, in what is lowered of one step; `number` tells loops apart."""

    number: int
    extent: Index
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (5, self.number, self.extent.key)

    def __repr__(self) -> str:
        return f"t{self.number}"


class Named(Protocol):
    """An array in memory: `name` orders it among others."""

    @property
    def name(self) -> str: ...


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Indirect(Atom):
    """The element array[at] as a position along an axis of this size; negative ones count from the end.

    Outside the axis it is the nearest position, so that 0 <= value < size wherever it is evaluated, for then the axis
    has an element; or, if `misses`, it is `size` itself, and 0 <= value <= size.
    """

    array: Named
    at: tuple[Index, ...]
    size: Index
    misses: bool = False
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return (4, self.array.name, tuple(p.key for p in self.at), self.size.key, self.misses)

    @property
    def extent(self) -> Index:
        """The value is below it."""
        return self.size + 1 if self.misses else self.size

    def __repr__(self) -> str:
        return f"{self.array.name}[{', '.join(map(repr, self.at))}]"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Index(InternedBase, metaclass=Interned):
    """A canonical polynomial. Equal polynomials are the same object: compare with `is`."""

    terms: tuple[tuple[Monomial, int], ...]
    key: Key = attrs.field(init=False, repr=False)

    @key.default
    def _key(self) -> Key:
        return tuple((tuple(a.key for a in m), c) for m, c in self.terms)

    @property
    def constant(self) -> int | None:
        """The value, if this is a number."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def atom(self) -> Atom | None:
        """The atom, if this is a single one."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1:
                return monomial[0]
        return None

    def __add__(self, other: IndexLike) -> Index:
        other = as_index(other)
        if not other.terms:
            return self
        if not self.terms:
            return other
        return _sum(self, other)

    def __mul__(self, other: IndexLike) -> Index:
        other = as_index(other)
        if other is ONE or self is ZERO:
            return self
        if self is ONE or other is ZERO:
            return other
        return _product(self, other)

    def __neg__(self) -> Index:
        return Index(tuple((m, -c) for m, c in self.terms))

    def __sub__(self, other: IndexLike) -> Index:
        return self + -as_index(other)

    def __rsub__(self, other: IndexLike) -> Index:
        return as_index(other) + -self

    __radd__ = __add__
    __rmul__ = __mul__

    def __repr__(self) -> str:
        if not self.terms:
            return "0"
        ordered = sorted(self.terms, key=lambda term: (-len(term[0]), term[1] < 0))
        return "".join(_signed(m, c, first=k == 0) for k, (m, c) in enumerate(ordered))


IndexLike = Index | int


@lru_cache(maxsize=1 << 14)
def _sum(a: Index, b: Index) -> Index:
    return total((a, b))


def total(summands: Iterable[Index]) -> Index:
    """The sum. Many are added at once, since each polynomial is sorted."""
    sums: dict[Monomial, int] = {}
    for p in summands:
        for monomial, coefficient in p.terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
    return from_terms(sums)


@lru_cache(maxsize=1 << 14)
def _product(a: Index, b: Index) -> Index:
    sums: dict[Monomial, int] = {}
    for m1, c1 in a.terms:
        for m2, c2 in b.terms:
            product = tuple(sorted(m1 + m2, key=_atom_key)) if m1 and m2 else m1 or m2
            sums[product] = sums.get(product, 0) + c1 * c2
    return from_terms(sums)


def _atom_key(atom: Atom) -> Key:
    return atom.key


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[Key]]:
    return len(term[0]), [a.key for a in term[0]]


def from_terms(terms: Mapping[Monomial, int]) -> Index:
    """The polynomial with these coefficients; monomials must be sorted already."""
    kept = [(m, c) for m, c in terms.items() if c]
    if len(kept) > 1:
        kept.sort(key=_term_key)
    return Index(tuple(kept))


def as_index(value: IndexLike) -> Index:
    """An integer as a polynomial."""
    if isinstance(value, Index):
        return value
    number = int(value)  # True and NumPy integers would wrap, print otherwise, and be interned
    return Index((((), number),)) if number else ZERO


@lru_cache(maxsize=1 << 12)
def of(atom: Atom) -> Index:
    """An atom as a polynomial."""
    return Index((((atom,), 1),))


ZERO = Index(())
ONE = Index((((), 1),))


def loop(axis: int, extent: Index) -> Index:
    """The position along an axis; along an axis of one element it is 0."""
    return ZERO if extent is ONE else of(Loop(axis, extent))


def product(factors: Iterable[IndexLike]) -> Index:
    result = ONE
    for factor in factors:
        result = result * factor
    return result


def content(p: Index) -> int:
    """The greatest common divisor of the coefficients (0 for zero)."""
    return gcd(*(c for _, c in p.terms))


def divide_term(term: tuple[Monomial, int], by: tuple[Monomial, int]) -> tuple[Monomial, int] | None:
    """term / by if it comes out even, else None."""
    (monomial, coefficient), (den_monomial, den_coefficient) = term, by
    if coefficient % den_coefficient:
        return None
    rest = list(monomial)
    for atom in den_monomial:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest), coefficient // den_coefficient


def split_linear(p: Index, atom: Atom) -> tuple[Index, Index] | None:
    """(a, b) with p == a*atom + b and neither holding the atom, also not inside other atoms; else None."""
    slope: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in p.terms:
        count = monomial.count(atom)
        others = tuple(a for a in monomial if a is not atom) if count else monomial
        if count > 1 or any(occurs(atom, a) for a in others):
            return None
        (slope if count else rest)[others] = coefficient
    return from_terms(slope), from_terms(rest)


def children(atom: Atom) -> tuple[Index, ...]:
    """The polynomials inside an atom."""
    if isinstance(atom, FloorDiv):
        return (atom.num, atom.den)
    if isinstance(atom, Relu):
        return (atom.arg,)
    if isinstance(atom, (Loop, Counter)):
        return (atom.extent,)
    if isinstance(atom, Indirect):
        return (*atom.at, atom.size)
    return ()


def occurs(needle: Atom, hay: Atom) -> bool:
    """Whether the value of `hay` depends on `needle` (a loop's extent is not its value)."""
    return needle is hay or (isinstance(hay, (FloorDiv, Relu, Indirect)) and needle in _below(hay))


@lru_cache(maxsize=1 << 14)
def _below(atom: Atom) -> frozenset[Atom]:
    """The atoms on which the value of a compound one depends."""
    return frozenset[Atom]().union(*(depends_on(p) for p in children(atom)))


def value_atoms(p: Index) -> Iterator[Atom]:
    """All atoms that the value of `p` depends on, nested ones too; a loop's extent is not entered."""
    for monomial, _ in p.terms:
        for atom in monomial:
            yield atom
            if isinstance(atom, (FloorDiv, Relu, Indirect)):
                for child in children(atom):
                    yield from value_atoms(child)


@lru_cache(maxsize=1 << 14)
def atoms_in(p: Index) -> frozenset[Atom]:
    """All atoms in `p`, those in the extents of its loops included."""
    direct = {atom for monomial, _ in p.terms for atom in monomial}
    return frozenset(direct).union(*(atoms_in(child) for atom in direct for child in children(atom)))


@lru_cache(maxsize=1 << 14)
@lru_cache(maxsize=1 << 14)
def loops_in(p: Index) -> frozenset[Loop]:
    """The loops on which the value of `p` depends."""
    return frozenset(a for a in depends_on(p) if isinstance(a, Loop))


def depends_on(p: Index) -> set[Atom]:
    """The atoms on which the value of `p` depends, each once."""
    direct = {atom for monomial, _ in p.terms for atom in monomial}
    return direct.union(*(_below(atom) for atom in direct if isinstance(atom, (FloorDiv, Relu, Indirect))))


@lru_cache(maxsize=1 << 14)
def indirect_in(p: Index) -> frozenset[Indirect]:
    """The elements of index arrays on which the value of `p` depends."""
    return frozenset(a for a in value_atoms(p) if isinstance(a, Indirect))


def symbols_in(p: Index) -> set[Symbol]:
    """The sizes in `p`, those in the extents of its loops included."""
    return {atom for atom in atoms_in(p) if isinstance(atom, Symbol)}


@attrs.frozen
class Fold(Generic[T]):
    """A meaning of index expressions: numbers, arrays, ranges, text. `fold(p)` is what `p` is there.

    A term is a coefficient times factors, and a sum has terms. `leaf` is asked for sizes, loops and elements of index
    arrays.

    >>> n = of(Symbol(0, 0, "n"))
    >>> Fold(" + ".join, lambda c, factors: "*".join([str(c), *factors]), "{}//{}".format, "max({}, 0)".format, repr)(
    ...     n * 3
    ... )
    '3*n'
    """

    total: Callable[[list[T]], T]
    term: Callable[[int, list[T]], T]
    quotient: Callable[[T, T], T]
    positive: Callable[[T], T]
    leaf: Callable[[Atom], T]

    def __call__(self, p: Index) -> T:
        return self.total(
            [self.term(coefficient, [self._atom(a) for a in monomial]) for monomial, coefficient in p.terms]
        )

    def _atom(self, atom: Atom) -> T:
        if isinstance(atom, FloorDiv):
            return self.quotient(self(atom.num), self(atom.den))
        if isinstance(atom, Relu):
            return self.positive(self(atom.arg))
        return self.leaf(atom)


def evaluate(p: Index, value: Callable[[Atom], int]) -> int:
    """The number that `p` stands for, given the values of its sizes and loops: the fold that traces are full of."""
    total = 0
    for monomial, coefficient in p.terms:
        for atom in monomial:
            coefficient *= _evaluate_atom(atom, value)
        total += coefficient
    return total


def _evaluate_atom(atom: Atom, value: Callable[[Atom], int]) -> int:
    if isinstance(atom, FloorDiv):
        den = evaluate(atom.den, value)
        return evaluate(atom.num, value) // den if den else 0
    if isinstance(atom, Relu):
        return max(evaluate(atom.arg, value), 0)
    return value(atom)


def _group(p: Index) -> str:
    return repr(p) if p.constant is not None or p.atom is not None else f"({p})"


def _signed(monomial: Monomial, coefficient: int, first: bool) -> str:
    factors = [f"({a})" if isinstance(a, FloorDiv) else repr(a) for a in monomial]
    if abs(coefficient) != 1 or not factors:
        factors.insert(0, str(abs(coefficient)))
    sign = "-" if coefficient < 0 else "+"
    text = "*".join(factors)
    if first:
        return f"-{text}" if coefficient < 0 else text
    return f" {sign} {text}"


Shape = tuple[Index, ...]  # the sizes of an array's axes
