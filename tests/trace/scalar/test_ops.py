"""The scalar operations by NumPy and by C."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_floats_out_of_range_become_the_same_number_everywhere(source, target):
    values = [np.nan, np.inf, -np.inf, -3e9, 1e20, 2.0**31, 2.0**63, 2.0**64, -(2.0**63), -1.5, 3.99, 1e10, 300.0]
    x = np.array(values, source)
    with np.errstate(all="ignore"):
        compiled = np.asarray(harp.jit(lambda x: x.astype(target))(x))
        eager = np.asarray(hnp.asarray(x).astype(target))
        np.testing.assert_array_equal(compiled, eager)
        limits = np.iinfo(target)
        fits = (np.trunc(x) >= float(limits.min)) & (np.trunc(x) < float(limits.max))
        np.testing.assert_array_equal(eager[fits], x[fits].astype(target))
