"""Normal, exponential and Gumbel numbers: exact to rounding, finite at the ends, and so distributed."""

import blocks
import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import harp
from harp import errors
from harp.random import exponential, gumbel, key, normal, split
from harp.random.floats import minus_log
from harp.random.normal import deviate
from harp.trace.scalar.dtypes import as_dtype, u32
from harp.trace.scalar.expr import Operand, evaluate

K = key(77)
DTYPES = ("float32", "float64")
DRAWS = {"normal": normal, "exponential": exponential, "gumbel": gumbel}
LAWS = {"normal": stats.norm, "exponential": stats.expon, "gumbel": stats.gumbel_r}
compiled = {d: harp.jit(lambda k, x: {n: f(k, x.shape, x.dtype) for n, f in DRAWS.items()}) for d in DTYPES}


def exact(name, k, count, dtype):
    """From the words, in long double; the number of which a normal one takes the logarithm is rounded first."""
    wide = np.longdouble
    pair = blocks.words(k, count)
    if name == "normal" and dtype == "float64":
        radius = pair[0].astype(float) * 2.0**-32 + (pair[1].astype(float) + 0.5) * 2.0**-64
        angle = blocks.joined(k, count, 1).astype(np.int64).astype(wide) * wide(2) ** -63
    elif name == "normal":
        radius = pair[0].astype(np.float32) * np.float32(2.0**-32) + np.float32(2.0**-33)
        angle = pair[1].astype(np.uint32).astype(np.int32).astype(wide) * wide(2) ** -31
    else:
        top = pair[0] >> np.uint64(31)
        rest = (pair[0] & np.uint64(0x7FFFFFFF)).astype(wide)
        v = (rest * 2.0**32 + pair[1].astype(wide) + 0.5) * wide(2) ** -64
        found = -np.where(top == 1, np.log(v), np.log1p(-v))
        return found if name == "exponential" else -np.log(found)
    return np.sqrt(-2 * np.log(radius.astype(wide))) * np.sin(wide("1.57079632679489661923132169163975144") * angle)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRAWS)
def test_they_are_exact_to_rounding(name, dtype):
    right = exact(name, K, 50_000, dtype)
    eps = float(np.finfo(dtype).eps)
    near = 1 if name == "gumbel" else 0  # the logarithm of a number near 1 has the absolute error of that
    for result in (compiled[dtype](K, np.zeros((500, 100), dtype))[name], DRAWS[name](K, 50_000, dtype)):
        assert result.dtype == dtype
        error = np.abs(np.asarray(result).ravel() - right)
        assert (error <= 4 * eps * np.maximum(np.abs(right), near)).all(), (error / np.abs(right)).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", DRAWS)
def test_they_are_so_distributed(name, dtype):
    sample = np.asarray(compiled[dtype](K, np.zeros((100, 1000), dtype))[name]).ravel().astype(np.float64)
    assert stats.kstest(sample, LAWS[name].cdf).pvalue > 1e-3
    npt.assert_allclose(sample.mean(), LAWS[name].mean(), atol=5 * LAWS[name].std() / np.sqrt(sample.size))
    npt.assert_allclose(sample.var(), LAWS[name].var(), rtol=0.05)


@settings(max_examples=15)
@given(rows=st.integers(0, 5), columns=st.integers(0, 40), seed=st.integers(0, 2**64 - 1))
def test_one_program_for_all_sizes_and_the_same_numbers_outside(rows, columns, seed):
    for dtype in DTYPES:
        for name, result in compiled[dtype](key(seed), np.zeros((rows, columns), dtype)).items():
            outside = np.asarray(DRAWS[name](key(seed), (rows, columns), dtype))
            assert result.shape == outside.shape == (rows, columns)
            npt.assert_allclose(result, outside, rtol=32 * np.finfo(dtype).eps, atol=4 * np.finfo(dtype).eps)
        assert compiled[dtype].compilations == 1


def of_words(build, dtype, *words):
    given = [np.asarray(w, np.uint32) for w in np.broadcast_arrays(*words)]
    e = build([Operand(u32, k) for k in range(len(words))], as_dtype(dtype))
    return np.asarray(evaluate(e, lambda leaf: given[leaf.slot]))


EDGES = np.array([0, 1, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1])


@pytest.mark.parametrize(("dtype", "largest"), [("float32", 6.76), ("float64", 9.49)])
def test_all_words_give_finite_numbers(dtype, largest):
    axes = np.meshgrid(*[EDGES] * (2 if dtype == "float32" else 4))
    numbers = of_words(deviate, dtype, *axes)
    assert np.isfinite(numbers).all()
    npt.assert_allclose([numbers.min(), numbers.max()], [-largest, largest], rtol=2e-3)
    waits = of_words(lambda words, d: minus_log(*words, d), dtype, *np.meshgrid(EDGES, EDGES))
    assert (waits > 0).all()
    npt.assert_allclose([waits.min(), waits.max()], [2.0**-65, 65 * np.log(2)], rtol=1e-6)


def test_tails_of_float32():
    """As many beyond 4 standard deviations as there are to be, on both sides."""
    sample = np.asarray(harp.jit(lambda k, x: normal(k, x.shape, "float32"))(K, np.zeros(4_000_000, np.int8)))
    for side in (sample, -sample):
        for beyond in (3, 4, 4.5):
            mean = sample.size * stats.norm.sf(beyond)
            assert abs((side > beyond).sum() - mean) < 5 * np.sqrt(mean)


def test_normal_numbers_of_neighbours_and_of_split_keys_are_not_correlated():
    sample = np.asarray([normal(k, 8192) for k in split(K, 6)])
    correlation = np.corrcoef(np.concatenate([sample, np.roll(sample, 1, axis=1)]))[~np.eye(12, dtype=bool)]
    assert np.abs(correlation).max() < 5 / np.sqrt(8192)


def test_a_fused_sum_draws_the_same_numbers():
    mean = harp.jit(lambda k, x: (normal(k, x.shape) * x).sum(axis=0))
    x = np.arange(12.0).reshape(4, 3)
    npt.assert_allclose(mean(K, x), (np.asarray(normal(K, (4, 3))) * x).sum(0))
    slope = harp.jit(harp.grad(lambda m, s, k, x: ((m + s * normal(k, x.shape)) ** 2).sum(), argnums=(0, 1)))
    z = np.asarray(normal(K, 5))
    npt.assert_allclose(slope(1.0, 2.0, K, np.zeros(5)), [(2 * (1 + 2 * z)).sum(), (2 * z * (1 + 2 * z)).sum()])


@pytest.mark.parametrize("name", DRAWS)
def test_dtypes(name):
    assert DRAWS[name](K).dtype == np.float64
    assert DRAWS[name](K).shape == ()
    with pytest.raises(errors.DTypeError, match=f"{name} draws float32 or float64, not int64"):
        DRAWS[name](K, 3, int)
    with pytest.raises(errors.ShapeError, match="size -2 of axis 0 is negative"):
        DRAWS[name](K, -2)


def test_numbers_of_16_bits():
    found = normal(key(3), (1000,), "float16")
    assert found.dtype == np.float16
    assert np.array_equal(found, np.asarray(normal(key(3), (1000,), "float32")).astype("float16"))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype):
    """Of variance 1, whose real and imaginary parts are independent and alike; the same in programs."""
    count = 200_000
    z = np.asarray(normal(key(3), (count,), dtype))
    assert z.dtype == dtype
    bound = 5 / np.sqrt(count)
    assert abs(z.mean()) < bound and abs(np.mean(abs(z) ** 2) - 1) < bound * 2
    assert abs(np.mean(z * z)) < bound * 2  # 0 if both parts have one variance and no correlation
    compiled = harp.jit(lambda k: normal(k, (count,), dtype))
    npt.assert_allclose(np.asarray(compiled(key(3))), z, rtol=1e-5, atol=1e-6)
