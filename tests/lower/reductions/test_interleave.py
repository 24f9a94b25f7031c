"""Running reductions and recurrences: their loops, and that they compute what the interpreter does."""

from __future__ import annotations

import itertools

import pytest
from graphs import FUSED, SMALL, WIDE, K, M, N, check, elementwise, graph, parameter, scale
from hypothesis import given
from hypothesis import strategies as st

from harp.lower.pipeline import lower
from harp.lower.report.operations import kernel_costs
from harp.trace.graph.node import Cumulative, MapReduce, Node
from harp.trace.graph.view import flip, reshape
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Symbol, as_index
from harp.trace.scalar.expr import const
from harp.trace.scalar.ops import Reduce

X, Y, CUBE = parameter(N, M), parameter(N, M, name="y"), parameter(N, M, K, name="z")


def run(x: Node, axis: int, reduce: Reduce = Reduce.SUM) -> Cumulative:
    return Cumulative((x,), reduce, axis)


def suffix(x: Node, axis: int) -> Cumulative:
    return Cumulative((x,), Reduce.SUM, axis, True)


def add(a: Node, b: Node) -> MapReduce:
    return elementwise(lambda x, y: x + y, a, b)


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
    **{f"recurrence{axis}": graph(Cumulative((scale(X, 0.5), Y), None, axis)) for axis in (0, 1)},
    "recurrence back": graph(add(Cumulative((scale(X, 0.5), Y), None, 1, True), suffix(X, 1))),
    "of a flattened matrix": graph(run(reshape(X, (N * M,)), 0)),
    "of a repeated row": graph(run(MapReduce((N, M), (), const(2.0, X.dtype)), 1)),
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
    """The steps are some number for each element, by the counts of the loop nests."""
    built = lower(GRAPHS[name], SMALL).algorithm
    for kernel in kernel_costs(built, Substitution({}), lambda: Symbol(0, 0, "steps")):
        assert kernel.steps.degree <= (3 if "cube" in name or "first axis" in name else 2)


def test_rows_side_by_side():
    text = lower(GRAPHS["sum1"], FUSED).loops
    assert "for unroll" in text and "for parallel" in text


def test_the_vector_runs_along_memory():
    text = lower(GRAPHS["sum0"], FUSED).loops
    assert "for simd" in text and "unroll" not in text


def test_a_tail_is_computed_in_the_loop():
    """Also of the reversed sum of what is reversed, for which the loop runs the other way."""
    for name in ("tail", "flipped", "recurrence back"):
        assert len(lower(GRAPHS[name], FUSED).program.kernels) == 1


def test_an_axis_of_one():
    x = parameter(N, as_index(1))
    for node in (run(x, 1), Cumulative((x, x), None, 1)):
        check(graph(node), (5,))
