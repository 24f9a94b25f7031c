"""Categories are chosen as often as their logits say."""

import numpy as np
import numpy.testing as npt
import pytest
from scipy import special, stats

import harp
import harp.numpy as hnp
from harp import errors
from harp.random import categorical, gumbel, key

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
    ],
)
def test_errors(draw, error, message):
    with pytest.raises(error, match=message):
        draw()
