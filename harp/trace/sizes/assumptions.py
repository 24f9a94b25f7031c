"""What is at least 0 beyond intrinsic facts: by the guards of a trace, by the conditions of a view.

Of several bounds for one polynomial, which differ in their constants only, the strongest is kept: a loop over the rows
of an array asks n > 0, n > 1, n > 2, ...
"""

from __future__ import annotations

from collections.abc import Iterable

from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Symbol, symbols_in

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
