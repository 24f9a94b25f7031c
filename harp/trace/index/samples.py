"""Sizes and positions at which index expressions have values: one that is negative somewhere is not `>= 0` everywhere.

Most proofs that fail would look at hundreds of terms first, and most are refuted by one of a few points.
"""

from __future__ import annotations

from collections.abc import Callable

from harp.trace.index.polynomial import Atom, Counter, FloorDiv, Index, Indirect, Loop, Relu, Symbol

_MOST_KEPT = 1 << 15


class _Point:
    """Sizes by their number, and each loop at one of its ends. Values of atoms are kept: they are asked for often.

    None is the value where there is no such point: a loop without iterations, or a division by 0.
    """

    def __init__(self, size: Callable[[int], int], at_end: bool) -> None:
        self._size, self._at_end = size, at_end
        self._values: dict[Atom, int | None] = {}

    def value(self, p: Index) -> int | None:
        """The value of an expression, whose atoms nest as deeply as the user's slices and reshapes."""
        total = 0
        for monomial, coefficient in p.terms:
            for atom in monomial:
                known = self._values[atom] if atom in self._values else self._keep(atom)
                if known is None:
                    return None
                coefficient *= known
            total += coefficient
        return total

    def _keep(self, atom: Atom) -> int | None:
        if len(self._values) >= _MOST_KEPT:
            self._values.clear()
        value = self._values[atom] = self._value_of(atom)
        return value

    def _value_of(self, atom: Atom) -> int | None:
        if isinstance(atom, Symbol):
            return self._size(atom.number)
        if isinstance(atom, FloorDiv):
            numerator, divisor = self.value(atom.num), self.value(atom.den)
            return None if numerator is None or divisor is None or divisor < 1 else numerator // divisor
        if isinstance(atom, Relu):
            argument = self.value(atom.arg)
            return None if argument is None else max(argument, 0)
        if isinstance(atom, (Loop, Counter, Indirect)):
            extent = self.value(atom.extent)
            return None if extent is None or extent < 1 else extent - 1 if self._at_end else 0
        return None


_POINTS = (
    _Point(lambda number: 1, at_end=True),
    _Point(lambda number: 1000 - 37 * (number % 16), at_end=False),
    _Point(lambda number: 5 + 11 * (number % 16), at_end=True),
    _Point(lambda number: 2 + number % 3, at_end=False),
)


def is_negative_somewhere(p: Index) -> bool:
    """Whether `p < 0` at one of the points. False says nothing."""
    return any((value := point.value(p)) is not None and value < 0 for point in _POINTS)
