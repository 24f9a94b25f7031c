"""Normal numbers between bounds: so distributed, also far in the tails; inside the bounds; derivatives by them."""

import itertools

import numpy as np
import numpy.testing as npt
import pytest
from scipy import special, stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.random import key, truncated_normal, uniform

K, INF = key(5), np.inf
compiled = harp.jit(lambda k, a, b: truncated_normal(k, a, b, (20_000,)))
BOUNDS = [(-1.0, 1.0), (-INF, INF), (0.0, INF), (-INF, -3.0), (6.0, 6.5), (-30.0, -29.9), (20.0, INF), (-9.0, 8.0)]


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_they_are_the_quantiles_of_uniform_numbers(low, high):
    u = np.asarray(uniform(K, 20_000))
    found = np.asarray(compiled(K, low, high))
    npt.assert_allclose(found, np.asarray(truncated_normal(K, low, high, 20_000)), rtol=1e-11, atol=1e-13)
    assert (found >= low).all()
    assert (found <= high).all()
    sign, share = (-1, 1 - u) if -low < high else (1, u)
    a, b = (low, high) if sign > 0 else (-high, -low)
    log_p = np.logaddexp(
        np.log1p(-share) + special.log_ndtr(a), np.log(np.maximum(share, 1e-300)) + special.log_ndtr(b)
    )
    npt.assert_allclose(special.log_ndtr(sign * found), log_p, rtol=1e-11, atol=1e-13)


def test_they_are_so_distributed():
    sample = np.asarray(compiled(K, -0.5, 2.0))
    assert stats.kstest(sample, stats.truncnorm(-0.5, 2.0).cdf).pvalue > 1e-3
    single = np.asarray(truncated_normal(K, np.float32(1), np.float32(3), 20_000, "float32"))
    assert single.dtype == np.float32
    assert stats.kstest(single, stats.truncnorm(1, 3).cdf).pvalue > 1e-3


def test_derivatives_of_the_bounds():
    for low, high in ((-1.0, 2.0), (4.0, 5.0), (-7.0, -6.0)):
        program = harp.jit(lambda a, b: hnp.sum(truncated_normal(K, a, b, (50,))))
        by_low, by_high = harp.grad(program, argnums=(0, 1))(low, high)
        step = 1e-6
        npt.assert_allclose(by_low, (program(low + step, high) - program(low - step, high)) / (2 * step), rtol=1e-5)
        npt.assert_allclose(by_high, (program(low, high + step) - program(low, high - step)) / (2 * step), rtol=1e-5)


@pytest.mark.parametrize(
    ("low", "high"), [(5.0, INF), (-7.0, -6.0), (5.0, 6.0), (20.0, 21.0), (-INF, -4.0), (-1.0, 2.0)]
)
def test_second_and_third_derivatives(low, high):
    def of_bound(bound):
        return hnp.sum(truncated_normal(K, *((bound, high) if low > -INF else (low, bound)), (3,)))

    at, step = low if low > -INF else high, 1e-4
    slopes = [harp.grad(of_bound)]
    for _ in range(2):
        slopes.append(harp.grad(slopes[-1]))
    for before, slope in itertools.pairwise(slopes):
        expected = (float(before(at + step)) - float(before(at - step))) / (2 * step)
        npt.assert_allclose(slope(at), expected, rtol=1e-5, atol=1e-7)


def test_bounds_that_are_none():
    for low, high in ((1.0, 1.0), (2.0, 1.0), (37.0, INF), (-INF, -37.0), (float("nan"), 1.0)):
        with pytest.raises(errors.ArgumentError, match="from lower to a larger upper"):
            truncated_normal(K, low, high)
    found = np.asarray(truncated_normal(K, np.array([1.0, 2.0, 40.0]), np.array([1.0, 1.0, 41.0])))
    npt.assert_array_equal(np.isnan(found), [False, True, True])
    far = truncated_normal(K, np.array([36.9, 37.0, 38.4, -INF, -40.0]), np.array([40.0, INF, INF, -38.4, -36.9]))
    npt.assert_array_equal(np.isnan(np.asarray(far)), [False, True, True, True, False])
