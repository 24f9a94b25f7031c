"""The nearest of a few points against SciPy's."""

import numpy as np
import pytest
import scipy.cluster.vq as truth

import harp
import harp.numpy as hnp
from harp.errors import ShapeError
from harp.scipy.cluster import vq

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nearest_codes(dtype):
    program = harp.jit(vq.vq)
    for shape, codes in (((7, 3), (4, 3)), ((1, 1), (1, 1)), ((0, 2), (3, 2)), ((6,), (3,))):
        rows, book = (RNG.normal(size=s).astype(dtype) for s in (shape, codes))
        expected = truth.vq(rows, book) if rows.size else (np.zeros(0), np.zeros(0))
        for found in (vq.vq(rows, book), program(rows, book)):
            np.testing.assert_array_equal(found[0], expected[0])
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-5 if dtype == "float32" else 1e-13)
            assert found[1].dtype == dtype
    assert program.compilations == 2  # of matrices, and of vectors
    rows, book = RNG.normal(size=(2, 5, 3)), RNG.normal(size=(4, 3))
    np.testing.assert_array_equal(harp.vmap(vq.vq, (0, None))(rows, book)[0][1], truth.vq(rows[1], book)[0])
    slope = harp.grad(lambda book: hnp.sum(vq.vq(rows[0], book)[1]))(book)
    ends = [np.sum(truth.vq(rows[0], book + h)[1]) for h in (1e-6, -1e-6)]
    np.testing.assert_allclose(np.sum(slope), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


def test_rows_that_do_not_fit():
    for rows, book in ((np.ones((2, 3)), np.ones((2, 2))), (np.ones(3), np.ones((2, 2))), (np.ones(3), np.ones(0))):
        with pytest.raises(ShapeError):
            vq.vq(rows, book)
