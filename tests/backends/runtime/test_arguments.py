"""C reads what NumPy says of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from harp.backends.runtime.arguments import reader
from harp.backends.toolchain.toolchain import find_toolchain

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no compiler")

F32 = np.dtype(np.float32)


def test_addresses_and_sizes():
    arrays = (np.ones((2, 3), F32), np.array(5), np.zeros((4, 0, 1), bool), np.arange(7.0)[3:])
    read = reader([(a.dtype, a.ndim) for a in arrays])
    assert read is not None
    assert read(arrays) == ([a.ctypes.data for a in arrays], [2, 3, 4, 0, 1, 4])


@pytest.mark.parametrize("place", [0, 1])
def test_what_is_not_expected(place):
    read = reader([(F32, 2)] * 2)
    assert read is not None
    x = np.ones((4, 6), F32)
    bytewise = np.zeros(97, np.uint8)[1:].view(F32).reshape(4, 6)
    mine = x.view(type("Mine", (np.ndarray,), {}))
    for other in (x[0], x[:, ::2], x.T, bytewise, mine, x.astype(">f4"), x.astype(np.int32), None, 1.0, [x], np):
        given = [x, x]
        given[place] = other
        assert read(tuple(given)) is None
    assert read((x, x)) is not None
