"""Index expressions as C: int64_t arithmetic over named sizes and loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from harp.lower.loopir.loops import Buffer, Digits
from harp.trace.index.bounds import exact_quotient, nonnegative
from harp.trace.index.polynomial import Atom, FloorDiv, Index, Indirect, Loop, Monomial, Relu, from_terms, indirect_in

_SIGN = 1 << 63


Element = Callable[[Buffer, tuple[Index, ...]], str]
Keep = Callable[[Atom, str], str]


def times(a: str, b: str) -> str:
    """A product as text."""
    if a == "1" or b == "1":
        return b if a == "1" else a
    return str(int(a) * int(b)) if a.isdigit() and b.isdigit() else f"{a}*{b}"


class IndexPrinter:
    """Prints polynomials, given the name of each size and loop, and the text of an element.

    `keep` may return the name of a variable outside of the loops for the value of a quotient, a maximum or an element,
    given its text.
    """

    def __init__(self, name: Callable[[Atom], str], element: Element | None = None, keep: Keep | None = None) -> None:
        self._name = name
        self._element = element
        self._keep = keep

    def text(self, p: Index) -> str:
        """The value: a sum, without parentheses."""
        if not p.terms:
            return "0"
        ordered = sorted(p.terms, key=lambda term: (term[1] < 0, -len(term[0])))
        text = self._product(*ordered[0])
        for monomial, coefficient in ordered[1:]:
            sign = "-" if coefficient < 0 else "+"
            text += f" {sign} {self._product(monomial, abs(coefficient))}"
        return text

    def factor(self, p: Index) -> str:
        """The value, parenthesised where a product needs it."""
        text = self.text(p)
        simple = len(p.terms) <= 1 and (not p.terms or p.terms[0][1] >= 0)
        return text if simple else f"({text})"

    def condition(self, p: Index) -> str:
        """`p >= 0`, with the negative terms on the other side."""
        left = from_terms({m: c for m, c in p.terms if c > 0})
        right = from_terms({m: -c for m, c in p.terms if c < 0})
        return f"{self.text(left)} >= {self.text(right)}"

    def conditions(self, conditions: Iterable[Index]) -> str:
        """The conjunction of the conditions."""
        return " && ".join(map(self.condition, conditions)) or "1"

    def mask(self, conditions: Sequence[Index]) -> str:
        """The conjunction without branches, if no condition reads memory: loads then become masked vectors."""
        if any(map(indirect_in, conditions)):
            return self.conditions(conditions)
        return " & ".join(f"({self.condition(p)})" for p in conditions)

    def _product(self, monomial: Monomial, coefficient: int) -> str:
        factors = [self._atom(a) for a in monomial]
        if coefficient == -1 and factors:
            factors[0] = f"-{factors[0]}"
        elif coefficient != 1 or not factors:
            factors.insert(0, number(coefficient))
        return "*".join(factors)

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, (FloorDiv, Relu)):
            text = self._computed(atom)
            return text if self._keep is None else self._keep(atom, text)
        if isinstance(atom, Indirect) and isinstance(atom.array, Buffer):
            helper = "harp_indirect_or_miss" if atom.misses else "harp_indirect"
            assert self._element is not None, "sizes do not depend on data"
            text = f"{helper}({self._element(atom.array, atom.at)}, {self.text(atom.size)})"
            return text if self._keep is None else self._keep(atom, text)
        return self._name(atom)

    def _computed(self, atom: FloorDiv | Relu) -> str:
        return f"harp_relu({self.text(atom.arg)})" if isinstance(atom, Relu) else self.quotient(atom.num, atom.den)

    def quotient(self, num: Index, den: Index, positive: bool = False) -> str:
        """num // den; a bare `/` only if that is the same. `positive` says that den >= 1 is known to the caller."""
        if not nonnegative(num):
            return f"harp_floordiv_i64({self.text(num)}, {self.text(den)})"
        if positive or nonnegative(den - 1):
            divisor = self.factor(den)
            return f"({self.factor(num)}/{divisor if len(den.terms) == 1 and '*' not in divisor else f'({divisor})'})"
        return f"harp_quotient({self.text(num)}, {self.text(den)})"


def number(value: int) -> str:
    """An integer, wrapped to 64 bits like the program's arithmetic."""
    value = (value + _SIGN) % (2 * _SIGN) - _SIGN
    return "INT64_MIN" if value == -_SIGN else str(value)


def division(head: Digits) -> str:
    """The division by a radix: a bare `/` if all radices are at least 1, as where `flat` is a loop whose extent they
    divide: it runs only then."""
    if not nonnegative(head.flat):
        return "harp_floordiv_i64({0}, {1})"
    flat = head.flat.atom
    whole = flat.extent if isinstance(flat, Loop) else None
    for loop in head.loops[1:]:
        divides = whole is not None and whole.terms and exact_quotient(whole, loop.extent) is not None
        if not divides and not nonnegative(loop.extent - 1):
            return "harp_quotient({0}, {1})"
    return "{0}/{1}"
