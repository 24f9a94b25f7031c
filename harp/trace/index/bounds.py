"""What is certain about an index expression: a proof that it is never negative, and three-valued comparison.

Only intrinsic facts are used (sizes >= 0, a loop is below its extent, divisors >= 1), never guards: an expression must
simplify in the same way before and after a guard was learnt. Unknown is an answer; it becomes a guard elsewhere.
"""

from __future__ import annotations

from functools import lru_cache

from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    Atom,
    Counter,
    FloorDiv,
    Index,
    Indirect,
    Loop,
    Monomial,
    Relu,
    Symbol,
    as_index,
    content,
    depends_on,
    from_terms,
    of,
    split_linear,
)
from harp.trace.index.samples import is_negative_somewhere

# How many atoms a proof may eliminate one inside the other; proofs that succeed need few.
_DEPTH = 12
# How many terms a proof may look at, in all its branches together. The longest of 20,000 proofs that succeed in the
# tests looks at 2,600; a proof that fails could go on for exponential time.
_STEPS = 4_000
# Answers of parts of proofs, with the steps that they take. Those count again wherever the answer is used, so whether a
# proof is abandoned never depends on what was asked before.
_known: dict[tuple[Index, int], tuple[bool, int]] = {}
_MOST_KNOWN = 1 << 15
_LARGE = as_index(1 << 31)


@lru_cache(maxsize=1 << 14)
def nonnegative(p: Index, steps: int = _STEPS) -> bool:
    """Whether `p >= 0` is certain. False means unknown, not negative: also where a proof would take too many steps."""
    try:
        return _Proof(steps).nonnegative(p, _DEPTH)
    except _OutOfSteps:
        return False


class _OutOfSteps(Exception):
    """The proof was abandoned."""


class _Proof:
    """One search for a proof, with the steps that it has taken."""

    def __init__(self, most: int) -> None:
        self._steps = 0
        self._most = most

    def nonnegative(self, p: Index, depth: int) -> bool:
        """Whether p >= 0, eliminating at most `depth` atoms one inside the other. Raises _OutOfSteps."""
        before, found = self._steps, _known.get((p, depth))
        self._steps += 1 + len(p.terms) if found is None else found[1]
        if self._steps > self._most:
            raise _OutOfSteps
        if found is not None:
            return found[0]
        answer = self._search(p, depth)
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[p, depth] = answer, self._steps - before
        return answer

    def _search(self, p: Index, depth: int) -> bool:
        if all(c >= 0 and all(self._atom_nonnegative(a, depth) for a in m) for m, c in p.terms):
            return True
        if depth == 0 or not p.terms or is_negative_somewhere(p):
            return False
        return self._eliminate_loops(p, depth - 1) or self._eliminate_compound(p, depth - 1)

    def _atom_nonnegative(self, atom: Atom, depth: int) -> bool:
        if isinstance(atom, FloorDiv):
            return depth > 0 and self.nonnegative(atom.num, depth - 1) and self.nonnegative(atom.den, depth - 1)
        return isinstance(atom, (Symbol, Loop, Relu, Counter, Indirect))

    def _eliminate_loops(self, p: Index, depth: int) -> bool:
        """A polynomial that is linear in a loop, or in an element of an index array, is smallest at one of its ends.

        Those of arrays go first, for loops stand in them; then the loop with the highest number: loops made by
        splitting have extents that hold earlier loops.
        """
        atoms = {a for a in depends_on(p) if isinstance(a, (Loop, Counter, Indirect))}
        for loop in sorted(atoms, key=lambda a: a.key, reverse=True):
            parts = split_linear(p, loop)
            if parts is None:
                continue
            slope, rest = parts
            last = loop.extent - 1
            if self.nonnegative(slope, depth):
                return self._holds_inside(rest, last, depth)
            if self.nonnegative(-slope, depth):
                return self._holds_inside(inside(slope * last + rest, loop.extent), last, depth)
        return False

    def _holds_inside(self, p: Index, last: Index, depth: int) -> bool:
        """Whether `p >= 0` follows, also from `last >= 0`, which is certain where the loop runs."""
        if self.nonnegative(p, depth):
            return True
        if last.constant is not None:
            return False
        multiple, rest = divmod_polynomial(p, last)
        return multiple is not ZERO and self.nonnegative(multiple, depth) and self.nonnegative(rest, depth)

    def _eliminate_compound(self, p: Index, depth: int) -> bool:
        """Replace a floor-division or a relu by its bounds, in the direction that makes `p` smaller."""
        for monomial, _ in p.terms:
            for atom in monomial:
                if isinstance(atom, Relu) and self._without_relu(p, atom, depth):
                    return True
                if isinstance(atom, FloorDiv) and self._without_division(p, atom, depth):
                    return True
        return False

    def _without_relu(self, p: Index, atom: Relu, depth: int) -> bool:
        parts = split_linear(p, atom)
        if parts is None:
            return False
        slope, rest = parts
        if self.nonnegative(slope, depth):  # relu(x) >= x and >= 0: either bound will do
            return self.nonnegative(rest, depth) or self.nonnegative(rest + slope * atom.arg, depth)
        # Otherwise relu(x) is one of 0 and x: both must do.
        return self.nonnegative(rest, depth) and self.nonnegative(rest + slope * atom.arg, depth)

    def _without_division(self, p: Index, atom: FloorDiv, depth: int) -> bool:
        """num - den < den * (num // den) <= num, so multiply `p` by the divisor where the slope does not hold it.

        An integer is not negative if it is above -1: after the multiplication, above -den. Where the divisor may be 0
        for all that is known, only the plain bound is proved.
        """
        parts, above = split_linear(without_content(p), atom), ZERO
        if parts is None or (not self.nonnegative(atom.den - ONE, depth) and atom.den.constant is not None):
            return False
        slope, rest = parts
        quotient = exact_quotient(slope, atom.den)
        if quotient is None:
            quotient, rest, above = slope, rest * atom.den, atom.den - 1
        if self.nonnegative(quotient, depth):
            least = quotient * (atom.num - atom.den + 1) + rest
        elif self.nonnegative(-quotient, depth):
            least = quotient * atom.num + rest
        else:
            return False
        return self.nonnegative(least, depth) or (above is not ZERO and self.nonnegative(least + above, depth))


def bounded(p: Index) -> bool:
    """Whether `p` is certain to be below some number, whatever the sizes are: so is the length min(n, 3) of x[:3]."""
    return nonnegative(_LARGE - p)


def inside(p: Index, extent: Index) -> Index:
    """`p` where a loop of this extent runs, that is, where `extent >= 1`: there relu(x) is x if x is the extent."""
    atom = extent.atom
    if isinstance(atom, Relu):
        parts = split_linear(p, atom)
        if parts is not None:
            slope, rest = parts
            return slope * atom.arg + rest
    return p


def without_content(p: Index) -> Index:
    """p over the greatest number that divides all coefficients: of the same sign."""
    factor = content(p)
    return from_terms({monomial: coefficient // factor for monomial, coefficient in p.terms}) if factor > 1 else p


def exact_quotient(p: Index, by: Index) -> Index | None:
    """p / by as a polynomial, if there is one."""
    quotient, remainder = divmod_polynomial(p, by)
    return quotient if remainder is ZERO else None


def divmod_polynomial(p: Index, by: Index) -> tuple[Index, Index]:
    """(q, r) with p == q*by + r: polynomial long division by the leading term (graded order)."""
    lead_monomial, lead_coefficient = by.terms[-1]
    quotient, rest = ZERO, ZERO
    while p.terms:
        monomial, coefficient = p.terms[-1]
        step = _term_quotient(monomial, coefficient, lead_monomial, lead_coefficient)
        if step is None:
            head = from_terms({monomial: coefficient})
            rest, p = rest + head, p - head
        else:
            quotient, p = quotient + step, p - step * by
            if not lead_monomial and coefficient % lead_coefficient and p.terms and p.terms[-1][0] == monomial:
                head = from_terms({monomial: p.terms[-1][1]})
                rest, p = rest + head, p - head
    return quotient, rest


def _term_quotient(monomial: Monomial, coefficient: int, by: Monomial, by_coefficient: int) -> Index | None:
    """The part of a term that the divisor's leading term takes away, or None."""
    left = list(monomial)
    for atom in by:
        if atom not in left:
            return None
        left.remove(atom)
    # A sized term towards zero, so that (-n)//4 stays as it is; the number at the end downwards, into 0..by-1.
    towards_zero = abs(coefficient) // abs(by_coefficient) * (1 if (coefficient < 0) == (by_coefficient < 0) else -1)
    steps = coefficient // by_coefficient if not monomial else towards_zero
    if by and coefficient % by_coefficient:
        return None
    return from_terms({tuple(left): steps}) if steps else None


def less_equal(a: Index, b: Index) -> bool | None:
    """a <= b: True, False, or None for unknown."""
    return at_least_zero(b - a)


def at_least_zero(p: Index) -> bool | None:
    """0 <= p: True, False, or None for unknown."""
    if nonnegative(p):
        return True
    return False if nonnegative(-p - 1) else None


def is_zero(p: Index) -> bool | None:
    """0 == p: True, False, or None for unknown."""
    if p is ZERO:
        return True
    if is_between_multiples(p):
        return False
    return False if nonnegative(p - 1) or nonnegative(-p - 1) else None


def is_between_multiples(p: Index) -> bool:
    """Whether a number that divides all terms but the constant does not divide that: 2*n + 1 is never 0."""
    constant = dict(p.terms).get((), 0)
    varying = content(p - constant)
    return constant != 0 if varying == 0 else constant % varying != 0


def below(p: Index, bound: Index) -> bool:
    """Whether `0 <= p < bound` is certain."""
    return nonnegative(p) and nonnegative(bound - 1 - p)


def as_symbol(p: Index) -> Symbol | None:
    """The size that `p` is, if it is one."""
    atom = p.atom
    return atom if isinstance(atom, Symbol) else None


__all__ = [
    "as_symbol",
    "at_least_zero",
    "below",
    "divmod_polynomial",
    "exact_quotient",
    "inside",
    "is_between_multiples",
    "is_zero",
    "less_equal",
    "nonnegative",
    "of",
]
