"""Normalisations against their formulas in NumPy, dropout by its moments; gradients against differences."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import ArgumentError, DTypeError, ShapeError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 6, 5)) * 3 + 1
W, BIAS = RNG.normal(size=(2, 6))


def normal(x, axes, epsilon=1e-5):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


def of_channels(w):
    return w[:, None]


CASES = {
    "layer": (lambda x: nn.layer_norm(x, W[:5], BIAS[:5]), lambda x: normal(x, -1) * W[:5] + BIAS[:5]),
    "two axes": (lambda x: nn.layer_norm(x, axis=(1, 2), epsilon=0.1), lambda x: normal(x, (1, 2), 0.1)),
    "rms": (
        lambda x: nn.rms_norm(x, W[:5]),
        lambda x: x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * W[:5],
    ),
    "batch": (
        lambda x: nn.batch_norm(x, hnp.zeros(6), hnp.ones(6), W, BIAS, training=True)[0],
        lambda x: normal(x, (0, 2)) * of_channels(W) + of_channels(BIAS),
    ),
    "group": (
        lambda x: nn.group_norm(x, 3, W, BIAS),
        lambda x: normal(x.reshape(4, 3, 2, 5), (2, 3)).reshape(x.shape) * of_channels(W) + of_channels(BIAS),
    ),
    "instance": (lambda x: nn.instance_norm(x, W), lambda x: normal(x, 2) * of_channels(W)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    f, expected = CASES[name]
    npt.assert_allclose(f(X), expected(X), rtol=1e-10, atol=1e-12)
    ahead, weights = RNG.normal(size=(2, *X.shape))
    slope = np.sum(harp.grad(lambda x: hnp.sum(weights * f(x)))(X) * ahead)
    by_steps = np.sum(weights * (expected(X + 1e-5 * ahead) - expected(X - 1e-5 * ahead))) / 2e-5
    npt.assert_allclose(slope, by_steps, rtol=1e-6)


def test_channels_last():
    last = np.moveaxis(X, 1, -1)
    for f in (lambda x, **o: nn.group_norm(x, 2, W, **o), lambda x, **o: nn.instance_norm(x, W, **o)):
        npt.assert_allclose(np.moveaxis(f(last, channels_last=True), -1, 1), f(X), rtol=1e-10, atol=1e-12)
    found, _ = nn.batch_norm(last, np.zeros(6), np.ones(6), training=True, channels_last=True)
    npt.assert_allclose(np.moveaxis(found, -1, 1), normal(X, (0, 2)), rtol=1e-10, atol=1e-12)


def test_running_statistics():
    mean, variance = RNG.normal(size=6), RNG.random(6)
    _, (new, wide) = nn.batch_norm(X, mean, variance, training=True, momentum=0.25)
    npt.assert_allclose(new, 0.75 * mean + 0.25 * X.mean((0, 2)), rtol=1e-12)
    npt.assert_allclose(wide, 0.75 * variance + 0.25 * X.var((0, 2), ddof=1), rtol=1e-12)
    found, (kept, also) = nn.batch_norm(X, mean, variance, W, BIAS)
    expected = (X - of_channels(mean)) / np.sqrt(of_channels(variance) + 1e-5) * of_channels(W) + of_channels(BIAS)
    npt.assert_allclose(found, expected, rtol=1e-12)
    npt.assert_array_equal(kept, mean)
    npt.assert_array_equal(also, variance)
    slope = harp.grad(lambda x: hnp.sum(nn.batch_norm(x, mean, variance, training=True)[1][0]))(X)
    assert not np.any(slope)


def test_all_sizes_by_one_program():
    f = harp.jit(lambda x: (nn.layer_norm(x), nn.batch_norm(x, hnp.zeros(3), hnp.ones(3), training=True)))
    for batch in (4, 1, 9):
        x = RNG.normal(size=(batch, 3))
        layer, (_, (_, variance)) = f(x)
        npt.assert_allclose(layer, normal(x, -1), rtol=1e-10)
        npt.assert_allclose(variance, 0.9 + 0.1 * (x.var(0, ddof=1) if batch > 1 else 0), rtol=1e-10)
    assert np.asarray(f(np.ones((0, 3)))[0]).shape == (0, 3)
    assert f.compilations == 1


def test_squares_of_small_dtypes_do_not_overflow():
    x = np.array([300.0, 400.0], np.float16)
    found = nn.rms_norm(x)
    assert found.dtype == np.float16
    npt.assert_allclose(found, x / np.sqrt(125000.0), rtol=1e-3)


def test_dropout():
    key = harp.random.key(1)
    found = np.asarray(nn.dropout(key, np.ones((400, 500), np.float32), 0.2))
    assert found.dtype == np.float32
    assert set(np.unique(found).tolist()) == {0.0, 1.25}
    assert abs(found.mean() - 1) < 5e-3
    rows = np.asarray(nn.dropout(key, np.ones((40, 50)), 0.5, broadcast_axes=1))
    assert (rows == rows[:, :1]).all() and 0 < rows.mean() < 2
    npt.assert_array_equal(nn.dropout(key, X, 0.5, training=False), X)
    npt.assert_array_equal(nn.dropout(key, X, 0.0), X)
    assert not np.any(nn.dropout(key, X, 1.0))
    assert not np.any(harp.grad(lambda x: hnp.sum(nn.dropout(key, x, 1.0)))(X))
    gradient = harp.grad(lambda x: hnp.sum(nn.dropout(key, x, 0.3)))(X)
    npt.assert_allclose(gradient * X, nn.dropout(key, X, 0.3))


def test_errors():
    with pytest.raises(ArgumentError, match="rate of dropout is a probability"):
        nn.dropout(harp.random.key(0), X, 1.5)
    with pytest.raises(ShapeError, match="6 channels are no multiple of 4 groups"):
        nn.group_norm(X, 4)
    with pytest.raises(ShapeError, match="3 axes or more"):
        nn.instance_norm(X[0])
    with pytest.raises(DTypeError, match="layer_norm takes real numbers, not complex128"):
        nn.layer_norm(X + 0j)
    with pytest.raises(ArgumentError, match="algorithm of standardize"):
        nn.standardize(X, algorithm="slow")


def test_standardize_some_elements():
    counts = X > 0
    mean = np.where(counts, X, 0).sum(-1, keepdims=True) / counts.sum(-1, keepdims=True)
    variance = np.where(counts, (X - mean) ** 2, 0).sum(-1, keepdims=True) / counts.sum(-1, keepdims=True)
    found = nn.standardize(X, where=counts, algorithm="stable")
    npt.assert_allclose(found, (X - mean) / np.sqrt(variance + 1e-5), rtol=1e-10)
