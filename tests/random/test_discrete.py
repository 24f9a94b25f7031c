"""Categories are chosen as often as their logits say; orders and samples are those of a second implementation."""

import itertools

import blocks
import numpy as np
import numpy.testing as npt
import pytest
from scipy import special, stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.random import categorical, choice, gumbel, key, permutation, randint, split

K = key(11)
compiled = harp.jit(lambda k, logits, x: categorical(k, logits, shape=x.shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_categories(dtype):
    logits = np.log(np.array([0.1, 0.4, 0.0, 0.25, 0.25]) + 0.0, where=[1, 1, 0, 1, 1], out=np.full(5, -np.inf))
    chosen = compiled(K, (logits + 300).astype(dtype), np.zeros(20_000))
    assert chosen.dtype == np.int64
    counts = np.bincount(np.asarray(chosen), minlength=5)
    assert counts[2] == 0
    assert stats.chisquare(counts[[0, 1, 3, 4]], 20_000 * special.softmax(logits)[[0, 1, 3, 4]]).pvalue > 1e-3


def test_it_is_the_largest_of_gumbel_numbers():
    logits = np.linspace(-1, 1, 24).reshape(2, 3, 4)
    for axis in (0, 1, 2, -1):
        expected = np.argmax(logits + np.asarray(gumbel(K, (2, 3, 4))), axis)
        npt.assert_array_equal(categorical(K, logits, axis), expected)
        npt.assert_array_equal(harp.jit(lambda k, a, axis=axis: categorical(k, a, axis))(K, logits), expected)
    drawn = categorical(K, logits, 1, (5, 2, 4))
    npt.assert_array_equal(drawn, np.argmax(logits + np.asarray(gumbel(K, (5, 2, 3, 4))), 2))
    assert categorical(K, logits[:, :, :1], 1, (6, 2, 4)).shape == (6, 2, 4)


def test_sizes_share_a_program():
    draw = harp.jit(lambda k, a: categorical(k, a))
    for shape in ((3, 4), (0, 4), (1, 1), (5, 1), (2, 7)):
        a = np.arange(float(np.prod(shape))).reshape(shape)
        npt.assert_array_equal(draw(K, a), np.argmax(a + np.asarray(gumbel(K, shape)), -1))
    assert draw.compilations == 1


def test_derivatives_flow_through_the_relaxed_form():
    """A softmax of logits plus Gumbel numbers, instead of the largest."""
    logits = np.array([0.5, -1.0, 2.0])
    weights = np.array([1.0, 2.0, 4.0])
    soft = harp.grad(lambda a: hnp.sum(hnp.softmax((a + gumbel(K, 3)) / 0.5) * weights))(logits)
    p = special.softmax((logits + np.asarray(gumbel(K, 3))) / 0.5)
    npt.assert_allclose(soft, p * (weights - p @ weights) / 0.5)


@pytest.mark.parametrize(
    ("draw", "error", "message"),
    [
        (lambda: categorical(K, 1.0), errors.ShapeError, "takes logits along an axis, not one number"),
        (lambda: categorical(K, np.zeros((3, 0))), errors.ShapeError, "axis 1 of size 0 has no value"),
        (lambda: categorical(K, np.zeros(3), 1), errors.AxisError, "axis 1 is out of range"),
        (lambda: categorical(K, np.zeros((2, 3)), shape=()), errors.ShapeError, "0 axes, and the logits 1"),
        (lambda: categorical(K, np.zeros((2, 3)), shape=4), errors.ShapeError, "axis 0"),
        (lambda: permutation(K, 2.5), errors.ArgumentError, "an array with an axis, or an integer that is known"),
        (lambda: permutation(K, -1), errors.ArgumentError, "a number of at least 0, not -1"),
        (lambda: permutation(K, np.zeros(3), 1), errors.AxisError, "axis 1 is out of range"),
        (lambda: choice(K, 3, 4, replace=False), errors.ShapeError, "without replace draws 4 from 3"),
        (lambda: choice(K, 3, p=np.ones(2)), errors.ShapeError, "a weight for each of 3, not an array of shape"),
        (lambda: harp.jit(lambda n: permutation(K, n))(3), errors.ArgumentError, "an integer that is known"),
    ],
)
def test_errors(draw, error, message):
    with pytest.raises(error, match=message):
        draw()


orders = harp.jit(
    lambda k, x: (permutation(k, x), permutation(k, x.shape[0]), permutation(k, x, 1), permutation(k, x, -1, True))
)


@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (1, 1), (300, 2), (4, 0)])
def test_orders_are_those_of_random_bits(shape):
    x = np.arange(float(np.prod(shape))).reshape(shape)
    rows, columns = (np.argsort(blocks.joined(K, n), kind="stable") for n in shape)
    own = np.argsort(blocks.joined(K, x.size).reshape(shape), axis=-1, kind="stable")
    expected = (x[rows], rows, x[:, columns], np.take_along_axis(x, own, axis=-1))
    eager = permutation(K, x), permutation(K, shape[0]), permutation(K, x, 1), permutation(K, x, -1, True)
    for found in (eager, orders(K, x)):
        for ours, theirs in zip(found, expected, strict=True):
            npt.assert_array_equal(ours, theirs)
    assert orders.compilations == 1


def test_all_orders_are_equally_likely():
    found = np.asarray(harp.jit(harp.vmap(lambda k: permutation(k, 4)))(split(K, 24_000)))
    counts = [int(np.sum(np.all(found == order, axis=1))) for order in itertools.permutations(range(4))]
    assert stats.chisquare(counts).pvalue > 1e-3


def test_a_batch_draws_what_each_key_draws():
    keys, p = split(K, 5), np.array([0.5, 0.0, 2.0, 1.0])
    for draw in (
        lambda k: permutation(k, 4),
        lambda k: choice(k, 4, 3, p=p),
        lambda k: choice(k, 4, 3, replace=False, p=p),
    ):
        npt.assert_array_equal(harp.vmap(draw)(keys), [np.asarray(draw(k)) for k in keys])


def test_choice_with_replacement():
    x = np.arange(12.0).reshape(3, 4)
    places = np.asarray(randint(K, (2, 5), 0, 4))
    npt.assert_array_equal(choice(K, x, (2, 5), axis=1), x[:, places])
    p = np.array([0.0, 2.0, 5.0, 0.0, 3.0, 0.0])
    for dtype in ("float32", "float64"):
        drawn = harp.jit(lambda k, p: choice(k, 6, 20_000, p=p))(K, p.astype(dtype))
        counts = np.bincount(np.asarray(drawn), minlength=6)
        assert counts[p == 0].sum() == 0
        assert stats.chisquare(counts[p > 0], 2000 * p[p > 0]).pvalue > 1e-3


def test_choice_without_replacement():
    p = np.array([1.0, 2.0, 5.0])
    draw = harp.jit(harp.vmap(lambda k: choice(k, 3, 2, replace=False, p=p)))
    found = np.asarray(draw(split(K, 20_000)))
    pairs = list(itertools.permutations(range(3), 2))
    counts = [int(np.sum(np.all(found == pair, axis=1))) for pair in pairs]
    chances = [p[a] / 8 * p[b] / (8 - p[a]) for a, b in pairs]
    assert stats.chisquare(counts, 20_000 * np.array(chances)).pvalue > 1e-3
    x = np.arange(20.0)
    npt.assert_array_equal(choice(K, x, (3, 4), replace=False), np.asarray(permutation(K, x))[:12].reshape(3, 4))
    assert sorted(choice(K, 3, 3, replace=False, p=np.array([0.0, 1.0, 0.0])).tolist()) == [0, 1, 2]


def test_samples_of_all_sizes_are_one_program():
    draw = harp.jit(lambda k, x, like: choice(k, x, like.shape, replace=False))
    for n, m in ((5, 2), (7, 7), (100, 3)):
        drawn = np.asarray(draw(K, np.arange(n), np.zeros(m)))
        assert len({*drawn.tolist()}) == m and set(drawn.tolist()) <= set(range(n))
    assert draw.compilations == 1


def test_derivatives_of_a_sample():
    x = np.array([1.0, 2.0, 4.0])
    order = np.asarray(permutation(K, 3))
    weights = np.array([1.0, 10.0, 100.0])
    found = harp.jit(harp.grad(lambda x: hnp.sum(permutation(K, x) * weights)))(x)
    npt.assert_array_equal(np.asarray(found)[order], weights)
