"""Counts are as frequent as their probabilities say, at small and large means, and the hat lies above these."""

import numpy as np
import numpy.testing as npt
import pytest
from scipy import stats

import harp
from harp import errors
from harp.random import binomial, geometric, key, multinomial, poisson, split
from harp.random.counts import _ATTEMPTS, _candidate, _log
from harp.trace.scalar.dtypes import f64, u32
from harp.trace.scalar.expr import Operand, evaluate

K = key(21)
COUNT = 50_000
compiled = harp.jit(lambda k, lam, n, p, x: (poisson(k, lam, x.shape), binomial(k, n, p, x.shape)))


def as_frequent(sample, law):
    """The p-value of a chi-square test; counts that are rare, or far out, are taken together."""
    sample = np.asarray(sample).astype(np.int64)
    edges = np.unique(law.ppf(np.linspace(0, 1, 60)[1:-1]))
    inside = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    seen = np.bincount(np.searchsorted(edges, sample), minlength=inside.size)
    kept = inside * sample.size > 5
    assert seen[~kept].sum() < 50
    return stats.chisquare(seen[kept], inside[kept] * seen[kept].sum() / inside[kept].sum()).pvalue


@pytest.mark.parametrize(
    ("lam", "n", "p"),
    [(0.1, 5, 0.3), (2.5, 30, 0.25), (9.99, 1000, 0.001), (10.0, 40, 0.5), (37.0, 100, 0.93), (1e5, 10**6, 0.3)],
)
def test_frequencies(lam, n, p):
    for eager in (False, True):
        if eager:
            counts = poisson(K, lam, COUNT // 5), binomial(K, n, p, COUNT // 5)
        else:
            counts = compiled(K, lam, float(n), p, np.zeros(COUNT))
        assert [c.dtype for c in counts] == [np.int64, np.float64]
        assert as_frequent(counts[0], stats.poisson(lam)) > 1e-3
        assert as_frequent(counts[1], stats.binom(n, p)) > 1e-3
    assert compiled.compilations == 1


def test_large_counts_have_all_digits():
    counts = poisson(K, 1e15, COUNT), binomial(K, 1e15, 0.3, COUNT)
    for count, mean, variance in zip(counts, (1e15, 3e14), (1e15, 2.1e14), strict=True):
        assert stats.kstest((np.asarray(count) - mean) / np.sqrt(variance), stats.norm.cdf).pvalue > 1e-3
        assert (np.asarray(count).astype(np.int64) % 2).mean() == pytest.approx(0.5, abs=0.02)


def test_logarithms_of_probabilities():
    """Against SciPy's, for counts for which they have all digits."""
    kinds = [Operand(f64, slot) for slot in range(3)]
    for trials, law in ((False, stats.poisson(30.0)), (True, stats.binom(60, 0.5))):
        k = np.arange(61.0)
        given = k, np.full(61, 60.0 if trials else 30.0), np.full(61, 30.0)
        found = evaluate(_log(*kinds, trials), lambda leaf, given=given: given[leaf.slot])
        npt.assert_allclose(found - found[30], law.logpmf(k) - law.logpmf(30), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.1, 0.5])
@pytest.mark.parametrize("mean", [10.0, 10.4, 13.0, 40.0, 1e3, 1e5])
def test_the_hat_lies_above_and_the_attempts_suffice(mean, p):
    """`p` of 0 is Poisson's distribution. The share of the numbers u that are accepted is what the page states."""
    n = mean if p == 0 else float(np.ceil(mean / p))
    mean = n * p if p else mean
    law = stats.binom(n, p) if p else stats.poisson(mean)
    a = np.arange(0, 2**32, 2**14 + 1).astype(np.uint32)
    given = (a, np.zeros_like(a), *(np.full(a.size, v) for v in (n, p, mean)))
    leaves = [Operand(u32, 0), Operand(u32, 1), *(Operand(f64, slot) for slot in (2, 3, 4))]
    k, hat = (np.asarray(evaluate(e, lambda leaf: given[leaf.slot])) for e in _candidate(*leaves))
    ratio = np.exp(law.logpmf(k[1:]) - law.logpmf(np.floor((n + 1) * p) if p else np.floor(mean))) / hat[1:]
    assert ratio.max() <= 1
    fails = 1 - ratio.mean()
    assert fails < 0.292 and fails**_ATTEMPTS < 2.0**-56


def test_broadcasting_batches_and_one_program_for_all_sizes():
    rates, keys = np.array([[0.5], [20.0], [1e4]]), split(K, 3)
    for draw in (lambda k, lam: poisson(k, lam, 4), lambda k, lam: binomial(k, 1e5, lam / 1e5, 4)):
        each = [np.asarray(draw(k, lam)) for k, lam in zip(keys, rates, strict=True)]
        npt.assert_array_equal(harp.vmap(draw)(keys, rates), each)
    draw = harp.jit(lambda k, p: (binomial(k, p.shape[0], p, dtype=int), multinomial(k, 50, p), geometric(k, p)))
    for n in (0, 1, 2, 7):
        p = np.full(n, 0.4)
        outside = binomial(K, n, p, dtype=int), multinomial(K, 50, p), geometric(K, p)
        for ours, theirs in zip(draw(K, p), outside, strict=True):
            npt.assert_array_equal(ours, theirs)
    assert draw.compilations == 1
    assert poisson(K, rates, (2, 3, 4)).shape == (2, 3, 4)
    assert binomial(K, np.ones((3, 1)), np.ones(4, np.float16)).shape == (3, 4)
    npt.assert_array_equal(poisson(K, rates[0], 9)[:4], poisson(K, rates[0], 4))


def test_special_parameters():
    odd = np.array([0.0, -1.0, np.nan, np.inf, 1e300])
    npt.assert_array_equal(poisson(K, odd), [0, -1, -1, -1, 2**63 - 1024])
    npt.assert_array_equal(poisson(K, odd[:4], dtype="float32"), [0, np.nan, np.nan, np.nan])
    assert poisson(K, 1e4, dtype="int8") == 127
    n, p = np.array([3.7, 3, 0, -1, 5, 5, np.inf]), np.array([1.0, 0.0, 0.5, 0.5, np.nan, 1.5, 0.5])
    npt.assert_array_equal(binomial(K, n, p), [3, 0, 0, np.nan, np.nan, np.nan, np.nan])
    npt.assert_array_equal(geometric(K, np.array([1.0, 0.0, 2.0, np.nan])), [1, -1, -1, -1])
    assert harp.grad(lambda p: binomial(K, 10, p))(0.5) == 0


def test_geometric():
    draw = harp.jit(lambda k, p, x: geometric(k, p, x.shape))
    for p in (0.9, 0.3, 0.004):
        assert as_frequent(draw(K, p, np.zeros(COUNT)), stats.geom(p)) > 1e-3


@pytest.mark.slow
def test_multinomial():
    p = np.array([1.0, 0.0, 3.0, 4.0, 0.0])
    counts = np.asarray(harp.jit(lambda k, n, p, x: multinomial(k, n, p, shape=x.shape))(K, 24, p, np.zeros(20_000)))
    assert (counts.sum(-1) == 24).all() and (counts[:, 1] == 0).all() and (counts[:, 4] == 0).all()
    for j in (0, 2, 3):
        assert as_frequent(counts[:, j], stats.binom(24, p[j] / 8)) > 1e-3
    npt.assert_allclose(np.cov(counts.T), stats.multinomial(24, p / 8).cov(), atol=0.2)
    assert multinomial(K, np.array([[3], [5]]), np.ones((2, 4), np.float32), dtype=int).dtype == np.int64
    assert multinomial(K, np.array([[3], [5]]), np.ones((7, 4))).shape == (2, 7, 4)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: poisson(K, -1.0), errors.ArgumentError, "poisson takes a rate lam of at least 0, not -1.0"),
        (lambda: poisson(K, float("inf")), errors.ArgumentError, "of at least 0, not inf"),
        (lambda: poisson(K, np.ones(2, complex)), errors.DTypeError, "real parameters, not complex128"),
        (lambda: poisson(K, 1.0, dtype=bool), errors.DTypeError, "poisson draws integers or floats, not bool"),
        (lambda: poisson(K, np.ones(3), 2), errors.ShapeError, "2 is not 3"),
        (lambda: binomial(K, 3, 1.5), errors.ArgumentError, "a probability p from 0 to 1, not 1.5"),
        (lambda: binomial(K, -3, 0.5), errors.ArgumentError, "a number of trials n of at least 0, not -3"),
        (lambda: geometric(K, float("nan")), errors.ArgumentError, "a probability p from 0 to 1, not nan"),
        (lambda: multinomial(K, 3, 0.5), errors.ShapeError, "weights p along an axis, not one number"),
    ],
)
def test_errors(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
