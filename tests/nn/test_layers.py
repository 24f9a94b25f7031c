"""Convolutions, pools and windows of networks against windows by NumPy, and as adjoints of each other."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ArgumentError, ShapeError
from harp.trace.graph.node import Scatter
from tests.lax.windows import convolved, pooled, same

RNG = np.random.default_rng(0)
X, W = RNG.normal(size=(2, 4, 6, 7)), RNG.normal(size=(6, 2, 3, 2))
NO = [(0, 0)] * 2


@pytest.mark.parametrize(
    "options, pads",
    [
        ({"stride": 2, "padding": "same"}, same((6, 7), (3, 2), (2, 2))),
        ({"padding": "valid"}, NO),
        ({"padding": 1}, [(1, 1)] * 2),
        ({"stride": (1, 2), "padding": (1, 0)}, [(1, 1), (0, 0)]),
        ({"dilation": (2, 1), "padding": ((2, 1), (0, 3))}, [(2, 1), (0, 3)]),
    ],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_conv(options, pads, channels_last):
    steps, apart = (np.broadcast_to(options.get(name, 1), 2).tolist() for name in ("stride", "dilation"))
    expected = convolved(X, W, steps, pads, None, apart, groups=2)
    x, w = (np.moveaxis(X, 1, -1), np.transpose(W, (2, 3, 1, 0))) if channels_last else (X, W)
    expected = np.moveaxis(expected, 1, -1) if channels_last else expected

    def conv(x, w):
        return nn.conv(x, w, **options, groups=2, channels_last=channels_last)

    for f in (conv, harp.jit(conv)):
        npt.assert_allclose(f(x, w), expected, rtol=1e-10, atol=1e-12)
        npt.assert_allclose(f(x[1], w), expected[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_conv_in_any_number_of_dimensions(rank):
    x, w = RNG.normal(size=(2, 3, *[5] * rank)), RNG.normal(size=(4, 3, *[2] * rank))
    npt.assert_allclose(nn.conv(x, w), convolved(x, w, [1] * rank, [(0, 0)] * rank), rtol=1e-10, atol=1e-12)


def test_circular():
    w = W[:, :, :, :1].repeat(2, 1)
    around = np.pad(X, [(0, 0), (0, 0), (1, 1), (0, 0)], mode="wrap")
    npt.assert_allclose(nn.conv(X, w, padding="circular"), convolved(around, w, (1, 1), NO), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": (2, 1), "padding": (0, 1), "dilation": 2},
        {"stride": 2, "padding": "same"},
        {"padding": "valid"},
        {"stride": 2, "padding": 1, "groups": 2},
    ],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_conv_transpose_is_the_adjoint(options, channels_last):
    y, w = RNG.normal(size=(2, 4, 5, 3)), RNG.normal(size=(4, 3, 3, 3))
    if channels_last:
        y, w = np.moveaxis(y, 1, -1), np.transpose(w, (2, 3, 1, 0))
    forward = {name: value for name, value in options.items() if name != "output_padding"}
    found = np.asarray(nn.conv_transpose(y, w, **options, channels_last=channels_last))
    x = RNG.normal(size=found.shape)
    image = np.asarray(nn.conv(x, w, **forward, channels_last=channels_last))
    assert image.shape == y.shape
    npt.assert_allclose(np.sum(image * y), np.sum(found * x), rtol=1e-10)
    npt.assert_allclose(nn.conv_transpose(y[0], w, **options, channels_last=channels_last), found[0], rtol=1e-10)
    gradient = harp.grad(lambda y: hnp.sum(x * nn.conv_transpose(y, w, **options, channels_last=channels_last)))(y)
    npt.assert_allclose(gradient, image, rtol=1e-9, atol=1e-12)


POOLS = {"max_pool": (np.maximum, -np.inf), "min_pool": (np.minimum, np.inf)}


@pytest.mark.parametrize("name", POOLS)
def test_extrema(name):
    function, start = POOLS[name]
    pool = getattr(nn, name)
    one = (1, 1)
    for window, stride, padding in [((3, 2), None, "valid"), ((3, 3), 2, 1), ((2, 3), (1, 2), "same")]:
        steps = window if stride is None else tuple(np.broadcast_to(stride, 2))
        pads = NO if padding == "valid" else [(1, 1)] * 2 if padding == 1 else same((6, 7), window, steps)
        expected = pooled(function, start, X, (*one, *window), (*one, *steps), [*NO, *pads])
        npt.assert_array_equal(pool(X, window, stride, padding), expected)
        last = harp.jit(lambda x, w=window, s=stride, p=padding: pool(x, w, s, p, channels_last=True))
        npt.assert_array_equal(last(np.moveaxis(X, 1, -1)), np.moveaxis(expected, 1, -1))


def test_means():
    sums = pooled(np.add, 0.0, X, (1, 1, 3, 3), (1, 1, 2, 2), [*NO, (1, 1), (1, 1)])
    counts = pooled(np.add, 0.0, np.ones_like(X), (1, 1, 3, 3), (1, 1, 2, 2), [*NO, (1, 1), (1, 1)])
    f = harp.jit(lambda x: (nn.avg_pool(x, (3, 3), 2, 1), nn.avg_pool(x, (3, 3), 2, 1, count_include_pad=False)))
    for found, expected in zip(f(X), (sums / 9, sums / counts), strict=True):
        npt.assert_allclose(found, expected, rtol=1e-12)
    assert f(X[:, :1, :4, :5])[0].shape == (2, 1, 2, 3) and f.compilations == 1
    assert nn.avg_pool(np.arange(4), (2,)).dtype == "float64"
    half = np.full(9, 60000, "float16")
    half[::2] /= 3
    for means, sizes in ((nn.avg_pool(half, (4,)), [4, 4]), (nn.adaptive_avg_pool(half, (2,)), [5, 5])):
        starts = [0, 4]
        exact = [half[a : a + n].astype(float).mean() for a, n in zip(starts, sizes, strict=True)]
        assert means.dtype == "float16"
        npt.assert_array_equal(means, np.array(exact, "float16"))


@pytest.mark.parametrize("size", [(3, 2), (4, 5), (1, 7)])
def test_adaptive_pools(size):
    rows, columns = (
        [slice(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m in zip((6, 7), size, strict=True)
    )
    for pool, function in ((nn.adaptive_max_pool, np.max), (nn.adaptive_avg_pool, np.mean)):
        expected = np.stack([np.stack([function(X[:, :, r, c], (2, 3)) for c in columns], -1) for r in rows], -2)
        for f in (pool, harp.jit(pool, static_argnums=1)):
            npt.assert_allclose(f(X, size), expected, rtol=1e-12)
    npt.assert_allclose(nn.global_avg_pool(X), X.mean((2, 3)))
    npt.assert_allclose(nn.global_max_pool(X, 1, channels_last=True), X.max(2))


def test_fold_is_the_adjoint_of_unfold():
    options = {"stride": (2, 1), "padding": 1, "dilation": (1, 2)}
    shown = np.asarray(nn.unfold(X, (3, 2), **options))
    numbers = RNG.normal(size=shown.shape)
    fold = harp.jit(lambda v, x: nn.fold(v, x.shape[2:], **options))
    folded = np.asarray(fold(numbers, X))
    npt.assert_allclose(np.sum(shown * numbers), np.sum(folded * X), rtol=1e-10)
    graph = harp.trace(lambda v: nn.fold(v, (6, 7), **options), harp.f64[shown.shape])
    assert not any(isinstance(node, Scatter) for node in graph.nodes())
    npt.assert_allclose(harp.grad(lambda v: hnp.sum(X * nn.fold(v, (6, 7), **options)))(numbers), shown, rtol=1e-12)


def test_errors():
    with pytest.raises(ShapeError, match="as many axes as the kernel, or one less"):
        nn.conv(np.ones((3, 4)), np.ones((1, 1, 2, 2)))
    with pytest.raises(ArgumentError, match="padding is"):
        nn.conv(X, W, padding="full", groups=2)
    with pytest.raises(ShapeError, match="max_pool over 3 axes of an array of 2"):
        nn.max_pool(np.ones((3, 3)), (2, 2, 2))
    with pytest.raises(ShapeError, match="the window of max_pool must be at least 1"):
        nn.max_pool(np.ones(4), (0,))
    with pytest.raises(ShapeError, match="fold, axis 0 of the windows"):
        nn.fold(np.ones((2, 3)), (5,))
