"""Extrema of few columns, over many rows at once."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")


def _padded(np, x, before):
    return np.pad(x, [(before, 1), (0, 1)])


FUNCTIONS = {
    "minimum": lambda np, x: x.min(axis=0),
    "maximum of what is computed": lambda np, x: (abs(x) * 2 - 1).max(axis=0),
    "what follows": lambda np, x: x.max(axis=0) - x.min(axis=0),
    "box": lambda np, x: (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0) + 1),
    "a row of padding": lambda np, x: np.broadcast_to(_padded(np, x, 0).max(axis=0)[:, None], (x.shape[1] + 1, 3)),
    "rows of padding": lambda np, x: np.broadcast_to(_padded(np, x, 2).min(axis=0)[:, None], (x.shape[1] + 1, 3)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name: str, dtype: str) -> None:
    compiled = harp.jit(lambda x: FUNCTIONS[name](hnp, x))
    rng = np.random.default_rng(0)
    for columns in (1, 2, 3, 5, 8, 9, 20):
        for rows in (1, 2, 3, 63, 64, 65, 127, 128, 129, 300, 1000):
            x = (100 * rng.standard_normal((rows, columns))).astype(dtype)
            np.testing.assert_allclose(np.asarray(compiled(x)), FUNCTIONS[name](np, x), rtol=1e-6)


def test_of_each_matrix() -> None:
    x = np.random.default_rng(0).standard_normal((7, 200, 3)).astype("float32")
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: x.min(axis=1))(x)), x.min(axis=1))


def test_nan_is_found_anywhere() -> None:
    compiled = harp.jit(lambda x: x.max(axis=0))
    for row in (0, 63, 64, 200, 299):
        x = np.random.default_rng(0).standard_normal((300, 3))
        x[row, 1] = np.nan
        np.testing.assert_array_equal(np.asarray(compiled(x)), x.max(axis=0))


def test_which_reductions() -> None:
    x = np.ones((300, 3), np.float32)

    def is_over_rows(function, *arguments) -> bool:
        return "_rows: " in harp.jit(function).lower(*arguments).loops

    assert is_over_rows(lambda x: x.min(axis=0), x)
    assert not is_over_rows(lambda x: x.sum(axis=0), x), "in the order of the rows"
    assert not is_over_rows(lambda x: x[:, ::2].min(axis=0), x)
    assert not is_over_rows(lambda x: x.min(axis=1), x)
    assert not is_over_rows(lambda x, y: (x - y).min(axis=0), x, x[0])
