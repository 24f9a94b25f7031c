"""Every function of the standard against array-api-strict, which is NumPy held to the standard: outside of `jit`."""

from __future__ import annotations

import warnings

import array_api_strict
import numpy as np
import pytest
import status
from cases import CASES
from draws import Drawn
from hypothesis import given, settings
from hypothesis import strategies as st

import harp.numpy as hnp
from harp.trace.array.array import Array

array_api_strict.set_array_api_strict_flags(api_version=status.VERSION)

# Tested by themselves: they neither take nor give arrays.
_ABOUT_DTYPES = status.NAMES["Data type functions"].split()
_NO_FUNCTIONS = [n for chapter in ("Constants", "Data types", "Inspection") for n in status.NAMES[chapter].split()]


def test_every_function_has_a_case():
    others = {*_ABOUT_DTYPES, *_NO_FUNCTIONS}
    assert CASES.keys() | others | status.MISSING.keys() == set(status.names())
    assert not CASES.keys() & others


def to_harp(value):
    if isinstance(value, Drawn):
        if value.reversed:
            back = tuple(slice(None, None, -1) for _ in value.shape)
            return hnp.asarray(value.value[back])[back]
        return hnp.asarray(value.value)
    if isinstance(value, list):
        return list(map(to_harp, value))
    return value


def to_strict(value):
    if isinstance(value, Drawn):
        return array_api_strict.asarray(value.value)
    if isinstance(value, list):
        return list(map(to_strict, value))
    return value


def strict_options(options):
    return {k: getattr(array_api_strict, v) if k == "dtype" and v else v for k, v in options.items()}


def find(root, name):
    for part in name.split("."):
        root = getattr(root, part)
    return root


def leaves(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def compare(ours, expected, tolerance):
    assert len(leaves(ours)) == len(leaves(expected))
    for a, b in zip(leaves(ours), leaves(expected), strict=True):
        assert isinstance(a, Array)
        a, b = np.asarray(a), np.asarray(b._array)
        assert a.dtype == b.dtype and a.shape == b.shape
        if tolerance and a.dtype.kind in "fc":
            size = float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * size)
        else:
            np.testing.assert_array_equal(a, b)
            if a.dtype.kind == "f":
                np.testing.assert_array_equal(np.signbit(a[a == 0]), np.signbit(b[b == 0]))


@pytest.mark.parametrize("name", [n for n in CASES if n not in status.MISSING])
@settings(max_examples=15)
@given(data=st.data())
def test_function(name, data):
    case = CASES[name]
    args, options = data.draw(case.draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = find(array_api_strict, name)(*map(to_strict, args), **strict_options(options))
    ours = status.find(name)(*map(to_harp, args), **options)
    if name.startswith("empty"):
        assert ours.shape == expected.shape and ours.dtype == expected.dtype._np_dtype
    else:
        compare(ours, expected, case.tolerance)
