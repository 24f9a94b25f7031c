"""Long sums in chunks: as accurate, and the same bits, at every number of rows and threads."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from graphs import (
    FUSED,
    SMALL,
    K,
    M,
    N,
    add_row,
    assembled,
    binary,
    check,
    elementwise,
    fold,
    graph,
    matmul,
    parameter,
    run,
    sized,
    softmax,
    transpose,
    unary,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.graph.simplify import simplify
from harp.lower.kernels.fuse import fuse
from harp.lower.loopir.loops import If, Space
from harp.lower.pipeline import lower
from harp.lower.reductions import chunks as rule
from harp.lower.reductions.chunks import long_rows
from harp.lower.schedule.build import Built, build
from harp.lower.schedule.schedule import schedule
from harp.lower.verify.verify import verify_kernel
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import MapReduce, positions
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.expr import Operand
from harp.trace.scalar.ops import Op, Reduce

X, Y, CUBE = parameter(N, M), parameter(N, M, name="y"), parameter(N, M, K)
CUT = {
    "sum": fold(Reduce.SUM, X, 1),
    "max": fold(Reduce.MAX, X, 1),
    "sums of planes": fold(Reduce.SUM, fold(Reduce.SUM, CUBE, 2), 1),
    "last axis of three": fold(Reduce.SUM, CUBE, 2),
    "flipped": fold(Reduce.SUM, view.flip(X, (1,)), 1),
}
WHOLE = {
    "columns": fold(Reduce.SUM, X, 0),
    "product": matmul(X, parameter(M, K, name="w")),
    "several sums in a row": softmax(X),
    "short, whatever the size": fold(Reduce.SUM, parameter(N, as_index(9)), 1),
}
THREADS = (1, 2, 5)


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    harp.set_threads(0)


def built(g: Graph, target=FUSED) -> Built:
    return build(schedule(simplify(g)), g.captured, target)


def cut(b: Built) -> list[bool]:
    return [isinstance(k.body, If) for k in map(long_rows, b.kernels)]


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("target", [FUSED, SMALL], ids=["fma", "plain"])
def test_chunks_have_the_sums_of_the_loops(name, target, monkeypatch):
    monkeypatch.setattr(rule, "CHUNK", 4)
    monkeypatch.setattr(rule, "LONG", 8)
    g = graph(CUT[name])
    plain = built(g, target)
    made = [*map(long_rows, plain.kernels)]
    assert any(cut(plain)) and any(kernel.scratch for kernel in made)
    for values in [(0, 9, 3), (1, 8, 1), (3, 7, 9), (2, 16, 8), (3, 17, 13), (2, 0, 11)]:
        sizes = sized(g, values)
        results = (run(g, assembled(g, plain, kernels), sizes) for kernels in (plain.kernels, made))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_not_cut(name):
    plain = fuse(built(graph(WHOLE[name])))
    assert not any(cut(plain)) and not any(long_rows(kernel).scratch for kernel in plain.kernels)


def test_a_sum_of_what_the_same_loops_store_stays_with_them(monkeypatch):
    """The chunks would be summed before it is there."""
    monkeypatch.setattr(rule, "CHUNK", 4)
    monkeypatch.setattr(rule, "LONG", 8)
    squares = elementwise(lambda x: x * x, X)
    g = graph(squares, fold(Reduce.SUM, squares, 1))
    plain = fuse(built(g))
    made = [*map(long_rows, plain.kernels)]
    results = (run(g, assembled(g, plain, kernels), sized(g, (3, 17))) for kernels in (plain.kernels, made))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    assert len(plain.kernels) == 1 and not any(cut(plain))


def test_a_sum_inside_another_loop_of_the_row_stays_with_it():
    i, j, k = positions((N, N, M))
    pairs = (view.view(X, (N, N, M), (i, k)), view.view(X, (N, N, M), (j, k)))
    product = Operand(X.dtype, 0) * Operand(X.dtype, 1)
    g = graph(MapReduce((N, N, M), pairs, product, Reduce.SUM, (2,)), unary(Op.EXP, X))
    plain = fuse(built(g, SMALL))
    assert len(plain.kernels) == 1 and not any(cut(plain))


sums = {
    "sum": (harp.jit(lambda x: hnp.sum(x, axis=1)), lambda x: x.sum(axis=1)),
    "squares": (harp.jit(lambda x: hnp.sum(x * x, axis=1)), lambda x: (x * x).sum(axis=1)),
    "max": (harp.jit(lambda x: hnp.max(x, axis=1)), lambda x: x.max(axis=1)),
    "two axes": (harp.jit(lambda x: hnp.sum(x[:, None, :], axis=(1, 2))), lambda x: x.sum(axis=1)),
    "vector": (harp.jit(lambda x: x @ x[0]), lambda x: x @ x[0]),
}
C = rule.CHUNK
LENGTHS = st.sampled_from([0, 1, 31, 33, C - 1, C, C + 1, 2 * C - 1, 2 * C, 2 * C + 1, 3 * C - 1, 3 * C + 33, 5 * C])


@settings(max_examples=40)
@given(st.sampled_from(sorted(sums)), st.sampled_from(["f4", "f8"]), st.integers(1, 9), LENGTHS)
def test_every_row_has_its_own_bits(name, dtype, rows, length):
    compiled, exact = sums[name]
    if name == "max" and not length:
        return
    x = np.random.default_rng(length).standard_normal((9, length)).astype(dtype)
    harp.set_threads(1)
    whole = np.asarray(compiled(x))
    np.testing.assert_allclose(whole, exact(x.astype("f8")), rtol=1e-4, atol=3e-5 * max(length, 1) ** 0.5)
    for threads in THREADS:
        harp.set_threads(threads)
        np.testing.assert_array_equal(np.asarray(compiled(x[:rows])), whole[:rows])
    assert compiled.compilations <= 2, "one for each dtype"


def test_memory_only_where_rows_are_long():
    memory = harp.jit(lambda x: hnp.sum(x, axis=1)).lower(np.ones((3, 4), np.float32)).memory
    assert memory(1000, 400).scratch == 0
    assert 0 < memory(4, 10 * C).scratch <= 4 * 10 * 4 + 64


def test_rows_that_the_loop_chooses_are_not_cut():
    """The row is known inside the loop only."""
    f = harp.jit(lambda c, i: hnp.sum(c[i // 2], axis=1))
    for shape in ((6, 5), (3, 0), (3, rule.LONG + 3)):
        c = np.random.default_rng(0).random(shape)
        i = np.array([0, 5, 3, 2, 2])
        np.testing.assert_allclose(np.asarray(f(c, i)), c[i // 2].sum(1))


def test_rows_of_triangular_loops_are_not_cut():
    """Partial sums of as many rows as the outer loop says would be an array that has no shape."""

    def between(x):
        k, n = hnp.arange(x.shape[0]), x.shape[0]

        def row(i, made):
            value = lambda j: hnp.sum(hnp.where((k >= i) & (k < j), x, 0.0))
            return harp.fori_loop(i, n, lambda j, made: made.at[i, j].set(value(j)), made)

        return harp.fori_loop(0, n, row, hnp.zeros((n, n)))

    compiled = harp.jit(between)
    for n in (0, 1, 7):
        x = np.random.default_rng(n).normal(size=n)
        expected = np.reshape([x[i:j].sum() for i in range(n) for j in range(n)], (n, n))
        np.testing.assert_allclose(compiled(x), expected, rtol=1e-10, atol=1e-12)


V = parameter(N)
SCALED = binary(Op.MUL, X, add_row(X, parameter(M, name="row")))
GRAPHS = {
    "sum": fold(Reduce.SUM, X, 0, 1),
    "highest": fold(Reduce.MAX, X, 0, 1),
    "lowest": fold(Reduce.MIN, V, 0),
    "product": fold(Reduce.PROD, V, 0),
    "dot": fold(Reduce.SUM, binary(Op.MUL, X, Y), 0, 1),
    "transposed": fold(Reduce.SUM, unary(Op.EXP, transpose(X)), 0, 1),
    "both ways": fold(Reduce.SUM, binary(Op.ADD, X, transpose(parameter(M, N, name="z"))), 0, 1),
    "with a row": fold(Reduce.SUM, SCALED, 0, 1),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("target", [SMALL, FUSED])
def test_chunks_compute_the_same(name, target):
    for values in [(1, 1), (3, 5), (17, 2), (40, 33)]:
        check(graph(GRAPHS[name]), values, target)


@pytest.mark.parametrize("name", GRAPHS)
def test_chunks_are_proved(name):
    for kernel in lower(graph(GRAPHS[name]), FUSED).program.kernels:
        assert verify_kernel(kernel) == []


def scratch(node) -> list[str]:
    slots = lower(graph(node), FUSED).program.scratch
    return [repr(b.shape[0]) for slot in slots for b in slot.buffers if b.space is Space.SCRATCH]


def test_how_many_chunks_there_are():
    assert scratch(GRAPHS["sum"]) == ["((n*m + 8191)//8192)"], "of elements as they lie in memory"
    assert scratch(GRAPHS["transposed"]) == ["((n*m + 8191)//8192)"]
    assert scratch(GRAPHS["with a row"]) == ["((n + 15)//16)"], "of rows, where one operand is read again"
    assert scratch(fold(Reduce.SUM, parameter(as_index(8192)), 0)) == []
    assert scratch(fold(Reduce.SUM, X, 1)) == ["n"], "long rows have their own rule, by their length only"


FUNCTIONS = {
    "sum": hnp.sum,
    "max": hnp.max,
    "min": hnp.min,
    "mean": hnp.mean,
    "variance": hnp.var,
    "standardized": lambda x: (x - hnp.mean(x)) / hnp.std(x),
    "dot": lambda x: hnp.sum(x * x),
    "transposed": lambda x: hnp.sum(hnp.exp(x.T)),
    "flipped": lambda x: hnp.sum(x[::-1, ::2]),
    "with a row": lambda x: hnp.sum(x * hnp.arange(x.shape[1])),
    "gradient": harp.grad(lambda x: hnp.sum(x * hnp.mean(x * x))),
}
SHAPES = [(1, 8191), (1, 8192), (8193, 1), (3, 5), (0, 4), (91, 180), (500, 700), (70_000, 4)]


@pytest.fixture
def threads():
    yield harp.set_threads
    harp.set_threads(0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_bits_for_every_number_of_threads(name, threads):
    compiled = harp.jit(FUNCTIONS[name])
    for shape in SHAPES:
        if name in ("max", "min", "standardized", "mean", "variance", "gradient") and 0 in shape:
            continue
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        found = []
        for count in (1, 2, 3, 4):
            threads(count)
            found.append(np.asarray(compiled(x)))
        for other in found[1:]:
            np.testing.assert_array_equal(other, found[0])


def test_against_exact_sums():
    compiled = harp.jit(hnp.sum)
    for size in (8191, 8192, 8193, 100_000, 3_000_001):
        x = np.random.default_rng(size).random(size, np.float32)
        exact = math.fsum(x.tolist())
        assert abs(float(compiled(x)) - exact) <= 3e-7 * exact
    assert compiled.compilations == 1


def test_dot_products_against_exact_sums():
    x, y = np.random.default_rng(0).random((2, 1_000_003), np.float32)
    exact = math.fsum((x.astype(np.float64) * y).tolist())
    assert abs(float(harp.jit(lambda x, y: x @ y)(x, y)) - exact) <= 3e-7 * exact


def test_values_that_are_no_numbers():
    x = np.zeros((300, 100), np.float32)
    x[290, 99] = np.nan
    assert np.isnan(harp.jit(hnp.max)(x)) and np.isnan(harp.jit(hnp.sum)(x))
    x[290, 99] = -np.inf
    assert harp.jit(hnp.min)(x) == -np.inf and harp.jit(hnp.max)(x) == 0


def test_integers_and_truth_values():
    x = np.arange(40_000).reshape(200, 200)
    assert int(harp.jit(hnp.sum)(x)) == x.sum()
    assert bool(harp.jit(hnp.all)(x >= 0)) and not bool(harp.jit(hnp.all)(x > 0))
    assert bool(harp.jit(hnp.any)(x == 39_999))


def test_a_reduction_that_reads_another_one():
    x = np.random.default_rng(0).standard_normal((300, 77))
    np.testing.assert_allclose(np.asarray(harp.jit(hnp.var)(x)), x.var(), rtol=1e-12)
    centred = np.asarray(harp.jit(lambda x: x - hnp.mean(x))(x))
    np.testing.assert_allclose(centred, x - x.mean(), rtol=1e-9, atol=1e-12)
