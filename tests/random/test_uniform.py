"""Bits, floats, integers and coins: exactly what the words say, everywhere, and evenly distributed."""

import platform

import blocks
import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.backends.toolchain.toolchain import find_toolchain
from harp.random import bernoulli, bits, key, randint, split, uniform
from harp.random.uniform import scaled
from harp.trace.scalar.dtypes import u32, u64
from harp.trace.scalar.expr import Operand, evaluate

K = key(2024)
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = ("int8", "int16", "int32", "int64", *UNSIGNED)


def drawn(k, x):
    """All that is exact, of the sizes of x."""
    shape = x.shape
    return {
        **{f"bits {d}": bits(k, shape, d) for d in UNSIGNED},
        "float32": uniform(k, shape, "float32"),
        "float64": uniform(k, shape),
        "coins": bernoulli(k, 0.25, shape),
        **{f"integers {d}": randint(k, shape, 3, 100, d) for d in INTEGERS},
    }


compiled = harp.jit(drawn)


def expected(k, count):
    """The same by NumPy from a second implementation of the blocks."""
    high, low = blocks.words(k, count)
    wide = blocks.joined(k, count)
    floats = ((high >> np.uint64(5)) * np.uint64(2**26) + (low >> np.uint64(6))).astype(np.float64) * 2.0**-53
    result = {f"bits uint{n}": (high >> np.uint64(32 - n)).astype(f"uint{n}") for n in (8, 16, 32)}
    result |= {"bits uint64": wide, "float64": floats, "coins": floats < 0.25}
    result |= {"float32": ((high >> np.uint64(8)).astype(np.float32) * np.float32(2.0**-24))}
    small = [3 + (w * 97 >> 64) for w in wide.tolist()]
    large = [
        3 + ((a << 64 | b) * 97 >> 128) for a, b in zip(wide.tolist(), blocks.joined(k, count, 1).tolist(), strict=True)
    ]
    result |= {f"integers {d}": np.array(large if d[-2:] == "64" else small, d) for d in INTEGERS}
    return result


@settings(max_examples=20)
@given(shape=st.lists(st.integers(0, 7), min_size=2, max_size=2), seed=st.integers(0, 2**64 - 1))
def test_bits_are_the_same_everywhere(shape, seed):
    count = shape[0] * shape[1]
    right = expected(key(seed), count)
    for result in (drawn(key(seed), np.zeros(shape)), compiled(key(seed), np.zeros(shape))):
        assert result.keys() == right.keys()
        for name, value in result.items():
            npt.assert_array_equal(value, right[name].reshape(shape), err_msg=name, strict=True)
    assert compiled.compilations == 1


def test_an_element_depends_on_its_number_only():
    flat = np.asarray(compiled(K, np.zeros((1, 100_000)))["float64"]).ravel()
    npt.assert_array_equal(np.asarray(compiled(K, np.zeros((3, 33)))["float64"]).ravel(), flat[:99])
    npt.assert_array_equal(uniform(K, (2, 5, 7)), flat[:70].reshape(2, 5, 7))
    npt.assert_array_equal(uniform(K), flat[0])
    npt.assert_array_equal(uniform(K, 1000)[::-3], flat[:1000][::-3])
    assert compiled.compilations == 1


def test_any_number_of_threads_and_any_consumer_see_the_same_bits():
    one, four = (harp.jit(lambda k, x: uniform(k, x.shape, x.dtype) + x, threads=n) for n in (1, 4))
    x = np.zeros((300, 1001), np.float32)
    npt.assert_array_equal(one(K, x), four(K, x))
    npt.assert_array_equal(one(K, x)[299, 1000], uniform(K, x.shape, "float32")[299, 1000])
    rows = harp.jit(lambda k, x: (hnp.max(uniform(k, x.shape, x.dtype), axis=1), uniform(k, x.shape, x.dtype)[:, ::-1]))
    largest, backwards = rows(K, x)
    npt.assert_array_equal(largest, np.asarray(one(K, x)).max(1))
    npt.assert_array_equal(backwards, np.asarray(one(K, x))[:, ::-1])


@pytest.mark.skipif(find_toolchain() is None, reason="the interpreter computes all of the array")
def test_numbers_of_elements_beyond_32_bits():
    """Of a huge array only a few elements are computed."""
    tail = harp.jit(lambda k: bits(k, (2**40 + 3,), "uint64")[2**40 :])
    high, low = blocks.threefry(np.asarray(K), (np.full(3, 2**8), np.arange(3)))
    npt.assert_array_equal(tail(K), (high << np.uint64(32)) | low)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_is_evenly_distributed(dtype):
    sample = np.asarray(harp.jit(lambda k, x: uniform(k, x.shape, x.dtype))(K, np.zeros(100_000, dtype)))
    assert sample.dtype == dtype
    assert sample.min() >= 0
    assert sample.max() < 1
    assert stats.kstest(sample, "uniform").pvalue > 1e-3
    pairs = np.histogram2d(sample[::2], sample[1::2], bins=16, range=[[0, 1], [0, 1]])[0]
    assert stats.chisquare(pairs.ravel()).pvalue > 1e-3


def test_split_keys_are_not_correlated():
    sample = np.asarray([uniform(k, 4096) for k in split(K, 8)])
    correlation = np.corrcoef(sample)[~np.eye(8, dtype=bool)]
    assert np.abs(correlation).max() < 5 / np.sqrt(4096)


BOUNDED = harp.jit(lambda k, low, high, x: uniform(k, x.shape, x.dtype, low, high))


@settings(max_examples=30)
@given(data=st.data(), dtype=st.sampled_from(["float32", "float64"]))
def test_bounds_hold(data, dtype):
    width = 32 if dtype == "float32" else 64
    numbers = st.floats(-(2.0**99), 2.0**99, width=width)
    low, high = sorted([data.draw(numbers), data.draw(numbers)])
    bounds = np.asarray(low, dtype), np.asarray(high, dtype)
    for result in (BOUNDED(K, *bounds, np.zeros(200, dtype)), uniform(K, 200, dtype, *bounds)):
        result = np.asarray(result)
        assert result.dtype == dtype
        assert (result >= low).all()
        assert (result < high).all() if low < high else (result == low).all()
        exact = low + np.asarray(uniform(K, 200, dtype), np.longdouble) * (np.longdouble(high) - np.longdouble(low))
        near = max(abs(low), abs(high)) * np.finfo(dtype).eps * 2 + np.finfo(dtype).smallest_subnormal
        wrapped = (result == low) & (exact > high - near)
        assert (np.abs(result - exact) <= near)[~wrapped].all()


def test_a_narrow_interval_never_gives_its_end():
    """Every second number would round to it."""
    above = np.nextafter(np.float32(1), np.float32(2))
    assert set(np.asarray(uniform(K, 100, "float32", 1.0, above)).tolist()) == {1.0}


def test_bounds_are_arrays_and_have_gradients():
    low, high = np.array([[0.0], [5.0]]), np.array([1.0, 6.0, 7.0])
    sample = np.asarray(uniform(K, (2, 3), minval=low, maxval=high))
    unit = np.asarray(uniform(K, (2, 3)))
    expected = np.where(low < high, low + unit * (high - low), low)
    npt.assert_allclose(sample, expected)
    slopes = harp.jit(harp.grad(lambda a, b: uniform(K, 9, minval=a, maxval=b).sum(), argnums=(0, 1)))(-1.0, 3.0)
    total = float(uniform(K, 9).sum())
    npt.assert_allclose([float(s) for s in slopes], [9 - total, total])
    assert np.isnan(uniform(K, 2, minval=np.float64(np.nan))).all()
    assert np.isinf(uniform(K, 2, minval=np.float64(0), maxval=np.float64(np.inf))).any()


def exactly(words, span):
    bits_of = sum(w << 32 * k for k, w in enumerate(reversed(words)))
    return bits_of * span >> 32 * len(words)


EDGES = st.one_of(st.sampled_from([0, 1, 2**31, 2**32 - 2, 2**32 - 1]), st.integers(0, 2**32 - 1))


@settings(max_examples=200)
@given(
    words=st.lists(EDGES, min_size=4, max_size=4), last=st.one_of(st.integers(0, 2**64 - 1), EDGES), four=st.booleans()
)
def test_products_of_many_bits(words, last, four):
    words, last = (words, last) if four else (words[:2], last % 2**32)
    values = [np.asarray(w, np.uint32) for w in words] + [np.asarray(last, np.uint64)]
    e = scaled([Operand(u32, k) for k in range(len(words))], Operand(u64, len(words)))
    assert int(evaluate(e, lambda leaf: values[leaf.slot])) == exactly(words, last + 1)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_integers_of_a_dtype(dtype):
    limits = np.iinfo(dtype)
    low, end = int(limits.min), int(limits.max) + 1
    whole = np.asarray(randint(K, 500, low, end, dtype))
    assert whole.dtype == dtype
    assert whole.min() < low + (end - low) // 50
    assert whole.max() > end - (end - low) // 50
    assert (np.asarray(randint(K, 5, end - 1, end, dtype)) == end - 1).all()
    assert (np.asarray(randint(K, 5, low, low + 1, dtype)) == low).all()
    empty = randint(K, 5, np.asarray(7, dtype), np.asarray(limits.min, dtype), dtype)
    assert (np.asarray(empty) == 7).all()


def test_integers_are_evenly_distributed():
    counts = np.bincount(np.asarray(randint(K, 60_000, 10, 23)), minlength=23)
    assert not counts[:10].any()
    assert stats.chisquare(counts[10:]).pvalue > 1e-3


def test_integer_bounds_are_arrays_and_sizes():
    low, high = np.array([[0], [10]]), np.array([5, 11, 20])
    sample = np.asarray(randint(K, (50, 2, 3), low, high))
    assert ((sample >= low) & ((sample < high) | (low >= high) & (sample == low))).all()
    npt.assert_array_equal(harp.jit(lambda k, a, b: randint(k, (50, 2, 3), a, b))(K, low, high), sample)
    of_size = harp.jit(lambda k, x: randint(k, 20, 0, x.shape[0]))
    npt.assert_array_equal(of_size(K, np.zeros(5)), randint(K, 20, 0, 5))
    traced = harp.jit(lambda k, n: randint(k, 20, 0, n, "int32"))
    npt.assert_array_equal(traced(K, 9), randint(K, 20, 0, 9, "int32"))
    with pytest.raises(errors.IntegerRangeError):
        traced(K, 2**31)


def test_coins():
    chances = np.array([0.0, 0.25, 1.0, -1.0, 2.0, np.nan])
    tossed = np.asarray(bernoulli(K, chances, (4000, 6)))
    assert tossed.dtype == bool
    npt.assert_array_equal(tossed[:, [0, 2, 3, 4, 5]].all(0), [False, True, False, True, False])
    npt.assert_array_equal(tossed[:, [0, 2, 3, 4, 5]].any(0), [False, True, False, True, False])
    assert abs(tossed[:, 1].mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 4000)
    assert bernoulli(K, chances).shape == (6,)
    assert bernoulli(K).shape == ()
    npt.assert_array_equal(harp.jit(bernoulli)(K, 0.5), bernoulli(K, 0.5))
    assert bernoulli(K, np.zeros((2, 0), np.float32)).shape == (2, 0)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: bits(K, 3, "int32"), errors.DTypeError, "bits are uint8, uint16, uint32 or uint64, not int32"),
        (lambda: uniform(K, -1), errors.ShapeError, "size -1 of axis 0 is negative"),
        (lambda: uniform(K, (2, 1.5)), errors.ShapeError, "size 1.5 of axis 1 is not an integer"),
        (lambda: uniform(K, 3, "int32"), errors.DTypeError, "uniform draws float32 or float64, not int32"),
        (lambda: uniform(K, 3, minval=2.0), errors.ArgumentError, "to a larger maxval, not 2.0 to 1.0"),
        (lambda: uniform(K, 3, maxval=float("inf")), errors.ArgumentError, "to a larger maxval, not 0.0 to inf"),
        (lambda: uniform(K, 3, minval=np.zeros(2)), errors.ShapeError, "axis 0"),
        (lambda: bernoulli(K, 1.5), errors.ArgumentError, "a probability p from 0 to 1, not 1.5"),
        (lambda: bernoulli(K, float("nan")), errors.ArgumentError, "a probability p from 0 to 1, not nan"),
        (lambda: bernoulli(K, np.zeros(3), 2), errors.ShapeError, "axis 0"),
        (lambda: randint(K, 3, 0, 5, "float32"), errors.DTypeError, "randint draws integers, not float32"),
        (lambda: randint(K, 3, 5, 5), errors.ArgumentError, "not 5 to 5"),
        (lambda: randint(K, 3, 0, 257, "uint8"), errors.IntegerRangeError, "maxval 257 does not fit uint8"),
        (lambda: randint(K, 3, -1, 5, "uint8"), errors.IntegerRangeError, "minval -1 does not fit uint8"),
        (lambda: randint(K, 3, 0, 2.5), errors.DTypeError, "maxval of randint must be an integer"),
        (lambda: randint(K, 3, np.zeros(3, int), 5, "int8"), errors.DTypeError, "int64, which may not fit int8"),
    ],
)
def test_errors(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86")
def test_bits_are_the_same_without_vectors_and_fused_operations():
    options = harp.CompileOptions(optimize=1, extra_flags=("-mno-avx512f", "-mno-avx2", "-mno-avx", "-mno-fma"))
    plain = harp.jit(drawn, options=options)(K, np.zeros((7, 9)))
    for name, value in compiled(K, np.zeros((7, 9))).items():
        npt.assert_array_equal(plain[name], value, err_msg=name)


def test_without_a_shape_it_is_that_of_the_bounds():
    key, low = harp.random.key(0), np.zeros((2, 1))
    assert harp.random.uniform(key, None, np.float64, low, np.ones(3)).shape == (2, 3)
    assert harp.random.uniform(key, None).shape == ()
    assert harp.random.randint(key, None, low.astype(int), np.full(3, 5)).shape == (2, 3)
    assert harp.random.randint(key, None, 0, 5).shape == ()
