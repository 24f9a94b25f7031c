"""The rewrites for speed: the same values, in an order that no size changes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from graphs import (
    FUSED,
    SMALL,
    WIDE,
    K,
    M,
    N,
    add_row,
    arrays,
    assembled,
    binary,
    check,
    fold,
    graph,
    layernorm,
    log_softmax,
    matmul,
    parameter,
    random_graphs,
    relu,
    run,
    sized,
    softmax,
    transpose,
    unary,
)
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.graph.simplify import simplify
from harp.lower.loopir.loops import Buffer, For, Load, LoopKind, Nest, Space, walk
from harp.lower.loopir.nests import stride
from harp.lower.loopir.text import kernel_text
from harp.lower.pipeline import lower, rewrite_nests
from harp.lower.reductions.accumulators import LANES
from harp.lower.reductions.short_rows import SHORT
from harp.lower.schedule.build import build
from harp.lower.schedule.schedule import schedule
from harp.lower.target import Target
from harp.lower.verify.interpreter import execute
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import positions
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import as_index, loop, loops_in
from harp.trace.scalar.dtypes import f64, i64
from harp.trace.scalar.ops import Op, Reduce

X, W, B = parameter(N, M), parameter(M, K, name="w"), parameter(K, name="b")
WT, XT = parameter(K, M, name="wt"), parameter(M, N, name="xt")


def both(g: Graph, values: tuple[int, ...], target: Target) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The results of the nests before and after the rewrites."""
    built = build(schedule(simplify(g)), g.captured, target)
    tiled = [rewrite_nests(kernel, target) for kernel in built.kernels]
    sizes = sized(g, values)
    return run(g, assembled(g, built, built.kernels), sizes), run(g, assembled(g, built, tiled), sizes)


def text(g: Graph, target: Target = SMALL) -> str:
    return "\n".join(map(kernel_text, lower(g, target).program.kernels))


COLUMNS = {
    "x @ w": matmul(X, W),
    "relu(x @ w + b)": relu(add_row(matmul(X, W), B)),
    "x.T @ w": matmul(transpose(XT), W),
    "x.T @ w.T": matmul(transpose(XT), transpose(WT)),
    "(x @ w).T": transpose(matmul(X, W)),
    "two products": binary(Op.ADD, matmul(X, W), matmul(X, parameter(M, K, name="v"))),
    "sum over the first axis": fold(Reduce.SUM, unary(Op.EXP, X), 0),
    "highest of the first axis": fold(Reduce.MAX, X, 0),
    "f64": matmul(parameter(N, M, dtype=f64), parameter(M, K, dtype=f64, name="w")),
    "i64": matmul(parameter(N, M, dtype=i64), parameter(M, K, dtype=i64, name="w")),
}
SIZES = [(0, 0, 0), (1, 1, 1), (4, 3, 8), (5, 2, 9), (3, 4, 21), (9, 0, 4), (13, 2, 7)]


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("target", [SMALL, FUSED, WIDE], ids=["plain", "fused", "wide"])
def test_columns_keep_the_order_of_each_element(name, target):
    for sizes in [*SIZES, (17, 2, 41)]:
        for a, b in zip(*both(graph(COLUMNS[name]), sizes, target), strict=True):
            np.testing.assert_array_equal(a, b)


def test_strips_end_where_the_columns_end():
    g = graph(fold(Reduce.SUM, X, 0))
    for columns in (511, 512, 513, 1030):
        for a, b in zip(*both(g, (2, columns, 0), SMALL), strict=True):
            np.testing.assert_array_equal(a, b)


def test_strips_are_wide_where_there_are_enough_for_all_cores():
    g = graph(fold(Reduce.SUM, X, 0))
    for cores, columns in ((1, 2047), (1, 2048), (1, 2049), (2, 4095), (2, 4096), (2, 6200)):
        target = Target(cores=cores)
        assert f"if s1 - {2048 * cores} >= 0" in text(g, target)
        for a, b in zip(*both(g, (3, columns, 0), target), strict=True):
            np.testing.assert_array_equal(a, b)


def test_tiles_have_constant_size():
    wide = Target(vector_bytes=64)
    body = text(graph(matmul(X, W)), wide)
    assert "local v0: f32[8, 32]" in body and "local v0: f32[8, 8]" in body and "local v0: f32[512]" in body
    assert body.count("for unroll") == 6  # in each of three tiles, to a partial sum and from there to the sum
    assert "f32[8, 16]" in text(graph(COLUMNS["f64"]), wide).replace("f64", "f32")
    assert "local v0: f32[4, 8]" in text(graph(matmul(X, W)), SMALL)
    assert "local v0: f32[6, 16]" in text(graph(matmul(X, W)), Target(vector_bytes=32))


def test_no_rows_without_reuse():
    batched = fold(Reduce.SUM, parameter(N, M, K), 1)
    body = text(graph(batched))
    assert "f32[512]" in body and "unroll" not in body
    for a, b in zip(*both(graph(batched), (3, 4, 7), SMALL), strict=True):
        np.testing.assert_array_equal(a, b)


def tree(lanes: np.ndarray) -> np.ndarray:
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    return lanes[0]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 63, 64, 65, 100])
def test_element_goes_to_its_lane(size):
    g = graph(fold(Reduce.SUM, X, 1))
    sizes = sized(g, (3, size, 0))
    (x,) = arrays(g, sizes)
    (found,) = run(g, lower(g, SMALL).program, sizes)
    for row, value in zip(x, found, strict=True):
        lanes = np.zeros(LANES, np.float32)
        for position, element in enumerate(row):
            lanes[position % LANES if size > SHORT else 0] += element
        assert tree(lanes) == value


@pytest.mark.parametrize("make", [softmax, log_softmax, layernorm, lambda x: matmul(x, transpose(WT))])
def test_a_row_has_the_same_bits_in_every_batch(make):
    g = graph(make(X))
    program = lower(g, FUSED).program
    columns, wide = 37, 5
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(11, columns)).astype("f4")
    others = [rng.normal(size=(wide, columns)).astype("f4")] if len(g.inputs) > 1 else []
    order = [rows if i is X else others[0] for i in g.inputs]
    (whole,) = execute(program, order, sized(g, (11, columns, wide)))
    for count in (1, 2, 5):
        part = [a[:count] if a is rows else a for a in order]
        (found,) = execute(program, part, sized(g, (count, columns, wide)))
        np.testing.assert_array_equal(found, whole[:count])


@pytest.mark.parametrize("rows", [1, 3, 4, 5, 9])
def test_a_row_of_a_product_has_the_same_bits_in_every_batch(rows):
    g = graph(matmul(X, W))
    program = lower(g, FUSED).program
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(9, 13)).astype("f4"), rng.normal(size=(13, 19)).astype("f4")
    (whole,) = execute(program, [x, w], sized(g, (9, 13, 19)))
    (found,) = execute(program, [x[:rows], w], sized(g, (rows, 13, 19)))
    np.testing.assert_array_equal(found, whole[:rows])


def test_short_constant_reductions_have_no_lanes():
    assert "lanes" not in text(graph(fold(Reduce.SUM, parameter(N, as_index(31)), 1)))
    long = text(graph(fold(Reduce.SUM, parameter(N, as_index(64)), 1)))
    assert "lanes" in long and "if" not in long


def test_the_loop_along_memory_goes_innermost():
    g = graph(fold(Reduce.SUM, unary(Op.EXP, transpose(X)), 0, 1))
    assert "lanes" in text(g)
    check(g, (5, 7, 0))


def test_empty_reductions_give_the_identity():
    g = graph(*(fold(r, X, 1) for r in Reduce))
    found = run(g, lower(g, SMALL).program, sized(g, (2, 0, 0)))
    assert [list(a) for a in found] == [[0, 0], [1, 1], [-np.inf] * 2, [np.inf] * 2]


def test_innermost_loops_say_that_they_carry_nothing():
    kernel = lower(graph(unary(Op.EXP, X)), SMALL).program.kernels[0]
    (nest,) = (s for s in walk(kernel.body) if isinstance(s, Nest))
    assert [h.kind for h in nest.heads if isinstance(h, For)] == [LoopKind.PARALLEL, LoopKind.SIMD]


def test_special_values_survive_the_lanes():
    g = graph(fold(Reduce.MAX, X, 1), fold(Reduce.SUM, X, 1))
    x = np.zeros((2, 40), "f4")
    x[0, 33], x[1, 7] = np.nan, np.inf
    highest, total = execute(lower(g, SMALL).program, [x], sized(g, (2, 40, 0)))
    assert np.isnan(highest[0]) and np.isnan(total[0]) and highest[1] == total[1] == np.inf


def test_strides():
    i, j = loop(0, N), loop(1, M)
    (along,) = loops_in(j)
    matrix = Buffer("x", f64, (N, M), Space.INPUT)
    assert stride(Load(matrix, (i, j)), along) == 1
    assert stride(Load(matrix, (i, 2 - j)), along) == -1
    assert stride(Load(matrix, (i, 3 * j)), along) == 3
    assert stride(Load(matrix, (i, i)), along) == 0
    assert stride(Load(matrix, (j, i)), along) is None
    assert stride(Load(matrix, (i, j * j)), along) is None
    assert stride(Load(matrix, (i, j * N)), along) is None
    assert stride(Load(matrix, (floordiv(j, M), j - M * floordiv(j, M))), along) == 1


@given(random_graphs(), st.sampled_from([SMALL, FUSED, WIDE]))
def test_random_programs_at_tile_sizes(g, target):
    check(g, (10, 9, 0), target)


def test_windows_run_along_memory():
    kernel = parameter(as_index(3), as_index(3), name="kernel")
    shape = (N - 2, M - 2, as_index(3), as_index(3))
    i, j, di, dj = positions(shape)
    windows, weights = view.view(X, shape, (i + di, j + dj)), view.view(kernel, shape, (di, dj))
    g = graph(fold(Reduce.SUM, binary(Op.MUL, windows, weights), 2, 3))
    assert "lanes" not in text(g) and "local" not in text(g), "its nine terms are written out"
    for sizes in ((2, 2, 0), (3, 5, 0), (8, 14, 0)):
        check(g, sizes)


@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("reduce", [Reduce.SUM, Reduce.PROD, Reduce.MAX])
def test_several_terms_at_a_time_keep_their_order(rows, reduce):
    g = graph(fold(reduce, unary(Op.NEG, X), 0))
    for a, b in zip(*both(g, (rows, 9, 0), SMALL), strict=True):
        np.testing.assert_array_equal(a, b)
    assert re.search(r"//4\b", text(g))
    expensive = text(graph(fold(reduce, unary(Op.EXP, X), 0)))
    assert not re.search(r"//4\b", expensive), "the terms cost more than reading the sum"


def test_a_loop_that_carries_a_sum_is_not_cut_into_strips():
    """One sum runs backwards and is carried from step to step; the other one is reduced anew in each step."""

    def loss(b, i, xp):
        v = b[i // 2] * 2
        sums = xp.cumsum(v[::-1]), xp.cumsum(xp.cumsum(v))
        return sum(xp.sum(s * xp.cos(s)) for s in sums)

    rng = np.random.default_rng(0)
    b, i = rng.standard_normal(7), rng.integers(0, 7, 9)
    found = np.asarray(harp.jit(harp.grad(lambda b, i: loss(b, i, hnp)))(b, i))

    exact = [(loss(b + h, i, np) - loss(b - h, i, np)) / 2e-6 for h in np.eye(7) * 1e-6]
    np.testing.assert_allclose(found, exact, rtol=1e-6, atol=1e-7)
