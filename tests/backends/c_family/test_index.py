"""Elements of index arrays in index expressions, where one loop is printed in several versions."""

from __future__ import annotations

import numpy as np

import harp
import harp.numpy as hnp


def test_an_index_that_the_loop_computes_has_a_name_in_each_version():
    def halves(b):
        v = b[hnp.arange(b.shape[0]) // 2]
        return v, hnp.cumsum(v)

    f = harp.jit(halves)
    for n in (0, 1, 5, 70_000):
        x = np.random.default_rng(n).random(n)
        known = x[np.arange(n) // 2]
        np.testing.assert_array_equal(np.asarray(f(x)[0]), known)
        np.testing.assert_allclose(np.asarray(f(x)[1]), np.cumsum(known))
    assert f.compilations == 1
