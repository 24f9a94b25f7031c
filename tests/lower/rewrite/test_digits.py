"""Loops over the digits of a position: the numbers are NumPy's at all sizes, and no element divides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp


def put(x, key, value):
    made = x.copy()
    made[key] = value
    return made


# By name: a function of a matrix in harp and in NumPy.
PROGRAMS = {
    "tile": (lambda x: hnp.tile(x, (2, 3)) + 1, lambda x: np.tile(x, (2, 3)) + 1),
    "flat tile": (lambda x: hnp.tile(x.reshape(-1), 5), lambda x: np.tile(x.reshape(-1), 5)),
    "repeat": (lambda x: hnp.repeat(x, 2) * 3, lambda x: np.repeat(x, 2) * 3),
    "upsample": (
        lambda x: hnp.repeat(hnp.repeat(x, 2, 0), 3, 1),
        lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1),
    ),
    "every second row": (lambda x: x.at[::2].set(7), lambda x: put(x, np.s_[::2], 7)),
    "every third column": (lambda x: x.at[:, 1::3].multiply(2), lambda x: put(x, np.s_[:, 1::3], x[:, 1::3] * 2)),
    "from the end": (lambda x: x.at[::-2].set(7), lambda x: put(x, np.s_[::-2], 7)),
    "lifting": (
        lambda x: x.at[1::2].add(x[: x.shape[0] // 2 * 2 : 2] * 2),
        lambda x: put(x, np.s_[1::2], x[1::2] + x[: x.shape[0] // 2 * 2 : 2] * 2),
    ),
    "interleaved": (lambda x: hnp.stack([x, -x], 2).reshape(-1), lambda x: np.stack([x, -x], 2).reshape(-1)),
    "transposed and flat": (lambda x: (x.T * 2).reshape(-1), lambda x: (x.T * 2).reshape(-1)),
    "sum of a tile": (lambda x: hnp.sum(hnp.tile(x, (1, 4)), 1), lambda x: np.sum(np.tile(x, (1, 4)), 1)),
    "merged products": (
        lambda x: (hnp.stack([x, x * 2]) @ hnp.ones((2, x.shape[1], 5))).transpose(1, 0, 2).reshape(-1, 10),
        lambda x: (np.stack([x, x * 2]) @ np.ones((2, x.shape[1], 5))).transpose(1, 0, 2).reshape(-1, 10),
    ),
    "kron": (lambda x: hnp.kron(x, hnp.ones((2, 3))), lambda x: np.kron(x, np.ones((2, 3)))),
}
COMPILED = {name: harp.jit(f) for name, (f, _) in PROGRAMS.items()}
GRADIENTS = {name: harp.jit(harp.grad(lambda x, f=f: hnp.sum(f(x) ** 2))) for name, (f, _) in PROGRAMS.items()}


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 9), st.integers(0, 9))
def test_as_in_numpy(name, rows, columns):
    x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype("f8")
    np.testing.assert_array_equal(np.asarray(COMPILED[name](x)), PROGRAMS[name][1](x))


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 6), st.integers(1, 6))
def test_gradients_are_differences(name, rows, columns):
    x = np.random.default_rng(rows).integers(-9, 9, (rows, columns)).astype("f8")
    expected = np.zeros_like(x)  # of a square, central differences are exact
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1
        high, low = (np.sum(PROGRAMS[name][1](x + by) ** 2) for by in (step, -step))
        expected[place] = (high - low) / 2
    np.testing.assert_allclose(np.asarray(GRADIENTS[name](x)), expected)


@pytest.mark.parametrize("name", ["tile", "flat tile", "repeat", "upsample", "interleaved", "merged products"])
def test_no_element_divides(name):
    lines = COMPILED[name].lower(np.ones((4, 6))).loops.splitlines()
    stores = [line for line in lines if " = " in line and not line.lstrip().startswith(("input", "output"))]
    assert stores and not any("//" in line for line in stores)


@pytest.mark.parametrize("name", ["lifting", "every second row"])
def test_no_row_asks_whether_it_is_even(name):
    x = np.ones((4, 6))
    for text in (COMPILED[name].lower(x).loops, GRADIENTS[name].lower(x).loops):
        rows = text[: text.index("- 2*(s0//2):") if "- 2*(s0//2):" in text else None]  # the last of an odd number
        assert "parallel" in rows and "select" not in rows and " else " not in rows
