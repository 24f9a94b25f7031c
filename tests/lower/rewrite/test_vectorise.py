"""Short loops of known length are written out."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


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
