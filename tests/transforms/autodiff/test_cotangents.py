"""Sums of cotangents: what was read of an array is added in its places, and no array of zeros is made for it."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)
X, W = RNG.uniform(0.5, 1.5, (2, 5, 4))
CUBE = RNG.uniform(0.5, 1.5, (3, 5, 4))
AT = np.array([3, 0, 3, -1, 7])


def differences(f, x, step=1e-6):
    result = np.empty_like(x)
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            moved = x.copy()
            moved[place] += sign * step
            ends.append(float(f(moved)))
        result[place] = (ends[0] - ends[1]) / (2 * step)
    return result


FUNCTIONS = {
    "a row, then all": lambda x, i: hnp.sum(x[i] ** 3) + hnp.sum(x * x * W),
    "all, then a row": lambda x, i: hnp.sum(x * x * W) + hnp.sum(x[i] ** 3),
    "a column": lambda x, i: hnp.sum(x * x * W) + hnp.sum(x[:, i] ** 3),
    "rows and columns": lambda x, i: hnp.sum(x[i] ** 3) * hnp.sum(x[:, i] ** 2) + hnp.sum(hnp.sin(x)) * x[i, i],
    "two rows": lambda x, i: hnp.sum(x[i] ** 3) * hnp.sum(x[i - 1]),
    "a row of a transposed array": lambda x, i: hnp.sum(x.T[i, ::-1] * x[:, 1]) + hnp.sum(x * x),
    "many rows": lambda x, i: hnp.sum(x[AT + i] ** 3) + hnp.sum(x * x * W),
    "in a loop": lambda x, i: hnp.sum(
        harp.fori_loop(0, 4, lambda k, y: y.at[:, k].set(y[k, 0] * y[:, i]).at[k].multiply(y[i]), x)
    ),
}


@pytest.mark.parametrize("at", [0, 2, 3, -1, -4, 9])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_against_differences(name, at):
    f = harp.jit(FUNCTIONS[name])
    i = np.int64(at)
    np.testing.assert_allclose(harp.jit(harp.grad(f))(X, i), differences(lambda x: f(x, i), X), rtol=1e-5, atol=1e-6)


def test_each_axis_of_a_transposed_array_is_found():
    def f(x, i):
        return sum(hnp.sum(part**3) for part in (x[i], x[:, i], x[:, :, i])) + hnp.sum(x * x)

    i = np.int64(2)
    np.testing.assert_allclose(harp.grad(f)(CUBE, i), differences(lambda x: f(x, i), CUBE), rtol=1e-5, atol=1e-6)
    text = repr(harp.trace(harp.grad(f), harp.f64[3, 5, 4], harp.i64[()]))
    assert text.count("scatter add") == 3 and "scatter add" in text and "[3, 5, 4] map () -> 0.0" not in text


@pytest.mark.slow
def test_second_derivatives():
    f = FUNCTIONS["rows and columns"]
    i = np.int64(1)
    found = np.asarray(harp.hessian(f)(X, i)).reshape(20, 20)
    slope = harp.grad(f)
    expected = np.stack([differences(lambda x, p=p: np.asarray(slope(x, i)).flat[p], X).ravel() for p in range(20)])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_column_that_is_set_has_no_rival():
    f = harp.jit(harp.grad(lambda v, x, i: hnp.sum(hnp.asarray(x).at[:, i].set(v) ** 2)))
    v, i = np.arange(5.0), np.int64(1)
    assert "-1:i64" not in repr(harp.trace(f, harp.f64[5], harp.f64[5, 4], harp.i64[()]))
    np.testing.assert_allclose(f(v, X, i), 2 * v)
    np.testing.assert_allclose(f(v, X, np.int64(9)), 0 * v)
    rows = harp.jit(harp.grad(lambda v, x, i: hnp.sum(hnp.asarray(x).at[i, hnp.arange(4)].set(v) ** 2)))
    np.testing.assert_allclose(rows(v[:4], X, np.array([1, 1, 3, 3])), 2 * v[:4])
    twice = harp.jit(harp.grad(lambda v, x, i: hnp.sum(hnp.asarray(x).at[hnp.arange(5), i].set(v) ** 2)))
    np.testing.assert_allclose(twice(v, X, np.array([0, 0, 3, -9, 3])), 2 * v * [1, 1, 1, 0, 1])
