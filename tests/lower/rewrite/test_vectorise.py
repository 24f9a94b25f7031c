"""Short loops of known length are written out."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax


def chain(matrices):
    n = matrices.shape[1]
    return harp.scan(lambda made, m: (made @ m, None), hnp.eye(n), matrices)[0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_a_carry_of_small_matrices(n):
    matrices = np.eye(n) + 0.1 * np.random.default_rng(0).normal(size=(7, n, n))
    f = harp.jit(chain, signature=(harp.f64["t", n, n],))
    np.testing.assert_allclose(f(matrices), np.linalg.multi_dot(matrices), rtol=1e-12)
    assert ("for unroll" in f.lower(matrices).loops) == (1 < n < 6)


def test_loops_of_sizes_and_long_ones_stay():
    for shape in (("n", 4), (4, "n"), (20, 20)):
        x = np.ones(tuple(4 if size == "n" else size for size in shape))
        assert "for unroll" not in harp.jit(hnp.exp, signature=(harp.f64[shape],)).lower(x).loops


def test_padding_along_other_axes_is_asked_for_once_for_a_vector():
    """Of a depthwise sum with channels last, conditions are of rows and columns, and vectors run across channels."""
    f = harp.jit(lambda x, w: sums(x, w))
    x, w = np.random.default_rng(0).integers(-9, 9, (2, 5, 6, 20)).astype(float), np.arange(180.0).reshape(3, 3, 1, 20)
    padded = np.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
    expected = sum(padded[:, i : i + 5, j : j + 6] * w[i, j, 0] for i in range(3) for j in range(3))
    np.testing.assert_array_equal(f(x, w), expected)
    lines = str(f.lower(x, w).loops).splitlines()
    vectors = [k for k, line in enumerate(lines) if "for simd" in line and "fma(" in lines[k + 1]]
    assert vectors and not any(" if " in lines[k + 1] for k in vectors)
    assert any(lines[k - 1].lstrip().startswith("if ") for k in vectors)


def sums(x, w):
    layout = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", None, None, layout, x.shape[-1])
