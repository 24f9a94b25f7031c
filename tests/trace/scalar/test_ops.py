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


# C leaves these open; x86-64 has them so, whose conversion of what does not fit is the lowest number.
UNSIGNED = {
    "uint64": [(1e30, 0), (2.0**64, 0), (np.inf, 0), (np.nan, 2**63), (-1.5, 2**64 - 1), (-1e30, 2**63)],
    "uint32": [(2.0**32 + 512, 512), (-(2.0**31) - 256, 2**31 - 256), (1e30, 0), (np.nan, 0), (-1.0, 2**32 - 1)],
    "uint8": [(300.0, 44), (-1.0, 255), (2.0**31, 0), (np.nan, 0)],
}


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", UNSIGNED)
def test_what_unsigned_integers_cannot_hold(source, target):
    values, expected = zip(*UNSIGNED[target], strict=True)
    x, expected = np.array(values, source), np.array(expected, target)
    for repeats in (1, 40):
        given, wanted = np.tile(x, repeats), np.tile(expected, repeats)
        np.testing.assert_array_equal(harp.jit(lambda x: x.astype(target))(given), wanted)
        np.testing.assert_array_equal(hnp.asarray(given).astype(target), wanted)
