"""Panels of products of every width: half a vector, one or two, more and fewer columns than that, in all layouts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import harp

# By the layout of the right factor, the shape that it is a view of.
LAYOUTS: dict[str, Callable[[int, int], tuple[int, int]]] = {
    "rows": lambda depth, columns: (depth, columns),
    "columns": lambda depth, columns: (columns, depth),
    "neither": lambda depth, columns: (depth, 2 * columns),
}


@harp.jit
def product(a: harp.Array, b: harp.Array) -> harp.Array:
    return a @ b


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("rows", [2, 3, 13, 25])
def test_every_width(dtype: str, layout: str, rows: int) -> None:
    rng = np.random.default_rng(0)
    for depth in (1, 7, 300):
        for columns in range(1, 36):
            # Whole numbers, whose products and sums are exact.
            a = rng.integers(-9, 10, (rows, depth)).astype(dtype)
            b = rng.integers(-9, 10, LAYOUTS[layout](depth, columns)).astype(dtype)
            b = {"rows": b, "columns": b.T, "neither": b[:, ::2]}[layout]
            np.testing.assert_array_equal(np.asarray(product(a, b)), a @ b, err_msg=f"{rows}x{depth}x{columns}")
