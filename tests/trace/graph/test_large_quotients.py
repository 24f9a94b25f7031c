"""Chains of reshapes of transposed arrays: quotients in merged indices must fit into 64 bits, for large sizes, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import harp
import harp.numpy as hnp

Array = np.ndarray
STEPS: dict[str, Callable[..., Array]] = {
    "views": lambda xp, y, k: xp.reshape(y.T, y.shape),
    "numbers between": lambda xp, y, k: xp.reshape(y.T, y.shape) * 0.8 + k,
    "sums between": lambda xp, y, k: xp.reshape(y.T, y.shape) + xp.sum(y, axis=1, keepdims=True),
    "reversed": lambda xp, y, k: xp.reshape(xp.reshape(y, (-1,))[::-1], y.T.shape).T * 0.5 + 0.1,
    "rolled": lambda xp, y, k: xp.roll(xp.reshape(y.T, y.shape), k + 1, axis=0),
    "functions between": lambda xp, y, k: xp.sin(xp.reshape(y.T, y.shape)),
    "another order": lambda xp, y, k: xp.reshape(xp.reshape(y.T, (-1,)), y.shape),
}
SHAPES = [(9, 9), (4097, 2), (2, 4097), (1000, 7), (256, 256), (1, 70000), (1500, 1500)]


def chain(xp: object, name: str, count: int, y: Array) -> Array:
    for k in range(count):
        y = STEPS[name](xp, y, k)
    return y


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("name", STEPS)
def test_reshapes_of_transposed_matrices(name: str, count: int) -> None:
    f = harp.jit(lambda y: chain(hnp, name, count, y))
    for shape in SHAPES:
        y = np.random.default_rng(0).normal(size=shape)
        np.testing.assert_allclose(np.asarray(f(y)), chain(np, name, count, y), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("count", [3, 6])
def test_three_axes(count: int) -> None:
    def function(xp: object, y: Array) -> Array:
        for _ in range(count):
            y = xp.reshape(xp.transpose(y, (1, 2, 0)), y.shape)  # type: ignore[attr-defined]
        return y

    f, slope = harp.jit(lambda y: function(hnp, y)), harp.jit(harp.grad(lambda y, w: (function(hnp, y) * w).sum()))
    for shape in [(3, 4, 5), (200, 30, 40), (1, 3000, 7), (3000, 1, 7)]:
        y, w = np.random.default_rng(0).normal(size=(2, *shape))
        np.testing.assert_array_equal(np.asarray(f(y)), function(np, y))
        back = np.empty(y.size)
        back[function(np, np.arange(y.size).reshape(shape)).ravel()] = w.ravel()
        np.testing.assert_array_equal(np.asarray(slope(y, w)), back.reshape(shape))


@pytest.mark.parametrize("count", [3, 12, 24])
def test_sizes_that_are_numbers(count: int) -> None:
    """They are factors of coefficients."""

    def function(xp: object, y: Array) -> Array:
        y = xp.reshape(y, (1501, 1499))  # type: ignore[attr-defined]
        for _ in range(count):
            y = xp.reshape(y.T, (1501, 1499))  # type: ignore[attr-defined]
        return y

    y = np.arange(1501.0 * 1499)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda y: function(hnp, y))(y)), function(np, y))


def test_the_checked_program_finds_nothing() -> None:
    y = np.random.default_rng(0).normal(size=(1500, 1500))
    f = harp.jit(lambda y: chain(hnp, "views", 3, y), check=True)
    np.testing.assert_array_equal(np.asarray(f(y)), chain(np, "views", 3, y))
