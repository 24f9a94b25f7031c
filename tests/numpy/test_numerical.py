"""Interpolation beside infinities and at its nodes, and correlation of vectors of any lengths, against NumPy."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError

INF = np.inf
program = harp.jit(hnp.interp)
SEGMENTS = [
    ([0.0, 1.0, 2.0], [0.0, 1.0, INF]),
    ([0.0, 1.0, 2.0], [-INF, 1.0, 2.0]),
    ([0.0, 1.0, 2.0], [INF, INF, 2.0]),
    ([0.0, 1.0, 2.0], [INF, 1.0, -INF]),
    ([0.0, 1.0, 2.0], [0.0, np.nan, 2.0]),
    ([-INF, 1.0, INF], [5.0, 5.0, 6.0]),
    ([-INF, 1.0, INF], [3.0, 5.0, 6.0]),
    ([0.0, 1.0, 1.0], [3.0, 5.0, 6.0]),
    ([1.0], [INF]),
    ([0.0, 1.0, 2.0], [0.0, 1 + 1j, complex(INF, 2)]),
]


@pytest.mark.parametrize(("xp", "fp"), SEGMENTS)
def test_interpolation_beside_infinities(xp, fp):
    x = np.array([-INF, -5.0, 0.0, 0.5, 1.0, 1.5, 2.0, 7.0, INF, np.nan])
    x = x[: x.size - (len(xp) == 1)]  # for one point NumPy has its value at NaN, too
    expected = np.interp(x, xp, fp)
    for f in (hnp.interp, program):
        np.testing.assert_array_equal(f(x, np.array(xp), np.array(fp)), expected)


def test_interpolation_at_its_nodes_has_the_slope_to_the_right():
    """As JAX has it; at the last node that to the left."""
    xp, fp, x = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0]), np.array([-1.0, 0.0, 1.0, 2.0, 3.0])
    by_x, by_xp, by_fp = harp.grad(lambda *a: hnp.sum(hnp.interp(*a)), argnums=(0, 1, 2))(x, xp, fp)
    np.testing.assert_array_equal(by_x, [0.0, 1.0, 2.0, 2.0, 0.0])
    np.testing.assert_array_equal(by_xp, [-1.0, -2.0, -2.0])
    np.testing.assert_array_equal(by_fp, [2.0, 1.0, 2.0])


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_correlation_of_all_lengths(mode):
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (1, 4), (2, 4), (2, 5), (3, 4), (3, 5), (4, 4), (5, 2), (4, 2), (5, 3)):
        a, v = rng.normal(size=n) + 1j * rng.normal(size=n), rng.normal(size=m) - 1j * rng.normal(size=m)
        np.testing.assert_allclose(hnp.correlate(a, v, mode), np.correlate(a, v, mode), rtol=1e-12)
        np.testing.assert_allclose(hnp.convolve(a, v, mode), np.convolve(a, v, mode), rtol=1e-12)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_numbers_are_convolved_as_vectors_of_one_element(mode):
    row = np.arange(1.0, 4.0)
    for a, v in ((np.float64(2), np.float64(3)), (row, np.float64(2)), (np.float64(2), row)):
        np.testing.assert_array_equal(hnp.convolve(a, v, mode), np.convolve(a, v, mode))
        np.testing.assert_array_equal(harp.jit(lambda a, v: hnp.convolve(a, v, mode))(a, v), np.convolve(a, v, mode))


@pytest.mark.slow
def test_correlation_of_changing_lengths():
    same = harp.jit(lambda a, v: hnp.correlate(a, v, "same"))
    for n, m in ((2, 4), (5, 2), (3, 4)):
        a, v = np.arange(1.0, n + 1), np.arange(2.0, m + 2)
        np.testing.assert_allclose(same(a, v), np.correlate(a, v, "same"))


@pytest.mark.parametrize(("places", "values"), [([190, -190, 350, -350], [5, 10, 3, 4]), ([7.0], [2.0])])
def test_interpolation_of_a_function_with_a_period(places, values):
    at = np.array([-180, -170, -185, 185, -10, -5, 0, 365, 360, np.nan])
    for period in (360, -36.5):
        expected = np.interp(at, places, values, period=period)
        found = hnp.interp(at, np.array(places), np.array(values), left=9.0, period=period)
        np.testing.assert_allclose(np.asarray(found), expected)
        compiled = harp.jit(lambda *arrays: hnp.interp(*arrays[:3], period=arrays[3]))
        np.testing.assert_allclose(np.asarray(compiled(at, np.array(places), np.array(values), period)), expected)
    with pytest.raises(ArgumentError, match="which is not 0"):
        hnp.interp(1.0, np.ones(2), np.ones(2), period=0)


def test_the_histogram_of_nothing_goes_from_0_to_1():
    counts, edges = harp.jit(hnp.histogram)(np.zeros(0))
    expected = np.histogram(np.zeros(0))
    np.testing.assert_array_equal(counts, expected[0])
    np.testing.assert_array_equal(edges, expected[1])
    np.testing.assert_array_equal(hnp.histogram_bin_edges(np.zeros(0), 3), np.histogram_bin_edges(np.zeros(0), 3))
