"""Equations between sizes: the facts that they are reduced to imply them, for all sizes."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp.trace.index.division import floordiv, maximum, relu
from harp.trace.index.polynomial import ONE, Symbol, evaluate, of
from harp.trace.sizes.equations import take_apart

n, m, k = (of(Symbol(0, number, name)) for number, name in enumerate("nmk"))
ATOMS = (n, m, k)
SMALL = list(itertools.product(range(5), repeat=3))


def at(p, sizes):
    return evaluate(p, dict(zip((a.atom for a in ATOMS), sizes, strict=True)).__getitem__)


def facts_of(p, sizes):
    return take_apart(p, lambda q: at(q, sizes))


@pytest.mark.parametrize(
    ("equation", "sizes", "zeros"),
    [
        (6 * n - 4 * m, (2, 3, 0), (3 * n - 2 * m,)),
        (64 * n - n * m, (5, 64, 0), (64 - m,)),
        (64 * n - n * m, (0, 64, 0), (64 - m,)),
        (64 * n - n * m, (0, 7, 0), (n,)),
        (n * m, (0, 3, 0), (n,)),
        (12 * n * floordiv(m, 12) - n * m, (3, 24, 0), (12 * floordiv(m, 12) - m,)),
        (n + m * k, (0, 0, 3), (n, m * k)),
        (n * m - 1, (1, 1, 0), (n - 1, m - 1)),
        (2 * n - 2, (1, 1, 0), (n - 1,)),
        (n * n - 1, (1, 1, 0), (n - 1,)),
        (1 - n * n, (1, 1, 0), (n - 1,)),
        (n * n - 9, (3, 1, 0), (n - 3,)),
        (n * m + n * k - 1, (1, 0, 1), (n - 1, m + k - 1)),
        (n * relu(m - 3) - 1, (1, 4, 0), (n - 1, relu(m - 3) - 1)),
        (relu(n - 3) - relu(m - 3), (4, 4, 0), (n - m,)),
        (relu(n - 3) - relu(m - 3), (2, 1, 0), (relu(n - 3) - relu(m - 3),)),
        (n * m - 6, (2, 3, 0), (n * m - 6,)),
        (n * m - 2 * k, (2, 3, 3), (n * m - 2 * k,)),
    ],
    ids=str,
)
def test_the_facts(equation, sizes, zeros):
    assert at(equation, sizes) == 0
    found = facts_of(equation, sizes).zeros
    assert {q if q.terms[-1][1] > 0 else -q for q in found} == {q if q.terms[-1][1] > 0 else -q for q in zeros}


@st.composite
def polynomials(draw):
    parts = [n, m, k, ONE, floordiv(n, 2), relu(m - 2), maximum(n, m), n - m, relu(k - n)]
    total = 0 * ONE
    for _ in range(draw(st.integers(1, 3))):
        term = ONE * draw(st.sampled_from([1, 2, 3, -1, -2, 4]))
        for _ in range(draw(st.integers(0, 3))):
            term = term * draw(st.sampled_from(parts))
        total = total + term
    return total


@given(polynomials(), st.sampled_from(SMALL))
def test_facts_imply_the_equation(p, sizes):
    p = p - at(p, sizes)
    if not p.terms:
        return
    found = facts_of(p, sizes)
    assert all(at(q, sizes) == 0 for q in found.zeros)  # they hold for the call
    for others in SMALL:
        implied = all(at(q, others) == 0 for q in found.zeros)
        if implied:
            assert at(p, others) == 0
        if not found.stronger:
            assert implied == (at(p, others) == 0)
