"""Loops over memory without gaps are one loop."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import (
    FUSED,
    K,
    M,
    N,
    add_row,
    binary,
    check,
    fold,
    graph,
    parameter,
    relu,
    scale,
    softmax,
    transpose,
    unary,
)

import harp
import harp.numpy as hnp
from harp.lower.loopir.loops import Buffer, For, Kernel, Load, Nest, Space, Store, flat, walk
from harp.lower.loopir.nests import FreshLoops
from harp.lower.pipeline import lower
from harp.lower.rewrite.coalesce import coalesce
from harp.lower.rewrite.loop_primitives import Context
from harp.lower.verify.verify import verify_kernel
from harp.trace.graph import view
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Loop, as_index, of, product
from harp.trace.scalar.dtypes import f32
from harp.trace.scalar.expr import const
from harp.trace.scalar.ops import Op, Reduce

X, Y, CUBE = parameter(N, M), parameter(N, M, name="y"), parameter(N, M, K)
ROW, PANE = parameter(M, name="row"), parameter(M, K, name="pane")
STRETCHED = view.view(PANE, (N, M, K), (of(Loop(1, M)), of(Loop(2, K))))


def loops(name: str) -> int:
    """How many loops stand round the body that the rule leaves."""
    first = [1 + max(h.loop.axis for h in s.heads) for k in kernels(GRAPHS[name]) for s in [k.body]]
    assert first
    return max(len(s.heads) for k in kernels(GRAPHS[name]) for s in [coalesce(context(k), k.body) or k.body])


def kernels(node) -> tuple[Kernel, ...]:
    from harp.lower.graph.simplify import simplify
    from harp.lower.schedule.build import build
    from harp.lower.schedule.schedule import schedule

    g = graph(node)
    return build(schedule(simplify(g)), g.captured, FUSED).kernels


def context(kernel: Kernel) -> Context:
    return Context(FUSED, FreshLoops(kernel))


GRAPHS = {
    "exp(x)": unary(Op.EXP, X),
    "x + y": binary(Op.ADD, X, Y),
    "cube": relu(CUBE),
    "some rows": scale(view.view(X, (N, M), (of(Loop(0, N)), of(Loop(1, M)))), 2.0),
    "softmax": softmax(CUBE),
    "x + row": add_row(X, ROW),
    "transpose": unary(Op.EXP, transpose(X)),
    "padded": view.pad(X, (0, 1), (0, 2), const(0.0, X.dtype)),
    "flipped": view.flip(X, (0,)),
    "cube + pane": binary(Op.ADD, CUBE, STRETCHED),
}
EXPECTED = {"x + row": 2, "transpose": 2, "padded": 2, "flipped": 2, "cube + pane": 2}


@pytest.mark.parametrize("name", GRAPHS)
def test_loops_are_collapsed_where_memory_has_no_gaps(name):
    assert loops(name) == EXPECTED.get(name, 1)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("values", [(0, 3, 2), (3, 0, 2), (1, 1, 1), (1, 9, 4), (9, 1, 3), (5, 7, 2)])
def test_the_same_values(name, values):
    check(graph(GRAPHS[name]), values)


@pytest.mark.parametrize("name", GRAPHS)
def test_collapsed_loops_are_proved_to_stay_inside_and_apart(name):
    for kernel in lower(graph(GRAPHS[name]), FUSED).program.kernels:
        assert verify_kernel(kernel) == []


def test_sums_over_the_last_axes_read_in_one_go():
    g = graph(fold(Reduce.SUM, CUBE, 1, 2))
    check(g, (3, 5, 7))
    (kernel,) = lower(g, FUSED).program.kernels
    assert "x.flat" in repr([s.value for s in walk(kernel.body) if isinstance(s, Store)]).replace("in0", "x")


def test_offsets_are_used_only_where_the_divisions_cancel():
    f = of(Loop(0, N * M))
    row = floordiv(f, M)
    matrix = Buffer("x", f32, (N, M), Space.INPUT)
    assert flat(matrix, (row, f - row * M)) is f
    assert flat(matrix, (row, f - row * M - 1)) is f - 1
    assert flat(matrix, (as_index(0), row)) is None
    assert flat(matrix, (as_index(0), f)) is None
    assert repr(Load(matrix, (row, f - row * M))) == f"x.flat[{f}]"


def test_no_division_is_printed():
    source = harp.jit(lambda x, y: x * 2 + y).lower(*(np.ones((3, 4), np.float32),) * 2).source
    assert "/s1" not in source and "%" not in source


@pytest.mark.parametrize("shape", [(1, 100_000), (100_000, 1), (25_000, 4), (3, 33_333), (0, 5), (5, 0)])
def test_long_directions(shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(LONG(x, x)), x * 2 + x)
    np.testing.assert_allclose(np.asarray(SUM(x)), x.sum(dtype=np.float64), rtol=1e-4, atol=1e-2)
    assert LONG.compilations == SUM.compilations == 1


LONG, SUM = harp.jit(lambda x, y: x * 2 + y), harp.jit(hnp.sum)


def test_one_parallel_loop_over_both_axes():
    (kernel,) = lower(graph(unary(Op.EXP, X)), FUSED).program.kernels
    assert isinstance(kernel.body, Nest)
    first = kernel.body.heads[0]
    elements = product(map(of, kernel.sizes))
    assert isinstance(first, For) and first.loop.extent is floordiv(elements + 4095, 4096)
