"""Rows of tables, positions as waves, vectors turned by their positions, against formulas in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import DTypeError, ShapeError
from harp.trace.graph.node import Scatter

RNG = np.random.default_rng(0)


def test_embedding():
    table, at = RNG.normal(size=(5, 3)), np.array([[1, 4], [1, 0]])
    npt.assert_array_equal(nn.embedding(at, table), table[at])
    weights = RNG.normal(size=(2, 2, 3))
    gradient = harp.grad(lambda table: hnp.sum(weights * nn.embedding(at, table)))
    expected = np.zeros_like(table)
    np.add.at(expected, at, weights)
    npt.assert_allclose(gradient(table), expected, rtol=1e-12)
    graph = harp.trace(lambda table, at: harp.grad(lambda t: hnp.sum(nn.embedding(at, t) ** 2))(table), table, at)
    assert any(isinstance(node, Scatter) for node in graph.nodes())
    with pytest.raises(DTypeError, match="embedding takes integers first, not float64"):
        nn.embedding(table, at)


def test_sinusoidal_positions():
    angles = np.arange(7)[:, None] / 1e4 ** (np.arange(3) * 2 / 5)
    found = np.asarray(nn.sinusoidal_positions(7, 5))
    npt.assert_allclose(found[:, ::2], np.sin(angles), rtol=1e-12)
    npt.assert_allclose(found[:, 1::2], np.cos(angles)[:, :2], rtol=1e-12)
    by_shape = harp.jit(lambda x: nn.sinusoidal_positions(x.shape[0], x.shape[1], dtype="float32"))
    for shape in ((7, 5), (0, 2), (1, 1), (3, 0)):
        npt.assert_allclose(by_shape(np.zeros(shape)), nn.sinusoidal_positions(*shape), rtol=1e-6, atol=1e-7)
    assert by_shape.compilations == 1


def turned(x, positions, interleaved):
    """As complex numbers times exp(i*angle)."""
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    angles = positions[..., None, None] / 1e4 ** (np.arange(half) / half)
    z = (a + 1j * b) * np.exp(1j * angles)
    return np.stack((z.real, z.imag), -1).reshape(x.shape) if interleaved else np.concatenate((z.real, z.imag), -1)


@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary_embedding(interleaved):
    x = RNG.normal(size=(2, 5, 3, 8))
    found = nn.rotary_embedding(x, interleaved=interleaved)
    npt.assert_allclose(found, turned(x, np.arange(5), interleaved), rtol=1e-10, atol=1e-12)
    at = np.array([[3, 0, 1, 8, 2], [1, 1, 7, 5, 0]])
    found = nn.rotary_embedding(x, at, interleaved=interleaved)
    npt.assert_allclose(found, turned(x, at, interleaved), rtol=1e-10, atol=1e-12)
    ahead = np.moveaxis(x, 1, 2)
    found = nn.rotary_embedding(ahead, interleaved=interleaved, axis=2)
    npt.assert_allclose(np.moveaxis(found, 2, 1), turned(x, np.arange(5), interleaved), rtol=1e-10, atol=1e-12)


def test_products_depend_on_distances():
    q, k = RNG.normal(size=(2, 1, 1, 4))
    at = np.array([0, 10, 1000])[:, None]
    products = [np.sum(nn.rotary_embedding(q, p) * nn.rotary_embedding(k, p + 3)) for p in at]
    npt.assert_allclose(products, products[0], rtol=1e-9)
    far = np.array([1_000_001])
    found = nn.rotary_embedding(q.astype("float32"), far)
    npt.assert_allclose(found, turned(q, far, False), rtol=1e-5, atol=1e-6)
    assert str(nn.rotary_embedding(hnp.asarray(q).astype("bfloat16")).dtype) == "bfloat16"


def test_errors():
    with pytest.raises(ShapeError, match="which has 3"):
        nn.rotary_embedding(np.ones((2, 1, 3)))
    with pytest.raises(DTypeError, match="rotary_embedding takes floats"):
        nn.rotary_embedding(np.ones((2, 1, 4), int))
