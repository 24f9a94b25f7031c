"""The adjoints of views, each against np.add.at, at several sizes, 0 and 1 included."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.trace.eval.interpret import interpret
from harp.trace.graph import view as v
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import MapReduce, Scatter, View, fresh_input, positions, walk
from harp.trace.graph.verify import verify_graph
from harp.trace.index.division import ceildiv, floordiv, maximum, minimum, mod, relu
from harp.trace.index.polynomial import (
    ONE,
    ZERO,
    FloorDiv,
    Symbol,
    as_index,
    evaluate,
    loop,
    loops_in,
    of,
    value_atoms,
)
from harp.trace.index.solving import certain
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import const
from harp.transforms.autodiff.view_rules import view_adjoint

N, M, K = (of(Symbol(0, k, name)) for k, name in enumerate("nmk"))
OUTSIDE = const(-1.0, f64)


def src(*shape):
    return fresh_input("x", tuple(map(as_index, shape)), f64)


def reshape(node, *shape):
    return v.reshape(node, tuple(map(as_index, shape)))


def at(source, shape, index, conditions=()):
    """A view by its index map, given as a function of the loops."""
    shape = tuple(map(as_index, shape))
    index, conditions = (tuple(map(as_index, f(*positions(shape)))) if callable(f) else f for f in (index, conditions))
    return View(source, shape, index, conditions, OUTSIDE if conditions else None)


def reads(node, sizes):
    """For each position of a view of an Input, the flat position that it reads, or -1."""
    shape = tuple(evaluate(p, sizes.__getitem__) for p in node.src.shape)
    numbers = np.arange(np.prod(shape, dtype=int), dtype=float).reshape(shape)
    return interpret(Graph((node.src,), (node,)), [numbers], sizes)[0].astype(int), shape


def check(node, sizes):
    """The adjoint at these sizes adds up exactly what np.add.at does."""
    ct = fresh_input("ct", node.shape, f64)
    graph = Graph((ct,), (view_adjoint(node, ct),))
    verify_graph(graph)
    assert graph.outputs[0].shape == node.src.shape
    taken, shape = reads(node, sizes)
    given_ = np.random.default_rng(0).integers(1, 1000, taken.shape).astype(float)
    expected = np.zeros(int(np.prod(shape)))
    np.add.at(expected, taken[taken >= 0], given_[taken >= 0])
    npt.assert_array_equal(interpret(graph, [given_], sizes)[0], expected.reshape(shape))
    return graph


def named(**sizes):
    symbols = {"n": N, "m": M, "k": K}
    return {symbols[name].atom: size for name, size in sizes.items()}


SIZES = [
    named(n=n, m=m, k=k) for n, m, k in [(5, 4, 3), (1, 1, 1), (0, 3, 2), (3, 0, 2), (2, 3, 0), (7, 2, 5), (1, 6, 4)]
]

VIEWS = {
    "permute": lambda: v.permute(src(N, M, K), (2, 0, 1)),
    "transpose": lambda: v.permute(src(N, M), (1, 0)),
    "expand new axis": lambda: v.expand(src(M), (N, M), (False,)),
    "expand stretched": lambda: v.expand(src(N, 1, K), (N, M, K), (False, True, False)),
    "expand all": lambda: v.expand(src(), (N, M), ()),
    "insert": lambda: v.insert_axes(src(N, M), (0, 2)),
    "flip": lambda: v.flip(src(N, M), (0, 1)),
    "pad": lambda: v.pad(src(N, M), (2, 0), (1, 3), OUTSIDE),
    "pad by a size": lambda: v.pad(src(N, M), (K, 1), (0, K), OUTSIDE),
    "crop": lambda: v.pad(src(N + 2, M + 3), (-1, 0), (-1, -3), OUTSIDE),
    "prefix": lambda: v.take_slices(src(N + K), (ZERO,), (1,), (N,)),
    "suffix": lambda: v.take_slices(src(N + K), (K,), (1,), (N,)),
    "step": lambda: v.take_slices(src(N), (ZERO,), (3,), (ceildiv(N, 3),)),
    "step from 1": lambda: v.take_slices(src(N + 1), (ONE,), (2,), (ceildiv(N, 2),)),
    "negative step": lambda: v.take_slices(src(N), (N - 1,), (-2,), (ceildiv(N, 2),)),
    "one row": lambda: v.drop_axes(src(N + 1, M), {0: N}),
    "flatten": lambda: reshape(src(N, M, K), N * M * K),
    "merge": lambda: reshape(src(N, M, K), N, M * K),
    "split": lambda: reshape(src(N * M, K), N, M, K),
    "merge and split": lambda: reshape(src(N, M * K), N * M, K),
    "split by 4": lambda: reshape(src(N * 4, M), N, 4, M),
    "insert by reshape": lambda: reshape(src(N, M), N, 1, M),
    "split and swap": lambda: v.permute(reshape(src(N, M * K), N, M, K), (1, 0, 2)),
    "swap and merge": lambda: reshape(v.permute(src(N, M, K), (1, 0, 2)), M, N * K),
    "swap and flatten": lambda: reshape(v.permute(src(N, M, K), (2, 0, 1)), M * N * K),
    "heads": lambda: reshape(v.permute(reshape(src(N, M * K), N, M, K), (1, 0, 2)), M * N, K),
    "radices": lambda: v.permute(reshape(src(N, 4, 6), N, 8, 3), (2, 0, 1)),
    "unaligned": lambda: v.permute(reshape(src(N, 4, 6), 8, 3, N), (2, 1, 0)),
    "prefix of merged": lambda: v.take_slices(reshape(src(N, 3), N * 3), (ZERO,), (1,), (relu(N * 3 - 2),)),
    "suffix of merged": lambda: v.take_slices(reshape(src(N, M), N * M), (ONE,), (1,), (relu(N * M - 1),)),
    "step of merged": lambda: v.take_slices(reshape(src(N, M), N * M), (ZERO,), (2,), (ceildiv(N * M, 2),)),
    "split of slice": lambda: reshape(v.take_slices(src(N * M + 5), (ONE * 5,), (1,), (N * M,)), M, N),
    "flip of merged": lambda: v.flip(reshape(src(N, M), N * M), (0,)),
    "windows": lambda: at(src(N + K), (N + 1, K), lambda i, j: (i + j,)),
    "windows of 3": lambda: at(src(N + 2), (N, 3), lambda i, j: (i + j,)),
    "windows, stride 2, dilation 3": lambda: at(src(2 * N + 7), (N + 1, 3), lambda i, j: (2 * i + 3 * j,)),
    "windows, stride 2, dilation k": lambda: at(src(2 * N + 2 * K), (N, 3), lambda i, j: (2 * i + K * j,)),
    "windows of 3, stride 2": lambda: at(src(2 * N + 3), (N + 1, 3), lambda i, j: (2 * i + j,)),
    "windows of 5, stride 3, from 1": lambda: at(src(3 * N + 9), (N + 1, 5), lambda i, j: (3 * i + j + 1,)),
    "windows of k, stride 2": lambda: at(src(2 * N + K), (N + 1, K), lambda i, j: (2 * i + j,)),
    "windows of a rim, stride 2": lambda: at(
        src(N), (ceildiv(N + 1, 2), 4), lambda i, j: (2 * i + j - 2,), lambda i, j: (2 * i + j - 2, N + 1 - 2 * i - j)
    ),
    "windows that lie backwards, stride 3": lambda: at(src(3 * N + 4), (N + 1, 4), lambda i, j: (3 * i - j + 3,)),
    "images, strides 2 and 3": lambda: at(
        src(2 * N + 3, K, 3 * M + 4), (N, K, M, 3, 4), lambda i, k, j, a, b: (2 * i + a, k, 3 * j + b)
    ),
    "disjoint windows": lambda: at(src(3 * N), (N, 3), lambda i, j: (3 * i + j,)),
    "stride above window": lambda: at(src(4 * N), (N, 3), lambda i, j: (4 * i + j,)),
    "rows of m out of more": lambda: at(src(N * M + K), (N, M), lambda i, j: (M * i + j,)),
    "images": lambda: at(src(N + 2, M + 2), (N, M, 3, 3), lambda i, j, a, b: (i + a, j + b)),
    "diagonal": lambda: at(src(N, N), (N,), lambda i: (i, i)),
    "anti-diagonal": lambda: at(src(N, N), (N,), lambda i: (i, N - 1 - i)),
    "diagonal with offset": lambda: at(src(N, N + 2), (N,), lambda i: (i, i + 2)),
    "repeat": lambda: at(src(N), (N * 3,), lambda i: (floordiv(i, 3),)),
    "repeat by a size": lambda: at(src(N), (N * K,), lambda i: (floordiv(i, K),)),
    "part of a repeat": lambda: at(src(N), (relu(N * 3 - 2),), lambda i: (floordiv(i, 3),)),
    "flip of repeat": lambda: v.flip(at(src(N), (N * 3,), lambda i: (floordiv(i, 3),)), (0,)),
    "step of repeat": lambda: v.take_slices(
        at(src(N), (N * 3,), lambda i: (floordiv(i, 3),)), (ZERO,), (2,), (ceildiv(N * 3, 2),)
    ),
    "windows of repeat": lambda: at(src(N + 1), (2 * N, 3), lambda i, j: (floordiv(i + j, 2),)),
    "tile": lambda: at(src(N), (N * 4,), lambda i: (mod(i, N),)),
    "tile by a size": lambda: at(src(N), (K * N,), lambda i: (mod(i, N),)),
    "roll": lambda: at(src(N), (N,), lambda i: (mod(i + K, N),)),
    "middle digit": lambda: at(src(M), (N * M * 2,), lambda i: (mod(floordiv(i, 2), M),)),
    "triangle": lambda: at(src(N, M), (N, M), lambda i, j: (i, j), lambda i, j: (j - i,)),
    "triangle of expanded": lambda: at(src(M), (N, M), lambda i, j: (j,), lambda i, j: (j - i - 1,)),
    "masked reshape": lambda: v.view(
        reshape(src(N, M), N * M), (N * M,), (loop(0, N * M),), (loop(0, N * M) - 3,), OUTSIDE
    ),
    "Toeplitz": lambda: at(src(N + M), (N, M), lambda i, j: (i - j + M,)),
    "shear": lambda: at(src(N, N + M), (N, M), lambda i, j: (i, i + j)),
    "2i + 3j": lambda: at(src(2 * N + 3 * M), (N, M), lambda i, j: (2 * i + 3 * j,)),
    "repeated constant": lambda: at(src(3, M), (N, M), lambda i, j: (2, j)),
    "pad of pad": lambda: v.pad(v.pad(src(N), (1,), (K,), OUTSIDE), (2,), (-1,), OUTSIDE),
    "dilate": lambda: at(src(N), (N * 3,), lambda i: (floordiv(i, 3),), lambda i: (3 * floordiv(i, 3) - i,)),
    "blocks": lambda: v.permute(reshape(reshape(src(N, M, 6), N, M, 3, 2), N * M, 3, 2), (2, 1, 0)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_adjoint_is_add_at(name):
    node = VIEWS[name]()
    assert isinstance(node, View)
    for sizes in SIZES:
        check(node, sizes)


def test_the_adjoint_of_a_bijection_is_one_view_without_conditions():
    for name in (
        "permute",
        "flip",
        "flatten",
        "merge",
        "split",
        "split and swap",
        "swap and merge",
        "heads",
        "radices",
    ):
        node = VIEWS[name]()
        made = view_adjoint(node, ct := fresh_input("ct", node.shape, f64))
        assert isinstance(made, View), name
        assert made.src is ct and not made.conditions, name


def test_what_a_view_does_not_use_is_summed_first():
    node = VIEWS["expand new axis"]()
    made = view_adjoint(node, fresh_input("ct", node.shape, f64))
    assert [type(x).__name__ for x in walk((made,))] == ["Input", "MapReduce"]


def test_the_gradient_of_a_filter_sums_what_it_read():
    """Of windows with a rim of zeros, each weight takes as many products as there are elements, without conditions."""
    windows = at(src(N), (N + K - 1, K), lambda i, k: (i - k,), lambda i, k: (i - k, N - 1 - i + k))
    weight = at(src(K), (N + K - 1, K), lambda i, k: (k,), lambda i, k: (i - k, N - 1 - i + k))
    for node in (windows, weight):
        for sizes in ((5, 0, 3), (1, 0, 4), (4, 0, 1)):
            check(node, {N.atom: sizes[0], K.atom: sizes[2]})
    adjoint = view_adjoint(weight, fresh_input("ct", weight.shape, f64))
    assert isinstance(adjoint, MapReduce) and adjoint.domain == (K, N)
    assert not any(n.conditions for n in walk((adjoint,)) if isinstance(n, View))


def test_repeats_of_a_tile_are_as_many_as_it_says():
    """Of i mod n for i < 3*n, each element is read three times: no more are asked for."""
    tiled = at(src(N), (3 * N,), lambda i: (mod(i, N),))
    for n in (0, 1, 4):
        check(tiled, {N.atom: n})
    assert view_adjoint(tiled, fresh_input("ct", tiled.shape, f64)).domain == (N, as_index(3))


def test_of_windows_with_a_stride_only_elements_that_are_there_are_added():
    """Of a window of 3 or 4 with stride 2, each element is in two windows at most, and no position is divided."""
    for name in ("windows of 3, stride 2", "windows of a rim, stride 2"):
        node = VIEWS[name]()
        adjoint = view_adjoint(node, fresh_input("ct", node.shape, f64))
        (total,) = (n for n in walk((adjoint,)) if isinstance(n, MapReduce))
        assert [total.domain[axis] for axis in total.axes] == [as_index(2)]
        read = [p for n in walk((total,)) if isinstance(n, View) for p in (*n.index, *n.conditions)]
        divided = [atom for p in read for atom in value_atoms(p) if isinstance(atom, FloorDiv)]
        assert read and not any(loops_in(atom.num) for atom in divided)


def test_disjoint_windows_are_gathered_without_a_sum():
    node = VIEWS["disjoint windows"]()
    assert isinstance(view_adjoint(node, fresh_input("ct", node.shape, f64)), View)


@pytest.mark.parametrize(
    "index",
    [
        lambda i, j: minimum(i, 2),
        lambda i, j: maximum(i - 2, 2 - i),
        lambda i, j: i * i,
        lambda i, j: i * j,
        lambda i, j: floordiv(i, 2) + floordiv(i, 3),
        lambda i, j: K * i,  # k may be 0, and then all rows read the same element
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_what_cannot_be_inverted_is_scattered(index, masked):
    node = at(src(N * M * (K + 1) + N * N + 9), (N, M), lambda i, j: (index(i, j),), ())
    if masked:
        node = View(node.src, node.shape, node.index, tuple(p - 1 for p in positions(node.shape)), OUTSIDE)
    for sizes in SIZES:
        assert any(isinstance(n, Scatter) for n in check(node, sizes).nodes())


def test_a_long_chain_of_views_has_a_gradient():
    """What repeat, tile, reshape and a strided slice compose to is not inverted."""

    def sampled(x):
        return hnp.sum(hnp.tile(hnp.repeat(x, 3, axis=0).T, 2).reshape(-1)[:30:7] ** 3)

    once = harp.jit(harp.grad(sampled))
    twice = harp.jit(harp.grad(lambda x: hnp.sum(harp.grad(sampled)(x) ** 2)))
    for shape in [(3, 4), (5, 2), (1, 11)]:
        x = np.random.default_rng(0).normal(size=shape)
        count = np.zeros(x.size)
        np.add.at(count, np.tile(np.repeat(np.arange(x.size).reshape(shape), 3, 0).T, 2).reshape(-1)[:30:7], 1)
        count = count.reshape(shape)
        npt.assert_allclose(once(x), 3 * count * x**2, rtol=1e-14)
        npt.assert_allclose(twice(x), 2 * 3 * count * x**2 * 6 * count * x, rtol=1e-14)


def test_bounds_of_a_division_at_the_ends_of_its_loops():
    i = loop(0, M * K)
    assert certain(M - 1 - floordiv(i, K))
    assert not certain(M - 2 - floordiv(i, K))
    assert not certain(M - 1 - floordiv(loop(0, M * K + 1), K))
    assert certain(floordiv(i + K, K) - 1)
    assert not certain(floordiv(i + K, K) - 2)


def _step(draw, node):
    """One more random view on top; sizes stay at least 0 for all values of n and m."""
    shape = node.shape
    kinds = ["permute", "flip", "pad", "step", "merge", "expand", "crop", "repeat", "tile", "window", "split"]
    kind = draw(st.sampled_from(kinds))
    axis = draw(st.integers(0, len(shape) - 1))
    size = shape[axis]

    def along(extent, index, conditions=()):
        new = (*shape[:axis], extent, *shape[axis + 1 :])
        here = positions(new)
        return v.view(
            node,
            new,
            (*here[:axis], index(here[axis]), *here[axis + 1 :]),
            tuple(conditions(here[axis])) if conditions else (),
            OUTSIDE if conditions else None,
        )

    if kind == "permute":
        return v.permute(node, draw(st.permutations(range(len(shape)))))
    if kind == "flip":
        return v.flip(node, (axis,))
    if kind in ("pad", "crop"):
        low, high = draw(st.integers(0, 2)), draw(st.integers(0, 2))
        extent, low = (size + low + high, low) if kind == "pad" else (relu(size - low - high), -low)
        return along(extent, lambda i: i - low, lambda i: (i - low, size - 1 - i + low))
    if kind == "step":
        step = draw(st.integers(2, 3))
        return along(ceildiv(size, step), lambda i: i * step)
    if kind == "merge" and len(shape) > 1:
        axis = min(axis, len(shape) - 2)
        return v.reshape(node, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))
    if kind == "split":
        extent = floordiv(size, 2)
        new = (*shape[:axis], extent, as_index(2), *shape[axis + 1 :])
        here = positions(new)
        return v.view(node, new, (*here[:axis], here[axis] * 2 + here[axis + 1], *here[axis + 2 :]))
    if kind == "expand" and len(shape) < 4:
        return v.expand(node, (draw(st.sampled_from([N, as_index(2)])), *shape), (False,) * len(shape))
    if kind == "repeat":
        return along(size * 2, lambda i: floordiv(i, 2))
    if kind == "tile":
        return along(size * 2, lambda i: mod(i, size))
    if kind == "window" and len(shape) < 4:
        step, length = draw(st.integers(1, 3)), draw(st.integers(2, 4))
        new = (*shape[:axis], relu(floordiv(size - length, step) + 1), as_index(length), *shape[axis + 1 :])
        here = positions(new)
        return v.view(node, new, (*here[:axis], step * here[axis] + here[axis + 1], *here[axis + 2 :]))
    return node


@settings(max_examples=150)
@given(st.data())
def test_random_compositions(data):
    node = src(*data.draw(st.sampled_from([(N, M), (N * 2, 3), (N,), (2, N, M), (N + 1, M)])))
    for _ in range(data.draw(st.integers(1, 3))):
        node = _step(data.draw, node)
    while isinstance(node, View):
        n, m = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 4))
        inner = View(fresh_input("x", node.src.shape, f64), node.shape, node.index, node.conditions, node.fill)
        check(inner, {N.atom: n, M.atom: m, K.atom: 0})
        node = node.src


@pytest.mark.parametrize(
    "view",
    [
        at(src(N), (M,), lambda i: (ZERO,)),
        at(src(N), (N + 6,), lambda i: (ZERO,), lambda i: (2 - i,)),
        at(src(N), (N + 6,), lambda i: (N - 1,), lambda i: (i - N - 3,)),
        at(src(N, M), (N, K), lambda i, j: (i, ZERO)),
        at(src(N, M), (M, K), lambda i, j: (N - 1, i), lambda i, j: (j - 2,)),
    ],
    ids=repr,
)
def test_what_is_read_many_times_is_summed_once(view):
    """No sum has more iterations than source and cotangent have elements."""
    graph = Graph((), (view_adjoint(view, fresh_input("ct", view.shape, f64)),))
    rank = max(len(view.shape), len(view.src.shape))
    assert all(len(node.domain) <= rank for node in graph.nodes() if isinstance(node, MapReduce))
    for n, m, k in ((3, 4, 2), (1, 1, 1), (5, 2, 3)):
        check(view, {N.atom: n, M.atom: m, K.atom: k})


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
@pytest.mark.parametrize("back", [None, (2, 0, 1)], ids=["reshaped", "and transposed"])
def test_reshapes_of_transposed_arrays_are_undone_without_a_sum(order, back):
    """So their gradients are linear in the number of elements; between symbolic sizes."""

    def moved(xp, y):
        y = xp.reshape(xp.transpose(y, order), y.shape)
        return y if back is None else xp.transpose(y, back)

    slope = harp.jit(harp.grad(lambda y, w: hnp.sum(moved(hnp, y) * w)))
    for shape in [(3, 4, 5), (1, 6, 2), (7, 1, 1), (20, 30, 40), (2, 0, 3)]:
        y = np.random.default_rng(0).normal(size=shape)
        w = np.random.default_rng(1).normal(size=moved(np, y).shape)
        places = moved(np, np.arange(y.size).reshape(shape)).ravel()
        expected = np.zeros(y.size)
        expected[places] = w.ravel()
        npt.assert_array_equal(np.asarray(slope(y, w)), expected.reshape(shape))
    assert slope.compilations == 1
    assert " over [" not in str(slope.lower(y, w).graph) and "scatter" not in str(slope.lower(y, w).graph)
