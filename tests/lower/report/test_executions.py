"""How often the body of nested loops is executed, against running the loops."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harp.lower.report.counts import log2, ratio
from harp.lower.report.executions import executions
from harp.trace.index.division import ceildiv, floordiv, maximum, minimum
from harp.trace.index.polynomial import ONE, ZERO, Index, Loop, Symbol, as_index, evaluate, of

n, m = (Symbol(0, number, name) for number, name in enumerate("nm"))
N, M = of(n), of(m)
I, J, K = Loop(0, N), Loop(1, N), Loop(1, M)  # noqa: E741
SIZES = [*itertools.product(range(5), repeat=2), (9, 1), (7, 3), (2, 8)]


def run(loops, conditions, values) -> int:
    """The number of executions, one by one."""
    if not loops:
        return all(evaluate(c, values.__getitem__) >= 0 for c in conditions)
    extent = evaluate(loops[0].extent, values.__getitem__)
    return sum(run(loops[1:], conditions, {**values, loops[0]: position}) for position in range(extent))


TILES = Loop(0, ceildiv(N, 8))
EXACT = {
    "rectangle": ([I, K], [], "n*m"),
    "triangle": ([I, J], [of(I) - of(J)], "n*n/2 + n/2"),
    "strict triangle": ([I, J], [of(J) - of(I) - 1], "n*n/2 - n/2"),
    "prefix": ([Loop(0, N + M)], [N - 1 - of(Loop(0, N + M))], "n"),
    "suffix": ([Loop(0, N + M)], [of(Loop(0, N + M)) - N], "m"),
    "tiles": ([TILES, Loop(1, minimum(8, N - 8 * of(TILES)))], [], "n"),
    "weighted tiles": ([TILES, Loop(1, minimum(8, N - 8 * of(TILES))), Loop(2, M)], [], "n*m"),
    "pyramid": ([I, J, Loop(2, N)], [of(I) - of(J), of(J) - of(Loop(2, N))], "n*n*n/6 + n*n/2 + n/3"),
    "every second": ([Loop(0, N)], [N - 1 - 2 * of(I)], "((n + 1)//2)"),
    "quotient": ([Loop(0, N * 3)], [floordiv(of(Loop(0, N * 3)), 3) - 1], "3*n - 3"),
    "triangle of growing rows": ([I, Loop(1, of(I) + 1)], [], "n*n/2 + n/2"),
}


@pytest.mark.parametrize("name", EXACT)
def test_formulas(name):
    loops, conditions, text = EXACT[name]
    number, exact = executions(loops, conditions)
    assert exact and repr(number) == text
    for sizes in SIZES:
        values = dict(zip((n, m), sizes, strict=True))
        assert number.at(values) == run(loops, conditions, values), sizes


def test_what_has_no_formula_is_bounded():
    remainder = of(I) - 3 * floordiv(of(I), 3) - 1
    assert executions([I], [remainder]) == (ratio(N), False)
    below_quotient = executions([I, K], [floordiv(of(I), 2) - of(K)])
    assert not below_quotient.exact and below_quotient.number.degree == 2


@st.composite
def nests(draw) -> tuple[list[Loop], list[Index]]:
    loops: list[Loop] = []
    for axis in range(draw(st.integers(1, 3))):
        extents = [N, M, N + M, as_index(4), N * M, ceildiv(N, 4)]
        if loops:
            outer = of(loops[-1])
            extents += [minimum(4, maximum(N - outer * 4, 0)), outer + 1, N + outer]
        extent = draw(st.sampled_from(extents))
        if extent is not ONE:
            loops.append(Loop(axis, extent))
    slopes = st.sampled_from([0, 0, 1, -1, 1, -1, 2, -2])
    conditions = []
    for _ in range(draw(st.integers(0, 3))):
        p = draw(st.integers(-3, 3)) + draw(st.sampled_from([ZERO, N, M, N - M]))
        for loop in loops:
            p += of(loop) * draw(slopes)
        if draw(st.booleans()):
            p += floordiv(of(draw(st.sampled_from(loops))), draw(st.sampled_from([M + 1, as_index(3)]))) * draw(slopes)
        conditions.append(p)
    return loops, conditions


@settings(max_examples=300)
@given(nests())
def test_sums_are_exact_or_bounds(drawn):
    loops, conditions = drawn
    number, exact = executions(loops, conditions)
    for sizes in SIZES:
        values = dict(zip((n, m), sizes, strict=True))
        truth, found = run(loops, conditions, values), number.at(values)
        assert found == truth if exact else found >= truth, sizes


def test_counts_as_text_and_numbers():
    half = ratio(N * N - N, 2)
    assert repr(half) == "n*n/2 - n/2" and half.at({n: 5}) == 10 and half.degree == 2
    assert half + half == ratio(N * N - N) and (half - half) == ratio(0) and repr(half - half) == "0"
    assert repr(ratio(-N)) == "-n"
    assert repr(ratio(N) * log2(N)) == "n*log2(n)"
    assert [log2(N).at({n: k}) for k in (0, 1, 2, 3, 4, 5, 1024)] == [0, 0, 1, 2, 2, 3, 10]
    assert (ratio(N * M) * log2(N)).degree == 2
    assert ratio(floordiv(N * M, 8)).degree == 2


def test_text_is_for_sizes_of_one_or_more_and_numbers_for_all():
    rest = ratio(maximum(N - 1, 0) * M + maximum(maximum(N - 1, 0) - N - M + 1, 0))
    assert repr(rest) == "n*m - m" and rest.degree == 2
    assert [rest.at({n: k, m: 3}) for k in (0, 1, 2)] == [0, 0, 3]
    assert repr(ratio(maximum(N - 5, 0))) == "max(n - 5, 0)"


def test_long_text_is_cut():
    count = ratio(N * N + 2 * N * M - 7 * M + 4)
    assert count.text() == repr(count) == "n*n + 2*n*m - 7*m + 4"
    assert count.text(12) == "n*n + 2*n*m + ..." and count.text(1) == "n*n + ..."
