"""The sizes of one outermost trace: what they are called, what the call at hand makes them, what was learnt of them.

A question about sizes is answered by proof where there is one, from intrinsic facts or from earlier guards. Where there
is none, the call being traced answers it (its `hints`), and the answer becomes a guard that later calls check, in
order. A fact is never used without a guard.

An equality is first reduced to the strongest simple facts that imply it (`harp.trace.sizes.equations`): factors that
all terms share are cancelled, so that 64*n == n*m becomes m == 64. Each is then solved for one of its atoms. The result
is an idempotent substitution: every shape is read through it, and at the end of the trace the whole graph is rebuilt
with it, so that equal sizes are one symbol. An equality that has no solution yet is tried again when more is known.

Of several lower bounds for one polynomial, which differ in their constants only, the strongest is kept: a loop over the
rows of an array asks n > 0, n > 1, n > 2, ...
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import NamedTuple

from harp.trace.eval.intervals import Interval
from harp.trace.graph.node import Node
from harp.trace.index import bounds
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution, floordiv
from harp.trace.index.polynomial import (
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Monomial,
    Relu,
    Symbol,
    evaluate,
    of,
    product,
    split_linear,
    symbols_in,
    value_atoms,
)
from harp.trace.sizes.equations import Facts, take_apart
from harp.trace.sizes.integer_checks import IntegerCheck
from harp.trace.source_locations import Site

# There may be many of them for one question, and a proof that is missed costs no more than another guard.
_STEPS = 100


class Assumptions:
    """A set of facts `p >= 0`."""

    def __init__(self, facts: Iterable[Index] = ()) -> None:
        self._lowest: dict[Index, int] = {}  # from a polynomial without constant to what it is at least
        self._sizes: dict[Index, set[Symbol]] = {}
        for p in facts:
            self.add(p)

    def add(self, p: Index) -> None:
        """p >= 0 holds."""
        varying, constant = _without_constant(p)
        if varying not in self._lowest:
            self._sizes[varying] = symbols_in(varying)
        self._lowest[varying] = max(-constant, self._lowest.get(varying, -constant))

    def imply(self, p: Index) -> bool:
        """Whether p >= 0 follows from one of them."""
        varying, constant = _without_constant(p)
        if self._lowest.get(varying, -constant - 1) >= -constant:
            return True
        sizes = symbols_in(p)
        return any(
            nonnegative(p - known + lowest, _STEPS)
            for known, lowest in self._lowest.items()
            if known is not varying and not sizes.isdisjoint(self._sizes[known])
        )

    def substituted(self, sizes: Substitution) -> Assumptions:
        """The same facts with other sizes."""
        return Assumptions(sizes(known) - lowest for known, lowest in self._lowest.items())


def _without_constant(p: Index) -> tuple[Index, int]:
    """(q, c) with p == q + c, where q has no constant."""
    if p.terms and not p.terms[0][0]:  # the constant comes first
        return Index(p.terms[1:]), p.terms[0][1]
    return p, 0


class Relation(enum.Enum):
    """The three questions; everything else is one of them, or its negation."""

    ZERO = "== 0"
    NONZERO = "!= 0"
    NONNEGATIVE = ">= 0"


class Guard(NamedTuple):
    """A fact that each call must share. `index` is over the sizes as they were known when it was learnt."""

    relation: Relation
    index: Index  # type: ignore[assignment]  # hides a method of tuples
    reason: str

    def holds(self, value: Callable[[Atom], int]) -> bool:
        number = evaluate(self.index, value)
        if self.relation is Relation.NONNEGATIVE:
            return number >= 0
        return (number == 0) is (self.relation is Relation.ZERO)

    @property
    def bounds(self) -> tuple[Index, ...]:
        """What is at least 0 by this guard."""
        if self.relation is Relation.ZERO:
            return self.index, -self.index
        return (self.index,) if self.relation is Relation.NONNEGATIVE else ()

    def __str__(self) -> str:
        return f"{self.index} {self.relation.value}  ({self.reason})"


_scopes = count(1)
_MOST_BYTES = 2**63 - 1


class Scope:
    """Sizes, hints, guards, substitution of one outermost trace. `concrete` says that there is a call at hand."""

    def __init__(self, concrete: bool = True) -> None:
        self.number = next(_scopes)
        self.concrete = concrete
        self.symbols: list[Symbol] = []
        self.hints: dict[Atom, int] = {}
        self.origins: dict[Symbol, str] = {}
        self.quotients: list[tuple[Symbol, Index]] = []
        self.guards: list[Guard] = []
        self.pins: list[str] = []  # sizes whose numbers were asked for, and where
        self.promotion: tuple[str, Site] | None = None  # where float32 first became float64, and by which operand
        # Of the arrays that the trace is given: shape and bytes of an element.
        self.arrays: list[tuple[tuple[Index, ...], int]] = []
        self.integer_checks: dict[tuple[Node, Interval], IntegerCheck] = {}  # of Python integers among the arguments
        # Of the numbers of iterations, by the inputs that they are: how many there are.
        self.counters: dict[int, Index] = {}
        self._facts: set[tuple[Relation, Index]] = set()  # what the guards say, of the sizes as they are known now
        self._assumed = Assumptions()  # of these, what is at least 0
        self._unsolved: list[tuple[Index, str]] = []
        self._solved: dict[Atom, Index] = {}
        self._resolve = Substitution(self._solved)

    def symbol(self, name: str, origin: str, hint: int | None) -> Symbol:
        """A new size; `origin` is how errors call it, for example "x.shape[0]"."""
        taken = {s.name for s in self.symbols}
        unique = name if name not in taken else f"{name}_{len(self.symbols)}"
        fresh = Symbol(self.number, len(self.symbols), unique)
        self.symbols.append(fresh)
        self.origins[fresh] = origin
        if hint is not None:
            self.hints[fresh] = hint
        return fresh

    def limits(self) -> Iterator[tuple[tuple[Monomial, int], int]]:
        """Products of sizes, as terms, of which no part exceeds a number: no array has more bytes than an int64."""
        for shape, itemsize in self.arrays:
            whole = self.resolve(product(shape))
            if len(whole.terms) == 1:
                yield whole.terms[0], _MOST_BYTES // itemsize

    @property
    def substitution(self) -> Substitution:
        return self._resolve

    def resolve(self, p: Index) -> Index:
        """`p` with everything that was learnt of equal sizes put in."""
        return self._resolve(p) if self._solved else p

    def hint(self, p: Index) -> int | None:
        """The value of `p` in the call being traced."""
        if not self.concrete:
            return p.constant
        return evaluate(p, self.hints.__getitem__)

    def decide(self, relation: Relation, p: Index, reason: str) -> bool | None:
        """Whether `p` stands in this relation: by proof, by an earlier guard, or by a new one. None: no way to know."""
        p = self.resolve(p)
        answer = self.known(relation, p)
        if answer is not None:
            return answer
        value = self.hint(p)
        if value is None:
            return None
        if relation is Relation.NONNEGATIVE:
            self.guard(relation, p if value >= 0 else -p - 1, reason)
            return value >= 0
        if value == 0:
            self.equate(p, reason)
        else:
            self.guard(Relation.NONZERO, p, reason)
        return (value == 0) is (relation is Relation.ZERO)

    def known(self, relation: Relation, p: Index) -> bool | None:
        """Whether `p` stands in this relation, by proof or by an earlier guard. None: nothing shows it yet."""
        p = self.resolve(p)
        if relation is Relation.NONNEGATIVE:
            return self._known_sign(p)
        zero = True if p is ZERO or self.has_equation(p) else False if self._is_never_zero(p) else None
        return None if zero is None else zero is (relation is Relation.ZERO)

    def has_equation(self, p: Index) -> bool:
        """Whether a guard says that `p == 0`, solved or not."""
        return (Relation.ZERO, p) in self._facts or (Relation.ZERO, -p) in self._facts

    def _known_sign(self, p: Index) -> bool | None:
        value = self.hint(p)
        if (value is None or value >= 0) and self._is_certain(p):  # nothing proves what is not so in the call at hand
            return True
        return False if (value is None or value < 0) and self._is_certain(-p - 1) else None

    def _is_never_zero(self, p: Index) -> bool:
        """Whether p is above 0 or below it, or never a multiple of what divides its terms."""
        value = self.hint(p)
        if value == 0:
            return False
        ways = (p, -p) if value is None else (p,) if value > 0 else (-p,)  # as above
        if any((Relation.NONZERO, q) in self._facts for q in (p, -p)) or bounds.is_between_multiples(p):
            return True
        return any(self._is_certain(q - 1) for q in ways)

    def _is_certain(self, p: Index) -> bool:
        """Whether p >= 0, by intrinsic facts or by a guard."""
        return bounds.nonnegative(p) or self._assumed.imply(p)

    def guard(self, relation: Relation, p: Index, reason: str) -> None:
        """Record a fact that every call must share, as it is: an equality is not solved."""
        if relation is Relation.NONZERO and bounds.nonnegative(p):
            relation, p = Relation.NONNEGATIVE, p - 1
        self._facts.add((relation, p))
        self.guards.append(Guard(relation, p, reason))
        for q in self.guards[-1].bounds:
            self._assumed.add(q)

    def order(self, p: Index, reason: str) -> None:
        """Guard `0 <= p` if the call at hand shows it, and solve it: m - p is at most m, so  m := (m - p) + t  for a
        new size t. That m reaches so far is then seen from the expressions alone, as lowering must."""
        p = self.resolve(p)
        value = self.hint(p)
        if not self.concrete or value is None or value < 0 or self._is_certain(p):
            return
        sizes = sorted(symbols_in(p), key=lambda s: s.number, reverse=True)
        for size in sizes:
            least = of(size) - p
            if size not in symbols_in(least) and bounds.nonnegative(least):
                self.guard(Relation.NONNEGATIVE, p, reason)
                t = self.symbol(f"{size.name}_r", f"what is left of {self.origins[size]}", value)
                self.quotients.append((t, p))
                self._substitute(size, least + of(t), reason)
                return

    def equate(self, p: Index, reason: str, guarded: bool = False) -> None:
        """Record `0 == p`, which the call at hand shows or the declarations demand, and solve it.

        `guarded` says that the guards imply it.
        """
        p = self.resolve(p)
        if p is ZERO:
            return
        facts = take_apart(p, self._hinted) if self.concrete else Facts((p,))
        for q in facts.zeros:
            if q is p:
                self._solve(q, reason, guarded)
            else:
                self.equate(q, reason, guarded and not facts.stronger)

    def _hinted(self, p: Index) -> int:
        return evaluate(p, self.hints.__getitem__)

    def _solve(self, p: Index, reason: str, guarded: bool) -> None:
        if not guarded:
            self.guard(Relation.ZERO, p, reason)
        division = self._divisibility(p)
        solution = self._newest_size(p) or self._any_atom(p) if division is None else self._multiple(division)
        if solution is None:
            self._unsolved.append((p, reason))
        else:
            self._substitute(*solution, reason)

    def is_solvable(self, p: Index) -> bool:
        """Whether `0 == p`, reduced to simple facts, would be solved."""
        p = self.resolve(p)
        return all(
            q is ZERO
            or (q is not p and self.is_solvable(q))
            or self._divisibility(q) is not None
            or self._newest_size(q) is not None
            or self._any_atom(q) is not None
            for q in take_apart(p, self._hinted).zeros
        )

    def _substitute(self, atom: Atom, value: Index, reason: str) -> None:
        """Put `value` for the atom everywhere. What is known of m//2 is then known of n//2, for m := n."""
        step = Substitution({atom: value})
        learnt: list[tuple[Index, str]] = []
        for known, answer in list(self._solved.items()):
            self._solved[known] = step(answer)
            image = step(of(known))
            if image.atom is not known:
                learnt.append((image - self._solved[known], reason))
        self._solved[atom] = value
        self._resolve = Substitution(self._solved)
        self._facts = {(relation, step(p)) for relation, p in self._facts}
        self._assumed = self._assumed.substituted(step)
        learnt += [known for known in self._unsolved if step(known[0]) is not known[0]]
        self._unsolved = [known for known in self._unsolved if step(known[0]) is known[0]]
        for p, why in learnt:
            self.equate(p, why, guarded=True)

    def _divisibility(self, p: Index) -> FloorDiv | None:
        """The x//k of x - k*(x//k) == 0, for a size x."""
        for monomial, _ in p.terms:
            for atom in monomial:
                if isinstance(atom, FloorDiv) and isinstance(atom.num.atom, Symbol):
                    remainder = atom.num - atom.den * of(atom)
                    if (p is remainder or p is -remainder) and atom.num.atom not in symbols_in(atom.den):
                        return atom
        return None

    def _multiple(self, division: FloorDiv) -> tuple[Atom, Index]:
        """x := k*t with a new size t, so that splitting and merging an axis cancel."""
        x = division.num.atom
        assert isinstance(x, Symbol)
        return x, division.den * self._quotient(x, division)

    def _quotient(self, x: Symbol, division: FloorDiv) -> Index:
        hint = self.hint(of(division))
        t = self.symbol(f"{x.name}_q", f"{self.origins[x]} // {division.den}", hint)
        self.quotients.append((t, floordiv(division.num, division.den)))
        return of(t)

    def _newest_size(self, p: Index) -> tuple[Atom, Index] | None:
        sizes = sorted((s for s in symbols_in(p)), key=lambda s: s.number, reverse=True)
        return next((s for s in (self._solve_for(p, size) for size in sizes) if s is not None), None)

    def _any_atom(self, p: Index) -> tuple[Atom, Index] | None:
        atoms = [a for a in value_atoms(p) if isinstance(a, (FloorDiv, Relu))]
        return next((s for s in (self._solve_for(p, atom) for atom in atoms) if s is not None), None)

    def _solve_for(self, p: Index, atom: Atom) -> tuple[Atom, Index] | None:
        """p == +-atom + rest with the atom not in the rest  ->  atom := -+rest."""
        parts = split_linear(p, atom)
        if parts is None or parts[0].constant not in (1, -1):
            return None
        slope, rest = parts
        return atom, -rest if slope.constant == 1 else rest

    def describe(self, p: Index) -> str:
        """An expression in the user's terms, with its value in the call at hand."""
        named = (s for s in self.symbols if self.resolve(of(s)) is p)
        own = next((s for s in self.symbols if p.atom is s), None) or next(named, None)
        text = repr(p) if own is None else self.origins[own]
        value = self.hint(p) if self.concrete else None
        return text if p.constant is not None or value is None else f"{text} = {value}"
