"""Running reductions in linear time: which loop nests are rewritten, and that they compute the same."""

from __future__ import annotations

import itertools

import pytest
from graphs import FUSED, SMALL, WIDE, K, M, N, check, elementwise, graph, parameter
from hypothesis import given
from hypothesis import strategies as st

from harp.lower.pipeline import lower
from harp.trace.cumulative import masked
from harp.trace.expr import Operand, apply, const
from harp.trace.node import MapReduce, Node, positions
from harp.trace.ops import Op, Reduce
from harp.trace.view import flip, view

X, Y, CUBE = parameter(N, M), parameter(N, M, name="y"), parameter(N, M, K, name="z")


def run(x: Node, axis: int, reduce: Reduce = Reduce.SUM) -> MapReduce:
    candidates = masked(x, reduce, axis)
    return MapReduce(candidates.shape, (candidates,), Operand(x.dtype, 0), reduce, (len(x.shape),))


def suffix(x: Node, axis: int) -> MapReduce:
    domain = (*x.shape, x.shape[axis])
    *here, k = positions(domain)
    index = tuple(k if a == axis else p for a, p in enumerate(here))
    candidates = view(x, domain, index, (k - here[axis],), const(0, x.dtype))
    return MapReduce(domain, (candidates,), Operand(x.dtype, 0), Reduce.SUM, (len(x.shape),))


def add(a: Node, b: Node) -> MapReduce:
    return elementwise(lambda x, y: apply(Op.ADD, x, y), a, b)


GRAPHS = {
    **{f"{r.name.lower()}{axis}": graph(run(X, axis, r)) for r, axis in itertools.product(Reduce, (0, 1))},
    **{f"cube{axis}": graph(run(CUBE, axis)) for axis in range(3)},
    "suffix0": graph(suffix(X, 0)),
    "suffix1": graph(suffix(X, 1)),
    "flipped": graph(flip(run(flip(X, [1]), 1), [1])),
    "two": graph(add(run(X, 1), run(Y, 1))),
    "directions": graph(add(run(X, 1), suffix(Y, 1))),
    "axes": graph(add(run(X, 0), run(Y, 1))),
    "again": graph(run(run(X, 1), 0)),
    "of a map": graph(run(add(X, Y), 1)),
    "tail": graph(add(run(X, 1), Y)),
    "first axis with tail": graph(add(run(CUBE, 0), CUBE)),
    "both": graph(run(X, 1), add(run(X, 1), Y)),
}


@given(
    st.sampled_from(sorted(GRAPHS)),
    st.sampled_from([0, 1, 2, 7, 8, 9, 17]),
    st.sampled_from([0, 1, 5, 40]),
    st.sampled_from([SMALL, FUSED, WIDE]),
)
def test_same_as_the_interpreter(name, rows, length, target):
    check(GRAPHS[name], (rows, length, 3), target)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_time_is_linear(name):
    """Nothing is masked any more."""
    assert " >= 0 else" not in lower(GRAPHS[name], FUSED).loops


def test_rows_side_by_side():
    text = lower(GRAPHS["sum1"], FUSED).loops
    assert "for unroll" in text and "for parallel" in text


def test_the_vector_runs_along_memory():
    text = lower(GRAPHS["sum0"], FUSED).loops
    assert "for simd" in text and "unroll" not in text


def test_what_is_left_out_must_be_the_identity():
    """A masked sum of something else stays as it is: slow, and right."""
    candidates = masked(X, Reduce.PROD, 1)  # 1 where it is left out
    node = MapReduce(candidates.shape, (candidates,), Operand(X.dtype, 0), Reduce.SUM, (2,))
    assert " else 1.0" in lower(graph(node), FUSED).loops
    check(graph(node), (3, 5))


def test_what_depends_on_the_place_is_not_accumulated():
    domain = (N, M, M)
    n, i, _ = positions(domain)
    twice = elementwise(lambda a, b: apply(Op.MUL, a, b), masked(X, Reduce.SUM, 1), view(Y, domain, (n, i)))
    node = MapReduce(domain, (twice,), Operand(X.dtype, 0), Reduce.SUM, (2,))
    check(graph(node), (3, 5))
