"""Kernels that join, those that must not, and that joining changes no bit."""

from __future__ import annotations

import numpy as np
from graphs import (
    FUSED,
    K,
    M,
    N,
    along,
    assembled,
    binary,
    fold,
    graph,
    layernorm,
    log_softmax,
    matmul,
    parameter,
    random_graphs,
    run,
    scale,
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
from harp.lower.kernels.fuse import fuse, inlined
from harp.lower.loopir.loops import Alloc, Buffer, Kernel, Load, Seq, Space, Stmt, Store
from harp.lower.pipeline import lower
from harp.lower.schedule.build import Built, build
from harp.lower.schedule.schedule import schedule
from harp.lower.verify.verify import verify_kernel
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.ops import Op, Reduce

X, Y, W = parameter(N, M), parameter(N, M, name="y"), parameter(M, K, name="w")


def built(g: Graph) -> Built:
    return build(schedule(simplify(g)), g.captured, FUSED)


def count(*outputs) -> tuple[int, int, int]:
    """Kernels before, kernels after, scratch buffers after."""
    before = built(graph(*outputs))
    after = fuse(before)
    for kernel in after.kernels:
        verify_kernel(kernel)
    return len(before.kernels), len(after.kernels), len(after.scratch)


def test_elementwise_results_of_one_argument():
    assert count(scale(X, 2.0), unary(Op.EXP, X)) == (2, 1, 0)


def test_results_without_a_common_argument_stay_apart():
    assert count(scale(X, 2.0), unary(Op.EXP, Y)) == (2, 2, 0)


def test_rows_stay_in_cache():
    assert count(softmax(X))[1:] == (1, 0), "also what is as long as a row"
    assert count(log_softmax(X))[1] == 1
    assert count(layernorm(X))[1] == 1


def test_a_number_for_each_row_stays_in_a_register():
    high, low = fold(Reduce.MAX, X, 1), fold(Reduce.MIN, X, 1)
    scaled = binary(Op.DIV, X, along(Reduce.MAX, X))
    assert count(scaled, binary(Op.MUL, scaled, along(Reduce.MAX, X)))[1:] == (1, 0)
    assert count(high, low)[1:] == (1, 0)


def test_elementwise_work_follows_a_product():
    product = matmul(X, W)
    assert count(product, scale(product, 2.0)) == (2, 1, 0)


def test_products_keep_their_loops():
    """Nothing that comes before a product, and no other product, joins it."""
    assert count(matmul(X, W), fold(Reduce.SUM, X, 1))[1] == 2
    assert count(unary(Op.EXP, X), matmul(unary(Op.EXP, X), W))[1] == 2
    assert count(matmul(X, W), matmul(X, scale(W, 2.0)))[1] >= 2
    assert count(matmul(X, transpose(parameter(K, M, name="t"))), fold(Reduce.MAX, X, 1))[1] == 2


def test_sums_over_columns_keep_their_loops():
    assert count(fold(Reduce.SUM, X, 0), fold(Reduce.SUM, X, 1))[1] == 2


def test_other_rows_are_not_read_before_they_are_stored():
    """What is stored in one iteration and read in another keeps the kernels apart."""
    e = unary(Op.EXP, X)
    assert count(e, view.flip(e, [0]), scale(view.flip(e, [0]), 2.0))[1] >= 2
    square = parameter(N, N)
    t = unary(Op.EXP, square)
    assert count(t, scale(transpose(t), 2.0))[1] == 2
    assert count(t, binary(Op.ADD, t, along(Reduce.SUM, transpose(t))))[1] == 2


def test_a_total_is_there_before_it_is_used():
    total = fold(Reduce.SUM, X, 0, 1)
    spread = view.expand(view.insert_axes(total, [0, 1]), X.shape, [True, True])
    doubled = scale(X, 2.0)
    assert count(doubled, binary(Op.MUL, X, spread), fold(Reduce.SUM, doubled, 0, 1))[1] >= 2


def test_kernels_stay_small():
    """Many results of one argument: a kernel stores to a few buffers only."""
    after = fuse(built(graph(*(scale(X, float(k + 2)) for k in range(30)))))
    assert 2 < len(after.kernels) < 30


@settings(deadline=None)
@given(random_graphs(), st.integers(0, 5), st.integers(0, 9))
def test_joining_changes_no_bit(g, n, m):
    """Programs of several results, each kernel on its own and joined."""
    sizes = sized(g, (n, m))
    before = built(g)
    after = fuse(before)
    separate, joined = (run(g, assembled(g, b, b.kernels), sizes) for b in (before, after))
    for a, b in zip(separate, joined, strict=True):
        np.testing.assert_array_equal(a, b)


def test_results_of_joined_kernels():
    """Momentum and parameter of a training step, of which one is read by the other, at several sizes."""

    @harp.jit
    def step(p, v, x, y):
        v = 0.9 * v + x.T @ y
        return p - 0.1 * v, v, hnp.sum(v, axis=0), hnp.max(x, axis=1) * hnp.sum(x, axis=1)

    for n, m, k in ((1, 1, 1), (0, 3, 2), (5, 0, 2), (40, 33, 17), (3, 70, 64)):
        rng = np.random.default_rng(n)
        x, y, p, v = (rng.normal(size=shape) for shape in ((n, m), (n, k), (m, k), (m, k)))
        if m:
            found = step(p, v, x, y)
            w = 0.9 * v + x.T @ y
            wanted = p - 0.1 * w, w, w.sum(axis=0), x.max(axis=1) * x.sum(axis=1)
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(np.asarray(a), b, rtol=1e-12, atol=1e-12)
    assert step.compilations == 1


def test_each_thread_has_its_own_row():
    """Memory for a row is taken by each thread; results are those of NumPy for any number of threads."""
    x = np.random.default_rng(0).normal(size=(700, 333))
    e = np.exp(x - x.max(axis=1, keepdims=True))
    results = [harp.jit(lambda x: hnp.softmax(x, axis=1), threads=count)(x) for count in (1, 2, 4)]
    np.testing.assert_allclose(np.asarray(results[0]), e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    for other in results[1:]:
        np.testing.assert_array_equal(np.asarray(results[0]), np.asarray(other))


def test_loops_that_change_places_keep_rows_in_scratch():
    """Memory for a row would be there for each element of a strip of columns, hundreds of times the scratch."""
    e = unary(Op.EXP, unary(Op.TANH, transpose(X)))
    normal = binary(Op.DIV, e, along(Reduce.SUM, binary(Op.MUL, e, transpose(Y))))
    assert "thread" not in lower(graph(normal), FUSED).loops
    f = harp.jit(lambda x, z: hnp.exp(x.T) / hnp.sum(hnp.exp(x.T) * z.T, axis=1, keepdims=True))
    x = np.full((300_000, 1), 0.3)
    np.testing.assert_allclose(np.asarray(f(x, x)), 1 / 0.3 / 300_000, rtol=1e-10)


def test_a_variable_that_is_set_again_stays() -> None:
    """v = x[0]; v = v + v stores to no element in which the value could stand; out[0] = v + v does."""
    at = (as_index(0),)
    x, out = (Buffer(name, f64, (as_index(4),), space) for name, space in (("x", Space.INPUT), ("out", Space.OUTPUT)))
    v = Buffer("v", f64, (), Space.REG)
    first, twice = Store(v, (), Load(x, at)), Load(v, ()) + Load(v, ())

    def made(second: Store) -> Stmt:
        built = Built((Kernel("k", Alloc(v, Seq((first, second)))),), (x,), (out,), ())
        return inlined(built).kernels[0].body

    assert isinstance(made(Store(v, (), twice)), Alloc)
    stored = made(Store(out, at, twice))
    assert isinstance(stored, Store) and stored.value is Load(x, at) + Load(x, at)
