"""Products, diagonals and powers of the standard: derivatives, errors, and sizes in `jit`."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, AxisError, ShapeError

RNG = np.random.default_rng(0)


def slope(function, x, step=1e-6):
    result = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = [x.copy(), x.copy()]
        moved[0][index] += step
        moved[1][index] -= step
        result[index] = (function(moved[0]) - function(moved[1])) / (2 * step)
    return result


Y = RNG.normal(size=(3, 3))
W = RNG.normal(size=(3, 3, 3))
DIFFERENTIABLE = {
    "vecdot": (lambda x: hnp.vecdot(x, Y), lambda x: np.vecdot(x, Y)),
    "vecdot0": (lambda x: hnp.vecdot(x, W, axis=-2), lambda x: np.vecdot(x, W, axis=-2)),
    "cross": (lambda x: hnp.linalg.cross(x, Y[:1]), lambda x: np.linalg.cross(x, Y[:1])),
    "cross0": (lambda x: hnp.linalg.cross(x, Y, axis=0), lambda x: np.linalg.cross(x, Y, axis=0)),
    "outer": (lambda x: hnp.linalg.outer(x[0], x[1]), lambda x: np.linalg.outer(x[0], x[1])),
    "diagonal": (lambda x: hnp.linalg.diagonal(x, offset=1), lambda x: np.linalg.diagonal(x, offset=1)),
    "trace": (lambda x: hnp.linalg.trace(x, offset=-1), lambda x: np.linalg.trace(x, offset=-1)),
    "power": (lambda x: hnp.linalg.matrix_power(x, 5), lambda x: np.linalg.matrix_power(x, 5)),
    "power0": (lambda x: hnp.linalg.matrix_power(x, 0) * x, lambda x: np.eye(3) * x),
    "meshgrid": (lambda x: hnp.meshgrid(x[0], x[:, 1])[1], lambda x: np.meshgrid(x[0], x[:, 1])[1]),
    "unstack": (lambda x: hnp.unstack(x, axis=1)[2], lambda x: x[:, 2]),
    "repeat": (lambda x: hnp.repeat(x, 3, axis=0), lambda x: np.repeat(x, 3, axis=0)),
    "repeats": (lambda x: hnp.repeat(x, [2, 0, 1], axis=1), lambda x: np.repeat(x, [2, 0, 1], axis=1)),
    "tile": (lambda x: hnp.tile(x, (2, 1)), lambda x: np.tile(x, (2, 1))),
    "concat": (lambda x: hnp.concat([x, Y * x], axis=1), lambda x: np.concatenate([x, Y * x], 1)),
    "var": (lambda x: hnp.var(x, axis=0, correction=0.5), lambda x: np.var(x, axis=0, ddof=0.5)),
    "cumulative": (
        lambda x: hnp.cumulative_prod(x, axis=1, include_initial=True),
        lambda x: np.cumulative_prod(x, axis=1, include_initial=True),
    ),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients(name):
    ours, theirs = DIFFERENTIABLE[name]
    x = RNG.normal(size=(3, 3))
    np.testing.assert_allclose(ours(hnp.asarray(x)), theirs(x), rtol=1e-12)
    weight = RNG.normal(size=theirs(x).shape)
    gradient = harp.grad(lambda x: hnp.sum(ours(x) * weight))(x)
    np.testing.assert_allclose(gradient, slope(lambda x: float(np.sum(theirs(x) * weight)), x), atol=2e-7)


def test_one_program_for_all_sizes():
    def compute(x, y):
        return {
            "meshgrid": hnp.meshgrid(x, y, indexing="ij"),
            "repeat": hnp.repeat(x, 3),
            "vecdot": hnp.vecdot(hnp.expand_dims(x, 1), hnp.ones((1, 1))),
        }

    f = harp.jit(compute)
    for m, n in ((3, 2), (0, 4), (1, 1), (5, 0)):
        x, y = np.arange(m * 1.0), np.arange(n * 1.0)
        found = f(x, y)
        for ours, theirs in zip(found["meshgrid"], np.meshgrid(x, y, indexing="ij"), strict=True):
            np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(found["repeat"], np.repeat(x, 3))
        np.testing.assert_array_equal(found["vecdot"], x)
    assert f.compilations == 1


def test_a_number_of_parts_is_a_guard():
    f = harp.jit(lambda x: sum(k * part for k, part in enumerate(hnp.unstack(x))))
    for n in (2, 3, 2):
        x = np.arange(n * 2.0).reshape(n, 2)
        np.testing.assert_array_equal(f(x), np.arange(n) @ x)
    assert f.compilations == 2


def test_repeats_must_be_known():
    counts = np.array([1, 2, 0])
    f = harp.jit(lambda x: hnp.repeat(x, counts))
    np.testing.assert_array_equal(f(np.arange(3.0)), np.repeat(np.arange(3.0), counts))
    with pytest.raises(ArgumentError, match="known before the program runs"):
        harp.jit(hnp.repeat)(np.arange(3.0), counts)
    for wrong in ([1, 2], [1, -1, 2]):
        with pytest.raises(ShapeError):
            hnp.repeat(hnp.arange(3), wrong)
    assert hnp.repeat(hnp.arange(2), [3]).tolist() == [0, 0, 0, 1, 1, 1]


def test_errors():
    x = hnp.ones((2, 3))
    for call, error, match in (
        (lambda: hnp.linalg.cross(x, x, axis=0), ShapeError, "three elements"),
        (lambda: hnp.linalg.outer(x, x), ShapeError, "two vectors"),
        (lambda: hnp.linalg.diagonal(x[0]), ShapeError, "two axes"),
        (lambda: hnp.linalg.trace(x[0]), ShapeError, "two axes"),
        (lambda: hnp.linalg.matrix_power(x, 2), ShapeError, "square"),
        (lambda: hnp.linalg.matrix_power(x, 1.5), ArgumentError, "integer"),
        (lambda: hnp.vecdot(x, hnp.ones(2)), ShapeError, "vecdot"),
        (lambda: hnp.vecdot(x, x, axis=2), AxisError, "axis 2"),
        (lambda: hnp.meshgrid(x), ShapeError, "meshgrid"),
        (lambda: hnp.meshgrid(x[0], indexing="ab"), ArgumentError, "'xy' or 'ij'"),
        (lambda: hnp.unstack(x, axis=2), AxisError, "axis 2"),
        (lambda: hnp.broadcast_shapes((2,), (3,)), ShapeError, "broadcast"),
    ):
        with pytest.raises(error, match=match) as caught:
            call()
        assert __file__ in str(caught.value)


def test_shapes():
    assert hnp.broadcast_shapes((2, 1), 3, ()) == (2, 3)
    assert hnp.zeros(2, dtype=None).dtype == np.float64 and hnp.eye(2, dtype=None).dtype == np.float64
    assert hnp.expand_dims(hnp.ones(2)).shape == (1, 2)
    assert isinstance(hnp.meshgrid(hnp.arange(2)), tuple) and hnp.meshgrid() == ()
