"""The work of a statement: as a C expression of the sizes of a call, and as a bound for all sizes.

Work is counted in scalar operations, approximately. The runtime uses the C expression to decide whether threads pay
off, and how many steps of a loop run between two checks for interrupts; the bound decides which loops check for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from math import ceil, inf, prod
from typing import NamedTuple

from harp.backends.c_family.statements import STEPS
from harp.lower.cost_model import count_operations
from harp.lower.loopir.loops import (
    PRODUCTS,
    Alloc,
    Digits,
    For,
    ForeignCall,
    If,
    Let,
    LibraryCall,
    LocalCall,
    Nest,
    Repeat,
    Row,
    Seq,
    Stmt,
    Store,
    is_endless,
    parts,
    walk,
)
from harp.lower.loopir.program import Program
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import (
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Indirect,
    Loop,
    Relu,
    as_index,
    evaluate,
    indirect_in,
    loops_in,
    occurs,
    of,
)
from harp.trace.scalar.expr import Apply, Expr
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import INFO

# Without optimisation a function, which has at least such a weight, takes as long as so many times its weight.
_LEAST_OF_A_FUNCTION, _FUNCTION = 12, 10
# Operations of a point of a user's kernel that does not say how many it has.
POINT = 16


class Bound(NamedTuple):
    """At most about factor * n**degree for sizes n: negative terms and terms of lower degree are left out."""

    factor: float
    degree: int = 0

    def plus(self, other: Bound) -> Bound:
        """The bound of a sum."""
        low, high = sorted((self, other), key=lambda bound: bound.degree)
        return high if low.degree < high.degree else Bound(low.factor + high.factor, high.degree)

    def times(self, other: Bound) -> Bound:
        """The bound of a product."""
        return Bound(self.factor * other.factor, self.degree + other.degree)


@lru_cache(maxsize=1 << 12)
def bound_of(p: Index) -> Bound:
    """A bound on an index expression."""
    for monomial, coefficient in p.terms:
        if coefficient == -1 and len(monomial) == 1 and isinstance(monomial[0], Relu):
            most = p + of(monomial[0]) - monomial[0].arg
            return bound_of(most)  # c + a - max(a, 0) <= c: the length of a tile
    total = Bound(0.0)
    for monomial, coefficient in p.terms:
        rounded = next((atom for atom in monomial if isinstance(atom, FloorDiv)), None) if coefficient < 0 else None
        if coefficient > 0 or rounded:
            term = Bound(float(abs(coefficient)))
            for atom in monomial:
                term = term.times(_rounded_up(atom) if atom is rounded else _bound_of_atom(atom))
            total = total.plus(term)
    return total


def _rounded_up(atom: FloorDiv) -> Bound:
    """A bound on -(a // b), such as the tiles of a row of n elements: -(-n // 4096)."""
    return _bound_of_atom(FloorDiv(-atom.num, atom.den)).plus(Bound(1.0))


def _bound_of_atom(atom: Atom) -> Bound:
    if isinstance(atom, Loop):
        return bound_of(atom.extent)
    if isinstance(atom, Indirect):
        return bound_of(atom.size)
    if isinstance(atom, Relu):
        return bound_of(atom.arg)
    if isinstance(atom, FloorDiv):
        whole = bound_of(atom.num)
        return Bound(whole.factor / (atom.den.constant or 1), whole.degree)
    return Bound(1.0, 1)


class Amount(NamedTuple):
    """A number, a product in C that it is a multiple of, and a bound on the value."""

    number: float
    product: str
    bound: Bound

    @property
    def text(self) -> str:
        """The amount as a C expression."""
        if self.number == 1.0 and self.product:
            return self.product
        return "*".join([*[self.product] * bool(self.product), repr(self.number)])


class Costs(NamedTuple):
    """What a value costs, in operations; a multiply-add of a matrix product, and an element of a row that is sorted or
    searched."""

    value: Callable[[Expr], int]
    product: Amount
    row: int


def _plain_operations(value: Expr) -> int:
    """Operations that take as long as a value without optimisation: a sine takes some 500 ns."""
    weights = [INFO[e.op].weight for e in walk_expr((value,)) if isinstance(e, Apply)]
    return sum(weight * _FUNCTION if weight >= _LEAST_OF_A_FUNCTION else max(weight, 1) for weight in weights)


# With optimisation the operands of products are in registers, and functions are computed in vectors.
_OPTIMISED = Costs(count_operations, Amount(1 / 8, "", Bound(1 / 8)), 32)
# Without it each operation takes some 4 ns, and a multiply-add 10.
_PLAIN = Costs(_plain_operations, Amount(2.5, "", Bound(2.5)), 128)


def no_text(p: Index) -> str:
    """For those who ask for the bound only."""
    return ""


class Work:
    """The work of statements. `text` prints an index expression by names that are valid where the work is printed.

    Loops and lets inside of a statement are not valid there: an extent that they change is taken at its maximum.
    """

    def __init__(
        self, text: Callable[[Index], str], bound: Callable[[Index], Bound] = bound_of, costs: Costs = _OPTIMISED
    ) -> None:
        self._text, self._bound, self._costs = text, bound, costs

    def of(self, stmt: Stmt, inside: tuple[Loop, ...] = ()) -> Amount:
        """The work of a statement inside of these loops."""
        return self._amount(stmt, {}, inside)

    def _amount(self, stmt: Stmt, lets: dict[Atom, Index], inside: tuple[Loop, ...]) -> Amount:
        if isinstance(stmt, Store):
            return _fixed(1 + self._costs.value(stmt.value))
        if isinstance(stmt, Nest):
            return self._nest(stmt, lets, inside)
        if isinstance(stmt, Row):
            return _times([self._extent(stmt.lane.extent, lets, inside), _fixed(self._costs.row)])
        if isinstance(stmt, LibraryCall) and stmt.function is not None:
            return self._amount(stmt.body, lets, inside)
        if isinstance(stmt, LibraryCall):
            extents = (self._extent(loop.extent, lets, inside) for loop in stmt.loops)
            return _times([*extents, *[self._costs.product] * (stmt.routine in PRODUCTS)])
        if isinstance(stmt, (Alloc, LocalCall)):
            return self._amount(stmt.body, lets, inside)
        if isinstance(stmt, Repeat):
            steps = as_index(STEPS) if is_endless(stmt) else stmt.loop.extent
            body = self._amount(stmt.body, lets, (*inside, stmt.loop))
            return _times([self._extent(steps, lets, inside), body])
        if isinstance(stmt, (Seq, If)):
            return _sum([self._amount(part, lets, inside) for part in parts(stmt)])
        if isinstance(stmt, ForeignCall) and isinstance(stmt.routine, KernelSource):
            points = (*stmt.calls, *stmt.sizes[: len(stmt.routine.grid)])
            return _times([*(self._extent(p, lets, inside) for p in points), _fixed(stmt.routine.operations or POINT)])
        if isinstance(stmt, ForeignCall) and isinstance(stmt.routine, MatrixFunction):
            factor, sizes = stmt.routine.operations([b.shape[len(stmt.calls) :] for b in stmt.sources])
            points = (*stmt.calls, sizes, as_index(ceil(factor)))
            return _times([self._extent(p, lets, inside) for p in points])
        return _fixed(1)

    def _nest(self, stmt: Nest, lets: dict[Atom, Index], inside: tuple[Loop, ...]) -> Amount:
        extents = []
        for head in stmt.heads:
            if isinstance(head, For):
                extents.append(self._extent(head.loop.extent, lets, inside))
                inside = (*inside, head.loop)
            elif isinstance(head, Let):
                lets = {**lets, head.symbol: Substitution(lets)(head.index)}
            elif isinstance(head, Digits):
                inside = (*inside, *head.loops)
        return _times([*extents, self._amount(stmt.body, lets, inside)])

    def _extent(self, p: Index, lets: dict[Atom, Index], inside: tuple[Loop, ...]) -> Amount:
        p = Substitution(lets)(p) if lets else p
        depends = loops_in(p) if inside else frozenset[Loop]()
        for loop in reversed(inside):
            if loop in depends:
                p = _at_most(p, loop)
                depends = loops_in(p)
        if indirect_in(p):  # an element that may not be computed yet
            return Amount(float(STEPS), "", self._bound(p))
        number = p.constant
        return _fixed(number) if number is not None else Amount(1.0, f"(double)({self._text(p)})", self._bound(p))


def operations(program: Program, sizes: Sequence[int]) -> float:
    """The work of a call with these sizes, without optimisation; infinite if data decide how often a loop runs."""
    total = 0.0
    given: dict[Atom, int] = dict(zip(program.sizes, sizes, strict=True))
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        if any(is_endless(stmt) for stmt in walk(kernel.body)):
            return inf
        values: dict[Atom, int] = {
            size: evaluate(p, given.__getitem__) for size, p in zip(kernel.sizes, call.sizes, strict=True)
        }

        def number(p: Index, values: dict[Atom, int] = values) -> Bound:
            return Bound(inf if indirect_in(p) else float(max(evaluate(p, values.__getitem__), 0)))

        total += Work(no_text, number, _PLAIN).of(kernel.body).bound.factor
    return total


def printed_operations(program: Program, text: Callable[[Index], str]) -> str:
    """The same as a C expression of the program's sizes."""
    terms = []
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        given: dict[Atom, Index] = dict(zip(kernel.sizes, call.sizes, strict=True))

        @cache
        def of_program(p: Index, given: dict[Atom, Index] = given) -> str:
            return text(Substitution(given)(p))

        terms.append(Work(of_program, costs=_PLAIN).of(kernel.body))
    return _sum(terms).text


def _fixed(value: int) -> Amount:
    return Amount(float(value), "", Bound(float(value)))


def _times(factors: Sequence[Amount]) -> Amount:
    bound = Bound(1.0)
    for factor in factors:
        bound = bound.times(factor.bound)
    number = prod(factor.number for factor in factors)
    return Amount(number, "*".join(factor.product for factor in factors if factor.product), bound)


def _sum(terms: Sequence[Amount]) -> Amount:
    """The sum, in which multiples of one product are one term: loops of one length are many."""
    bound = Bound(0.0)
    numbers: dict[str, float] = {}
    for term in terms:
        bound = bound.plus(term.bound)
        numbers[term.product] = numbers.get(term.product, 0.0) + term.number
    if len(numbers) < 2:
        product, number = next(iter(numbers.items()), ("", 0.0))
        return Amount(number, product, bound)
    texts = (Amount(number, product, bound).text for product, number in numbers.items())
    return Amount(1.0, f"({' + '.join(texts)})", bound)


@lru_cache(maxsize=1 << 12)
def _at_most(p: Index, loop: Loop) -> Index:
    """An extent at the end of an enclosing loop at which it is largest."""
    return Substitution({loop: loop.extent - 1 if _slope(p, loop) > 0 else ZERO})(p)


def _slope(p: Index, loop: Loop) -> int:
    """Whether an extent grows or falls with a loop: the sum of the signs of the terms with the loop."""
    return sum(
        (1 if coefficient > 0 else -1) * (1 if atom is loop else _slope(_inner(atom), loop))
        for monomial, coefficient in p.terms
        for atom in monomial
        if occurs(loop, atom)
    )


def _inner(atom: Atom) -> Index:
    """The argument of an atom, which grows with it."""
    return atom.arg if isinstance(atom, Relu) else atom.num if isinstance(atom, FloorDiv) else ZERO
