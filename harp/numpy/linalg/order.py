"""In which order the operands of a sum of many products are multiplied in pairs: the one with the fewest operations.

    ab, bc, c -> a      (0, 1), 2 takes a*b*c + a*c operations;  0, (1, 2) takes b*c + a*b

Up to `_EXHAUSTIVE` operands the best of all orders is found by dynamic programming over sets of operands; above, pairs
are chosen one after the other, the pair that takes the fewest operations first.

Costs are polynomials in the sizes. An order that is proved to be cheaper at all sizes is taken; where no proof decides,
the sizes of the call being traced do. No guard records them, for every order gives the right numbers at all sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce as fold

import attrs

from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import ZERO, Index, of, product, symbols_in
from harp.trace.sizes.size import hint

Labels = tuple[str, ...]
# The number of an operand, or the product of two.
Order = int | tuple["Order", "Order"]

# The operands of a product as the bits of a number, and their order.
_Part = tuple[int, Order]

# Up to how many operands all orders are compared, of which there are 3**n parts.
_EXHAUSTIVE = 6


@attrs.frozen
class ProductCost:
    """A number of operations or elements: for all sizes, and in the call being traced if there is one."""

    exact: Index
    estimate: int | None

    def __add__(self, other: ProductCost) -> ProductCost:
        known = self.estimate is not None and other.estimate is not None
        return ProductCost(self.exact + other.exact, self.estimate + other.estimate if known else None)  # type: ignore[operator]

    def is_less(self, other: ProductCost) -> bool:
        """Whether it is less in the call being traced, by proof, or by its degree.

        What is proved for all sizes holds in the call at hand, too, so that proofs decide only where that does not.
        """
        if self.estimate is not None and other.estimate is not None and self.estimate != other.estimate:
            return self.estimate < other.estimate
        if self.exact is other.exact:
            return False
        is_proved = _is_proved(self.exact, other.exact)
        if is_proved is not _is_proved(other.exact, self.exact):
            return is_proved
        return _degree(self.exact) < _degree(other.exact)


_NOTHING = ProductCost(ZERO, 0)


def _is_proved(a: Index, b: Index) -> bool:
    """Whether a <= b for all sizes of at least 1. With a size of 0, no order takes long."""
    difference = b - a
    return nonnegative(Substitution({s: of(s) + 1 for s in symbols_in(difference)})(difference))


def _degree(p: Index) -> int:
    return max((len(monomial) for monomial, _ in p.terms), default=0)


class Orders:
    """The orders of one sum of products."""

    def __init__(self, terms: Sequence[Labels], out: Labels, sizes: Mapping[str, Index]) -> None:
        self._terms = [frozenset(labels) for labels in terms]
        self._out = frozenset(out)
        self._sizes = {name: _size(size) for name, size in sizes.items()}
        self._all = (1 << len(terms)) - 1
        self._kept: dict[int, frozenset[str]] = {}

    def best(self) -> Order:
        """The order with the fewest operations, or a good one of many operands."""
        return self.optimal() if len(self._terms) <= _EXHAUSTIVE else self.greedy()

    def written(self) -> Order:
        """From left to right."""
        order: Order = 0
        for k in range(1, len(self._terms)):
            order = (order, k)
        return order

    def optimal(self) -> Order:
        """The order with the fewest operations."""
        best: dict[int, tuple[ProductCost, Order]] = {1 << k: (_NOTHING, k) for k in range(len(self._terms))}
        for chosen in range(1, self._all + 1):
            for part in _parts(chosen):
                (first, left), (second, right) = best[chosen ^ part], best[part]
                cost = first + second + self._operations(chosen ^ part, part)
                if chosen not in best or cost.is_less(best[chosen][0]):
                    best[chosen] = cost, (left, right)
        return best[self._all][1]

    def greedy(self) -> Order:
        """A good order: of all pairs, the one that takes the fewest operations comes first."""
        left: list[_Part] = [(1 << k, k) for k in range(len(self._terms))]
        while len(left) > 1:
            a, b = self._cheapest([(a, b) for k, a in enumerate(left) for b in left[k + 1 :]])
            left = [entry for entry in left if entry is not a and entry is not b] + [(a[0] | b[0], (a[1], b[1]))]
        return left[0][1]

    def _cheapest(self, pairs: Sequence[tuple[_Part, _Part]]) -> tuple[_Part, _Part]:
        """The pair that takes the fewest operations."""
        costs = [self._operations(a[0], b[0]) for a, b in pairs]
        best = 0
        for k, cost in enumerate(costs):
            best = k if cost.is_less(costs[best]) else best
        return pairs[best]

    def _operations(self, a: int, b: int) -> ProductCost:
        return self._elements(self._labels(a) | self._labels(b))

    def _labels(self, chosen: int) -> frozenset[str]:
        """The labels that a product of these operands still has: those of the output and of other operands."""
        found = self._kept.get(chosen)
        if found is None:
            inside = [names for k, names in enumerate(self._terms) if chosen >> k & 1]
            outside = [names for k, names in enumerate(self._terms) if not chosen >> k & 1]
            found = self._kept[chosen] = frozenset().union(*inside) & self._out.union(*outside)
        return found

    def _elements(self, labels: frozenset[str]) -> ProductCost:
        sizes = [self._sizes[name] for name in sorted(labels)]
        known = [size.estimate for size in sizes if size.estimate is not None]
        estimate = fold(lambda a, b: a * b, known, 1) if len(known) == len(sizes) else None
        return ProductCost(product(size.exact for size in sizes), estimate)


def numbers(order: Order) -> Iterator[int]:
    """The operands of a product."""
    if isinstance(order, int):
        yield order
    else:
        for part in order:
            yield from numbers(part)


def _size(size: Index) -> ProductCost:
    """Of a size that is no constant, 0 and 1 in the call being traced say little of other calls."""
    number = hint(size)
    return ProductCost(size, number if size.constant is not None or number is None else max(number, 2))


def _parts(chosen: int) -> list[int]:
    """The ways to take a set in two, by the part without its first member; smaller and later parts come first."""
    rest = chosen & (chosen - 1)
    parts, part = [], rest
    while part:
        parts.append(part)
        part = (part - 1) & rest
    return sorted(parts, key=lambda p: (p.bit_count(), -p))
