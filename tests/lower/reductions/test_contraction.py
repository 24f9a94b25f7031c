"""Sums of products by panels: the order of each element is that of the naive nest, in all layouts and sizes."""

from __future__ import annotations

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
    assembled,
    binary,
    fold,
    graph,
    matmul,
    parameter,
    relu,
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
from harp.backends.toolchain.toolchain import find_toolchain
from harp.lower.graph.simplify import simplify
from harp.lower.loopir.loops import Stmt
from harp.lower.loopir.nests import FreshLoops
from harp.lower.loopir.text import kernel_text
from harp.lower.pipeline import rewrite_nests
from harp.lower.reductions.contraction import contraction
from harp.lower.rewrite.loop_primitives import Context
from harp.lower.schedule.build import build
from harp.lower.schedule.schedule import schedule
from harp.lower.target import Target
from harp.trace.array.array import node_of
from harp.trace.array.primitives import map_reduce
from harp.trace.graph import view
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import MapReduce, Node, positions
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import f64, i64
from harp.trace.scalar.expr import Operand, apply, const
from harp.trace.scalar.ops import Op, Reduce

X, W, B = parameter(N, M), parameter(M, K, name="w"), parameter(K, name="b")
XT, WT = parameter(M, N, name="xt"), parameter(K, M, name="wt")
XS, WS = parameter(K, N, M, name="xs"), parameter(K, M, N, name="ws")


def batched(x: Node, w: Node) -> MapReduce:
    """One product for each position of the first axis."""
    (batch, rows, inner), columns = x.shape, w.shape[2]
    domain = (batch, rows, columns, inner)
    b, i, j, k = positions(domain)
    left, right = view.view(x, domain, (b, i, k)), view.view(w, domain, (b, k, j))
    return MapReduce(domain, (left, right), Operand(x.dtype, 0) * Operand(w.dtype, 1), Reduce.SUM, (3,))


MATCHED = {
    "x @ w": matmul(X, W),
    "x.T @ w": matmul(transpose(XT), W),
    "x @ w.T": matmul(X, transpose(WT)),
    "x.T @ w.T": matmul(transpose(XT), transpose(WT)),
    "(x @ w).T": transpose(matmul(X, W)),
    "relu(x @ w + b)": relu(add_row(matmul(X, W), B)),
    "relu(x) @ w": matmul(relu(X), W),
    "x @ exp(w)": matmul(X, unary(Op.EXP, W)),
    "padded": matmul(view.pad(X, (0, 1), (0, 2), const(0.0, X.dtype)), parameter(M + 3, K, name="w")),
    "padded w": matmul(parameter(N, M + 1), view.pad(W, (1, 0), (0, 0), const(0.0, X.dtype))),
    "flipped": matmul(view.flip(X, (1,)), view.flip(W, (0, 1))),
    "two products": binary(Op.ADD, matmul(X, W), matmul(X, parameter(M, K, name="v"))),
    "batched": batched(XS, WS),
    "f64": matmul(parameter(N, M, dtype=f64), parameter(M, K, dtype=f64, name="w")),
    "constant inner size": matmul(parameter(N, as_index(3)), parameter(as_index(3), K, name="w")),
}
OTHERS = {
    "integers": matmul(parameter(N, M, dtype=i64), parameter(M, K, dtype=i64, name="w")),
    "no rows": fold(Reduce.SUM, binary(Op.MUL, X, X), 0),
    "highest product": MapReduce((N, M), (X,), Operand(X.dtype, 0) * Operand(X.dtype, 0), Reduce.MAX, (1,)),
    "rows of both": fold(Reduce.SUM, binary(Op.MUL, X, parameter(N, M, name="y")), 1),
    "softmax": softmax(X),
}
SIZES = [(0, 0, 0), (1, 1, 1), (3, 0, 5), (4, 3, 8), (5, 2, 9), (3, 4, 21), (9, 7, 16), (2, 5, 17), (17, 3, 33)]
SIZES += [(40, 5, 1), (33, 17, 1), (1, 6, 40), (1, 300, 9), (3, 4, 0), (0, 4, 3), (1, 4, 1)]


def built(g: Graph, target: Target):
    return build(schedule(simplify(g)), g.captured, target)


def rewritten(g: Graph, target: Target = FUSED) -> list[Stmt]:
    """What the rule makes of each kernel that it fits."""
    results = (contraction(Context(target, FreshLoops(k)), k.body) for k in built(g, target).kernels)
    return [s for s in results if s is not None]


@pytest.mark.parametrize("name", MATCHED)
@pytest.mark.parametrize("target", [FUSED, WIDE], ids=["narrow", "wide"])
def test_panels_keep_the_order_of_each_element(name, target):
    g = graph(MATCHED[name])
    assert rewritten(g, target), "the rule fits"
    plain = built(g, target)
    tiled = [rewrite_nests(kernel, target) for kernel in plain.kernels]
    for values in SIZES:
        sizes = sized(g, values)
        for a, b in zip(
            run(g, assembled(g, plain, plain.kernels), sizes), run(g, assembled(g, plain, tiled), sizes), strict=True
        ):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_sum_of_products_of_rows_and_columns(name):
    assert not rewritten(graph(OTHERS[name]))


def test_without_fused_additions_the_rule_does_not_apply():
    """The chain of separate products and sums has no tile in registers that keeps its bits."""
    assert not rewritten(graph(matmul(X, W)), SMALL)


def test_the_panel_is_as_wide_as_two_vectors():
    for bytes_, width in ((16, 8), (32, 16), (64, 32)):
        (kernel,) = built(graph(matmul(X, W)), Target(vector_bytes=bytes_, fma=True)).kernels
        assert f"f32[512, {width}]" in kernel_text(rewrite_nests(kernel, Target(vector_bytes=bytes_, fma=True)))


def test_operands_that_cannot_be_read_by_strides_are_copied_once():
    (kernel,) = built(graph(MATCHED["padded"]), FUSED).kernels
    text = kernel_text(rewrite_nests(kernel, FUSED))
    assert text.index("_rows: f32[512, m + 3]") < text.index("_sums: "), "outside the loop over panels"
    assert "_rows" not in kernel_text(rewrite_nests(built(graph(MATCHED["x.T @ w"]), FUSED).kernels[0], FUSED))


def test_operands_of_columns_that_cannot_are_packed_here():
    (kernel,) = built(graph(MATCHED["padded w"]), FUSED).kernels
    assert "_panel: f32[256, " in kernel_text(rewrite_nests(kernel, FUSED))
    assert "_panel" not in kernel_text(rewrite_nests(built(graph(MATCHED["x.T @ w"]), FUSED).kernels[0], FUSED))


LAYOUTS = {
    "NN": (lambda a, b: a @ b),
    "TN": (lambda a, b: a.T @ b),
    "NT": (lambda a, b: a @ b.T),
    "TT": (lambda a, b: a.T @ b.T),
}
JITTED = {name: harp.jit(lambda a, b, c, f=f: hnp.maximum(f(a, b) + c, -1.0)) for name, f in LAYOUTS.items()}
EDGES = st.sampled_from([0, 1, 2, 3, 7, 13, 14, 15, 16, 17, 28, 31, 32, 33, 65])
DEPTHS = st.sampled_from([0, 1, 2, 5, 255, 256, 257, 600])


@settings(max_examples=60)
@given(st.sampled_from(sorted(LAYOUTS)), st.sampled_from(["f4", "f8"]), EDGES, DEPTHS, EDGES)
def test_compiled_products(layout, dtype, rows, depth, columns):
    rng = np.random.default_rng(rows * 1000 + columns)
    a, b = rng.normal(size=(rows, depth)).astype(dtype), rng.normal(size=(depth, columns)).astype(dtype)
    c = rng.normal(size=columns).astype(dtype)
    given = (np.ascontiguousarray(x.T if side == "T" else x) for side, x in zip(layout, (a, b), strict=True))
    found = np.asarray(JITTED[layout](*given, c))
    exact = np.maximum(a.astype("f8") @ b.astype("f8") + c, -1.0)
    bound = np.abs(a).astype("f8") @ np.abs(b).astype("f8") + np.abs(c)
    assert (np.abs(found - exact) <= (depth + 2) * np.finfo(dtype).eps * bound).all()
    assert JITTED[layout].compilations <= 2, "one for each dtype"


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_row_and_a_column_have_the_same_bits_in_every_batch(layout, dtype):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(47, 300)).astype(dtype), rng.normal(size=(300, 70)).astype(dtype)
    f = harp.jit(LAYOUTS[layout])

    def product(a, b):
        given = (np.ascontiguousarray(x.T if side == "T" else x) for side, x in zip(layout, (a, b), strict=True))
        return np.asarray(f(*given))

    whole = product(a, b)
    for count in (1, 2, 3, 4, 13, 14, 15, 16, 17, 29, 46):
        np.testing.assert_array_equal(product(a[:count], b), whole[:count])
        np.testing.assert_array_equal(product(a, b[:, :count]), whole[:, :count])
    assert f.compilations == 1


def test_special_values():
    """What stands beside a column, also in padding, does not spread."""
    a, b = np.ones((20, 9), "f4"), np.ones((9, 40), "f4")
    a[3, 2], b[5, 33], b[1, 7] = np.inf, np.nan, -np.inf
    found = np.asarray(harp.jit(lambda a, b: a @ b)(a, b))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, (a.astype("f8") @ b.astype("f8")).astype("f4"))


def test_inputs_of_no_elements():
    f = harp.jit(lambda a, b: a @ b)
    assert np.asarray(f(np.ones((0, 3)), np.ones((3, 5)))).shape == (0, 5)
    np.testing.assert_array_equal(f(np.ones((4, 0)), np.ones((0, 5))), np.zeros((4, 5)))


THIN = {
    "x @ w": (lambda x, w: x @ w, "mk", "kn"),
    "x.T @ w": (lambda x, w: x.T @ w, "km", "kn"),
    "x @ w.T": (lambda x, w: x @ w.T, "mk", "nk"),
    "x.T @ w.T": (lambda x, w: x.T @ w.T, "km", "nk"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", THIN)
def test_one_row_and_one_column_have_the_bits_that_they_have_among_many(name, dtype):
    function, left, right = THIN[name]
    compiled = harp.jit(function)
    rng = np.random.default_rng(3)
    for m, k, n in [(1, 5, 9), (40, 1, 1), (33, 16, 40), (70, 47, 3), (2, 300, 17), (600, 21, 2), (50, 0, 4)]:
        size = {"m": m, "k": k, "n": n}
        x, w = (rng.standard_normal([size[axis] for axis in axes]).astype(dtype) for axes in (left, right))
        whole = np.asarray(compiled(x, w))
        np.testing.assert_allclose(whole, function(x.astype(np.float64), w.astype(np.float64)), rtol=1e-3, atol=1e-4)
        row, column = x.take([m - 1], left.index("m")), w.take([n - 1], right.index("n"))
        np.testing.assert_array_equal(np.asarray(compiled(row, w)), whole[-1:])
        np.testing.assert_array_equal(np.asarray(compiled(x, column)), whole[:, -1:])
        np.testing.assert_array_equal(np.asarray(compiled(row, column)), whole[-1:, -1:])
    assert compiled.compilations == 1


@pytest.mark.parametrize("heads", ["bhne", "bhen"])
@pytest.mark.parametrize(
    "sizes", [(2, 7, 40, 3, 33), (1, 1, 1, 1, 1), (0, 3, 4, 2, 3), (3, 0, 2, 2, 2), (2, 5, 3, 4, 64)]
)
def test_sums_over_two_axes_are_panels_of_products(heads, sizes):
    """The gradient of the weights before a head split: no loop of single products is left."""
    b, n, d, h, e = sizes
    rng = np.random.default_rng(0)
    x, q = rng.normal(size=(b, n, d)).astype("f4"), rng.normal(size=(b, h, n, e)).astype("f4")
    q = q if heads == "bhne" else np.ascontiguousarray(q.transpose(0, 1, 3, 2))
    equation = f"bnd,{heads}->dhe"
    f = harp.jit(lambda x, q: hnp.einsum(equation, x, q))
    np.testing.assert_allclose(np.asarray(f(x, q)), np.einsum(equation, x, q), rtol=1e-4, atol=1e-4)
    source = f.lower(x, q).source
    if find_toolchain() is not None and "harp_gemm" in source:
        assert not [line for line in source.splitlines() if "thread0[" in line and "fma" in line]


def windows(x: harp.Array, w: harp.Array, border: int) -> harp.Array:
    """Sums over channels and windows of an image with zeros round it: out[o, y, x]."""
    image, kernel = node_of(x), node_of(w)
    (c, height, width), (o, _, h, b) = image.shape, kernel.shape
    domain = (o, height + 2 * border - h + 1, width + 2 * border - b + 1, c, h, b)
    at = positions(domain)
    rows, columns = at[1] + at[4] - border, at[2] + at[5] - border
    inside = (rows, height - 1 - rows, columns, width - 1 - columns) if border else ()
    shown = view.view(image, domain, (at[3], rows, columns), inside, const(0, image.dtype))
    weights = view.view(kernel, domain, (at[0], at[3], at[4], at[5]))
    return map_reduce(lambda p, q: apply(Op.MUL, p, q), [shown, weights], domain, Reduce.SUM, (3, 4, 5))


@pytest.mark.parametrize("border", [0, 1])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_over_windows_are_panels_of_all_that_a_window_has(border, dtype):
    f = harp.jit(lambda x, w: windows(x, w, border))
    rng = np.random.default_rng(0)
    for c, height, width, o, h, b in [
        (3, 9, 20, 5, 3, 3),
        (40, 4, 33, 6, 3, 2),
        (1, 3, 3, 1, 3, 3),
        (0, 4, 5, 3, 2, 2),
    ]:
        x, w = rng.normal(size=(c, height, width)).astype(dtype), rng.normal(size=(o, c, h, b)).astype(dtype)
        padded = np.pad(x.astype("f8"), [(0, 0), (border, border), (border, border)])
        shown = np.lib.stride_tricks.sliding_window_view(padded, (h, b), (1, 2))
        expected = np.einsum("cyxij,ocij->oyx", shown, w.astype("f8"))
        np.testing.assert_allclose(np.asarray(f(x, w)), expected, rtol=1e-4, atol=1e-4)
    assert f.compilations == 1
    if find_toolchain() is not None and "harp_gemm" in (source := f.lower(x, w).source):
        assert "harp_gemm_panel" not in source, "a panel for each row of a window would be a few elements"
