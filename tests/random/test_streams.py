"""Keys are arrays: made from integers of all sorts, split, combined with data, and passed around as any array is."""

import itertools

import blocks
import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
from harp import errors
from harp.random import bits, fold_in, key, normal, split, uniform

K = key(20)
SEEDS = st.integers(-(2**63), 2**64 - 1)


@settings(max_examples=50)
@given(seed=SEEDS)
def test_a_seed_is_the_two_words(seed):
    expected = [seed >> 32 & 0xFFFFFFFF, seed & 0xFFFFFFFF]
    assert key(seed).tolist() == expected
    assert key(seed).dtype == np.uint32
    wide = np.uint64(seed) if seed >= 0 else np.int64(seed)
    assert key(wide).tolist() == expected


def test_seeds_of_all_sorts():
    traced = harp.jit(key)
    for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        for seed in (0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min):
            number = np.asarray(seed, dtype)
            assert key(number).tolist() == key(int(seed)).tolist() == traced(number).tolist()
    assert traced(-3).tolist() == key(-3).tolist()
    assert harp.jit(lambda x: key(x.shape[0]))(np.zeros(7)).tolist() == key(7).tolist()


@pytest.mark.parametrize(
    ("seed", "error", "message"),
    [
        (1.0, errors.ArgumentError, "a seed must be an integer, not 1.0 of type float"),
        (True, errors.ArgumentError, "a seed must be an integer"),
        ("a", errors.ArgumentError, "a seed must be an integer"),
        (None, errors.ArgumentError, "a seed must be an integer"),
        (np.float32(1), errors.DTypeError, "a seed must be an integer, not float32"),
        (np.arange(2), errors.ShapeError, "a seed is one number, not an array with 1 axis"),
        (2**64, errors.IntegerRangeError, "a seed has up to 64 bits"),
        (-(2**63) - 1, errors.IntegerRangeError, "a seed has up to 64 bits"),
    ],
)
def test_what_is_no_seed(seed, error, message):
    with pytest.raises(error, match=message):
        key(seed)
    if not isinstance(seed, float):
        with pytest.raises(error, match=message.replace("a seed", "data to fold in")):
            fold_in(K, seed)


def test_a_traced_float_is_no_seed():
    with pytest.raises(errors.DTypeError, match="a seed must be an integer, not float64"):
        harp.jit(key)(1.5)


@pytest.mark.parametrize("draw", [lambda k: uniform(k, 3), split, lambda k: fold_in(k, 1), bits, lambda k: normal(k)])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (7, errors.ArgumentError, r"made by harp.random.key\(seed\), not 7"),
        ([0, 7], errors.ArgumentError, r"made by harp.random.key\(seed\), not \[0, 7\]"),
        (np.zeros(2, np.int64), errors.DTypeError, "an array of uint32 made by .*, not of int64"),
        (np.zeros(3, np.uint32), errors.ShapeError, r"a key has shape \(2,\), not \(3,\)"),
        (
            np.zeros((5, 2), np.uint32),
            errors.ShapeError,
            r"a key has shape .*, not \(.*\); index several keys to get one",
        ),
        (np.zeros((), np.uint32), errors.ShapeError, r"a key has shape \(2,\)"),
    ],
)
def test_what_is_no_key(draw, given, error, message):
    with pytest.raises(error, match=message):
        draw(given)
    if isinstance(given, np.ndarray):
        with pytest.raises(error, match="a key "):
            harp.jit(draw)(given)


def test_a_traced_key_has_two_words():
    drawn = harp.jit(lambda k: bits(k, 4))
    npt.assert_array_equal(drawn(K), bits(K, 4))
    with pytest.raises(errors.ShapeError, match="a key has shape"):
        drawn(np.zeros(3, np.uint32))


def test_split():
    keys = split(K, 10)
    assert keys.shape == (10, 2)
    assert keys.dtype == np.uint32
    expected = blocks.threefry(np.asarray(K), (np.full(10, 1 << 31), np.arange(10)))
    npt.assert_array_equal(keys, np.stack(expected, 1))
    first, second = split(K)
    npt.assert_array_equal([first, second], keys[:2])
    npt.assert_array_equal(split(K, (5, 2)), np.asarray(keys).reshape(5, 2, 2))
    assert split(K, 0).shape == (0, 2)
    assert split(K, ()).shape == (2,)
    with pytest.raises(errors.ShapeError, match="size -1 of axis 0 is negative"):
        split(K, -1)


def test_nothing_repeats():
    """Numbers, split keys and keys with data folded in come from different counters."""
    words = [np.asarray(bits(K, 1000, "uint64"))]
    for keys in (split(K, 1000), [fold_in(K, i) for i in range(-50, 50)], [K]):
        words.append(np.asarray(keys, np.uint64) @ np.array([2**32, 1], np.uint64))
    words.append(np.asarray(bits(split(K)[0], 1000, "uint64")))
    assert len(np.unique(np.concatenate(words))) == sum(map(len, words))


def test_fold_in():
    given = [0, 1, 2**32, -1, 2**63, 2**64 - 2]
    folded = [tuple(fold_in(K, data).tolist()) for data in given]
    assert len({*folded}) == len(given)
    traced = harp.jit(fold_in)
    npt.assert_array_equal([traced(K, np.asarray(data, np.int64)) for data in (0, 1, 2**32, -1)], folded[:4])
    npt.assert_array_equal(traced(K, np.uint64(2**64 - 2)), folded[5])
    base = blocks.threefry(np.asarray(K), (3 << 30, 0))
    assert folded[2] == tuple(map(int, blocks.threefry(base, (1, 0))))


def test_keys_are_ordinary_arrays():
    """They go through jit in trees, come back, are donated, and one program serves any number of them."""

    @harp.jit
    def step(state, x):
        k, draw = split(state["key"])
        return {"key": k, "total": state["total"] + uniform(draw, x.shape).sum()}

    state, expected, k = {"key": K, "total": 0.0}, 0.0, K
    for n in (3, 0, 1, 5):
        state = step(state, np.zeros(n))
        k, draw = split(k)
        expected += float(uniform(draw, n).sum())
    npt.assert_array_equal(state["key"], k)
    npt.assert_allclose(float(state["total"]), expected)
    assert step.compilations == 1

    many = harp.jit(lambda k, x: split(k, x.shape[0]))
    for n in (0, 1, 2, 1000):
        npt.assert_array_equal(many(K, np.zeros(n)), split(K, n))
    assert many.compilations == 1
    given_up = harp.jit(lambda k: fold_in(k, 1), donate_argnums=0)
    mine = key(9)
    npt.assert_array_equal(given_up(mine), fold_in(key(9), 1))
    with pytest.raises(errors.DonatedError):
        uniform(mine)


def test_gradients_pass_keys_by():
    slope = harp.grad(lambda w, k: (w * normal(k, 3)).sum())
    npt.assert_allclose(slope(2.0, K), np.asarray(normal(K, 3)).sum())
    with pytest.raises(errors.IntegerGradientError):
        harp.grad(lambda k: uniform(k))(K)


def test_related_keys_are_not_alike():
    """Seeds that differ in one bit, keys of one split, and steps of one key: half of the bits differ."""
    families = itertools.chain(
        [(key(3), key(3 ^ 1 << bit)) for bit in range(0, 64, 7)],
        itertools.pairwise(split(K, 20)),
        itertools.pairwise(fold_in(K, i) for i in range(20)),
    )
    for a, b in families:
        differing = np.bitwise_xor(np.asarray(bits(a, 256)), np.asarray(bits(b, 256)))
        count = int(np.unpackbits(differing.view(np.uint8)).sum())
        assert abs(count - 4096) < 5 * np.sqrt(8192 / 4), (a, b, count)
