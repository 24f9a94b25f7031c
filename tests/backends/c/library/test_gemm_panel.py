"""Panels of products of every width: half a vector, one or two, more and fewer columns than that, in all layouts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import harp
from harp.backends.toolchain.toolchain import find_toolchain

TOOLCHAIN = find_toolchain()
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


def chains(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Each element as one chain of fused multiply-adds in the order of the inner axis."""
    sums = np.zeros((len(a), b.shape[1]))
    for k in range(len(b)):
        sums = (sums + a[:, k : k + 1].astype(np.float64) * b[k]).astype(np.float32).astype(np.float64)
    return sums.astype(np.float32)


@pytest.mark.skipif(TOOLCHAIN is None or not TOOLCHAIN.fma, reason="sums of products are rounded twice")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_row_is_the_same_chain_whatever_is_beside_it(layout: str) -> None:
    """Also the only row of a block of 512, with which compilers have one chain at a time."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((530, 40)).astype(np.float32)
    for columns in (2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 34, 40):
        b = rng.standard_normal(LAYOUTS[layout](40, columns)).astype(np.float32)
        b = {"rows": b, "columns": b.T, "neither": b[:, ::2]}[layout]
        expected = chains(a, b)
        for rows in (1, 2, 3, 14, 511, 512, 513, 514, 516, 525, 530):
            np.testing.assert_array_equal(
                np.asarray(product(a[:rows], b)), expected[:rows], err_msg=f"{rows}x{columns}"
            )
