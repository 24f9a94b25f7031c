"""Several accumulators for a sum along memory."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp


def source(f, *arguments):
    return harp.jit(f).lower(*arguments).source


@pytest.mark.parametrize("f", [hnp.sum, hnp.max, lambda x: hnp.sum(hnp.abs(x))])
def test_accumulators_stay_in_registers(f):
    head, lane = source(f, np.ones(3)).split("HARP_UNROLL(16)")[1].splitlines()[1:3]
    assert "< 32;" in head and "in0[" in lane


def test_functions_are_not_written_out():
    assert "HARP_UNROLL" not in source(lambda x: hnp.sum(hnp.exp(x)), np.ones(3))
