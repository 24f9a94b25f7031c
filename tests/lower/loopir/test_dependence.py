"""`check_parallel` on random loops, against all pairs of iterations at small sizes.

It may leave a loop undecided. It must not say that iterations stay apart where two of them touch the same element and
one stores to it, nor that all of them meet in an element where they do not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from harp.lower.loopir.dependence import check_parallel
from harp.lower.loopir.effects import loads
from harp.lower.loopir.loops import Buffer, Digits, For, If, Load, LoopKind, Nest, Seq, Space, Stmt, Store
from harp.trace.index.division import ceildiv, floordiv
from harp.trace.index.polynomial import Index, Loop, Symbol, as_index, evaluate, of
from harp.trace.scalar.dtypes import f32
from harp.trace.scalar.expr import const

n, m = Symbol(0, 0, "n"), Symbol(0, 1, "m")
SIZES = tuple({n: a, m: b} for a, b in itertools.product((0, 1, 2, 3, 5), repeat=2))
Values = dict[object, int]


@st.composite
def indices(draw: st.DrawFn, loops: tuple[Loop, ...]) -> Index:
    """A sum of the loops by numbers, sizes and the extents of others, some of it divided."""
    index = as_index(draw(st.integers(-2, 4)))
    for loop in draw(st.lists(st.sampled_from(loops), min_size=1, max_size=len(loops), unique=True)):
        steps = [as_index(k) for k in (1, 1, 2, 3, 4, -1)] + [of(n), of(m), *(other.extent for other in loops)]
        term = of(loop) * draw(st.sampled_from(steps))
        kind = draw(st.sampled_from(("as it is", "as it is", "as it is", "quotient", "remainder")))
        by = draw(st.integers(2, 3))
        if kind == "quotient":
            term = floordiv(of(loop), as_index(by))
        elif kind == "remainder":
            term = of(loop) - by * floordiv(of(loop), as_index(by))
        index = index + term
    return index


@st.composite
def nests(draw: st.DrawFn) -> tuple[For, tuple[For | Digits, ...], Stmt]:
    """The parallel loop, the loops behind it, and a body that stores once or twice, reads, and has conditions."""
    outer = Loop(0, draw(st.sampled_from((of(n), of(m), of(n) * of(m), as_index(3), ceildiv(of(n), as_index(2))))))
    loops = [outer]
    heads: list[For | Digits] = []
    if draw(st.booleans()):  # delinearised
        width = of(m)
        digits = (Loop(5, floordiv(outer.extent, width) + 1), Loop(6, width))
        heads.append(Digits(digits, of(outer)))
        loops += digits
    for axis in range(1, 1 + draw(st.integers(0, 2))):
        loops.append(Loop(axis, draw(st.sampled_from((of(n), of(m), as_index(2), as_index(3), of(outer) + 1)))))
        heads.append(For(loops[-1]))
    rank = draw(st.integers(1, 2))
    array = Buffer("array", f32, (of(n) * of(m) * 8,) * rank, Space.SCRATCH)

    def at() -> tuple[Index, ...]:
        return tuple(draw(indices(tuple(loops))) for _ in range(rank))

    statements: list[Stmt] = []
    for _ in range(draw(st.integers(1, 2))):
        value = Load(array, at()) if draw(st.booleans()) else const(0.0, f32)
        store: Stmt = Store(array, at(), value)
        if draw(st.booleans()):
            difference = draw(indices(tuple(loops)))
            store = If((difference, -difference) if draw(st.booleans()) else (difference,), store)
        statements.append(store)
    return For(outer, LoopKind.PARALLEL), tuple(heads), Seq(tuple(statements)) if len(statements) > 1 else statements[0]


def value(p: Index, values: Mapping[object, int]) -> int:
    return evaluate(p, values.__getitem__)  # type: ignore[arg-type]


def bound(heads: tuple[For | Digits, ...], values: Values) -> Iterator[Values]:
    """The values of sizes and loops in each iteration of the heads."""
    if not heads:
        yield values
    elif isinstance(heads[0], Digits):
        rest = value(heads[0].flat, values)
        added: Values = {}
        for loop in reversed(heads[0].loops):
            extent = max(value(loop.extent, values), 1)
            added[loop], rest = (rest % extent, rest // extent) if loop is not heads[0].loops[0] else (rest, 0)
        yield from bound(heads[1:], values | added)
    else:
        for k in range(value(heads[0].loop.extent, values)):
            yield from bound(heads[1:], values | {heads[0].loop: k})


def touched(s: Stmt, values: Values) -> Iterator[tuple[tuple[int, ...], bool]]:
    """The elements that a statement touches, and whether it stores to them."""
    if isinstance(s, Seq):
        for part in s.parts:
            yield from touched(part, values)
    elif isinstance(s, If):
        if all(value(c, values) >= 0 for c in s.conditions):
            yield from touched(s.yes, values)
    else:
        assert isinstance(s, Store)
        yield from ((tuple(value(p, values) for p in load.index), False) for load in loads(s))
        yield tuple(value(p, values) for p in s.index), True


def iterations(head: For, inner: tuple[For | Digits, ...], body: Stmt, sizes: Values) -> list[dict]:
    """For each iteration of the parallel loop the elements it touches, and whether it stores to them."""
    found = []
    for k in range(value(head.loop.extent, sizes)):
        elements: dict[tuple[int, ...], bool] = {}
        for values in bound(inner, sizes | {head.loop: k}):
            for element, stores in touched(body, values):
                elements[element] = elements.get(element, False) or stores
        found.append(elements)
    return found


@given(nests())
def test_random_loops(nest: tuple[For, tuple[For | Digits, ...], Stmt]) -> None:
    head, inner, body = nest
    report = check_parallel(head, inner, body, {})
    event("undecided" if report.unproven else "refuted" if report.errors else "proved")
    if report.errors or report.unproven:
        return
    for sizes in SIZES:
        for one, other in itertools.combinations(iterations(head, inner, body, dict(sizes)), 2):
            shared = [element for element in one.keys() & other.keys() if one[element] or other[element]]
            assert not shared, (sizes, shared)


@given(st.integers(0, 3), st.integers(-2, 2), st.booleans())
def test_what_stores_to_one_element_is_refuted(rank: int, shift: int, is_inner: bool) -> None:
    outer, inside = Loop(0, of(n)), Loop(1, of(m))
    array = Buffer("array", f32, (of(n),) * (rank + 1), Space.SCRATCH)
    index = (as_index(shift),) * rank + (of(inside) if is_inner else as_index(3),)
    report = check_parallel(For(outer, LoopKind.PARALLEL), (For(inside),), Store(array, index, const(0.0, f32)), {})
    assert report.errors
    assert not report.unproven


@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_tiles_that_overlap_are_not_proved(step: int) -> None:
    """Tiles of two elements, `step` apart."""
    outer, inside = Loop(0, of(n)), Loop(1, as_index(2))
    array = Buffer("array", f32, (of(n) * 4,), Space.SCRATCH)
    store = Store(array, (of(outer) * step + of(inside),), const(0.0, f32))
    report = check_parallel(For(outer, LoopKind.PARALLEL), (For(inside),), store, {})
    assert (not report.errors and not report.unproven) == (step >= 2)


def test_a_nest_in_a_nest() -> None:
    outer, inside = Loop(0, of(n)), Loop(1, of(m))
    array = Buffer("array", f32, (of(n), of(m)), Space.SCRATCH)
    store = Nest((For(inside),), Store(array, (of(outer), of(inside)), const(0.0, f32)))
    assert check_parallel(For(outer, LoopKind.PARALLEL), (), store, {}) == ([], [])
