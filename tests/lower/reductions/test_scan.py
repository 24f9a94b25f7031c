"""Running reductions and recurrences: they compute what the interpreter does, and along long rows by chunks the same
bits for every number of rows and threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from graphs import FUSED, SMALL, WIDE, K, M, N, check, elementwise, graph, parameter, scale
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.reductions import scan
from harp.lower.reductions.scan import ROWS
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


THREADS = (1, 2, 5)
# What is cut: forwards or backwards along memory, and by one accumulator.
CUT = ["sum1", "max1", "min1", "cube2", "suffix1", "flipped", "of a map", "of a flattened matrix", "tail", "both"]
PARTLY = ["directions", "axes", "again"]
WHOLE = sorted({*GRAPHS} - {*CUT, *PARTLY})
SPAN = ROWS * scan.CHUNK


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    harp.set_threads(0)


@pytest.mark.parametrize("name", [*CUT, *PARTLY])
@pytest.mark.parametrize("target", [SMALL, WIDE], ids=["small", "wide"])
def test_chunks_have_the_sums_of_the_loops(name, target, monkeypatch):
    monkeypatch.setattr(scan, "CHUNK", 3)
    monkeypatch.setattr(scan, "LONG", 30)
    assert "carries" in lower(GRAPHS[name], target).loops
    for rows, length in [(2, 29), (1, 30), (0, 48), (9, 49)]:
        check(GRAPHS[name], (rows, length, length), target)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_not_cut(name):
    """Products of floats, other axes than the last one, several sums in one loop."""
    assert "carries" not in lower(GRAPHS[name], FUSED).loops


@pytest.mark.parametrize("name", CUT)
def test_the_chunks_are_shared_by_threads(name):
    text = lower(GRAPHS[name], FUSED).loops
    assert text.count(f"//{SPAN}):") >= 2 and text.count("for parallel") >= 2
    for line in text.splitlines():
        if line.strip().endswith(f"//{SPAN}):") and line.startswith("    for"):
            assert "parallel" in line or "sequential" in line, line


cumulative = {
    "sum": (harp.jit(lambda x: hnp.cumsum(x, axis=1)), lambda x: np.cumsum(x, axis=1)),
    "from the end": (
        harp.jit(lambda x: hnp.flip(hnp.cumsum(hnp.flip(x, 1), axis=1), 1)),
        lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
    ),
    "max": (harp.jit(lambda x: hnp.cummax(x, axis=1)), lambda x: np.maximum.accumulate(x, axis=1)),
    "gradient": (
        harp.jit(harp.grad(lambda x: hnp.sum(hnp.cumsum(x, axis=1) * x))),
        lambda x: np.cumsum(x, axis=1) + np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
    ),
}
LENGTHS = st.sampled_from([0, 1, 100, scan.LONG - 1, scan.LONG, 2 * SPAN - 1, 2 * SPAN, 2 * SPAN + 1, 3 * SPAN + 77])


@settings(max_examples=30)
@given(st.sampled_from(sorted(cumulative)), st.sampled_from(["f4", "f8", "i4"]), st.integers(1, 4), LENGTHS)
def test_every_row_has_its_own_bits(name, dtype, rows, length):
    if name == "gradient" and dtype == "i4":
        dtype = "f8"
    compiled, exact = cumulative[name]
    x = (np.random.default_rng(length).standard_normal((4, length)) * 9).astype(dtype)
    harp.set_threads(1)
    whole = np.asarray(compiled(x))
    wanted = exact(x.astype("f8" if x.dtype.kind == "f" else "i8"))
    np.testing.assert_allclose(whole, wanted, rtol=1e-4, atol=0 if dtype == "i4" else 2e-5 * max(length, 1))
    for threads in THREADS:
        harp.set_threads(threads)
        np.testing.assert_array_equal(np.asarray(compiled(x[:rows])), whole[:rows])
    assert compiled.compilations <= 3, "one for each dtype"


def test_sums_of_positive_numbers_never_fall():
    x = np.random.default_rng(0).random((1, 4 * SPAN + 5), np.float32)
    assert np.all(np.diff(np.asarray(cumulative["sum"][0](x))) >= 0)


def test_special_numbers_go_on():
    x = np.ones((1, 3 * SPAN), np.float32)
    x[0, SPAN + 5], x[0, 2 * SPAN + 7] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(cumulative["sum"][0](x)), np.cumsum(x, axis=1))
    x[0, 100] = np.nan
    np.testing.assert_array_equal(np.asarray(cumulative["max"][0](x)), np.maximum.accumulate(x, axis=1))


def test_a_product_that_is_0_stays_so():
    """A chunk of it would overflow, and infinity times 0 is NaN."""
    x = np.full((1, 3 * SPAN), 2.0, np.float32)
    x[0, :300] = 0.5
    x[0, 5] = 0
    found = np.asarray(harp.jit(lambda x: hnp.cumprod(x, axis=1))(x))
    assert not found[0, 5:].any()
    whole = np.ones((1, 3 * SPAN), np.int64) * 3
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: hnp.cumprod(x, axis=1))(whole)), np.cumprod(whole, 1))


@pytest.mark.parametrize(
    "made",
    [lambda x: x * 2 + 1, lambda x: x[::-1], lambda x: x[hnp.arange(x.shape[0]) // 2]],
    ids=["map", "flip", "gather"],
)
def test_what_is_summed_may_be_a_result_of_the_same_loop(made):
    """The sums of the chunks come before the loop that stores it."""

    def f(x):
        v = made(x)
        return v, hnp.cumsum(v)

    for n in (5, scan.LONG + 17):
        x = np.random.default_rng(n).random(n)
        known = np.asarray(made(hnp.asarray(x)))
        found = harp.jit(f)(x)
        np.testing.assert_array_equal(np.asarray(found[0]), known)
        np.testing.assert_allclose(np.asarray(found[1]), np.cumsum(known))
