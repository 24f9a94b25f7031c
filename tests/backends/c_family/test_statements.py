"""Digits of a counter are counted along: no division for each row of a panel."""

from __future__ import annotations

import re

import numpy as np
import numpy.testing as npt
import pytest

import harp
from harp import lax
from tests.lax.windows import convolved

CONV = harp.jit(lambda x, w: lax.conv(x, w, (1, 1), [(1, 1), (1, 1)]))


def numbers(*shape):
    return np.random.default_rng(0).integers(-9, 9, shape).astype(float)


def test_rows_of_a_panel_are_counted():
    source = CONV.lower(numbers(2, 3, 6, 5), numbers(4, 3, 3, 3)).source
    assert source.count("if (++") >= 4  # two digits that carry, in whole blocks and in others
    assert not re.search(r"harp_quotient\(\(256\*i\d+ \+ i\d+\)", source)  # as each row would be divided


@pytest.mark.parametrize("shapes", [((2, 200, 3, 3), (3, 200, 3, 3)), ((1, 1, 4, 40), (5, 1, 3, 3))], ids=str)
def test_digits_go_on_from_block_to_block(shapes):
    """A panel of 256 rows ends within a window of 3 x 3; one of a single channel is all of it."""
    x, w = (numbers(*shape) for shape in shapes)
    expected = convolved(x, w, (1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1), 1, 1)
    npt.assert_array_equal(CONV(x, w), expected)
