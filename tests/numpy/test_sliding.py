"""NumPy's sliding windows."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError

windows = hnp.lib.stride_tricks.sliding_window_view
X = np.arange(30.0).reshape(5, 6)


@pytest.mark.parametrize(
    "shape, axis", [((2, 3), None), (3, 1), (3, -2), ((2, 2, 2), (0, 1, 0)), ((5, 6), None), ((), ())]
)
def test_windows_are_numpys(shape, axis):
    expected = np.lib.stride_tricks.sliding_window_view(X, shape, axis)
    npt.assert_array_equal(windows(X, shape, axis), expected)
    npt.assert_array_equal(harp.jit(lambda x: windows(x, shape, axis))(X), expected)


def test_one_program_for_all_sizes():
    f = harp.jit(lambda x, w: hnp.sum(windows(x, w.shape[0], 0) * w, -1))
    for n, k in ((5, 2), (9, 4), (3, 3)):
        x, w = np.arange(n * 2.0).reshape(n, 2), np.arange(k) + 1.0
        npt.assert_allclose(f(x, w), np.lib.stride_tricks.sliding_window_view(x, k, 0) @ w)
    assert f.compilations == 1


def test_the_gradient_of_all_windows_counts_how_often_an_element_is_shown():
    slope = harp.jit(harp.grad(lambda x: hnp.sum(windows(x, (3,), 0))))
    npt.assert_array_equal(slope(np.zeros(6)), [1, 2, 3, 3, 2, 1])


def test_errors():
    with pytest.raises(ShapeError, match="a window of 6 is longer than axis 0 of 5"):
        windows(X, 6, 0)
    with pytest.raises(ShapeError, match="1 size for 2 axes"):
        windows(X, (2,))
    with pytest.raises(ArgumentError, match="writeable"):
        windows(X, 2, 0, writeable=True)
